"""`validate` must find every kind of damage; each test does one kind of damage to a sound corpus."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rvt_ray.masks import rle
from rvt_ray.pipeline.shards import sha256_of
from rvt_ray.pipeline.validate import validate_corpus
from rvt_ray.records import TABLES
from tests.pipeline.conftest import config_for, make_videos, run_inline
from tests.pipeline.fakes import HEIGHT, WIDTH


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sound")
    run_inline(config_for(make_videos(root / "videos", 2)), root / "out")
    return root / "out"


@pytest.fixture
def corpus(sound: Path, tmp_path: Path) -> Path:
    out = tmp_path / "out"
    shutil.copytree(sound, out, ignore=shutil.ignore_patterns("_staging"))
    return out


def part(out: Path, table: str) -> Path:
    return next((out / table).glob("part-*.parquet"))


def edit(out: Path, table: str, change: Callable[[list[dict[str, Any]]], Any], *, seal: bool = True) -> None:
    """Change a table's rows; `seal` mends checksum and row counts, so that only the rows themselves are
    wrong."""
    path = part(out, table)
    rows = pq.read_table(path).to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=TABLES[table].SCHEMA), path)
    if seal:
        manifest = json.loads((out / "manifest.json").read_text())
        manifest["tables"][table][0] |= {"sha256": sha256_of(path), "rows": len(rows)}
        manifest["counts"][table] = len(rows)
        (out / "manifest.json").write_text(json.dumps(manifest))


def problems(out: Path) -> str:
    return "\n".join(str(p) for p in validate_corpus(out).problems)


def test_a_sound_corpus_has_no_problem(corpus: Path) -> None:
    report = validate_corpus(corpus)
    assert report.problems == []
    assert report.counts["samples"] == 8
    assert report.counts["twins"] == 4


def test_a_folder_without_manifest_is_an_unfinished_run(corpus: Path) -> None:
    (corpus / "manifest.json").unlink()
    assert "not complete" in problems(corpus)


def test_a_flipped_byte_in_a_shard_is_found(corpus: Path) -> None:
    path = part(corpus, "twins")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert "sha256" in problems(corpus)


def test_a_missing_shard_is_found(corpus: Path) -> None:
    part(corpus, "rejects").unlink()
    assert "missing" in problems(corpus)


def test_a_shard_that_nobody_listed_is_found(corpus: Path) -> None:
    shutil.copy(part(corpus, "clips"), corpus / "clips" / "part-00001-of-00002.parquet")
    assert "not in the manifest" in problems(corpus)


def test_another_schema_is_found(corpus: Path) -> None:
    path = part(corpus, "failures")
    pq.write_table(pa.table({"clip_id": ["a"]}), path)
    assert "schema" in problems(corpus)


def test_a_schema_from_before_a_column_is_said_to_be_an_earlier_one(corpus: Path) -> None:
    path = part(corpus, "twins")
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["weights", "coverage"]), path)
    assert "schema is an earlier one, without weights, coverage" in problems(corpus)
    pq.write_table(table.drop_columns(["coverage", "scene"]), path)
    assert "schema is not that of table twins" in problems(corpus)


def test_a_lost_twin_breaks_the_conservation_law(corpus: Path) -> None:
    edit(corpus, "twins", lambda rows: rows.pop())
    found = problems(corpus)
    assert "clips = twins + failures(perceive, caption): 4 != 3" in found
    assert "neither a twin nor a failure" in found


def test_a_lost_reject_breaks_the_conservation_law(corpus: Path) -> None:
    edit(corpus, "rejects", lambda rows: rows.pop())
    assert "candidates = samples + rejects" in problems(corpus)


def test_a_doubled_sample_id_is_found(corpus: Path) -> None:
    edit(corpus, "samples", lambda rows: rows[1].update(sample_id=rows[0]["sample_id"]))
    assert "occurs 2 times" in problems(corpus)


def test_a_target_that_the_twin_lacks_is_found(corpus: Path) -> None:
    edit(corpus, "samples", lambda rows: rows[0].update(target_ids=[7]))
    assert "targets [7] are not in the twin" in problems(corpus)


def test_a_sample_of_no_clip_is_found(corpus: Path) -> None:
    edit(corpus, "samples", lambda rows: rows[0].update(clip_id="feedfeedfeedfeed-000000-00004"))
    assert "have no twin" in problems(corpus)


def test_a_mask_of_another_size_is_found(corpus: Path) -> None:
    wrong = rle.empty(HEIGHT + 1, WIDTH)
    edit(corpus, "samples", lambda rows: rows[0]["masks"].__setitem__(0, wrong))
    assert "frame 0: mask" in problems(corpus)


def test_a_mask_that_is_not_the_targets_is_found(corpus: Path) -> None:
    wrong = rle.empty(HEIGHT, WIDTH)
    edit(corpus, "samples", lambda rows: rows[0]["masks"].__setitem__(2, wrong))
    assert "frame 2: the mask is not the union" in problems(corpus)


def test_a_missing_frame_of_masks_is_found(corpus: Path) -> None:
    edit(corpus, "samples", lambda rows: rows[0]["masks"].pop())
    assert "3 masks for 4 frames" in problems(corpus)


def test_a_box_beside_its_mask_is_found(corpus: Path) -> None:
    def shift(rows: list[dict[str, Any]]) -> None:
        rows[0]["instances"][0]["track"]["box_x"][1] += 1

    edit(corpus, "twins", shift)
    assert "frame 1: box" in problems(corpus)


def test_a_frame_that_the_twin_annotates_may_not_be_null(corpus: Path) -> None:
    edit(corpus, "samples", lambda rows: rows[0]["masks"].__setitem__(1, None))
    assert "frame 1: the mask is null, but every target is annotated there" in problems(corpus)


def test_a_frame_that_the_twin_does_not_annotate_must_be_null(corpus: Path) -> None:
    def forget(rows: list[dict[str, Any]]) -> None:
        track = rows[0]["instances"][0]["track"]
        for name in track:
            track[name].pop()

    edit(corpus, "twins", forget)
    assert "frame 3: the mask is set, but a target is not annotated there" in problems(corpus)


def test_grounding_boxes_are_compared_with_the_twin(corpus: Path) -> None:
    def ground(rows: list[dict[str, Any]]) -> None:
        box = {"x": 0.0, "y": 0.0, "w": 1.0, "h": 1.0}
        rows[0].update(task="grounding", masks=None, boxes=[[box]] * 4)

    edit(corpus, "samples", ground)
    assert "frame 0: boxes" in problems(corpus)


def test_columns_of_another_task_are_found(corpus: Path) -> None:
    edit(corpus, "samples", lambda rows: rows[0].update(task="vqa"))
    found = problems(corpus)
    assert "masks is set" in found
    assert "answer is null" in found


def test_a_program_that_means_something_else_is_found(corpus: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        rows[0]["program"] = rows[0]["program"].replace("square", "circle")

    edit(corpus, "samples", change)
    assert "program gives certain []" in problems(corpus)


def test_a_program_that_cannot_be_run_is_found(corpus: Path) -> None:
    edit(corpus, "samples", lambda rows: rows[0].update(program="{}"))
    assert "program cannot be run" in problems(corpus)


def test_an_edit_without_a_new_checksum_is_found(corpus: Path) -> None:
    edit(corpus, "samples", lambda rows: rows[0].update(query="What is it?"), seal=False)
    assert "sha256" in problems(corpus)


def test_a_licence_that_is_not_the_clips_is_found(corpus: Path) -> None:
    edit(corpus, "samples", lambda rows: rows[0].update(source_license="MIT"))
    assert "source_license" in problems(corpus)
