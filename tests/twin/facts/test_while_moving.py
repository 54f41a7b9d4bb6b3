"""The scope `while_moving`: against its definition, and on things whose moving is plain to see."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import Absence, CameraStep, DepthKind, DigitalTwin
from rvt_ray.twin.facts import CATALOGUE, REGIONS, Facts, Truth
from rvt_ray.twin.facts.moving import moving_windows
from rvt_ray.twin.facts.view import View
from tests.twin.facts.definitions import Definitions
from tests.twin.facts.definitions_motion import Motions
from tests.twin.facts.test_definitions import lively, spoilt
from tests.twin.facts.worlds import Thing, make_twin

T, U, F = Truth.TRUE, Truth.UNKNOWN, Truth.FALSE
MOVING = "while_moving"
RELATIONS = ("left_of", "right_of", "above", "below", "in_front_of", "behind", "near")


def halting(seed: int) -> DigitalTwin:
    """Things that rest, go at some pace, and rest again; a few are hidden for a while."""
    rng = np.random.default_rng(seed)
    things = []
    for k in range(7):
        begin, end = np.sort(rng.uniform(-10, 60, 2))
        start, pace = (
            rng.uniform(30, 290, 2) * (1, 0.7),
            rng.uniform(-10, 10, 2) * rng.choice([0.1, 0.5, 1.0]),
        )
        hidden = np.sort(rng.integers(0, 50, 2)) if rng.random() < 0.2 else (0, 0)

        def centre(t, start=start, pace=pace, begin=begin, end=end, hidden=hidden):
            if hidden[0] < t < hidden[1]:
                return Absence.OCCLUDED
            x, y = start + pace * (np.clip(t, begin, end) - np.clip(0, begin, end))
            return float(x), float(y)

        size = rng.uniform(10, 40, 2)
        things.append(
            Thing(
                2 * k + 1,
                centre=centre,
                size=(float(size[0]), float(size[1])),
                depth=float(rng.uniform(2, 9)),
            )
        )
    twin = make_twin(things, 50, depth_kind=DepthKind.METRIC)
    for instance in twin.instances:
        for t, seen in enumerate(instance.track.visible):
            if seen:  # no measurement is exactly on a threshold
                instance.track.centroid_x[t] += rng.uniform(-0.05, 0.05)
                instance.track.centroid_y[t] += rng.uniform(-0.05, 0.05)
    return twin


def test_the_scope_is_as_defined() -> None:
    met: Counter[tuple[str, int]] = Counter()
    for twin in (*map(halting, range(8)), *map(lively, range(8)), *map(spoilt, range(2))):
        facts, definitions = Facts(twin, FactSettings()), Motions(Definitions(twin, FactSettings()))
        for name in RELATIONS:
            truth = facts.table(name, None, MOVING).truth
            for a, i in enumerate(facts.ids):
                for b, j in enumerate(facts.ids):
                    if a != b:
                        got = int(truth[a, b])
                        assert got == definitions.while_moving(name, i, j), (name, twin.clip_id, i, j)
                        met["relation", got] += 1
        for value in REGIONS:
            truth = facts.table("region", value, MOVING).truth
            for a, i in enumerate(facts.ids):
                assert truth[a] == definitions.while_moving("region", i, None, value), (value, i)
                met["region", int(truth[a])] += 1
    assert min(met[kind, t] for kind in ("relation", "region") for t in (-1, 0, 1)) > 20, dict(met)


def go_then_rest(t: int) -> tuple[float, float]:
    """Two seconds to the right, then two of rest."""
    return 40.0 + 3 * min(t, 20), 60.0


def scene(*, frames: int = 40, camera: list[CameraStep] | None = None) -> Facts:
    """1 goes and then rests; 2 is on its right while it goes and on its left afterwards; 3 rests; 4 goes all
    along."""
    things = [
        Thing(1, centre=go_then_rest, size=(12, 12)),
        Thing(2, centre=lambda t: (160.0 if t < 24 else 20.0, 100.0), size=(12, 12)),
        Thing(3, centre=(180.0, 60.0), size=(12, 12)),
        Thing(4, centre=lambda t: (20.0 + 3 * t, 20.0), size=(12, 12)),
    ]
    return Facts(make_twin(things, frames, camera=camera), FactSettings())


def test_only_the_frames_on_which_the_subject_moves_count() -> None:
    facts = scene()
    assert facts.value("left_of", (1, 2), None, "throughout").truth is F
    assert facts.value("left_of", (1, 2), None, MOVING).truth is T
    assert facts.value("right_of", (1, 2), None, MOVING).truth is F


def test_the_moving_is_that_of_the_first_argument_whichever_way_the_relation_is_measured() -> None:
    facts = scene()
    assert facts.value("left_of", (1, 3), None, MOVING).truth is T
    assert facts.value("right_of", (3, 1), None, MOVING).truth is F, "3 never moves"
    assert facts.value("left_of", (3, 1), None, MOVING).truth is F
    assert facts.value("right_of", (3, 1), None, "throughout").truth is T
    assert facts.value("right_of", (1, 3), None, MOVING).truth is F
    assert facts.value("near", (3, 1), None, MOVING).truth is F


def test_what_moves_all_along_is_not_said_to_be_somewhere_while_moving() -> None:
    facts = scene()
    assert facts.value("above", (4, 3), None, "throughout").truth is T
    assert facts.value("above", (4, 3), None, MOVING).truth is U
    assert facts.value("below", (4, 3), None, MOVING).truth is F, "false whenever it moves"


def test_frames_on_which_it_may_or_may_not_move_cannot_decide() -> None:
    """It creeps at a pace between rest and motion, on the other side of the cup."""
    creep = 0.03 * np.hypot(240, 180) / 10
    things = [
        Thing(1, centre=lambda t: (60.0 + creep * max(0, t - 20) + 4 * min(max(0, t - 60), 20), 60.0)),
        Thing(2, centre=(92.0, 120.0)),
    ]
    twin = make_twin(things, 100, width=240, height=180)
    facts = Facts(twin, FactSettings())
    windows = moving_windows(View(twin, FactSettings()))
    assert windows.proper[0]
    assert windows.sure[0, 64:76].all()
    assert not windows.sure[0, :56].any()
    assert windows.possible[0, 26:58].all()
    assert not windows.possible[0, :15].any()
    assert facts.value("right_of", (1, 2), None, MOVING).truth is U


def test_a_camera_whose_motion_is_unknown_leaves_it_open() -> None:
    steps = [CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=t != 20) for t in range(40)]
    assert scene(camera=steps).value("left_of", (1, 3), None, MOVING).truth is U


def test_a_thing_that_is_covered_for_a_while_does_not_move_by_that() -> None:
    """What can be seen of it shifts as something slides over it, and back."""
    covered = [12.0 if not 10 <= t < 30 else 12.0 - 9 * (1 - abs(t - 20) / 10) for t in range(40)]
    things = [
        Thing(
            1,
            centre=lambda t: (40.0 + 3 * (12 - covered[t]), 60.0),
            size=lambda t: (6 * covered[t], 30.0),
        ),
        Thing(2, centre=(180.0, 60.0)),
    ]
    facts = Facts(make_twin(things, 40), FactSettings())
    assert facts.value("left_of", (1, 2), None, MOVING).truth is not T


def test_the_evidence_shows_frames_on_which_it_moves() -> None:
    fact = scene().value("left_of", (1, 2), None, MOVING)
    assert fact.frames
    assert all(t <= 20 for t in fact.frames)
    assert fact.margin > 0
    assert fact.fact_id == "left_of(1,2)@while_moving"
    assert fact.statement == "#1 is to the left of #2 while #1 moves"


def test_what_fails_on_every_frame_on_which_it_may_move_shows_some_of_them() -> None:
    """It creeps, neither surely moving nor at rest: nothing was shown for a false that rests on that."""
    creep = 0.03 * np.hypot(240, 180) / 10
    things = [Thing(1, centre=lambda t: (40.0 + creep * t, 60.0)), Thing(2, centre=(200.0, 120.0))]
    twin = make_twin(things, 40, width=240, height=180)
    assert not moving_windows(View(twin, FactSettings())).sure[0].any()
    fact = Facts(twin, FactSettings()).value("right_of", (1, 2), None, MOVING)
    assert fact.truth is F
    assert fact.frames


def test_never_together_while_it_moves_is_false() -> None:
    things = [
        Thing(1, centre=go_then_rest, size=(12, 12)),
        Thing(2, centre=lambda t: Absence.OCCLUDED if t < 30 else (160.0, 60.0), size=(12, 12)),
    ]
    facts = Facts(make_twin(things, 40), FactSettings())
    assert facts.value("left_of", (1, 2), None, "end").truth is T
    assert facts.value("left_of", (1, 2), None, MOVING).truth is F


@pytest.mark.parametrize("batch", [1, 1 << 18])
def test_measured_piece_by_piece_it_is_the_same(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = lively(1)
    whole = Facts(twin, FactSettings())
    want = {
        name: whole.table(name, None, MOVING)
        for name, s in CATALOGUE.items()
        if MOVING in s.scopes and s.arity == 2
    }
    monkeypatch.setattr("rvt_ray.twin.facts.facts.BATCH", batch)
    pieces = Facts(twin, FactSettings())
    for name, table in want.items():
        assert (pieces.table(name, None, MOVING).truth == table.truth).all(), name
        assert np.allclose(pieces.table(name, None, MOVING).margin, table.margin), name
