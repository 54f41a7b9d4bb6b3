"""Semantic predicates: what a thing is called, how it looks, what it is for. Read off names and scores."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import DigitalTwin, Instance
from rvt_ray.twin.facts import kinds
from rvt_ray.twin.facts.table import Table

SURE_SOURCE = "annotation"
MEASURED_SOURCE = "measured"
COLOUR_NAMES = ("colour", "color")


def _column(found: list[tuple[int, float]]) -> Table:
    return Table(
        np.array([truth for truth, _ in found], np.int8), np.array([margin for _, margin in found], float)
    )


def _names(instance: Instance) -> list[tuple[str, float]]:
    """Every name that the instance may have, the chosen one first, with scores."""
    if instance.category == kinds.NEUTRAL:
        return []
    scores = {a.value: a.score for a in instance.alternatives}
    own = scores.pop(instance.category, 1.0 - max(scores.values(), default=0.0))
    return [(instance.category, own), *scores.items()]


def _weight(scores: Iterable[float]) -> float:
    """Names of one thing share its votes: dog .55 and cat .45 are an animal for sure."""
    return min(sum(scores), 1.0)


def category_of(instance: Instance, value: str, s: FactSettings) -> tuple[int, float]:
    """Truth and margin of `category`.

    TRUE: the chosen name is `value` or a special case of it, all such names together have
    `min_category_score`, and `min_category_lead` more than all others together. FALSE: no name with at
    least `rival_score` is one, nor a more general name that leaves it open, nor a name outside of the table
    that may be one.
    """
    if value == kinds.NEUTRAL:
        return 1, 1.0
    names = _names(instance)
    if not names:
        return 0, 0.0
    support = _weight(score for name, score in names if kinds.is_a(name, value))
    rival = _weight(score for name, score in names if not kinds.is_a(name, value))
    chosen, _ = names[0]
    if kinds.is_a(chosen, value):
        margin = min(support - s.min_category_score, support - rival - s.min_category_lead)
        return (1, margin) if margin >= 0 else (0, 0.0)
    open_names = [score for name, score in names if _may_be(name, value)]
    worst = max(open_names, default=0.0)
    if worst < s.rival_score and names[0][1] >= s.min_category_score:
        return -1, s.rival_score - worst
    return 0, 0.0


def _may_be(name: str, value: str) -> bool:
    """Whether a thing of this name may yet be a `value`."""
    if kinds.is_a(name, value) or kinds.is_a(value, name):
        return True
    return not kinds.is_known(name) and kinds.is_general(value)


def category(twin: DigitalTwin, value: str, s: FactSettings) -> Table:
    """`category` of all instances."""
    return _column([category_of(i, value, s) for i in twin.instances])


def function(twin: DigitalTwin, value: str, s: FactSettings) -> Table:
    """The kind serves this end. False: its kind is surely known, and none of its names serves it."""
    found = []
    for instance in twin.instances:
        names = _names(instance)
        if not names:
            found.append((0, 0.0))
            continue
        serves = [(value in kinds.functions(name), score) for name, score in names]
        support = _weight(score for yes, score in serves if yes)
        against = _weight(score for yes, score in serves if not yes)
        if serves[0][0]:
            margin = min(support - s.min_category_score, support - against - s.min_category_lead)
            found.append((1, margin) if margin >= 0 else (0, 0.0))
        elif (
            support < s.rival_score
            and serves[0][1] >= s.min_category_score
            and kinds.is_known(names[0][0])
            and not kinds.may_serve(names[0][0], value)
        ):
            found.append((-1, s.rival_score - support))
        else:
            found.append((0, 0.0))
    return _column(found)


def _attribute(
    instance: Instance, names: tuple[str, ...], value: str, s: FactSettings, blurred: frozenset[str]
) -> tuple[int, float]:
    claims = [a for a in instance.attributes if a.name.lower() in names]
    if not claims:
        return 0, 0.0
    support = max((a.score for a in claims if a.value.lower() == value), default=0.0)
    others = [a for a in claims if a.value.lower() != value]
    best = max(others, key=lambda a: a.score, default=None)
    if support >= s.min_attribute_score:
        return 1, support - s.min_attribute_score
    if best is None or best.score < s.min_attribute_score or support > 1 - s.min_attribute_score:
        return 0, 0.0
    if best.source != SURE_SOURCE and best.value.lower() in blurred:
        return 0, 0.0
    return -1, best.score - s.min_attribute_score


def colour(twin: DigitalTwin, value: str, s: FactSettings) -> Table:
    """TRUE: claimed with `min_attribute_score`. FALSE: another colour is, this one has at most
    1 - `min_attribute_score`, and the other is not one that people mix up with it (unless annotated). Or:
    colours were measured as shares of the surface, most of it is accounted for, and this colour with all
    that people mix up with it has less than `rival_score`."""
    blurred = kinds.colour_neighbours(value)
    found = []
    for instance in twin.instances:
        truth, margin = _attribute(instance, COLOUR_NAMES, value, s, blurred)
        if truth == 0:
            truth, margin = _hardly_there(instance, {value, *blurred}, s)
        found.append((truth, margin))
    return _column(found)


def _hardly_there(instance: Instance, values: set[str], s: FactSettings) -> tuple[int, float]:
    """FALSE if the measured shares leave no room for these colours."""
    claims = [a for a in instance.attributes if a.name.lower() in COLOUR_NAMES]
    if any(a.source != MEASURED_SOURCE for a in claims):
        return 0, 0.0
    share = sum(a.score for a in claims if a.value.lower() in values)
    if sum(a.score for a in claims) < s.min_attribute_score or share >= s.rival_score:
        return 0, 0.0
    return -1, s.rival_score - share


def attribute(twin: DigitalTwin, value: str, s: FactSettings) -> Table:
    """`name:value`; the rule of colours, without neighbours."""
    name, _, wanted = value.partition(":")
    return _column([_attribute(i, (name,), wanted, s, frozenset()) for i in twin.instances])


def part_of(twin: DigitalTwin) -> Table:
    """`parent_id` of the twin; false for every other pair."""
    ids = [i.instance_id for i in twin.instances]
    n = len(ids)
    truth, margin = np.zeros((n, n), np.int8), np.zeros((n, n))
    for row, instance in enumerate(twin.instances):
        truth[row] = -1
        if instance.parent_id in ids:
            truth[row, ids.index(instance.parent_id)] = 1
            margin[row, ids.index(instance.parent_id)] = 1.0
    return Table(truth, margin)


def values(twin: DigitalTwin, kind_of_value: str) -> list[str]:
    """The values that occur in a twin: of kinds, colours, `name:value` attributes or functions."""
    found: set[str] = set()
    for instance in twin.instances:
        if kind_of_value == "kind" and instance.category != kinds.NEUTRAL:
            found |= {kinds.normal(instance.category), *kinds.general_kinds(instance.category)}
        elif kind_of_value == "text" and instance.category != kinds.NEUTRAL:
            found |= kinds.functions(instance.category)
        elif kind_of_value == "colour":
            found |= {a.value.lower() for a in instance.attributes if a.name.lower() in COLOUR_NAMES}
        elif kind_of_value == "name:value":
            found |= {
                f"{a.name.lower()}:{a.value.lower()}"
                for a in instance.attributes
                if a.name.lower() not in COLOUR_NAMES
            }
    return sorted(found)
