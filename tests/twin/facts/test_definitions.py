"""The vectorised facts against the definitions, and what noise may do to them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import Absence, CameraStep, Coverage, DepthKind, DigitalTwin
from rvt_ray.twin.facts import CATALOGUE, EXTREMES, REGIONS, Facts
from tests.twin.facts.definitions import Definitions
from tests.twin.facts.definitions_motion import Motions
from tests.twin.facts.worlds import Thing, make_twin, random_twin

SCOPES = ("throughout", "start", "end", "some_time")
RELATIONS = (
    "left_of",
    "right_of",
    "above",
    "below",
    "in_front_of",
    "behind",
    "larger",
    "smaller",
    "near",
)


def spoilt(seed: int) -> DigitalTwin:
    """A random twin with low scores, holes in the annotation and unexplained absences."""
    twin = random_twin(seed, count=6, frames=24, uncertain=0.2)
    rng = np.random.default_rng(seed)
    for instance in twin.instances:
        track = instance.track
        for t in range(twin.num_frames):
            dice = rng.random()
            if dice < 0.03:
                track.rle[t] = None
            elif dice < 0.08 and track.visible[t]:
                track.score[t] = float(rng.random())
            elif dice < 0.1 and not track.visible[t]:
                track.absence[t] = Absence.UNKNOWN
            if rng.random() < 0.3:
                for name in ("median", "p10", "p90"):
                    getattr(track, f"depth_{name}")[t] = None
            elif track.depth_median[t] is not None:
                track.depth_p10[t] = track.depth_median[t] - rng.random()
                track.depth_p90[t] = track.depth_median[t] + rng.random()
    return twin


@pytest.mark.parametrize("seed", range(8))
def test_relations_and_regions_are_as_defined(seed: int) -> None:
    twin = spoilt(seed)
    facts, definitions = Facts(twin, FactSettings()), Definitions(twin, FactSettings())
    for scope in SCOPES:
        for name in RELATIONS:
            truth = facts.table(name, None, scope).truth
            for a, i in enumerate(facts.ids):
                for b, j in enumerate(facts.ids):
                    if a != b:
                        want = definitions.relation(name, i, j, scope)
                        assert truth[a, b] == want, (name, i, j, scope)
        for value in REGIONS:
            truth = facts.table("region", value, scope).truth
            for a, i in enumerate(facts.ids):
                assert truth[a] == definitions.in_region(i, value, scope), (value, i, scope)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("coverage", Coverage)
def test_superlatives_are_as_defined(seed: int, coverage: Coverage) -> None:
    twin = spoilt(seed).model_copy(update={"coverage": coverage})
    facts, definitions = Facts(twin, FactSettings()), Definitions(twin, FactSettings())
    row = {i: k for k, i in enumerate(facts.ids)}
    for kind in ("object", "animal", "box"):
        of_kind = facts.table("category", kind).truth
        held = coverage is Coverage.EVERYTHING or any(i.category == kind != "object" for i in twin.instances)
        for name, relation in EXTREMES.items():
            if relation not in RELATIONS:
                continue
            for scope in SCOPES[:3]:
                truth = facts.table(name, kind, scope).truth
                for i in facts.ids:
                    want = definitions.extreme(relation, i, lambda j, k=of_kind: int(k[row[j]]), scope, held)
                    assert truth[row[i]] == want, (name, kind, i, scope)


@pytest.mark.parametrize("seed", range(12))
def test_order_and_hiding_are_as_defined(seed: int) -> None:
    twin = spoilt(seed)
    facts, definitions = Facts(twin, FactSettings()), Definitions(twin, FactSettings())
    before = facts.table("appears_before").truth
    hidden = facts.table("gets_hidden").truth
    throughout = facts.table("present_throughout").truth
    for a, i in enumerate(facts.ids):
        assert hidden[a] == definitions.gets_hidden(i), i
        assert throughout[a] == definitions.present_throughout(i), i
        for b, j in enumerate(facts.ids):
            if a != b:
                assert before[a, b] == definitions.appears_before(i, j), (i, j)


def lively(seed: int) -> DigitalTwin:
    """Things that rest, go, stop, come nearer, follow each other and are covered; a camera that may move."""
    rng = np.random.default_rng(seed)
    frames = 32
    calm = seed % 3 == 0
    camera = [
        CameraStep(
            dx=0.0 if calm else float(rng.normal(0.6, 0.5)),
            dy=0.0 if calm else float(rng.normal(0, 0.3)),
            zoom=1.0 if calm else float(rng.normal(1.0, 0.002)),
            roll=0.0 if calm else float(rng.normal(0, 0.002)),
            known=seed % 7 != 6 or t != 14,
        )
        for t in range(frames)
    ]
    things = []
    lead = None
    for k in range(7):
        knots = np.sort(rng.uniform(0, frames, 2))
        way = rng.uniform(-260, 260, 2) * (rng.random() < 0.7)
        start = rng.uniform(20, 220, 2)
        if lead is not None and rng.random() < 0.5:  # after another one
            knots, way, start = lead[0], lead[1] * rng.uniform(0.7, 1.1), lead[2] - lead[1] * 0.3
        lead = knots, way, start
        hidden = np.sort(rng.integers(0, frames, 2)) if rng.random() < 0.3 else (0, 0)
        growth = rng.choice([0.0, 0.0, 0.6, -0.4])
        size = rng.uniform(16, 50, 2)

        def centre(t, knots=knots, way=way, start=start, hidden=hidden):
            if hidden[0] < t < hidden[1]:
                return Absence.OCCLUDED
            done = float(np.interp(t, [knots[0], max(knots[1], knots[0] + 6)], [0, 1]))
            return float(start[0] + done * way[0]), float(start[1] + done * way[1])

        def extent(t, size=size, growth=growth):
            return tuple(float(v) for v in size * (1 + growth * t / frames))

        near = float(rng.uniform(3, 10))
        things.append(
            Thing(
                3 * k + 1,
                centre=centre,
                size=extent,
                depth=lambda t, near=near, growth=growth: near / (1 + growth * t / frames),
            )
        )
    twin = make_twin(things, frames, depth_kind=DepthKind.METRIC, camera=camera)
    for instance in twin.instances:
        track = instance.track
        flickers = rng.random() < 0.4
        for t in range(frames):
            if track.visible[t]:  # no measurement is exactly on a threshold
                track.centroid_x[t] += rng.uniform(-0.05, 0.05)
                track.centroid_y[t] += rng.uniform(-0.05, 0.05)
                if flickers and rng.random() < 0.2:
                    track.area[t] *= rng.uniform(0.1, 1.0)
                    track.centroid_x[t] += rng.uniform(-12, 12)
            if rng.random() < 0.003:
                track.rle[t] = None
    return twin


ALONE = {
    "moves_left": lambda d: d.moves_way(0, -1),
    "moves_right": lambda d: d.moves_way(0, 1),
    "moves_up": lambda d: d.moves_way(1, -1),
    "moves_down": lambda d: d.moves_way(1, 1),
    "moves": lambda d: d.moves,
    "still": lambda d: lambda m: -d.moves(m),
    "starts_moving": lambda d: d.starts(backwards=False),
    "stops_moving": lambda d: d.starts(backwards=True),
    "moves_towards_camera": lambda d: d.nears_camera(1),
    "moves_away_from_camera": lambda d: d.nears_camera(-1),
}
TOGETHER = {
    "faster": lambda d: d.faster,
    "approaches": lambda d: d.approaches(1),
    "moves_away_from": lambda d: d.approaches(-1),
    "follows": lambda d: d.follows,
    "passes": lambda d: d.passes,
}


@pytest.mark.parametrize("name", [*ALONE, *TOGETHER])
def test_motion_is_as_defined(name: str) -> None:
    met: Counter[int] = Counter()
    for seed in range(24):
        twin = lively(seed)
        facts, definitions = Facts(twin, FactSettings()), Motions(Definitions(twin, FactSettings()))
        truth = facts.table(name).truth
        rule = {**ALONE, **TOGETHER}[name](definitions)
        for a, i in enumerate(facts.ids):
            others = range(len(facts.ids)) if name in TOGETHER else [None]
            for b in others:
                if a == b:
                    continue
                got = int(truth[a] if b is None else truth[a, b])
                ids = (i,) if b is None else (i, facts.ids[b])
                assert got == definitions.decide(rule, *ids), (name, seed, ids)
                met[got] += 1
    assert min(met[1], met[0], met[-1]) > 0, f"a test that meets no other truth than {dict(met)} shows little"


def every_table(facts: Facts):
    for spec in CATALOGUE.values():
        for scope in spec.scopes or (None,):
            for value in facts.values(spec.name) if spec.value else (None,):
                yield (spec.name, value, scope), facts.table(spec.name, value, scope)


@pytest.mark.parametrize("seed", range(6))
def test_a_pixel_of_noise_turns_no_fact_round(seed: int) -> None:
    """What is TRUE of the clean twin may become unknown, but never FALSE, and the other way round."""
    clean = random_twin(seed, count=7, frames=30)
    noisy = clean.model_copy(deep=True)
    rng = np.random.default_rng(seed)
    for instance in noisy.instances:
        track = instance.track
        for t in range(noisy.num_frames):
            if track.visible[t]:
                dx, dy, grow = rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(0.98, 1.02)
                for name, shift in (("centroid_x", dx), ("box_x", dx), ("centroid_y", dy), ("box_y", dy)):
                    getattr(track, name)[t] += shift
                track.area[t] *= grow
                for name in ("median", "p10", "p90"):
                    getattr(track, f"depth_{name}")[t] += rng.uniform(-0.05, 0.05)
    noise = dict(every_table(Facts(noisy, FactSettings())))
    decided = 0
    for key, table in every_table(Facts(clean, FactSettings())):
        product = table.truth.astype(int) * noise[key].truth.astype(int)
        assert (product >= 0).all(), (key, np.argwhere(product < 0).tolist())
        decided += int((product > 0).sum())
    assert decided > 2000


@pytest.mark.parametrize("seed", range(4))
def test_inverse_and_opposite_relations_never_contradict(seed: int) -> None:
    facts = Facts(spoilt(seed), FactSettings())
    for spec in CATALOGUE.values():
        for scope in spec.scopes or (None,):
            if spec.arity == 2 and spec.inverse and scope != "while_moving":  # the other one's moving
                truth = facts.table(spec.name, None, scope).truth
                assert (truth == facts.table(spec.inverse, None, scope).truth.T).all()
            if spec.opposite is None or scope == "some_time":
                continue
            for value in facts.values(spec.name) if spec.value else (None,):
                a = facts.table(spec.name, value, scope).truth
                b = facts.table(spec.opposite, value, scope).truth
                assert not ((a > 0) & (b > 0)).any(), (spec.name, spec.opposite, scope)


def test_margins_are_never_negative_and_nothing_unknown_has_one() -> None:
    for _, table in every_table(Facts(spoilt(3), FactSettings())):
        assert np.isfinite(table.margin).all()
        assert (table.margin >= 0).all()
        assert (table.margin[table.truth == 0] == 0).all()
