"""The agent over a corpus: blind to the truth, resumable, failures recorded, scored in the evaluation's
form."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rvt_ray.agent import Agent
from rvt_ray.config import Config, load_config
from rvt_ray.corpus import Corpus, CorpusError
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.evaluation.predictions import Predictions
from rvt_ray.pipeline.ledger import Ledger
from rvt_ray.pipeline.own_twins import OwnTwins
from rvt_ray.pipeline.solve_corpus import SolveWorker, model_name, question_rows, solve_corpus
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import PREDICTION_SCHEMA, Sample, Stage
from rvt_ray.synthetic import random_scene, write_clip
from rvt_ray.video import SourceItem, index_video
from tests.agent.scenes import ask
from tests.corpora import write_corpus
from tests.pipeline.test_kill import Drivers

SEEDS = (30, 31)
POISON = "arsenic"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenes = [ask(seed) for seed in SEEDS]
    samples = [a.sample for scene in scenes for a in scene.asked]
    root = tmp_path_factory.mktemp("solve") / "corpus"
    return write_corpus(root, [s.clip for s in scenes], [s.twin for s in scenes], samples)


def inline(corpus: Path, out: Path, config: Config | None = None) -> dict[str, pa.Table]:
    """Every clip's predictions, made in this process, by key."""
    worker = SolveWorker(config or Config(), Storage(out))
    return {row.key: asyncio.run(worker.work(row)).table for row in question_rows(Corpus(corpus))}


def poisoned(sample: Sample) -> dict[str, Any]:
    """The sample's row with everything wrong that the agent must not see."""
    row = sample.to_row()
    row["program"] = POISON
    row["tree"] = {"tree_id": POISON, "nodes": [], "edges": []}
    row["target_ids"] = [999]
    row["answer"] = POISON
    row["evidence"] = [{"fact_id": POISON, "statement": POISON, "margin": -1.0, "frames": [0]}]
    row["masks"] = [POISON] if row["masks"] is not None else None
    row["boxes"] = [[{"x": 0.0, "y": 0.0, "w": 1.0, "h": 1.0}]] if row["boxes"] is not None else None
    row["task"], row["categories"], row["level"], row["paraphrases"] = POISON, [POISON], 99, [POISON]
    return row


def test_the_truth_may_be_poison_and_changes_no_prediction(corpus: Path, tmp_path: Path) -> None:
    clean = inline(corpus, tmp_path / "a")
    scenes = [ask(seed) for seed in SEEDS]
    bad = write_corpus(tmp_path / "bad", [s.clip for s in scenes], [s.twin for s in scenes], [])
    rows = [poisoned(a.sample) for s in scenes for a in s.asked]
    table = pa.Table.from_pylist(rows, schema=Sample.SCHEMA)
    pq.write_table(table, bad / "samples" / "part-00000-of-00001.parquet", row_group_size=3)
    again = inline(bad, tmp_path / "b")
    assert clean.keys() == again.keys()
    assert all(clean[key].equals(again[key]) for key in clean)
    assert sum(t.num_rows for t in clean.values()) == len(rows) > 12
    assert any(t.column("target_ids").to_pylist() != [[]] * t.num_rows for t in clean.values())
    for row in question_rows(Corpus(bad)):
        assert POISON not in row.payload


def test_predictions_are_what_the_evaluation_reads(corpus: Path, tmp_path: Path) -> None:
    tables = inline(corpus, tmp_path / "o")
    folder = tmp_path / "predictions"
    folder.mkdir()
    pq.write_table(pa.concat_tables(tables.values()), folder / "part.parquet")
    given, source = Predictions(folder), Corpus(corpus)
    for clip in source.clips():
        for sample in source.samples(clip.clip_id):
            prediction = given.of(sample, clip)
            assert not sample.answer or prediction.answer
    assert given.finish() == []


def test_a_corpus_twin_and_an_own_one_are_told_apart() -> None:
    own = load_config(None, ["agent.twin=own"])
    assert model_name(Config()) != model_name(own)
    assert "own twins" in model_name(own)
    from rvt_ray.config import fingerprint

    assert fingerprint(Config(), Stage.SOLVE) != fingerprint(own, Stage.SOLVE)
    looked = load_config(None, ["perceive.key_frame_interval_s=3"])
    assert fingerprint(Config(), Stage.SOLVE) == fingerprint(looked, Stage.SOLVE)
    looked = load_config(None, ["perceive.key_frame_interval_s=3", "agent.twin=own"])
    assert fingerprint(own, Stage.SOLVE) != fingerprint(looked, Stage.SOLVE)


