"""J, F and R: exact against a dense implementation, and every edge rule of the definition."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.evaluation import runs as run_masks
from rvt_ray.evaluation.masks import boundary_tolerance, robustness, score_frames, summarise
from rvt_ray.masks import rle
from tests.evaluation.dense import dense_f, dense_j


def random_mask(rng, height, width):
    """Blobs, noise, stripes, edges, everything, nothing."""
    kind = rng.integers(0, 7)
    mask = np.zeros((height, width), np.uint8)
    if kind == 0:
        return mask.astype(bool)
    if kind == 1 and rng.random() < 0.4:
        return np.ones((height, width), bool)
    if kind == 2:
        return rng.random((height, width)) < rng.choice([0.02, 0.5, 0.97])
    if kind == 3:
        mask[:, rng.integers(0, width) :] = 1
        return mask.astype(bool)
    for _ in range(rng.integers(1, 4)):
        centre = (int(rng.integers(-3, width + 3)), int(rng.integers(-3, height + 3)))
        axes = (int(rng.integers(1, width + 1)), int(rng.integers(1, height + 1)))
        cv2.ellipse(
            mask, centre, (axes[0] // 2 + 1, axes[1] // 2 + 1), 30, 0, 360, int(rng.random() < 0.8), -1
        )
    return mask > 0


def related(rng, mask):
    """A second mask: the first shifted, grown or shrunk, or another one."""
    choice = rng.integers(0, 4)
    if choice == 0:
        return np.roll(mask, rng.integers(-4, 5, 2), (0, 1))
    if choice == 1:
        return cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    if choice == 2:
        return cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    return random_mask(rng, *mask.shape)


def test_j_and_f_equal_the_dense_definition_on_500_random_pairs():
    rng = np.random.default_rng(20240607)
    for number in range(50):
        height, width = (int(v) for v in rng.integers(1, 42, 2))
        # Small frames have a tolerance of 1: larger ones are forced, to reach every way F is computed.
        tolerance = [None, 0, 3, 6, 8, 13][number % 6]
        truth = [random_mask(rng, height, width) for _ in range(10)]
        prediction = [related(rng, m) for m in truth]
        scores = score_frames(
            [rle.encode(m) for m in truth], [rle.encode(m) for m in prediction], height, width, tolerance
        )
        for i, (a, b) in enumerate(zip(truth, prediction, strict=True)):
            assert scores.j[i] == pytest.approx(dense_j(a, b), abs=1e-9)
            assert scores.f[i] == pytest.approx(dense_f(a, b, tolerance), abs=1e-9)
            assert scores.intersection[i] == (a & b).sum()
            assert scores.union[i] == (a | b).sum()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_runs_of_many_frames_hold_exactly_the_pixels(seed):
    rng = np.random.default_rng(seed)
    height, width = (int(v) for v in rng.integers(1, 20, 2))
    masks = [random_mask(rng, height, width) for _ in range(int(rng.integers(1, 6)))]
    runs = run_masks.parse([rle.encode(m) for m in masks], height, width)
    boxes = run_masks.boxes(runs)
    start, stop = sorted(int(v) for v in rng.integers(0, len(masks) + 1, 2))
    painted = np.zeros((len(masks), height, width), bool)
    for frame, x, top, bottom in zip(*run_masks.columns(runs, slice(start, stop)), strict=True):
        painted[frame, top:bottom, x] = True
    assert (painted[start:stop] == np.array(masks)[start:stop]).all()
    assert not painted[:start].any()
    assert not painted[stop:].any()
    for i, mask in enumerate(masks):
        assert runs.area[i] == mask.sum()
        ys, xs = np.nonzero(mask)
        if len(xs):
            assert boxes[i].tolist() == [xs.min(), ys.min(), xs.max(), ys.max()]


def test_zero_length_runs_inside_a_mask_are_no_trouble():
    # Two runs that touch (a background run of length 0 in between), as other tools write them.
    text = rle.from_counts([3, 2, 0, 4, 3], 4, 3)
    runs = run_masks.parse([text, text], 4, 3)
    plain = rle.from_counts([3, 6, 3], 4, 3)
    scores = score_frames([text, plain], [plain, text], 4, 3)
    assert scores.j.tolist() == scores.f.tolist() == [1.0, 1.0]
    assert runs.area.tolist() == [6, 6]


@pytest.mark.parametrize("bad", ["", "zzzz", "é", "P", rle.empty(5, 5), "0" * 40 + "o"])
def test_a_string_that_is_no_mask_of_this_size_is_refused_and_named(bad):
    with pytest.raises(ValueError, match="frame 1"):
        run_masks.parse([rle.empty(4, 4), bad], 4, 4)


def score_one(truth, prediction, **options):
    scores = score_frames([rle.encode(truth)], [rle.encode(prediction)], *truth.shape, **options)
    return float(scores.j[0]), float(scores.f[0])


EMPTY, FULL = np.zeros((60, 80), bool), np.ones((60, 80), bool)
SQUARE = EMPTY.copy()
SQUARE[20:40, 20:40] = True


def test_edge_rules_of_the_definition():
    assert score_one(EMPTY, EMPTY) == (1.0, 1.0)
    assert score_one(SQUARE, SQUARE) == (1.0, 1.0)
    assert score_one(SQUARE, EMPTY) == (0.0, 0.0)
    assert score_one(EMPTY, SQUARE) == (0.0, 0.0)
    # A full frame has no contour: against nothing, F is 1 by the definition, and J shows that it is wrong.
    assert score_one(FULL, EMPTY) == (0.0, 1.0)
    assert score_one(FULL, SQUARE) == (pytest.approx(400 / 4800), 0.0)


def test_j_and_f_of_a_shifted_square_by_hand():
    # 20 x 20 moved right by 2: intersection 18 x 20 = 360, union 440.
    moved = np.roll(SQUARE, 2, 1)
    j, f = score_one(SQUARE, moved, tolerance=1)
    assert j == pytest.approx(360 / 440)
    # Contour of a square of side n: n + 1 pixels a side, 4n in all. Within 1 px of the moved one lie the two
    # horizontal sides but for their outer end: of 21 pixels those at x >= 19 + 2 - 1, so 20 on each; of the
    # inner pixels of the left side none, and of the right side none but its neighbours on the sides.
    found = sum(
        min((x - u) ** 2 + (y - v) ** 2 for u, v in ring(21)) <= 1 for x, y in ring(19)
    )  # fmt: skip
    assert f == pytest.approx(found / 80)


def ring(left):
    """Contour pixels (x, y) of the square with columns left + 1 .. left + 20 and rows 20 .. 39."""
    points = {(x, y) for x in range(left, left + 21) for y in (19, 39)}
    points |= {(x, y) for x in (left, left + 20) for y in range(19, 40)}
    return points


def test_the_tolerance_is_that_of_davis():
    assert boundary_tolerance(480, 854) == 8
    assert boundary_tolerance(240, 432) == 4
    assert boundary_tolerance(1080, 1920) == 18
    assert boundary_tolerance(1, 1) == 1


def test_more_than_256_frames_are_counted_right():
    truth = [rle.encode(SQUARE)] * 300
    prediction = [rle.encode(SQUARE)] * 290 + [rle.encode(EMPTY)] * 10
    assert score_frames(truth, prediction, 60, 80).j.sum() == 290


def test_absent_frames_are_reported_apart():
    truth = [rle.encode(m) for m in (SQUARE, SQUARE, EMPTY, EMPTY)]
    prediction = [rle.encode(m) for m in (SQUARE, EMPTY, EMPTY, SQUARE)]
    result = summarise(score_frames(truth, prediction, 60, 80))
    assert result["j"] == 0.5
    assert result["j_visible"] == 0.5
    assert result["false_alarm"] == 0.5
    assert result["giou"] == pytest.approx(400 / 1200)
    never = summarise(score_frames([rle.encode(EMPTY)], [rle.encode(EMPTY)], 60, 80))
    assert (never["j"], never["j_visible"], never["false_alarm"], never["giou"]) == (1.0, None, 0.0, 1.0)
    always = summarise(score_frames([rle.encode(SQUARE)], [rle.encode(EMPTY)], 60, 80))
    assert always["false_alarm"] is None


def test_the_davis_protocol_drops_the_first_and_last_frame():
    truth = [rle.encode(SQUARE)] * 4
    prediction = [rle.encode(m) for m in (EMPTY, SQUARE, SQUARE, EMPTY)]
    scores = score_frames(truth, prediction, 60, 80)
    assert summarise(scores)["jf"] == 0.5
    assert summarise(scores, skip_ends=True)["jf"] == 1.0


def test_robustness_counts_false_pixels_against_all_foreground():
    foreground = EMPTY.copy()
    foreground[0:20, 0:40] = True  # 800 px
    values = robustness(
        [rle.encode(EMPTY)] * 4,
        [rle.encode(m) for m in (EMPTY, SQUARE, FULL, SQUARE)],
        [rle.encode(m) for m in (foreground, foreground, foreground, EMPTY)],
        60,
        80,
    )
    assert values.tolist() == [1.0, 0.5, 0.0, 0.0]


def test_different_numbers_of_frames_are_refused():
    with pytest.raises(ValueError, match="2 frames of truth but 1"):
        score_frames([rle.empty(4, 4)] * 2, [rle.empty(4, 4)], 4, 4)
