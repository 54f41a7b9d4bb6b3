"""Duplicates and parts among many masks, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.masks import rle
from rvt_ray.perception.segment.sam2.dedupe import dedupe, overlaps, shrink

HEIGHT, WIDTH = 300, 420


def _scene(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    masks = []
    for _ in range(n):
        if masks and rng.random() < 0.4:  # a shifted copy
            masks.append(np.roll(masks[rng.integers(len(masks))], rng.integers(-6, 7, 2), (0, 1)))
            continue
        cy, cx = rng.uniform(0, 1, 2) * (HEIGHT, WIDTH)
        ry, rx = rng.uniform(2, 120, 2)
        masks.append(((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 <= 1)
    return np.stack([mask for mask in masks if mask.any()])


def _measure(masks: np.ndarray, worth: float) -> np.ndarray:
    bitmaps = np.stack([shrink(mask) for mask in masks])
    return overlaps(rle.encode_batch(masks), bitmaps, HEIGHT, WIDTH, worth)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12))
def test_small_bitmaps_never_change_a_verdict(seed: int, n: int) -> None:
    masks = _scene(seed, n)
    flat = masks.reshape(len(masks), -1).astype(np.float64)
    exact = flat @ flat.T
    scores = np.random.default_rng(seed).uniform(0, 1, len(masks))
    assert dedupe(_measure(masks, 0.8), scores) == dedupe(exact, scores)


def test_the_better_of_two_duplicates_stays() -> None:
    shared = np.array([[100.0, 95, 0], [95, 100, 0], [0, 0, 50]])
    assert dedupe(shared, np.array([0.5, 0.6, 0.4])) == ([1, 2], [None, None])


def test_a_part_belongs_to_its_smallest_whole() -> None:
    # hand < arm < person
    shared = np.array([[10.0, 10, 10], [10, 40, 39], [10, 39, 400]])
    kept, parents = dedupe(shared, np.array([0.9, 0.8, 0.7]))
    assert kept == [0, 1, 2]
    assert parents == [1, 2, None]


def test_empty_masks_are_dropped() -> None:
    assert dedupe(np.zeros((1, 1)), np.array([0.9])) == ([], [])


@pytest.mark.parametrize("size", [(1, 1), (1080, 1920), (7, 900)])
def test_bitmaps_are_small_whatever_the_video(size: tuple[int, int]) -> None:
    assert max(shrink(np.ones(size, bool)).shape) <= 128
