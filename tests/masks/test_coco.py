from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rvt_ray.masks import coco, rle


def test_all_three_writings_of_a_coco_rle_are_one_mask() -> None:
    mask = np.zeros((6, 9), bool)
    mask[2:5, 3:7] = True
    text = rle.encode(mask)
    for counts in (text, text.encode(), rle.counts(text).tolist()):
        assert coco.from_segmentation({"size": [6, 9], "counts": counts}) == (text, 6, 9)


def test_polygons_are_rasterised_and_joined() -> None:
    text = coco.from_polygons([[1, 1, 5, 1, 5, 4, 1, 4], [6, 0, 8, 0, 8, 2, 6, 2]], 6, 9)
    mask = np.zeros((6, 9), bool)
    mask[1:4, 1:5] = True
    mask[0:2, 6:8] = True
    assert (rle.decode(text, 6, 9) == mask).all()
    assert coco.from_polygons([], 6, 9) == rle.empty(6, 9)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {"counts": "abc"},
        {"size": [6], "counts": [54]},
        {"size": [0, 9], "counts": [54]},
        {"size": [6, 9], "counts": [53]},
        {"size": [6, 9], "counts": rle.empty(9, 9)},
    ],
)
def test_a_wrong_rle_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"RLE|'size' must be"):
        coco.from_segmentation(wrong)


@pytest.mark.parametrize("polygon", [[1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7], [float("nan")] * 6])
def test_a_wrong_polygon_is_refused(polygon: list[float]) -> None:
    with pytest.raises(ValueError, match="polygon"):
        coco.from_polygons([polygon], 6, 9)
