"""Guards the numbers of a track: geometry against dense NumPy, velocity under uneven times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rvt_ray.masks import rle
from rvt_ray.twin.kinematics import measure, velocity, visible_runs


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=12)))
def test_geometry_equals_that_of_the_dense_mask(masks: np.ndarray) -> None:
    n, height, width = masks.shape
    got = measure(rle.encode_batch(masks), height, width)
    for i in range(n):
        ys, xs = np.nonzero(masks[i])
        assert got.visible[i] == (len(xs) > 0)
        assert got.area[i] == len(xs)
        if len(xs) == 0:
            assert np.isnan(got.box[i]).all()
            assert np.isnan(got.centroid[i]).all()
            continue
        expected = [xs.min(), ys.min(), xs.max() - xs.min() + 1, ys.max() - ys.min() + 1]
        np.testing.assert_array_equal(got.box[i], expected)
        np.testing.assert_allclose(got.centroid[i], [xs.mean(), ys.mean()], atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.01, 0.5), min_size=1, max_size=20),
    st.floats(-200, 200),
    st.floats(-200, 200),
)
def test_uniform_motion_has_its_velocity_on_every_frame_of_a_vfr_clip(
    gaps: list[float], vx: float, vy: float
) -> None:
    times = np.concatenate(([0.0], np.cumsum(gaps)))
    centroid = np.stack([5 + vx * times, 7 + vy * times], axis=1)
    got = velocity(centroid, np.ones(len(times), bool), times)
    np.testing.assert_allclose(got, np.tile([vx, vy], (len(times), 1)), atol=1e-6 * (1 + abs(vx) + abs(vy)))


def test_velocity_is_unknown_alone_and_one_sided_at_a_gap() -> None:
    times = np.array([0.0, 0.1, 0.3, 0.4, 0.6])
    x = np.array([0.0, 1.0, 2.0, 9.0, 4.0])
    centroid = np.stack([x, np.zeros(5)], axis=1)
    visible = np.array([True, True, False, False, True])
    centroid[~visible] = np.nan
    got = velocity(centroid, visible, times)[:, 0]
    assert got[0] == pytest.approx(10.0)
    assert got[1] == pytest.approx(10.0)  # the invisible neighbour lends nothing
    assert np.isnan(got[2:]).all()


def test_a_single_frame_has_no_velocity() -> None:
    assert np.isnan(velocity(np.zeros((1, 2)), np.array([True]), np.array([0.0]))).all()


def test_runs_are_counted_once_each() -> None:
    assert visible_runs(np.array([True, True, False, True, False])) == 2
    assert visible_runs(np.zeros(4, bool)) == 0
