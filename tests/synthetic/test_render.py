"""The pixels' truth: exact winners, exact depth, nothing random."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from rvt_ray.synthetic import (
    CameraKey,
    CameraSpec,
    Key,
    ObjectSpec,
    SceneSpec,
    random_scene,
    render,
    render_frame,
)
from rvt_ray.synthetic.spec import Camera


def thing(instance_id: int, x: float, z: float, kind: str = "ball", **changes: object) -> ObjectSpec:
    values = {
        "instance_id": instance_id,
        "kind": kind,
        "colour": "red",
        "path": (Key(frame=0, x=x, z=z),),
        "heading": -1.0,
        **changes,
    }
    return ObjectSpec.model_validate(values)


def test_a_ball_covers_exactly_the_pixels_whose_rays_meet_it_at_its_analytic_depth() -> None:
    spec = SceneSpec(num_frames=1, objects=(thing(7, 0.4, 5.0),))
    frame = render_frame(spec, 0)
    camera = Camera(spec)
    v, u = np.mgrid[0:240, 0:320].astype(float)
    dx, dy = camera.rays(u, v, 0)
    radius = 0.5 * 0.8
    offset = np.array([0.0, camera.height, 0.0]) - np.array([0.4, radius, 5.0])
    a = dx**2 + dy**2 + 1
    b = dx * offset[0] + dy * offset[1] + offset[2]
    root = b**2 - a * (offset @ offset - radius**2)
    expected = root >= 0
    # At the point where it touches the ground, ball and floor meet within rounding.
    agree = (frame.instances == 7) == expected
    assert agree.mean() > 0.9999
    hit = expected & (frame.instances == 7)
    depth = (-b - np.sqrt(np.maximum(root, 0))) / a
    assert frame.depth[hit] == pytest.approx(depth[hit], abs=1e-5)
    assert set(np.unique(frame.instances)) == {0, 7}


def test_ground_and_backdrop_have_metric_depth() -> None:
    spec = SceneSpec(num_frames=1)
    frame = render_frame(spec, 0)
    camera = Camera(spec)
    _, dy = camera.rays(np.zeros(240), np.arange(240.0), 0)
    with np.errstate(divide="ignore"):
        expected = np.where(dy < 0, camera.height / -dy, np.inf).clip(max=11.0)
    assert frame.depth == pytest.approx(np.repeat(expected[:, None], 320, axis=1), rel=1e-5)


def test_the_nearer_object_wins_every_shared_pixel() -> None:
    near, far = thing(1, 0.0, 4.5, "box", size="large"), thing(2, 0.3, 6.5, colour="blue", size="large")
    both = render_frame(SceneSpec(num_frames=1, objects=(far, near)), 0)
    alone = {o.instance_id: render_frame(SceneSpec(num_frames=1, objects=(o,)), 0) for o in (near, far)}
    for i in (1, 2):
        assert (both.amodal[i] == (alone[i].instances == i)).all()
    assert (both.instances[both.amodal[1]] == 1).all()
    hidden = both.amodal[2] & both.amodal[1]
    assert hidden.sum() > 500
    assert ((both.instances == 2) == (both.amodal[2] & ~both.amodal[1])).all()
    assert both.depth == pytest.approx(np.minimum(alone[1].depth, alone[2].depth))


def test_interpenetrating_objects_are_decided_pixel_by_pixel() -> None:
    spec = SceneSpec(num_frames=1, objects=(thing(1, -0.2, 5.0), thing(2, 0.2, 5.05, colour="blue")))
    frame = render_frame(spec, 0)
    alone = [render_frame(spec.model_copy(update={"objects": (o,)}), 0).depth for o in spec.objects]
    shared = frame.amodal[1] & frame.amodal[2]
    assert shared.any()
    assert (frame.instances[shared] == np.where(alone[0] < alone[1], 1, 2)[shared]).all()


def test_visible_pixels_are_part_of_the_whole_object() -> None:
    for frame in render(random_scene(3, num_objects=9, num_frames=4, width=160, height=120)):
        for i, full in frame.amodal.items():
            assert not ((frame.instances == i) & ~full).any()


def test_the_same_spec_gives_the_same_bytes() -> None:
    spec = random_scene(11, num_objects=5, num_frames=3, width=128, height=96, camera="pan")
    for a, b in zip(render(spec), render(spec), strict=True):
        assert a.rgb.tobytes() == b.rgb.tobytes()
        assert a.instances.tobytes() == b.instances.tobytes()
        assert a.depth.tobytes() == b.depth.tobytes()
    assert render_frame(spec, 2).rgb.tobytes() == b.rgb.tobytes()


@pytest.mark.parametrize(("width", "height"), [(16, 16), (33, 57), (240, 100), (90, 160)])
def test_any_size_and_any_number_of_objects_renders(width: int, height: int) -> None:
    for count in (0, 1, 25):
        spec = random_scene(1, num_objects=count, num_frames=1, width=width, height=height)
        (frame,) = render(spec)
        assert frame.rgb.shape == (height, width, 3)
        assert frame.instances.shape == frame.depth.shape == (height, width)
        assert len(frame.amodal) == count
        assert np.isfinite(frame.depth).all()


@pytest.mark.parametrize("environment", ["studio", "playground", "park"])
def test_the_background_moves_as_the_camera_steps_say(environment: str) -> None:
    path = (CameraKey(frame=0, pan_x=-0.1), CameraKey(frame=4, pan_x=0.1, pan_y=0.02, zoom=1.3))
    spec = SceneSpec(
        num_frames=5,
        camera=CameraSpec(path=path),
        environment=environment,  # type: ignore[arg-type]
    )
    steps = Camera(spec).steps()
    frames = list(render(spec))
    c = np.array([159.5, 119.5])
    for t in (1, 4):
        s = steps[t]
        move = c + np.array([s.dx, s.dy]) - s.zoom * c
        matrix = np.array([[s.zoom, 0, move[0]], [0, s.zoom, move[1]]])
        warped = cv2.warpAffine(frames[t - 1].rgb, matrix, (320, 240), flags=cv2.INTER_LINEAR)
        inner = np.s_[30:-30, 40:-40]
        right = np.abs(warped[inner].astype(int) - frames[t].rgb[inner]).mean()
        unmoved = np.abs(frames[t - 1].rgb[inner].astype(int) - frames[t].rgb[inner]).mean()
        assert right < 0.5 * unmoved
        depth = cv2.warpAffine(frames[t - 1].depth, matrix, (320, 240), flags=cv2.INTER_LINEAR)
        assert depth[inner] == pytest.approx(frames[t].depth[inner], rel=0.03)


def test_materials_and_colours_look_different_on_screen() -> None:
    def mean(colour: str, material: str) -> np.ndarray:
        spec = SceneSpec(
            num_frames=1, objects=(thing(1, 0, 5, "cylinder", colour=colour, material=material),)
        )
        frame = render_frame(spec, 0)
        own = frame.rgb[frame.instances == 1].astype(float)
        return np.concatenate([own.mean(axis=0), own.std(axis=0)])

    looks = [
        mean(c, "rubber") for c in ("red", "green", "blue", "yellow", "purple", "white", "black", "orange")
    ]
    looks += [mean("red", "metal"), mean("red", "wood")]
    for i, a in enumerate(looks):
        for b in looks[:i]:
            assert np.linalg.norm(a - b) > 10


def test_a_thing_right_at_or_behind_the_camera_does_not_break_the_frame() -> None:
    path = (Key(frame=0, x=0, z=3), Key(frame=4, x=0, z=0.05))
    spec = SceneSpec(width=96, height=72, num_frames=5, objects=(thing(1, 0, 3, "truck", path=path),))
    frames = list(render(spec))
    assert all(np.isfinite(f.depth).all() for f in frames)


def test_a_frame_that_does_not_exist_is_an_index_error() -> None:
    with pytest.raises(IndexError, match="frame 3 of a scene of 3"):
        render_frame(SceneSpec(num_frames=3), 3)
