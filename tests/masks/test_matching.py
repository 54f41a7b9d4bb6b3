from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rvt_ray.masks import rle
from rvt_ray.masks.matching import match, match_rles


def test_two_detections_never_take_the_same_track() -> None:
    pairs = match(np.array([[0.9, 0.6], [0.8, 0.1]]), 0.5)
    assert pairs == [(0, 1), (1, 0)]


def test_a_pair_below_the_threshold_cannot_push_a_valid_pair_out() -> None:
    # Maximising the raw sum would pair (0, 1) and (1, 0): 0.45 + 0.49 > 0.9, and then drop both.
    assert match(np.array([[0.9, 0.45], [0.49, 0.0]]), 0.5) == [(0, 0)]


@given(hnp.arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(0, 4)), elements=st.floats(0, 1)))
def test_the_pairing_is_one_to_one_and_best_of_all(similarity: npt.NDArray[np.float64]) -> None:
    pairs = match(similarity, 0.3)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert all(similarity[i, j] >= 0.3 for i, j in pairs)
    n, m = similarity.shape
    valid = np.where(similarity >= 0.3, similarity, 0)
    if n > m:
        valid, n, m = valid.T, m, n
    best = max(sum(valid[i, j] for i, j in enumerate(p)) for p in itertools.permutations(range(m), n))
    assert sum(similarity[i, j] for i, j in pairs) == pytest.approx(best)


def test_masks_are_matched_by_iou_and_a_zero_threshold_is_refused() -> None:
    stack = np.zeros((3, 10, 10), bool)
    stack[0, :5], stack[1, 5:], stack[2, :4] = True, True, True
    a = rle.encode_batch(stack[:2])
    assert match_rles(a, [rle.encode(stack[2])], 10, 10) == [(0, 0, pytest.approx(0.8))]
    with pytest.raises(ValueError, match="threshold"):
        match(np.zeros((2, 2)), 0.0)
