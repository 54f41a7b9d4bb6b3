"""Duplicates and parts among many masks, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.perception.segment.sam2.dedupe import Candidate, dedupe

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


def _by_brute_force(masks: np.ndarray, scores: np.ndarray) -> tuple[list[int], list[int | None]]:
    flat = masks.reshape(len(masks), -1).astype(np.float64)
    shared = flat @ flat.T
    area = np.diagonal(shared)
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable").tolist():
        if all(shared[i, k] < 0.8 * (area[i] + area[k] - shared[i, k]) for k in kept):
            kept.append(i)
    parents = []
    for i in kept:
        wholes = [
            (area[k], n) for n, k in enumerate(kept) if area[k] > area[i] and shared[i, k] >= 0.9 * area[i]
        ]
        parents.append(min(wholes)[1] if wholes else None)
    return kept, parents


def _candidates(masks: np.ndarray, scores: np.ndarray) -> list[Candidate]:
    return [Candidate.of(mask, float(score)) for mask, score in zip(masks, scores, strict=True)]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12))
def test_small_bitmaps_never_change_a_verdict(seed: int, n: int) -> None:
    masks = _scene(seed, n)
    scores = np.random.default_rng(seed).uniform(0, 1, len(masks))
    assert dedupe(_candidates(masks, scores)) == _by_brute_force(masks, scores)


def _boxes(*boxes: tuple[int, int, int, int]) -> np.ndarray:
    masks = np.zeros((len(boxes), HEIGHT, WIDTH), bool)
    for mask, (x, y, w, h) in zip(masks, boxes, strict=True):
        mask[y : y + h, x : x + w] = True
    return masks


def test_the_better_of_two_duplicates_stays() -> None:
    masks = _boxes((10, 10, 100, 100), (12, 10, 100, 100), (300, 200, 50, 50))
    assert dedupe(_candidates(masks, np.array([0.5, 0.6, 0.4]))) == ([1, 2], [None, None])


def test_a_part_belongs_to_its_smallest_whole() -> None:
    hand, arm, person = (100, 100, 10, 10), (60, 95, 60, 20), (20, 20, 120, 200)
    kept, parents = dedupe(_candidates(_boxes(hand, arm, person), np.array([0.9, 0.8, 0.7])))
    assert kept == [0, 1, 2]
    assert parents == [1, 2, None]


def test_empty_masks_are_dropped() -> None:
    assert dedupe(_candidates(np.zeros((1, HEIGHT, WIDTH), bool), np.array([0.9]))) == ([], [])
    assert dedupe([]) == ([], [])


@pytest.mark.parametrize("size", [(1, 1), (1080, 1920), (7, 900)])
def test_packing_loses_nothing_and_bitmaps_are_small_whatever_the_video(size: tuple[int, int]) -> None:
    mask = np.random.default_rng(0).random(size) < 0.4
    packed = Candidate.of(mask, 0.5)
    assert np.array_equal(packed.mask(*size), mask)
    assert max(packed.small.shape) <= 128
    assert packed.area == mask.sum()
