"""Level and categories of a program, counted from its constraints; necessity, shown by leaving them out."""

from __future__ import annotations

from rvt_ray.reasoning.execute import execute
from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.records import Category
from rvt_ray.twin.facts import CATALOGUE, Facts
from rvt_ray.twin.facts.scopes import THROUGHOUT, WHILE_MOVING

EDGES = {"start", "end"}


def relations(program: Program) -> list[Constraint]:
    """The hops: constraints between two variables."""
    return [c for c in program.constraints if len(c.args) == 2]


def categories(program: Program) -> tuple[Category, ...]:
    """The categories of the constraints used, in the order of the enum.

    Temporal only if no single frame answers it: a temporal predicate, constraints at the start and others at
    the end, or one that is bound to a thing's own moving.
    """
    found = {CATALOGUE[c.predicate].category for c in program.constraints}
    scopes = {c.scope for c in program.constraints}
    if scopes >= EDGES or WHILE_MOVING in scopes:
        found.add(Category.TEMPORAL)
    return tuple(c for c in Category if c in found)


def orders_events(program: Program) -> bool:
    """Two relations that together order events in time: both temporal, or one at the start and one at the
    end."""
    hops = relations(program)
    timed = [c for c in hops if CATALOGUE[c.predicate].category is Category.TEMPORAL]
    return len(timed) >= 2 or {c.scope for c in hops} >= EDGES


def level(program: Program) -> int:
    """1 + the number of relations, at most 4. Three relations of a single category are level 3; two
    relations that order events count as level 4 when at least two categories are used."""
    hops = len(relations(program))
    mixed = len(categories(program)) >= 2
    if hops >= 3 or (hops == 2 and orders_events(program)):
        return 4 if mixed else 3
    return 1 + hops


def hops(program: Program) -> list[Constraint]:
    """What must be necessary: every relation, and every constraint on the target itself."""
    return [c for c in program.constraints if len(c.args) == 2 or c.args[0] == program.target]


def idle_hops(program: Program, facts: Facts, targets: frozenset[int]) -> list[Constraint]:
    """The hops that can be left out with the same certain and possible set `targets`.

    A relation is left out together with everything that only it ties to the target. Attributes of an anchor
    are no hops and may be more than needed: they are there so that it can be called "the". A hop is idle too
    when its "while moving" is: when the same, said of the whole clip, has the same answer, no motion need be
    watched for it.
    """

    def gives_the_same(other: Program) -> bool:
        return execute(other, facts).is_exactly(targets)

    return [
        c
        for c in hops(program)
        if gives_the_same(program.without(c))
        or (c.scope == WHILE_MOVING and gives_the_same(program.replacing(c, _at_all_times(c))))
    ]


def _at_all_times(constraint: Constraint) -> Constraint:
    return constraint.model_copy(update={"scope": THROUGHOUT})
