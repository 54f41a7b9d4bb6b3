from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rvt_ray.synthetic import CameraKey, CameraSpec, Key, ObjectSpec, SceneSpec
from rvt_ray.synthetic.spec import Camera


def ball(**changes: object) -> ObjectSpec:
    values = {"instance_id": 1, "kind": "ball", "colour": "red", "path": (Key(frame=0, x=0, z=5),), **changes}
    return ObjectSpec.model_validate(values)


def test_an_object_moves_on_straight_lines_between_keys_and_stands_outside_of_them() -> None:
    path = (Key(frame=2, x=0, z=4), Key(frame=6, x=2, z=8), Key(frame=8, x=2, z=8))
    x, y, z = ball(path=path).positions(11).T
    assert x.tolist() == [0, 0, 0, 0.5, 1, 1.5, 2, 2, 2, 2, 2]
    assert z.tolist() == [4, 4, 4, 5, 6, 7, 8, 8, 8, 8, 8]
    assert (y == 0).all()
    eased = ball(path=path, ease=True).positions(11)[:, 0]
    assert eased[3] < 0.5 < eased[4] == 1 < 1.5 < eased[5]


def test_a_moving_object_faces_where_it_goes_and_keeps_that_when_it_stops() -> None:
    path = (Key(frame=2, x=0, z=5), Key(frame=4, x=1, z=5), Key(frame=6, x=1, z=4))
    headings = ball(path=path).headings(9)
    assert headings.tolist() == pytest.approx([0, 0, 0, 0, *[-math.pi / 2] * 5])
    assert ball(heading=1.25, path=path).headings(3).tolist() == [1.25] * 3
    assert ball().headings(2).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "unicorn"}, "unknown kind 'unicorn'; valid: ball"),
        ({"colour": "mauve"}, "unknown colour 'mauve'; valid: black"),
        ({"path": ()}, "at least one key"),
        ({"path": (Key(frame=3, x=0, z=5), Key(frame=3, x=1, z=5))}, "must ascend"),
        ({"shape": "round"}, "Extra inputs"),
    ],
)
def test_a_wrong_object_is_refused_with_what_is_valid(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ball(**changes)


def test_two_objects_never_share_an_id() -> None:
    with pytest.raises(ValidationError, match="unique"):
        SceneSpec(objects=(ball(), ball(colour="blue")))


@given(
    st.lists(
        st.tuples(st.floats(-0.4, 0.4), st.floats(-0.2, 0.2), st.floats(0.5, 2)), min_size=2, max_size=5
    ),
    st.tuples(st.floats(-3, 3), st.floats(0, 2), st.floats(2, 20)),
)
def test_camera_steps_carry_static_points_of_any_depth_exactly(
    keys: list[tuple[float, float, float]], point: tuple[float, float, float]
) -> None:
    path = tuple(CameraKey(frame=4 * i, pan_x=k[0], pan_y=k[1], zoom=k[2]) for i, k in enumerate(keys))
    spec = SceneSpec(width=201, height=120, num_frames=18, camera=CameraSpec(path=path))
    camera = Camera(spec)
    steps = camera.steps()
    assert (steps[0].dx, steps[0].dy, steps[0].zoom, steps[0].roll) == (0, 0, 1, 0)
    world, centre = np.array(point), np.array([100.0, 59.5])
    for t in range(1, 18):
        before, now = camera.project(world, t - 1), camera.project(world, t)
        moved = centre + steps[t].zoom * (before - centre) + (steps[t].dx, steps[t].dy)
        assert now == pytest.approx(moved, abs=1e-6)


@given(st.floats(0, 200), st.floats(0, 119), st.floats(1, 30))
def test_rays_and_projection_are_inverse_and_the_parameter_is_the_depth(u: float, v: float, z: float) -> None:
    path = (CameraKey(frame=0, pan_x=0.1, pan_y=-0.05, zoom=1.3),)
    camera = Camera(SceneSpec(width=201, height=120, num_frames=2, camera=CameraSpec(path=path)))
    dx, dy = camera.rays(np.array(u), np.array(v), 1)
    world = np.array([float(dx) * z, camera.height + float(dy) * z, z])
    assert camera.project(world, 1) == pytest.approx((u, v), abs=1e-6)
