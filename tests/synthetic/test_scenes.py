from __future__ import annotations

import numpy as np
import pytest

from rvt_ray.synthetic import SceneTruth, random_scene
from rvt_ray.synthetic.kinds import COLOURS, KINDS


def small(seed: int, **changes: int) -> SceneTruth:
    values = {"num_objects": 6, "num_frames": 24, "width": 128, "height": 96, **changes}
    return SceneTruth.of(random_scene(seed, **values))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def truths() -> list[SceneTruth]:
    return [small(seed) for seed in range(10)]


def test_a_seed_settles_the_scene() -> None:
    assert random_scene(5) == random_scene(5)
    assert random_scene(5) != random_scene(6)


def test_every_object_is_seen_on_some_frames(truths: list[SceneTruth]) -> None:
    for truth in truths:
        for item in truth.objects.values():
            assert item.visible.sum() >= 2, f"seed {truth.spec.seed}: {item.spec}"


def test_crowds_are_seen_too() -> None:
    truth = small(2, num_objects=20, num_frames=12)
    assert len(truth.objects) == 20
    assert np.mean([item.visible.any() for item in truth.objects.values()]) > 0.9


def test_scenes_hold_everything_that_queries_ask_about(truths: list[SceneTruth]) -> None:
    events = [e.event for truth in truths for e in truth.events()]
    for name in (
        "enters",
        "leaves",
        "moves",
        "approaches",
        "recedes",
        "occluded_by",
        "passes_in_front_of",
        "passes_behind",
    ):
        assert events.count(name) >= 3, name
    still = [sum(truth.is_still(i) for i in truth.objects) for truth in truths]
    assert all(1 <= n <= 4 for n in still)


def test_kinds_colours_cameras_and_places_vary_across_seeds() -> None:
    specs = [random_scene(seed, num_objects=8) for seed in range(40)]
    objects = [o for s in specs for o in s.objects]
    assert {o.kind for o in objects} == set(KINDS)
    assert {o.colour for o in objects} == set(COLOURS)
    assert {o.material for o in objects} == {"rubber", "metal", "wood"}
    assert {o.size for o in objects} == {"small", "medium", "large"}
    assert {s.environment for s in specs} == {"studio", "playground", "park"}
    assert {len(s.camera.path) for s in specs} == {1, 2}
    assert sum(len(s.camera.path) == 1 for s in specs) >= 10


def test_no_two_objects_share_kind_and_colour_but_words_alone_often_do_not_suffice() -> None:
    ambiguous = 0
    for seed in range(12):
        objects = random_scene(seed, num_objects=6).objects
        assert len({(o.kind, o.colour) for o in objects}) == 6
        ambiguous += len({o.kind for o in objects}) < 6
    assert ambiguous >= 6


def test_ids_count_from_one_and_do_not_tell_the_behaviour() -> None:
    still_first = 0
    for seed in range(20):
        objects = random_scene(seed).objects
        assert sorted(o.instance_id for o in objects) == [1, 2, 3, 4, 5, 6]
        still_first += next(o for o in objects if o.instance_id == 1).heading is not None
    assert 2 <= still_first <= 18


@pytest.mark.parametrize("mode", ["still", "pan", "zoom"])
def test_the_camera_does_as_told(mode: str) -> None:
    path = random_scene(4, camera=mode).camera.path  # type: ignore[arg-type]
    pans = len({k.pan_x for k in path}) > 1
    zooms = len({k.zoom for k in path}) > 1
    assert (pans, zooms) == (mode == "pan", mode == "zoom")


@pytest.mark.parametrize(("objects", "frames"), [(0, 1), (1, 1), (3, 2), (30, 300)])
def test_any_number_of_objects_and_frames(objects: int, frames: int) -> None:
    spec = random_scene(0, num_objects=objects, num_frames=frames)
    assert len(spec.objects) == objects
    assert spec.num_frames == frames
