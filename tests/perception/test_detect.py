"""Boxes of a YOLOX output: nothing invented, nothing twice, small things not lost, hands not people."""

from __future__ import annotations

import numpy as np
import pytest

from rvt_ray.perception.detect import Detection
from rvt_ray.perception.detect.boxes import add_from_tiles, overlap, suppress, tiles
from rvt_ray.perception.detect.labels import COCO_80
from rvt_ray.perception.detect.yolox import decode, grid
from rvt_ray.queries.lexicon import load_lexicon
from rvt_ray.twin.facts import kinds


def box(x: float, y: float, w: float, h: float, label: str = "person", score: float = 0.9) -> Detection:
    return Detection(x, y, w, h, label, score)


def test_a_row_is_decoded_at_its_cell_and_stride() -> None:
    cells, strides = grid(416)
    assert len(cells) == 52**2 + 26**2 + 13**2
    raw = np.zeros((len(cells), 85), np.float32)
    row = 52**2 + 26 * 3 + 5  # second scale, stride 16, column 5, row 3
    raw[row, :4] = 0.5, 0.25, np.log(4.0), np.log(2.0)
    raw[row, 4], raw[row, 5 + 16] = 0.8, 0.5
    boxes, classes, scores = decode(raw, cells, strides, 0.2)
    assert scores == pytest.approx([0.4])
    assert COCO_80[classes[0]] == "dog"
    assert boxes[0] == pytest.approx([5.5 * 16 - 32, 3.25 * 16 - 16, 64, 32])


def test_every_name_of_the_detector_is_in_the_lexicon_and_in_the_table_of_kinds() -> None:
    lexicon = load_lexicon()
    assert len(set(COCO_80)) == 80
    assert [name for name in COCO_80 if lexicon.canonical(name) is None] == []
    assert [name for name in COCO_80 if not kinds.is_known(name)] == []


def test_one_thing_under_two_names_is_one_thing() -> None:
    found = suppress(
        [box(10, 10, 40, 60, "bottle", 0.4), box(11, 10, 40, 60, "cup", 0.7), box(100, 10, 40, 60)]
    )
    assert [d.label for d in found] == ["person", "cup"]


def test_two_people_close_to_each_other_stay_two() -> None:
    assert len(suppress([box(0, 0, 40, 100), box(25, 0, 40, 100)])) == 2


@pytest.mark.parametrize(("height", "width"), [(360, 640), (640, 360), (300, 301), (100, 1000)])
def test_tiles_cover_the_frame_and_overlap(height: int, width: int) -> None:
    seen = np.zeros((height, width), int)
    found = tiles(height, width)
    for x, y, side in found:
        assert side == min(height, width)
        assert seen[y : y + side, x : x + side].shape == (side, side)
        seen[y : y + side, x : x + side] += 1
    if max(height, width) < 1.3 * min(height, width):
        assert not found
    else:
        assert seen.min() >= 1
        starts = sorted(max(x, y) for x, y, _ in found)
        assert max(np.diff(starts)) <= 0.5 * min(height, width) + 1


def test_a_tile_adds_what_the_whole_picture_overlooks_but_no_parts() -> None:
    whole = [box(0, 0, 100, 200)]
    inner = [box(20, 50, 30, 40, "person", 0.95), box(200, 50, 20, 30, "cup", 0.5)]
    found = add_from_tiles(whole, inner)
    assert {(d.label, d.w) for d in found} == {("person", 100), ("cup", 20)}


def test_a_surer_tile_takes_the_whole_pictures_box_over() -> None:
    found = add_from_tiles([box(0, 0, 100, 200, score=0.4)], [box(0, 0, 98, 198, score=0.9)])
    assert [d.score for d in found] == [0.9]


def test_overlap_of_boxes_that_only_touch_is_none() -> None:
    assert overlap(box(0, 0, 10, 10), box(10, 0, 10, 10)) == (0, 0)
    assert overlap(box(0, 0, 10, 10), box(0, 0, 20, 20)) == (0.25, 1.0)
