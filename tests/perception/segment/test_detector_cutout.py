"""From box to mask: the thing, not its surroundings; hints help and do not harm."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from rvt_ray.masks import geometry
from rvt_ray.masks.rle import Mask
from rvt_ray.perception.segment.detector.carry import agreement, blend
from rvt_ray.perception.segment.detector.cutout import (
    Hint,
    box_iou,
    cut_out,
    edge_ranks,
    edge_share,
    guesses,
    solidity,
    tidy,
)

H, W = 120, 180


def scene(seed: int = 0) -> npt.NDArray[np.uint8]:
    """A grey-green noisy wall."""
    noise = np.random.default_rng(seed).normal(0, 8, (H, W, 3))
    return np.clip(np.array([110, 130, 110]) + cv2.GaussianBlur(noise, (3, 3), 0), 0, 255).astype(np.uint8)


def ellipse(cx: int, cy: int, rx: int, ry: int) -> Mask:
    canvas = np.zeros((H, W), np.uint8)
    cv2.ellipse(canvas, (cx, cy), (rx, ry), 0, 0, 360, 1, -1)
    return canvas > 0


def painted(mask: Mask, colour: tuple[int, int, int], under: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    out = under.copy()
    shade = np.random.default_rng(1).integers(-6, 7, (H, W, 1))
    out[mask] = np.clip(np.array(colour) + shade, 0, 255).astype(np.uint8)[mask]
    return out


def box_of(mask: Mask) -> tuple[float, float, float, float]:
    box = geometry.box(mask)
    assert box is not None
    return box


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    cv2.setNumThreads(1)


def test_a_thing_of_its_own_colour_is_cut_out_exactly() -> None:
    truth = ellipse(80, 60, 30, 40)
    cut = cut_out(painted(truth, (200, 40, 30), scene()), box_of(truth))
    assert cut is not None
    assert agreement(cut.mask, truth) > 0.93
    assert cut.fit > 0.9


def test_a_thing_that_fills_its_box_is_cut_out() -> None:
    truth = np.zeros((H, W), np.bool_)
    truth[40:70, 60:110] = True
    cut = cut_out(painted(truth, (200, 40, 30), scene()), box_of(truth))
    assert cut is not None
    assert agreement(cut.mask, truth) > 0.93


def test_the_same_input_gives_the_same_mask() -> None:
    truth = ellipse(80, 60, 30, 40)
    frame = painted(truth, (150, 120, 90), scene())
    first, second = (cut_out(frame, box_of(truth)) for _ in range(2))
    assert first is not None
    assert second is not None
    assert np.array_equal(first.mask, second.mask)


def test_change_tells_a_thing_from_a_background_of_its_colour() -> None:
    """Half of the thing has the wall's colour: colours alone lose it."""
    truth = ellipse(90, 60, 40, 40)
    frame = painted(truth, (112, 131, 110), scene())
    frame = painted(truth & (np.indices((H, W))[1] < 90), (200, 40, 30), frame)
    blind = cut_out(frame, box_of(truth))
    told = cut_out(frame, box_of(truth), changed=truth)
    assert told is not None
    assert agreement(told.mask, truth) > 0.85
    assert blind is None or agreement(blind.mask, truth) < agreement(told.mask, truth)


def test_what_is_taken_by_another_thing_is_never_in_the_mask() -> None:
    truth, other = ellipse(90, 60, 40, 40), ellipse(110, 60, 20, 20)
    frame = painted(other, (30, 40, 200), painted(truth, (200, 40, 30), scene()))
    cut = cut_out(frame, box_of(truth), taken=other)
    assert cut is not None
    assert not (cut.mask & other).any()
    assert agreement(cut.mask, truth & ~other) > 0.85


def test_what_was_expected_stands_where_nothing_can_be_seen() -> None:
    truth = ellipse(60, 60, 18, 40)
    flat = np.full((H, W, 3), 128, np.uint8)
    cut = cut_out(flat, box_of(truth), prior=truth)
    assert cut is not None
    assert agreement(cut.mask, truth) > 0.95
    assert cut_out(flat, box_of(truth), prior=ellipse(140, 60, 18, 40)) is None


def test_nothing_to_see_gives_no_mask() -> None:
    flat = np.full((H, W, 3), 128, np.uint8)
    assert cut_out(flat, (40, 30, 60, 60)) is None


@pytest.mark.parametrize(
    "box", [(-20.0, -10.0, 60.0, 60.0), (0.0, 0.0, 180.0, 120.0), (170.0, 110.0, 40.0, 40.0)]
)
def test_boxes_over_the_border_do_no_harm(box: tuple[float, float, float, float]) -> None:
    cut = cut_out(painted(ellipse(20, 20, 20, 20), (200, 40, 30), scene()), box)
    assert cut is None or cut.mask.shape == (H, W)


def test_every_hint_is_tried_and_the_last_resort_comes_last() -> None:
    truth = ellipse(40, 40, 20, 20)
    made = [hint for hint, _ in guesses((H, W), box_of(truth), truth, truth, None)]
    assert made == [Hint.PRIOR, Hint.CHANGE, Hint.BOX, Hint.MIDDLE]
    assert [hint for hint, _ in guesses((H, W), box_of(truth), None, None, None)] == [Hint.BOX, Hint.MIDDLE]


def test_moving_arms_do_not_stand_for_somebody_who_sits_still() -> None:
    """The trunk is part of the plate (it never moved), and what was expected lost it before."""
    trunk = np.zeros((H, W), np.bool_)
    trunk[20:110, 70:110] = True
    arms = np.zeros((H, W), np.bool_)
    arms[30:110, 55:70] = arms[30:110, 110:125] = True
    frame = painted(arms, (190, 120, 90), painted(trunk, (220, 140, 20), scene()))
    cut = cut_out(frame, box_of(trunk | arms), prior=arms, changed=arms)
    assert cut is not None
    assert agreement(cut.mask, trunk | arms) > 0.85


def test_a_disc_is_solid_and_two_arms_are_not() -> None:
    arms = np.zeros((H, W), np.bool_)
    arms[30:110, 50:60] = arms[30:110, 120:130] = True
    assert solidity(ellipse(60, 60, 30, 30)) > 0.95
    assert solidity(arms) < 0.3


def test_specks_and_hairs_go_and_the_thing_stays() -> None:
    mask = ellipse(80, 60, 30, 40)
    dirty = mask.copy()
    dirty[5, 5] = dirty[10, 20:60] = True
    dirty[60, 80] = False
    assert agreement(tidy(dirty), mask) > 0.99
    assert not tidy(dirty)[:15].any()


def test_a_true_outline_lies_on_stronger_edges_than_a_wrong_one() -> None:
    truth = ellipse(80, 60, 30, 40)
    ranks = edge_ranks(painted(truth, (200, 40, 30), scene()))
    assert edge_share(truth, ranks) > 0.9 > edge_share(ellipse(100, 60, 45, 40), ranks)


def test_a_mask_between_two_lies_between_them() -> None:
    first, second = ellipse(60, 60, 30, 30), ellipse(70, 60, 30, 30)
    middle = blend(first, second, 0.5)
    assert agreement(middle, ellipse(65, 60, 30, 30)) > 0.9
    assert np.array_equal(blend(first, np.zeros_like(first), 0.7), first)
    assert np.array_equal(blend(np.zeros_like(first), second, 0.2), second)


def test_agreement_with_nothing_is_none() -> None:
    nothing = np.zeros((H, W), np.bool_)
    assert agreement(nothing, nothing) == 0
    assert box_iou((0, 0, 10, 10), (20, 20, 5, 5)) == 0
