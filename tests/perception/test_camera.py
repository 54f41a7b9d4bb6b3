"""Guards the camera's motion: right on known pans, zooms and rolls, and silent where it can't be known."""

from __future__ import annotations

import numpy as np
import pytest

from rvt_ray.perception.operators import classify_camera, cumulative_motion, look_through
from rvt_ray.perception.operators.camera import step_from_matrix, step_matrix
from rvt_ray.records import CameraMotion, CameraStep
from rvt_ray.synthetic import render
from rvt_ray.video.frames import ArrayFrames
from tests.perception.scenes import RED, camera_clip, disc_clip, line, similarity, texture
from tests.scenes import small_scene

H, W = 120, 160


@pytest.mark.parametrize(
    ("dx", "dy", "zoom", "roll"),
    [(1.7, 0, 1, 0), (-0.6, 1.2, 1, 0), (0, 0, 1.012, 0), (0, 0, 0.99, 0), (0.5, 0, 1, 0.01)],
)
def test_a_known_motion_is_found_on_every_frame(dx: float, dy: float, zoom: float, roll: float) -> None:
    step = similarity(dx, dy, zoom, roll, H, W)
    matrices = [np.linalg.matrix_power(step, t)[:2] for t in range(12)]
    steps, _ = look_through(camera_clip(matrices, H, W))
    assert steps[0] == CameraStep(dx=0, dy=0, zoom=1, roll=0, known=True)
    for got in steps[1:]:
        assert got.known
        assert got.dx == pytest.approx(dx, abs=0.15)
        assert got.dy == pytest.approx(dy, abs=0.15)
        assert got.zoom == pytest.approx(zoom, abs=0.002)
        assert got.roll == pytest.approx(roll, abs=0.002)


def test_large_frames_are_measured_in_their_own_pixels() -> None:
    step = similarity(4.0, -2.0, 1.0, 0.0, 480, 640)
    clip = camera_clip([np.linalg.matrix_power(step, t)[:2] for t in range(4)], 480, 640)
    for got in look_through(clip)[0][1:]:
        assert (got.dx, got.dy) == (pytest.approx(4.0, abs=0.3), pytest.approx(-2.0, abs=0.3))


def test_blank_frames_are_unknown_not_still() -> None:
    blank = ArrayFrames(np.full((5, H, W, 3), 90, np.uint8), np.arange(5) / 25)
    steps, _ = look_through(blank)
    assert [s.known for s in steps] == [True] + [False] * 4
    assert classify_camera(steps, H, W) is CameraMotion.UNKNOWN


def test_a_cut_is_unknown() -> None:
    frames = np.stack([texture(H, W, 1)] * 3 + [texture(H, W, 2)] * 3)
    steps, _ = look_through(ArrayFrames(frames, np.arange(6) / 25))
    assert [s.known for s in steps] == [True, True, True, False, True, True]


def test_an_object_does_not_pass_for_the_camera() -> None:
    frames, _ = disc_clip([line((30, 60), (130, 60), 20)], [RED], radius=18)
    steps, _ = look_through(frames)
    assert classify_camera(steps, H, W) is CameraMotion.STILL
    assert max(abs(s.dx) for s in steps) < 0.2


def test_known_objects_are_left_out() -> None:
    # The disc covers most of the corners: only without it does the background's pan show.
    n = 8
    frames, masks = disc_clip([line((60, 60), (95, 60), n)], [RED], radius=52, pan=1.0)
    steps, _ = look_through(frames, lambda i: masks[0, i])
    known = [s for s in steps[1:] if s.known]
    assert known
    assert all(s.dx == pytest.approx(-1.0, abs=0.25) for s in known)


def test_the_clip_is_classified_by_how_far_the_picture_wanders() -> None:
    def steps(dx: float, n: int = 40, known: bool = True) -> list[CameraStep]:
        return [CameraStep(dx=dx * known, dy=0, zoom=1, roll=0, known=known or i == 0) for i in range(n)]

    assert classify_camera(steps(0.0), H, W) is CameraMotion.STILL
    assert classify_camera(steps(1.0), H, W) is CameraMotion.MOVING
    assert classify_camera(steps(0.07), H, W) is CameraMotion.UNKNOWN  # 1.4 % of the diagonal
    assert classify_camera(steps(0.0, known=False), H, W) is CameraMotion.UNKNOWN
    assert classify_camera(steps(0.0, n=1), H, W) is CameraMotion.UNKNOWN


def test_steps_and_matrices_are_inverse_and_accumulate() -> None:
    step = CameraStep(dx=3.0, dy=-1.0, zoom=1.05, roll=0.1, known=True)
    back = step_from_matrix(step_matrix(step, H, W), H, W)
    assert back.model_dump() == pytest.approx(step.model_dump())
    half = step_from_matrix(step_matrix(step, H // 2, W // 2, 0.5), H // 2, W // 2, 0.5)
    assert half.model_dump() == pytest.approx(step.model_dump())
    total = cumulative_motion([step, step], H, W)[1]
    assert total == pytest.approx(np.linalg.matrix_power(np.vstack([step_matrix(step, H, W), [0, 0, 1]]), 2))


def test_a_wall_that_repeats_does_not_make_the_camera_jump() -> None:
    """A truck drives before bricks: the corners agree one brick off; only the picture itself knows better."""

    def measured(first: int, last: int, known: bool) -> list[CameraStep]:
        shown = frames[first:last]
        stream = ArrayFrames(np.stack([f.rgb for f in shown]), [f.index / 8 for f in shown])
        steps, _ = look_through(stream, (lambda i: np.asarray(shown[i].instances > 0)) if known else None)
        return steps

    frames = list(render(small_scene(80)))
    assert max(abs(s.dx) for s in measured(0, len(frames), True) if s.known) < 0.5
    unaided = measured(10, 12, False)[1]
    assert not unaided.known or abs(unaided.dx) > 10, "the scene no longer shows the difficulty"
