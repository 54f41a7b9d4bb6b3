"""The preflight of resources: a pool that cannot start is refused in words."""

from __future__ import annotations

import pytest

from rvt_ray.config import load_config
from rvt_ray.errors import ConfigError
from rvt_ray.pipeline.resources import check_resources
from rvt_ray.records import Stage

TWO_CORES = {"CPU": 2.0, "memory": 8 * 1024**3}


def check(*overrides: str, there: dict[str, float] = TWO_CORES, stages: list[Stage] | None = None) -> None:
    check_resources(load_config(None, overrides), stages or list(Stage), there)


def test_the_defaults_fit_two_cores() -> None:
    check()


def test_graphs_run_one_after_the_other_so_each_has_the_whole_machine() -> None:
    check("run.index.actors=2", "run.perceive.actors=2", "run.generate.actors=2")


def test_fractions_add_up() -> None:
    check("run.perceive.actors=4", "run.perceive.num_cpus=0.5")
    with pytest.raises(ConfigError, match=r"5 actor\(s\) x num_cpus 0.5 = 2.5.*at most 4"):
        check("run.perceive.actors=5", "run.perceive.num_cpus=0.5")


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        check("run.perceive.num_gpus=1", "run.generate.memory_gb=100", "run.index.num_cpus=3")
    text = str(error.value)
    assert "perceive: 1 actor(s) x num_gpus 1 = 1, but Ray has 0" in text
    assert "generate: 1 actor(s) x memory_gb 100 = 100, but Ray has 8" in text
    assert "index: 1 actor(s) x num_cpus 3 = 3, but Ray has 2: lower run.index.num_cpus" in text


def test_a_stage_that_is_not_run_needs_nothing() -> None:
    check("run.perceive.num_gpus=1", stages=[Stage.GENERATE])


def test_one_and_a_half_gpus_are_refused() -> None:
    with pytest.raises(ConfigError, match="whole numbers only"):
        check("run.perceive.num_gpus=1.5", there={"CPU": 8.0, "GPU": 8.0})
