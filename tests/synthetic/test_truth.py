"""Truth of hand-made scenes, where the answer is known without the renderer."""

from __future__ import annotations

import numpy as np
import pytest

from rvt_ray.records import Absence
from rvt_ray.synthetic import CameraKey, CameraSpec, Event, Key, ObjectSpec, SceneSpec, SceneTruth, render
from rvt_ray.synthetic.spec import Camera


def thing(instance_id: int, *keys: tuple[float, float, float], **changes: object) -> ObjectSpec:
    values = {
        "instance_id": instance_id,
        "kind": "ball",
        "colour": "red",
        "path": tuple(Key(frame=f, x=x, z=z) for f, x, z in keys),
        **changes,
    }
    return ObjectSpec.model_validate(values)


@pytest.fixture(scope="module")
def crossing() -> SceneTruth:
    """A ball rolls from the left, out of view, behind a box, and out of view on the right; 10 fps."""
    ball = thing(1, (0, -5, 6), (30, 5, 6))
    box = thing(2, (0, 0, 4.5), kind="box", size="large", heading=0.0)
    dog = thing(3, (0, -1.5, 7), (30, -1.5, 5), kind="dog", colour="blue")
    return SceneTruth.of(SceneSpec(num_frames=31, fps=10, width=160, height=120, objects=(ball, box, dog)))


def test_entering_and_leaving_are_where_geometry_says(crossing: SceneTruth) -> None:
    ball = crossing.objects[1]
    x = Camera(crossing.spec).project(ball.position + np.array([0, 0.4, 0]), 0)[:, 0]
    radius = 0.4 * 1.1 * 160 / 6
    inside = np.flatnonzero((x + radius > -0.5) & (x - radius < 159.5))
    events = {e.event: e for e in crossing.events() if e.subject == 1 and e.event in ("enters", "leaves")}
    assert events["enters"].start == pytest.approx(inside[0], abs=1)
    assert events["leaves"].start == pytest.approx(inside[-1], abs=1)
    absence = ball.absence()
    assert absence[0] is absence[-1] is Absence.OUT
    assert absence[15] is Absence.OCCLUDED
    assert absence[events["enters"].start] is None


def test_hiding_names_the_one_that_hides(crossing: SceneTruth) -> None:
    (hidden,) = [e for e in crossing.events() if e.event == "occluded_by" and e.subject == 1]
    assert hidden.object == 2
    assert hidden.start < 15 < hidden.stop
    assert crossing.objects[1].visible_fraction()[15] == 0
    assert crossing.objects[1].visible_fraction()[hidden.start - 1] >= 0.5


def test_passing_says_who_and_on_which_side(crossing: SceneTruth) -> None:
    passes = [e for e in crossing.events() if e.event.startswith("passes")]
    assert Event(event="passes_behind", subject=1, object=2, start=16, stop=16) in passes
    (dog,) = [e for e in passes if e.object == 3]
    assert dog.subject == 1
    assert dog.start == 11  # the ball is on the dog's line of sight after a third of its way
    assert dog.event == "passes_in_front_of"


def test_speeds_and_approach_are_metric(crossing: SceneTruth) -> None:
    assert crossing.speed(1) == pytest.approx(np.full(31, 10 / 3))
    assert crossing.speed(2) == pytest.approx(np.zeros(31))
    assert crossing.is_still(2)
    assert not crossing.is_still(3)
    assert crossing.approach_speed(3) == pytest.approx(np.full(31, 2 / 3))
    (approach,) = [e for e in crossing.events() if e.event == "approaches"]
    assert (approach.subject, approach.start, approach.stop) == (3, 0, 30)
    assert not [e for e in crossing.events() if e.event == "recedes"]


def test_relations_and_counts_on_a_frame(crossing: SceneTruth) -> None:
    assert crossing.count(0) == 2
    assert crossing.count(11) == 3
    assert crossing.count(11, kind="dog") == crossing.count(11, colour="blue") == 1
    assert crossing.left_to_right(0) == [3, 2]
    assert crossing.near_to_far(8) == [2, 1, 3]
    assert crossing.left_of(3, 2, 0) is True
    assert crossing.in_front_of(1, 2, 8) is False
    assert crossing.in_front_of(2, 1, 15) is None  # hidden: nobody can see it
    assert crossing.left_of(1, 2, 0) is None
    assert crossing.larger(2, 1, 8) is True
    assert crossing.above(1, 2, 8) is True
    assert crossing.first_visible(1) == next(t for t in range(31) if 1 in crossing.visible_ids(t))
    assert crossing.last_visible(1) == max(t for t in range(31) if 1 in crossing.visible_ids(t))


def test_image_velocity_counts_the_camera_in() -> None:
    path = (CameraKey(frame=0), CameraKey(frame=4, pan_x=0.1))
    still = thing(1, (0, 0, 5))
    spec = SceneSpec(num_frames=5, fps=20, camera=CameraSpec(path=path), objects=(still,))
    truth = SceneTruth.of(spec, render(spec))
    assert truth.is_still(1)
    assert np.isnan(truth.image_velocity(1)[0]).all()
    assert truth.image_velocity(1)[1:, 0] == pytest.approx(np.full(4, 0.1 * 320 / 4 * 20), abs=3)


def test_boxes_and_areas_are_those_of_the_visible_pixels(crossing: SceneTruth) -> None:
    for frame in render(crossing.spec):
        if frame.index not in (8, 13, 15):
            continue
        for i, item in crossing.objects.items():
            own = frame.instances == i
            assert item.area[frame.index] == own.sum()
            if not own.any():
                assert np.isnan(item.box[frame.index]).all()
                continue
            rows, columns = np.flatnonzero(own.any(1)), np.flatnonzero(own.any(0))
            expected = [columns[0], rows[0], np.ptp(columns) + 1, np.ptp(rows) + 1]
            assert item.box[frame.index].tolist() == expected


def test_one_frame_has_no_motion() -> None:
    truth = SceneTruth.of(SceneSpec(num_frames=1, objects=(thing(1, (0, 0, 5)),)))
    assert truth.speed(1).tolist() == truth.approach_speed(1).tolist() == [0]
    assert truth.events() == []