def test_another_question_or_another_twin_is_another_key(corpus: Path, tmp_path: Path) -> None:
    keys = {row.key for row in question_rows(Corpus(corpus))}
    scenes = [ask(seed) for seed in SEEDS]
    samples = [a.sample for s in scenes for a in s.asked]
    changed = [samples[0].model_copy(update={"query": "Which one?"}), *samples[1:]]
    other = write_corpus(tmp_path / "c", [s.clip for s in scenes], [s.twin for s in scenes], changed)
    assert len(keys & {row.key for row in question_rows(Corpus(other))}) == len(keys) - 1
    manifest = {"config": {}, "tables": {"twins": [{"name": "x", "sha256": "1"}]}}
    (other / "manifest.json").write_text(json.dumps(manifest))
    assert not keys & {row.key for row in question_rows(Corpus(other))}


def test_a_clip_without_a_twin_is_a_failure_and_not_an_answer(tmp_path: Path) -> None:
    scene = ask(30)
    root = write_corpus(tmp_path / "c", [scene.clip], [], [a.sample for a in scene.asked])
    (row,) = question_rows(Corpus(root))
    with pytest.raises(ClipError, match="has samples but no twin"):
        asyncio.run(SolveWorker(Config(), Storage(tmp_path / "o")).work(row))


def test_wrong_folders_and_settings_are_refused_before_any_work(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no manifest\.json"):
        solve_corpus(Config(), tmp_path, tmp_path / "o")
    with pytest.raises(ConfigError, match="a folder of their own"):
        solve_corpus(Config(), corpus, corpus)
    with pytest.raises(ConfigError, match=r"agent\.planner 'llm' needs a model"):
        solve_corpus(load_config(None, ["agent.planner=llm"]), corpus, tmp_path / "o")
    with pytest.raises(ConfigError, match=r"agent\.llm\.backend: unknown backend 'vlm'"):
        solve_corpus(load_config(None, ["agent.llm.backend=vlm"]), corpus, tmp_path / "o")


@pytest.mark.ray
def test_a_killed_job_goes_on_with_the_same_scores_and_solves_nothing_twice(
    corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    drivers = Drivers(corpus, out, "tests.pipeline.solve_driver")
    try:
        driver = drivers.start()
        done = Ledger(Storage(out), Stage.SOLVE, "").folder
        drivers.wait_until(driver, lambda: any((out / done).parent.rglob("*.ok.parquet")))
        drivers.kill(driver)
        before = (out / "calls.txt").read_text().split()
        finished = {p.name.partition(".")[0] for p in (out / done).parent.rglob("*.ok.parquet")}
        driver = drivers.start()
        assert driver.wait(240) == 0, drivers.log.read_text()[-4000:]
    finally:
        drivers.close()
    after = (out / "calls.txt").read_text().split()[len(before) :]
    assert not finished & set(after), "a finished clip was solved again"
    assert set(before) | set(after) == {row.key for row in question_rows(Corpus(corpus))}
    report = json.loads((out / "report" / "report.json").read_text())
    assert {k: v for k, v in report["issues"].items() if v} == {}
    expected = pa.concat_tables(inline(corpus, tmp_path / "undisturbed").values()).sort_by("sample_id")
    (part,) = (out / "predictions").glob("part-*.parquet")
    assert pq.read_table(part, schema=PREDICTION_SCHEMA).sort_by("sample_id").equals(expected)
    for group in report["groups"]:
        axes = group["group"]
        if axes["task"] == "segmentation" and axes["has_target"]:
            assert group["metrics"]["jf"]["value"] == 1.0


def test_the_worker_looks_at_a_twin_once_per_clip(corpus: Path, tmp_path: Path, monkeypatch: Any) -> None:
    seen: list[str] = []
    look = Agent.look

    def counted(self: Agent, twin: Any) -> Any:
        seen.append(twin.clip_id)
        return look(self, twin)

    monkeypatch.setattr(Agent, "look", counted)
    inline(corpus, tmp_path / "o")
    assert len(seen) == len(set(seen)) == len(SEEDS)


def test_an_own_twin_is_made_from_pixels_and_never_from_annotations(tmp_path: Path) -> None:
    spec = random_scene(3, num_objects=3, num_frames=16, width=128, height=96, fps=12.0, camera="still")
    paths = write_clip(spec, tmp_path, "scene", depth_every=0)
    item = SourceItem(
        source="s",
        name="scene",
        uri=str(paths.video),
        annotation_uri=str(paths.annotation),
        annotation_format="synthetic",
        annotation_sha256="0" * 64,
    )
    config = Config()
    (clip,) = index_video(item, config.index)
    made = {}
    for given in (False, True):
        twins = OwnTwins(config, Storage(tmp_path / "out"), annotations=given)
        made[given] = twins.twin(clip)
        again = OwnTwins(config, Storage(tmp_path / "out"), annotations=given)
        again._perception = "must not be asked"  # type: ignore[assignment]
        assert again.twin(clip) == made[given]
    assert made[False].provenance.segment != made[True].provenance.segment == "annotations"
    assert not any(a.source == "annotation" for i in made[False].instances for a in i.attributes)
