"""Box metrics by hand, and their edge rules."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvt_ray.evaluation.boxes import iou_matrix, matched_ious, score_boxes

A, B = (0, 0, 10, 10), (20, 0, 10, 10)
HALF = (0, 0, 10, 5)  # IoU 0.5 with A
box = st.tuples(*(st.integers(0, 12) for _ in range(2)), *(st.integers(1, 8) for _ in range(2)))


def test_iou_of_pixel_boxes_counts_pixels():
    def pixels(b):
        return {(x, y) for x in range(b[0], b[0] + b[2]) for y in range(b[1], b[1] + b[3])}

    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = (tuple(int(v) for v in (*rng.integers(0, 9, 2), *rng.integers(1, 7, 2))) for _ in range(2))
        expected = len(pixels(a) & pixels(b)) / len(pixels(a) | pixels(b))
        assert iou_matrix([a], [b])[0, 0] == pytest.approx(expected)


@given(st.lists(box, min_size=1, max_size=4), st.lists(box, min_size=1, max_size=4))
def test_the_matching_is_one_to_one_and_the_best(a, b):
    matrix = iou_matrix(a, b)
    if len(a) > len(b):
        matrix = matrix.T
    best = max(
        sum(matrix[i, j] for i, j in enumerate(order))
        for order in itertools.permutations(range(matrix.shape[1]), matrix.shape[0])
    )
    assert matched_ious(a, b).sum() == pytest.approx(best)


def test_perfect_boxes_in_another_order_score_one():
    result = score_boxes([[A, B], [A]], [[B, A], [A]])
    assert [result[k] for k in ("box_f1", "box_iou", "viou", "viou_30", "viou_50", "tiou")] == [1.0] * 6
    assert result["box_false_alarm"] is None


def test_a_hit_needs_half_and_viou_thresholds_are_strict():
    result = score_boxes([[A]], [[HALF]])
    assert result["box_f1"] == 1.0  # IoU >= 0.5 is a hit
    assert (result["viou"], result["viou_50"], result["viou_30"]) == (0.5, 0.0, 1.0)


def test_misses_and_false_boxes_count_by_hand():
    # Frame 0: one of two found. Frame 1: missed. Frame 2: false alarm. Frame 3: nothing on either side.
    result = score_boxes([[A, B], [A], [], []], [[A], [], [B], []])
    assert result["box_f1"] == pytest.approx(2 * 1 / (3 + 2))
    assert result["box_iou"] == pytest.approx(1 / 3)
    assert result["viou"] == pytest.approx((1 / 2) / 3)
    assert result["tiou"] == pytest.approx(1 / 3)
    assert result["box_false_alarm"] == 0.5


def test_no_target_and_no_prediction_is_right_and_anything_is_wrong():
    assert score_boxes([[], []], [[], []])["viou"] == 1.0
    wrong = score_boxes([[], []], [[], [A]])
    assert (wrong["viou"], wrong["box_f1"], wrong["tiou"], wrong["box_false_alarm"]) == (0.0, 0.0, 0.0, 0.5)
