"""Mask gaps from run-length codes against dense masks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.config.settings import FactSettings
from rvt_ray.masks import rle
from rvt_ray.records import DigitalTwin
from rvt_ray.twin.facts import contact
from rvt_ray.twin.facts.tracks import track_arrays
from tests.twin.facts.worlds import Thing, make_twin


def dense_gap(a: np.ndarray, b: np.ndarray) -> float:
    d = np.argwhere(a)[:, None, :] - np.argwhere(b)[None, :, :]
    return float(np.sqrt((d * d).sum(2).min()))


def blob(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    mask = np.zeros((height, width), bool)
    for _ in range(rng.integers(1, 4)):
        cy, cx = rng.uniform(0, height), rng.uniform(0, width)
        ry, rx = rng.uniform(1, height / 3), rng.uniform(1, width / 4)
        mask |= ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 <= 1
    mask[rng.integers(height), rng.integers(width)] = True
    return mask


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_segments_are_the_mask(seed: int) -> None:
    mask = blob(np.random.default_rng(seed), 30, 40)
    again = np.zeros_like(mask)
    for x, y0, y1 in contact.segments_of(rle.encode(mask), 30).astype(int):
        again[y0 : y1 + 1, x] = True
    assert (again == mask).all()


def test_a_mask_that_fills_whole_columns_is_cut_at_column_ends() -> None:
    mask = np.ones((7, 5), bool)
    mask[:3, 0] = False
    segments = contact.segments_of(rle.encode(mask), 7).astype(int).tolist()
    assert segments == [[0, 3, 6], [1, 0, 6], [2, 0, 6], [3, 0, 6], [4, 0, 6]]
    assert len(contact.segments_of(rle.empty(7, 5), 7)) == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_the_distance_of_segments_is_that_of_the_masks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = blob(rng, 30, 40), blob(rng, 30, 40)
    got = contact._distance(*(contact.segments_of(rle.encode(m), 30) for m in (a, b)))
    assert got == pytest.approx(dense_gap(a, b))


def twin_of(a: np.ndarray, b: np.ndarray) -> DigitalTwin:
    """Two still masks of any shape."""
    height, width = a.shape
    twin = make_twin(
        [Thing(1, centre=(20, 20)), Thing(2, centre=(20, 20))], frames=3, width=width, height=height
    )
    for instance, mask in zip(twin.instances, (a, b), strict=True):
        code = rle.encode(mask)
        x, y, w, h = rle.bbox(code, height, width)
        for t in range(3):
            track = instance.track
            track.rle[t] = code
            track.box_x[t], track.box_y[t], track.box_w[t], track.box_h[t] = x, y, w, h
    return twin


def test_a_thin_spike_between_wide_masks_is_not_missed() -> None:
    a, b = np.zeros((60, 400), bool), np.zeros((60, 400), bool)
    a[10:12, :390] = True
    b[40:42, 5:395] = True
    b[14:40, 201] = True  # one column wide, comes within three pixels
    twin = twin_of(a, b)
    s = FactSettings()
    gaps = contact.Gaps(twin, track_arrays(twin, s), s)
    assert gaps.row(0)[1, 0] == 3.0 == dense_gap(a[:15], b[:15])
    assert gaps.row(1)[0, 0] == 3.0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_large_masks_are_compared_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = np.zeros((40, 260), bool), np.zeros((40, 260), bool)
    a[rng.integers(0, 18, 260), np.arange(260)] = True
    b[rng.integers(20, 40, 260), np.arange(260)] = True
    got = contact._distance(*(contact.segments_of(rle.encode(m), 40) for m in (a, b)))
    assert got == pytest.approx(dense_gap(a, b))
