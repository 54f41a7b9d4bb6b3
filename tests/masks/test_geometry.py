from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rvt_ray.masks import geometry, rle

Dense = npt.NDArray[np.bool_]
SHAPES = st.tuples(st.integers(1, 14), st.integers(1, 14))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Dense, Dense]:
    shape = draw(SHAPES)
    return draw(hnp.arrays(np.bool_, shape)), draw(hnp.arrays(np.bool_, shape))


def dense_distance(a: Dense, b: Dense) -> float | None:
    p, q = np.argwhere(a), np.argwhere(b)
    if len(p) == 0 or len(q) == 0:
        return None
    return float(np.sqrt(((p[:, None] - q[None]) ** 2).sum(-1).min()))


@given(pairs())
def test_distance_is_the_least_over_all_pixel_pairs(pair: tuple[Dense, Dense]) -> None:
    a, b = pair
    expected = dense_distance(a, b)
    assert geometry.distance(a, b) == (None if expected is None else pytest.approx(expected))
    matrix = geometry.distance_matrix([a, b])
    assert matrix[0, 1] == pytest.approx(np.nan if expected is None else expected, nan_ok=True)


@given(hnp.arrays(np.bool_, SHAPES))
def test_dense_and_run_length_measures_agree(mask: Dense) -> None:
    height, width = mask.shape
    text = rle.encode(mask)
    assert geometry.area(mask) == rle.area(text)
    assert geometry.box(mask) == rle.bbox(text, height, width)
    assert geometry.centroid(mask) == (
        None if not mask.any() else pytest.approx(rle.centroid(text, height, width))
    )


@settings(max_examples=50)
@given(hnp.arrays(np.bool_, SHAPES), st.integers(0, 3))
def test_dilate_and_erode_follow_their_definition(mask: Dense, radius: int) -> None:
    grid = np.argwhere(np.ones_like(mask))
    for pixels, morphed, seeds in (
        (True, geometry.dilate(mask, radius), np.argwhere(mask)),
        (False, geometry.erode(mask, radius), np.argwhere(~mask)),
    ):
        reached = np.zeros_like(mask)
        if len(seeds):
            near = ((grid[:, None] - seeds[None]) ** 2).sum(-1).min(1) <= radius**2
            reached[tuple(grid[near].T)] = True
        assert (morphed == (reached if pixels else ~reached)).all()


def test_an_object_that_the_frame_cuts_off_is_not_eroded_at_the_frame() -> None:
    mask = np.zeros((10, 10), bool)
    mask[:, :5] = True
    assert geometry.box(geometry.erode(mask, 2)) == (0, 0, 3, 10)


def test_a_negative_radius_is_refused() -> None:
    with pytest.raises(ValueError, match="radius"):
        geometry.erode(np.ones((3, 3), bool), -1)


def test_neighbours_are_one_pixel_apart_and_overlap_is_zero() -> None:
    a, b = np.zeros((2, 20, 20), bool)
    a[5:8, 5:8] = True
    b[5:8, 8:11] = True
    assert geometry.distance(a, b) == 1.0
    b[6, 6] = True  # deep inside `a`: boundaries alone would not see it
    assert geometry.distance(a, b) == 0.0
    assert geometry.distance(a, np.zeros_like(a)) is None


@given(hnp.arrays(np.bool_, SHAPES))
def test_the_boundary_is_what_a_four_neighbour_step_leaves(mask: Dense) -> None:
    expected = {
        (x, y)
        for y, x in np.argwhere(mask)
        if any(
            not (0 <= y + dy < mask.shape[0] and 0 <= x + dx < mask.shape[1]) or not mask[y + dy, x + dx]
            for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0))
        )
    }
    assert {(int(x), int(y)) for y, x in np.argwhere(geometry.boundary(mask))} == expected
    # The points are taken from the mask's own box, whose border counts as outside: never fewer.
    assert {tuple(p) for p in geometry.boundary_points(mask).tolist()} == expected


def test_containment_is_a_share_of_the_inner_mask() -> None:
    inner, outer = np.zeros((2, 10, 10), bool)
    inner[2:4, 2:6] = True
    outer[0:10, 0:4] = True
    assert geometry.containment(inner, outer) == 0.5
    assert geometry.containment(np.zeros_like(inner), outer) == 0.0


def test_resize_keeps_labels_hard() -> None:
    mask = np.zeros((4, 6), bool)
    mask[1:3, 2:4] = True
    big = geometry.resize(mask, 8, 12)
    assert big.dtype == np.bool_
    assert (big == np.kron(mask, np.ones((2, 2), bool))).all()
    assert (geometry.resize(big, 4, 6) == mask).all()
