from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rvt_ray.masks import clean, geometry


def scene() -> np.ndarray:
    mask = np.zeros((40, 60), bool)
    mask[10:30, 10:30] = True  # 400 px
    mask[12:28, 34:44] = True  # 160 px: the other half behind a pole
    mask[2:4, 55:57] = True  # 4 px: a stray fragment
    return mask


def test_trap_9_a_stray_fragment_no_longer_blows_the_box_up() -> None:
    assert geometry.box(scene()) == (10, 2, 47, 28)
    cleaned = clean.clean(scene())
    assert geometry.box(cleaned) == (10, 10, 34, 20)
    assert clean.count_fragments(scene()) == 3
    assert clean.count_fragments(scene(), 0.1) == clean.count_fragments(cleaned) == 2


def test_small_holes_are_filled_and_the_frame_between_a_frame_is_not() -> None:
    mask = np.zeros((40, 40), bool)
    mask[5:35, 5:35] = True
    mask[10:12, 10:12] = False
    mask[16:32, 16:32] = False
    assert (clean.clean(mask) == mask).all()
    filled = clean.clean(mask, max_hole_share=0.05)
    assert filled[10:12, 10:12].all()
    assert not filled[16:32, 16:32].any()
    assert not filled[0].any()


def test_a_bay_at_the_border_of_the_frame_is_no_hole() -> None:
    mask = np.ones((20, 20), bool)
    mask[0:2, 8:10] = False
    assert (clean.clean(mask, max_hole_share=0.5) == mask).all()


@given(hnp.arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12))), st.floats(0, 1))
def test_cleaning_only_drops_whole_components_and_never_all(mask: np.ndarray, share: float) -> None:
    cleaned = clean.clean(mask, share)
    assert not (cleaned & ~mask).any()
    assert cleaned.any() == mask.any()
    labels, pixels = clean.components(mask)
    kept = set(np.unique(labels[cleaned]).tolist())
    assert kept == {i + 1 for i, n in enumerate(pixels) if n >= share * pixels.max()}
    assert all((cleaned[labels == i]).all() for i in kept)
