"""HOTA, IDF1, switches, fragmentations: against hand-made cases whose numbers were worked out on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.evaluation.identity import TrackMasks, identity_scores
from rvt_ray.masks import rle

HEIGHT, WIDTH = 10, 40
EMPTY = rle.empty(HEIGHT, WIDTH)


def box(x: int, w: int = 4) -> str:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[2:8, x : x + w] = True
    return rle.encode(mask)


A, B, C = box(0), box(10), box(20)


def scores(truth: TrackMasks, predicted: TrackMasks):
    return identity_scores(truth, predicted, HEIGHT, WIDTH)


def span(text: str, frames) -> dict[int, str]:
    return dict.fromkeys(frames, text)


def test_the_truth_itself_is_perfect_whatever_the_ids_are() -> None:
    truth = {1: span(A, range(10)), 2: span(B, range(3, 8))}
    got = scores(truth, {70: truth[2], 5: truth[1]})
    assert (got.hota, got.det_a, got.ass_a, got.loc_a, got.idf1) == (1, 1, 1, 1, 1)
    assert (got.switches, got.fragmentations, got.truth_masks, got.predicted_masks) == (0, 0, 15, 15)


def test_nothing_found_is_zero_and_nothing_there_is_one() -> None:
    truth = {1: span(A, range(5))}
    assert scores(truth, {}).hota == scores({}, truth).hota == scores(truth, {1: span(B, range(5))}).hota == 0
    assert scores(truth, {}).idf1 == 0
    assert scores({}, {}).hota == scores({}, {}).idf1 == 1
    assert scores({1: span(EMPTY, range(5))}, {2: {}}).hota == 1, "an empty mask is no mask"


def test_an_id_that_changes_half_way_costs_association_only() -> None:
    # Every TP has TPA 5, FNA 5, FPA 0: AssA = .5; HOTA = sqrt(.5). IDTP = 5: IDF1 = 2 * 5 / 20.
    got = scores({1: span(A, range(10))}, {1: span(A, range(5)), 2: span(A, range(5, 10))})
    assert got.det_a == 1
    assert got.ass_a == pytest.approx(0.5)
    assert got.hota == pytest.approx(math.sqrt(0.5))
    assert got.idf1 == pytest.approx(0.5)
    assert (got.switches, got.fragmentations) == (1, 0)


def test_two_ids_that_swap_are_two_switches() -> None:
    truth = {1: span(A, range(10)), 2: span(B, range(10))}
    first, second = range(6), range(6, 10)
    got = scores(truth, {1: span(A, first) | span(B, second), 2: span(B, first) | span(A, second)})
    # 12 TPs of the pairs with TPA 6 (6 / (10 + 10 - 6)), 8 of those with TPA 4 (4 / 16).
    assert got.ass_a == pytest.approx((12 * 6 / 14 + 8 * 4 / 16) / 20)
    assert got.det_a == 1
    assert got.idf1 == pytest.approx(2 * 12 / 40)
    assert (got.switches, got.fragmentations) == (2, 0)


def test_a_gap_is_a_fragmentation_and_no_switch() -> None:
    truth = {1: span(A, range(10))}
    got = scores(truth, {7: span(A, [0, 1, 2, 5, 6, 9])})
    # DetA = 6 / 10; TPA 6, FNA 4: AssA = .6.
    assert got.hota == pytest.approx(0.6)
    assert got.idf1 == pytest.approx(2 * 6 / 16)
    assert (got.switches, got.fragmentations) == (0, 2)


def test_an_objects_own_absence_is_no_fragmentation_but_a_new_id_after_it_is_a_switch() -> None:
    truth = {1: span(A, [0, 1, 2]) | span(EMPTY, [3, 4]) | span(A, [5, 6, 7])}
    assert scores(truth, {1: truth[1]}).fragmentations == 0
    got = scores(truth, {1: span(A, range(3)), 2: span(A, range(5, 8))})
    assert (got.switches, got.fragmentations) == (1, 0)


def test_localisation_counts_at_each_threshold_that_it_reaches() -> None:
    # 4 x 6 pixels, of which 3 x 6 are predicted: IoU .75, reached by .05 .. .75, that is 15 of 19 thresholds.
    got = scores({1: span(box(0, 4), range(3))}, {1: span(box(0, 3), range(3))})
    assert got.hota == pytest.approx(15 / 19)
    assert got.loc_a == pytest.approx((15 * 0.75 + 4) / 19)
    assert got.idf1 == 1


def test_a_pair_goes_on_although_another_would_fit_better() -> None:
    near = box(1, 4)
    truth = {1: span(A, range(6))}
    predicted = {1: span(near, range(6)), 2: span(A, range(3, 6))}
    assert scores(truth, predicted).switches == 0
    assert scores(truth, {1: span(near, range(3)), 2: span(A, range(3, 6))}).switches == 1


def test_false_tracks_cost_detection_and_precision() -> None:
    truth = {1: span(A, range(10))}
    got = scores(truth, {1: span(A, range(10)), 2: span(C, range(10))})
    assert got.det_a == pytest.approx(0.5)
    assert got.ass_a == 1
    assert (got.id_precision, got.id_recall) == (0.5, 1)
    assert got.idf1 == pytest.approx(2 / 3)


_TRACKS = st.dictionaries(
    st.integers(1, 5),
    st.dictionaries(st.integers(0, 6), st.tuples(st.integers(0, 34), st.integers(1, 6)), max_size=7),
    max_size=4,
)


def _masks(tracks: dict[int, dict[int, tuple[int, int]]]) -> dict[int, dict[int, str]]:
    return {i: {t: box(x, w) for t, (x, w) in track.items()} for i, track in tracks.items()}


@settings(max_examples=60, deadline=None)
@given(_TRACKS, _TRACKS, st.permutations([1, 2, 3, 4, 5]))
def test_scores_are_bounded_and_do_not_know_the_names_of_ids(truth, predicted, names) -> None:
    a, b = _masks(truth), _masks(predicted)
    got = scores(a, b)
    for value in (got.hota, got.det_a, got.ass_a, got.idf1, got.id_precision, got.id_recall):
        assert 0 <= value <= 1 + 1e-12
    visible = sum(len(track) for track in a.values())
    assert 0 <= got.switches <= visible
    assert 0 <= got.fragmentations <= visible
    assert scores(a, a).hota == pytest.approx(1)
    assert scores(a, a).idf1 == pytest.approx(1)
    # IDF1 is symmetric.
    assert scores(b, a).idf1 == pytest.approx(got.idf1)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(1, 11))
def test_a_split_identity_scores_what_the_formula_says(length: int, cut: int) -> None:
    cut = min(cut, length - 1)
    truth = {1: span(A, range(length))}
    got = scores(truth, {1: span(A, range(cut)), 2: span(A, range(cut, length))})
    share = cut / length
    assert got.hota == pytest.approx(math.sqrt(share**2 + (1 - share) ** 2))
    assert got.idf1 == pytest.approx(2 * max(cut, length - cut) / (2 * length))
