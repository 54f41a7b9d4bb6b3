"""Guards the depth of an object against its outline, where object and background mix."""

from __future__ import annotations

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.depth.statistics import depth_statistics


def test_trap_12_depth_at_the_outline_does_not_leak_into_the_statistics() -> None:
    mask = np.zeros((40, 50), bool)
    mask[10:30, 10:40] = True
    depth = np.full((40, 50), 1.0, np.float32)
    depth[12:28, 12:38] = 5.0  # two pixels of the mask's rim show the background's depth
    got = depth_statistics(rle.encode(mask), [10, 10, 30, 20], depth, erode_px=2)
    assert got is not None
    assert (got["min"], got["median"], got["max"], got["std"]) == (5.0, 5.0, 5.0, 0.0)


def test_a_mask_that_erosion_empties_has_no_depth() -> None:
    mask = np.zeros((20, 20), bool)
    mask[5:8, 5:8] = True
    depth = np.ones((20, 20), np.float32)
    assert depth_statistics(rle.encode(mask), [5, 5, 3, 3], depth, erode_px=2) is None
    assert depth_statistics(rle.encode(mask), [5, 5, 3, 3], depth * np.nan, erode_px=0) is None


def test_an_object_cut_by_the_frame_keeps_the_depth_at_the_frames_border() -> None:
    mask = np.zeros((20, 20), bool)
    mask[:, :6] = True
    depth = np.tile(np.arange(20, dtype=np.float32), (20, 1))
    got = depth_statistics(rle.encode(mask), [0, 0, 6, 20], depth, erode_px=2)
    assert got is not None
    assert got["min"] == 0.0
    assert got["max"] == 3.0
