from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvt_ray.config import Config, fingerprint, load_config
from rvt_ray.errors import ConfigError
from rvt_ray.records import Stage


def test_an_unknown_key_is_refused_with_the_nearest_valid_name() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'perceive\.segmnt'; did you mean 'segment'"):
        load_config(None, ["perceive.segmnt.backend=motion"])


def test_an_unknown_key_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("run: {max_atempts: 2}\n")
    with pytest.raises(
        ConfigError, match=r"c\.yaml: unknown key 'run\.max_atempts'; did you mean 'max_attempts'"
    ):
        load_config(path)


def test_an_unknown_key_inside_a_list_is_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match=r"sources\.0\.licence.*did you mean 'license'"):
        load_config(None, ["sources=[{path: x, licence: MIT}]"])


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("seed", "write it as a.b=value"),
        ("seed.x=1", "seed"),
        ("sources.3.path=x", "sources"),
        ("seed=[", "YAML"),
    ],
)
def test_a_malformed_override_says_what_is_wrong(override: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("seed: 1\nsources: [{path: a}]\n")
    with pytest.raises(ConfigError, match=said):
        load_config(path, [override])


@pytest.mark.parametrize("text", ["- a\n", "a: [", "seed: many\n"])
def test_a_config_that_is_no_config_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"c\.yaml"):
        load_config(path)


def test_a_missing_config_names_the_file() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot read"):
        load_config("nowhere.yaml")


def test_overrides_reach_list_items_and_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("seed: 1\nsources: [{path: a}]\n")
    config = load_config(path, ["seed=7", "sources.0.license=CC-BY-4.0", "index.max_side=320"])
    assert (config.seed, config.sources[0].license, config.index.max_side) == (7, "CC-BY-4.0", 320)


def changed(overrides: list[str]) -> set[Stage]:
    base, other = Config(), load_config(None, overrides)
    return {stage for stage in Stage if fingerprint(base, stage) != fingerprint(other, stage)}


@pytest.mark.parametrize(
    ("override", "stages"),
    [
        ("run.max_attempts=9", set()),
        ("run.perceive.actors=4", set()),
        ("generate.llm.cache=/tmp/x", set()),
        ("sources=[{path: x}]", set()),
        ("generate.llm.backend=vllm", {Stage.GENERATE}),
        ("perceive.depth.backend=annotations", {Stage.PERCEIVE, Stage.CAPTION, Stage.GENERATE}),
        ("index.max_side=128", {Stage.INDEX, Stage.PERCEIVE, Stage.CAPTION, Stage.GENERATE}),
        ("seed=1", {Stage.PERCEIVE, Stage.CAPTION, Stage.GENERATE}),
        ("run.caption.actors=4", set()),
        ("agent.planner=rules", {Stage.SOLVE}),
        ("agent.llm.cache=/tmp/x", set()),
        ("generate.facts.near_distance=0.1", {Stage.GENERATE, Stage.SOLVE}),
    ],
)
def test_a_setting_changes_exactly_the_fingerprints_it_can_change_results_of(
    override: str, stages: set[Stage]
) -> None:
    assert changed([override]) == stages


@given(st.dictionaries(st.sampled_from(["seed", "index.max_side"]), st.integers(16, 2**31), max_size=2))
def test_the_resolved_config_round_trips_through_its_own_dump(values: dict[str, int]) -> None:
    config = load_config(None, [f"{k}={v}" for k, v in values.items()])
    assert Config.model_validate(config.model_dump(mode="json")) == config


def test_an_edited_lexicon_is_another_setting_and_a_moved_one_is_not(tmp_path: Path) -> None:
    def prints(path: Path) -> tuple[str, ...]:
        config = load_config(None, [f"generate.queries.lexicon={path}"])
        return tuple(fingerprint(config, stage) for stage in Stage)

    mine, moved = tmp_path / "mine.json", tmp_path / "moved.json"
    mine.write_text('{"kinds": {"scooter": {}}}')
    before = prints(mine)
    moved.write_bytes(mine.read_bytes())
    assert prints(moved) == before
    mine.write_text('{"kinds": {"scooter": {"synonyms": ["moped"]}}}')
    changed = {stage for stage, a, b in zip(Stage, before, prints(mine), strict=True) if a != b}
    assert changed == {Stage.GENERATE, Stage.SOLVE}
    mine.unlink()
    with pytest.raises(ConfigError, match=r"generate\.queries\.lexicon: cannot read .*mine\.json"):
        prints(mine)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("levels=[]", r"levels: List should have at least 1 item"),
        ("levels=[0]", r"levels\.0: Input should be greater than or equal to 1"),
        ("levels=[1, 5]", r"levels\.1: Input should be less than or equal to 4"),
        ("levels=[2, 1, 2]", r"levels: .*2 stands there twice"),
        ("tasks=[]", r"tasks: List should have at least 1 item"),
        ("tasks=[vqa, vqa]", r"tasks: .*vqa stands there twice"),
    ],
)
def test_levels_and_tasks_that_nothing_can_have_are_refused(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"generate\.queries\.{said}"):
        load_config(None, [f"generate.queries.{override}"])
