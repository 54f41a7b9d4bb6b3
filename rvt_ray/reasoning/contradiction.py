"""Programs that nothing can fulfil, whatever the clip: their own words rule it out ("smaller than the
smallest"). A sound catalogue, not a complete one: what it names is contradictory, and it names what one
change of a true program brings about."""

from __future__ import annotations

import itertools

from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.twin.facts import CATALOGUE, EXTREMES, kinds
from rvt_ray.twin.facts.scopes import SOME_TIME, THROUGHOUT, WHILE_MOVING


def _pairs(*pairs: tuple[str, str]) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(pair) for pair in pairs)


_APART = _pairs(
    *(("left", "right"), ("top", "bottom"), ("left half", "right half"), ("upper half", "lower half")),
    *(("left", "right half"), ("right", "left half"), ("top", "lower half"), ("bottom", "upper half")),
    *(("centre", side) for side in ("left", "right", "top", "bottom")),
)
"""Regions that share no point."""
_MOTIONS = (
    *("moves_left", "moves_right", "moves_up", "moves_down", "moves_towards_camera"),
    *("moves_away_from_camera", "starts_moving", "stops_moving", "fastest"),
)
_CLASHES = _pairs(("present_throughout", "gets_hidden"), *(("still", p) for p in _MOTIONS))
"""Properties of one thing that exclude each other, beyond the catalogue's opposites."""
_IN_TURN = _pairs(("starts_moving", "stops_moving"))
"""Opposites that a thing may have one after the other, and words say no more than that."""
_LEAVES_NO_ROOM = {
    "still": ({"approaches", "moves_away_from", "follows", "passes", "faster"}, {"follows"}),
    "present_throughout": ({"hidden_by"}, {"appears_before", "disappears_after"}),
}
"""Property -> relations that a thing with it cannot have to another, and that another cannot have to it."""


def contradicts_itself(program: Program) -> bool:
    """Whether two of the constraints exclude each other by what they mean."""
    return any(
        _exclude_each_other(a, b)
        or _outdoes(a, b, program)
        or _outdoes(b, a, program)
        or _has_no_room(a, b)
        or _has_no_room(b, a)
        for a, b in itertools.combinations(program.constraints, 2)
    )


def _readings(c: Constraint) -> list[tuple[str, tuple[str, ...]]]:
    """A constraint, and a relation also the other way round; while its subject moves it has no other way, for
    there it would be while the other one moves."""
    inverse = None if c.scope == WHILE_MOVING else CATALOGUE[c.predicate].inverse
    return [(c.predicate, c.args)] + ([(inverse, c.args[::-1])] if inverse else [])


def _at_one_time(a: Constraint, b: Constraint) -> bool:
    """Whether both speak of some common moment; "at some time" leaves open of which."""
    scopes = {a.scope, b.scope}
    if SOME_TIME in scopes:
        return THROUGHOUT in scopes
    return len(scopes) == 1 or None in scopes or THROUGHOUT in scopes


def _exclude_each_other(a: Constraint, b: Constraint) -> bool:
    """Two things said of the same, or one superlative of two."""
    if _moves_while_still(a, b) or _moves_while_still(b, a):
        return True
    if not _at_one_time(a, b):
        return False
    if a.predicate in EXTREMES and b.predicate in EXTREMES:
        # Of different kinds it may be the largest of the one and the smallest of the other.
        if a.value != b.value:
            return False
        if a.args != b.args:
            return a.predicate == b.predicate
        return CATALOGUE[a.predicate].opposite == b.predicate
    said = next((p for p, args in _readings(b) if args == a.args), None)
    if said is None:
        return False
    if said == a.predicate:
        return _values_exclude(said, a.value or "", b.value or "")
    spec, pair = CATALOGUE[a.predicate], frozenset((a.predicate, said))
    return pair not in _IN_TURN and (
        said in (spec.opposite, spec.inverse) or CATALOGUE[said].opposite == a.predicate or pair in _CLASHES
    )


def _moves_while_still(a: Constraint, b: Constraint) -> bool:
    """A thing keeps still, and is somewhere while it moves."""
    return a.predicate == "still" and b.scope == WHILE_MOVING and b.args[0] == a.args[0]


def _values_exclude(predicate: str, a: str, b: str) -> bool:
    if predicate == "region":
        return frozenset((a, b)) in _APART
    if predicate == "colour":
        return a != b
    if predicate == "attribute":
        (name, _, value), (other, _, other_value) = a.partition(":"), b.partition(":")
        return name == other and value != other_value
    if predicate == "category":
        # Of two general kinds something may be both: a toy and an animal.
        kin = kinds.is_a(a, b) or kinds.is_a(b, a)
        return not kin and not (kinds.is_general(a) and kinds.is_general(b))
    return False


def _outdoes(best: Constraint, relation: Constraint, program: Program) -> bool:
    """ "Smaller than the smallest": something of the superlative's kind goes beyond it."""
    beats = EXTREMES.get(best.predicate)
    if beats is None or len(relation.args) != 2 or not _at_one_time(best, relation):
        return False
    return any(
        said == beats and loser == best.args[0] and _is_surely(winner, best.value or kinds.NEUTRAL, program)
        for said, (winner, loser) in _readings(relation)  # type: ignore[misc]
    )


def _is_surely(variable: str, kind: str, program: Program) -> bool:
    """Whether the program says that a variable is of the kind."""
    if kinds.normal(kind) == kinds.NEUTRAL:
        return True
    return any(
        c.args == (variable,)
        and (c.predicate == "category" or c.predicate in EXTREMES)
        and kinds.is_a(c.value or kinds.NEUTRAL, kind)
        for c in program.constraints
    )


def _has_no_room(own: Constraint, relation: Constraint) -> bool:
    """A property of a thing, and a relation that goes against it."""
    if own.predicate not in _LEAVES_NO_ROOM or len(relation.args) != 2:
        return False
    as_first, as_second = _LEAVES_NO_ROOM[own.predicate]
    return any(
        (said in as_first and args[0] == own.args[0]) or (said in as_second and args[1] == own.args[0])
        for said, args in _readings(relation)
    )
