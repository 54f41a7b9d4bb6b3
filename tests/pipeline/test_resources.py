"""The preflight of resources: a pool that cannot start is refused in words."""

from __future__ import annotations

import pytest

from rvt_ray.config import load_config
from rvt_ray.errors import ConfigError
from rvt_ray.pipeline.resources import check_resources, devices_of, rows_in_flight
from rvt_ray.records import Stage

TWO_CORES = {"CPU": 2.0, "memory": 8 * 1024**3}


GIB = 1024**3


def check(
    *overrides: str,
    there: dict[str, float] = TWO_CORES,
    stages: list[Stage] | None = None,
    nodes: list[dict[str, float]] | None = None,
) -> None:
    check_resources(load_config(None, overrides), stages or list(Stage), there, nodes)


def gpus(number: float) -> dict[str, float]:
    return {"CPU": 16.0, "GPU": number, "memory": 64.0 * GIB}


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


def test_trap_19_shares_of_a_gpu_are_packed_by_gpu() -> None:
    """Five times 0.4 is two GPUs on paper; Ray would wait for ever, since a GPU holds two of 0.4."""
    share = "run.perceive.num_gpus=0.4"
    check(share, "run.perceive.actors=4", there=gpus(2))
    with pytest.raises(
        ConfigError, match=r"only 4 fit.*share of a GPU on one GPU: set run.perceive.actors=4"
    ):
        check(share, "run.perceive.actors=5", there=gpus(2))
    check("run.perceive.num_gpus=0.5", "run.caption.num_gpus=0.25", "run.caption.actors=8", there=gpus(2))
    check("run.perceive.num_gpus=0.3333", "run.perceive.actors=3", there=gpus(1))


def test_an_actor_of_several_gpus_needs_a_node_that_has_them() -> None:
    wide = ["run.generate.num_gpus=4", "run.generate.actors=2"]
    check(*wide, there=gpus(8), nodes=[gpus(8)])
    check(*wide, there=gpus(8), nodes=[gpus(4), gpus(4)])
    with pytest.raises(ConfigError, match=r"generate: of 2 actor.*num_gpus 4 each only 1 fit"):
        check(*wide, there=gpus(8), nodes=[gpus(6), gpus(2)])


def test_cores_that_no_single_node_has_are_refused() -> None:
    there = {"CPU": 8.0, "memory": 64.0 * GIB}
    nodes = [{"CPU": 4.0, "memory": 32.0 * GIB}] * 2
    check("run.index.num_cpus=4", "run.index.actors=2", there=there, nodes=nodes)
    with pytest.raises(ConfigError, match=r"index: of 1 actor.*only 0 fit.*lower run.index's sizes"):
        check("run.index.num_cpus=5", there=there, nodes=nodes)


@pytest.mark.parametrize(
    ("num_gpus", "actors", "rows", "devices"),
    [(0, 3, 9, 3), (0.5, 4, 9, 2), (0.5, 4, 1, 1), (0.4, 3, 9, 2), (1, 4, 9, 4), (1, 4, 2, 2), (4, 2, 9, 2)],
)
def test_devices_are_what_the_actors_share(num_gpus: float, actors: int, rows: int, devices: float) -> None:
    pool = load_config(
        None, [f"run.perceive.num_gpus={num_gpus}", f"run.perceive.actors={actors}"]
    ).run.perceive
    assert devices_of(pool, rows) == devices


VLLM = "generate.llm.backend=vllm"


@pytest.mark.parametrize(
    ("overrides", "rows"),
    [((), 1), ((VLLM,), 8), (("run.in_flight=3",), 3), ((VLLM, "run.in_flight=64"), 64)],
)
def test_rows_share_a_process_only_where_a_model_is_waited_for(overrides: tuple[str, ...], rows: int) -> None:
    config = load_config(None, overrides)
    assert rows_in_flight(config, Stage.GENERATE) == rows
    assert rows_in_flight(config, Stage.CAPTION) == (config.run.in_flight or 8)
