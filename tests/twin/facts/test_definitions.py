"""The vectorised facts against the definitions, and what noise may do to them."""

from __future__ import annotations

import numpy as np
import pytest

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import Absence, DigitalTwin
from rvt_ray.twin.facts import CATALOGUE, EXTREMES, REGIONS, Facts
from tests.twin.facts.definitions import Definitions
from tests.twin.facts.definitions_speed import Speeds
from tests.twin.facts.worlds import random_twin

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
def test_superlatives_are_as_defined(seed: int) -> None:
    twin = spoilt(seed)
    facts, definitions = Facts(twin, FactSettings()), Definitions(twin, FactSettings())
    row = {i: k for k, i in enumerate(facts.ids)}
    for kind in ("object", "animal", "box"):
        of_kind = facts.table("category", kind).truth
        for name, relation in EXTREMES.items():
            if relation not in RELATIONS:
                continue
            for scope in SCOPES[:3]:
                truth = facts.table(name, kind, scope).truth
                for i in facts.ids:
                    want = definitions.extreme(relation, i, lambda j, k=of_kind: int(k[row[j]]), scope)
                    assert truth[row[i]] == want, (name, kind, i, scope)


@pytest.mark.parametrize("seed", range(12))
def test_order_and_hiding_are_as_defined(seed: int) -> None:
    twin = spoilt(seed)
    facts, definitions = Facts(twin, FactSettings()), Definitions(twin, FactSettings())
    before = facts.table("appears_before").truth
    hidden = facts.table("gets_hidden").truth
    for a, i in enumerate(facts.ids):
        assert hidden[a] == definitions.gets_hidden(i), i
        for b, j in enumerate(facts.ids):
            if a != b:
                assert before[a, b] == definitions.appears_before(i, j), (i, j)


@pytest.mark.parametrize("seed", range(12))
def test_speeds_are_as_defined(seed: int) -> None:
    twin = spoilt(seed)
    # Masks that flicker, so that there is something to leave out.
    rng = np.random.default_rng(seed)
    for instance in twin.instances:
        track = instance.track
        for t in range(twin.num_frames):
            if track.visible[t] and rng.random() < 0.2:
                track.area[t] *= rng.uniform(0.2, 1.0)
                track.centroid_x[t] += rng.uniform(-12, 12)
    facts, definitions = Facts(twin, FactSettings()), Speeds(Definitions(twin, FactSettings()))
    truth = facts.table("faster").truth
    for a, i in enumerate(facts.ids):
        for b, j in enumerate(facts.ids):
            if a != b:
                assert truth[a, b] == definitions.faster(i, j), (i, j)


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
            if spec.arity == 2 and spec.inverse:
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
