"""The meaning of programs, written down from the definitions alone. Shares no code with the executor: every
assignment of instances to variables is tried; what is certain takes distinct ones."""

from __future__ import annotations

import functools
import itertools

from rvt_ray.reasoning import Constraint, Program
from rvt_ray.records import TrackStatus
from rvt_ray.twin.facts import Facts, Truth


@functools.cache
def truth(facts: Facts, predicate: str, args: tuple[int, ...], value: str | None, scope: str | None) -> Truth:
    """One fact, remembered: it is asked for in very many assignments."""
    return facts.value(predicate, args, value, scope).truth


def brute_force(program: Program, facts: Facts) -> tuple[set[int], set[int]]:
    """Certain and possible targets."""
    certain, possible = set(), set()
    sure = {i.instance_id for i in facts.twin.instances if i.quality.status is TrackStatus.CONFIRMED}
    for chosen in itertools.product(facts.ids, repeat=len(program.variables)):
        world = dict(zip(program.variables, chosen, strict=True))
        truths = [
            truth(facts, c.predicate, tuple(world[v] for v in c.args), c.value, c.scope)
            for c in program.constraints
        ]
        if all(t is not Truth.FALSE for t in truths):
            possible.add(world[program.target])
        distinct = len(set(chosen)) == len(chosen)
        if distinct and all(t is Truth.TRUE for t in truths) and set(chosen) <= sure:
            certain.add(world[program.target])
    return certain, possible


def drop(program: Program, constraint: Constraint) -> Program:
    """The program less a constraint and less the variables that are then cut off from the target."""
    rest = [c for c in program.constraints if c is not constraint]
    keep = {program.target}
    for _ in program.variables:
        for c in rest:
            if keep.intersection(c.args):
                keep.update(c.args)
    return Program(
        target=program.target,
        variables=tuple(v for v in program.variables if v in keep),
        constraints=tuple(c for c in rest if keep.issuperset(c.args)),
    )
