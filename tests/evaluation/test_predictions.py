"""Broken predictions are reported and cost only themselves."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from rvt_ray.errors import ConfigError
from rvt_ray.evaluation.predictions import IssueKind, Predictions, count_issues
from rvt_ray.masks import rle
from tests.evaluation.conftest import H, N, W, perfect_row, write_jsonl


@pytest.fixture(scope="module")
def parts(truth):
    clips, _, samples = truth
    by_id = {s.sample_id: s for s in samples}
    return clips[0], by_id["v0-seg"], by_id["v0-two"], by_id["v0-vqa"]


def read(path, sample, clip):
    predictions = Predictions(path)
    return predictions.of(sample, clip), predictions.finish()


def kinds(issues):
    return {str(i.kind): i.times for i in issues}


def test_a_whole_row_comes_back_as_it_was(tmp_path, parts):
    clip, seg, two, vqa = parts
    path = write_jsonl(tmp_path / "p.jsonl", [perfect_row(s) for s in (seg, two, vqa)])
    predictions = Predictions(path)
    assert predictions.of(seg, clip).masks == seg.masks
    assert predictions.of(two, clip).boxes[5][0] == tuple(seg_box(two.boxes[5][0]))
    assert predictions.of(vqa, clip).answer == "red"
    assert predictions.finish() == []


def seg_box(box):
    return box.x, box.y, box.w, box.h


def test_coco_dicts_and_plain_counts_are_masks_too(tmp_path, parts):
    clip, seg, _, _ = parts
    rows = {"sample_id": seg.sample_id, "masks": []}
    for i, text in enumerate(seg.masks):
        counts = text if i % 2 else rle.counts(text).tolist()
        rows["masks"].append({"size": [H, W], "counts": counts})
    prediction, issues = read(write_jsonl(tmp_path / "p.jsonl", [rows]), seg, clip)
    assert prediction.masks == seg.masks
    assert issues == []


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        ({"size": [W, H], "counts": rle.empty(W, H)}, "wrong_size"),
        (rle.empty(H, W + 1), "wrong_size"),
        ("not a mask!", "bad_mask"),
        ({"counts": "x"}, "bad_mask"),
        ({"size": [H, W], "counts": "?"}, "bad_mask"),
        (float("nan"), "bad_mask"),
        (17, "bad_mask"),
        ("N" * 30, "bad_mask"),
    ],
)
def test_a_broken_mask_costs_its_frame_only(tmp_path, parts, frame, kind):
    clip, seg, _, _ = parts
    row = perfect_row(seg)
    row["masks"][4] = frame
    prediction, issues = read(write_jsonl(tmp_path / "p.jsonl", [row]), seg, clip)
    assert prediction.masks[4] == rle.empty(H, W)
    assert prediction.masks[:4] + prediction.masks[5:] == seg.masks[:4] + seg.masks[5:]
    assert kinds(issues) == {kind: 1}
    assert "frame 4" in issues[0].detail


def test_null_is_the_empty_mask_and_no_issue(tmp_path, parts):
    clip, seg, _, _ = parts
    prediction, issues = read(
        write_jsonl(tmp_path / "p.jsonl", [{"sample_id": seg.sample_id, "masks": [None] * N}]), seg, clip
    )
    assert prediction.masks == [rle.empty(H, W)] * N
    assert issues == []


@pytest.mark.parametrize("length", [0, 5, N + 3])
def test_a_wrong_number_of_frames_is_padded_or_cut_and_said(tmp_path, parts, length):
    clip, seg, _, _ = parts
    masks = (seg.masks * 2)[:length]
    prediction, issues = read(
        write_jsonl(tmp_path / "p.jsonl", [{"sample_id": seg.sample_id, "masks": masks}]), seg, clip
    )
    assert prediction.masks == (masks + [rle.empty(H, W)] * N)[:N]
    assert kinds(issues) == {"wrong_length": 1}


def test_boxes_that_are_no_boxes_are_left_out(tmp_path, parts):
    clip, _, two, _ = parts
    nan, inf = float("nan"), float("inf")
    bad = [[1, 2, nan, 4], [1, 2, inf, 4], [1, 2, 0, 4], [1, 2, -3, 4], [1, 2, 3], "box", None, {"x": 1}]
    row = {"sample_id": two.sample_id, "boxes": [[[1, 2, 3, 4], *bad], {"a": 1}, None] + [[]] * (N - 3)}
    prediction, issues = read(write_jsonl(tmp_path / "p.jsonl", [row]), two, clip)
    assert prediction.boxes[:3] == [[(1.0, 2.0, 3.0, 4.0)], [], []]
    assert kinds(issues) == {"bad_box": len(bad) + 1}


def test_duplicates_unknown_ids_broken_lines_and_missing_ones_are_listed(tmp_path, parts):
    clip, seg, two, vqa = parts
    path = tmp_path / "p.jsonl"
    rows = [perfect_row(vqa), {"sample_id": vqa.sample_id, "answer": "blue"}, {"sample_id": "ghost"}]
    path.write_text(
        "".join(json.dumps(r) + "\n" for r in rows)
        + '{"sample_id": \n\n[1]\n{"answer": "x"}\n{"sample_id": 7}\n'
    )
    predictions = Predictions(path)
    assert predictions.of(vqa, clip).answer == "red"  # the first one counts
    assert predictions.of(seg, clip).masks == [rle.empty(H, W)] * N
    assert predictions.of(two, clip).boxes == [[]] * N
    issues = predictions.finish()
    counts = count_issues(issues)
    assert counts["duplicate"] == 1
    assert counts["unknown_id"] == 1
    assert counts["missing"] == 2
    assert next(i for i in issues if i.kind is IssueKind.BAD_ROW).times == 4
    assert {i.sample_id for i in issues if i.kind is IssueKind.MISSING} == {"v0-seg", "v0-two"}


def test_the_field_of_another_task_is_no_prediction(tmp_path, parts):
    clip, seg, _, _ = parts
    prediction, issues = read(
        write_jsonl(tmp_path / "p.jsonl", [{"sample_id": seg.sample_id, "answer": "left"}]), seg, clip
    )
    assert prediction.masks == [rle.empty(H, W)] * N
    assert kinds(issues) == {"wrong_field": 1}


def test_parquet_of_several_row_groups_reads_like_jsonl(tmp_path, parts, truth):
    clip = parts[0]
    own = [s for s in truth[2] if s.sample_id.startswith("v0")]
    rows = [perfect_row(s) for s in own]
    write_jsonl(tmp_path / "p.jsonl", rows)
    schema = pa.schema(
        [("sample_id", pa.string()), ("masks", pa.list_(pa.string())),
         ("boxes", pa.list_(pa.list_(pa.list_(pa.float64())))), ("answer", pa.string())]
    )  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "p.parquet", row_group_size=2)
    a, b = Predictions(tmp_path / "p.jsonl"), Predictions(tmp_path / "p.parquet")
    for sample in reversed(own):
        assert a.of(sample, clip) == b.of(sample, clip)
    assert a.finish() == b.finish() == []


def test_mask_images_round_trip_and_broken_ones_are_named(tmp_path, parts):
    clip, seg, _, _ = parts
    folder = tmp_path / "masks" / seg.sample_id
    folder.mkdir(parents=True)
    for i, text in enumerate(seg.masks):
        Image.fromarray(rle.decode(text, H, W).astype(np.uint8) * 255).save(folder / f"{i:05d}.png")
    prediction, issues = read(tmp_path, seg, clip)
    assert prediction.masks == seg.masks
    assert issues == []
    Image.fromarray(np.ones((5, 5), np.uint8)).save(folder / "00003.png")
    Image.fromarray(np.ones((H, W, 3), np.uint8)).save(folder / "00004.png")
    (folder / "00005.png").write_bytes(b"no image")
    (folder / "00006.png").unlink()
    Image.fromarray(np.ones((H, W), np.uint8)).save(folder / "00099.png")
    prediction, issues = read(tmp_path, seg, clip)
    assert prediction.masks[3:7] == [rle.empty(H, W)] * 4
    assert prediction.masks[7:] == seg.masks[7:]
    assert kinds(issues) == {"wrong_size": 2, "bad_mask": 1, "wrong_length": 1}


def test_a_palette_image_is_read_by_index_not_by_colour(tmp_path, parts):
    clip, seg, _, _ = parts
    folder = tmp_path / "masks" / seg.sample_id
    folder.mkdir(parents=True)
    image = Image.fromarray(rle.decode(seg.masks[5], H, W).astype(np.uint8), "P")
    image.putpalette([255, 255, 255, 0, 0, 0])  # the background is white, the target black
    image.save(folder / "00005.png")
    assert read(tmp_path, seg, clip)[0].masks[5] == seg.masks[5]


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_no_predictions_at_all_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=name):
        Predictions(tmp_path / name)
