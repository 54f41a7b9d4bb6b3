"""Gate 3: every hop is needed; leaving it out makes the answer wrong or ambiguous."""

from __future__ import annotations

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.base import Finding, passed, refused
from rvt_ray.reasoning import execute
from rvt_ray.reasoning.levels import idle_hops, relations
from rvt_ray.twin.facts import Facts


def check_necessity(facts: Facts, draft: Draft) -> Finding:
    """For a target set: no hop is idle. For a no-target query: it is a near miss, so that leaving some one
    constraint out gives it an answer."""
    program = draft.candidate.program
    targets = frozenset(draft.candidate.target_ids)
    if not targets:
        if len(program.constraints) == 1:
            return passed("a single constraint, which nothing fulfils")
        for constraint in program.constraints:
            if execute(program.without(constraint), facts).certain:
                return passed(f"only {constraint.predicate} keeps it from having an answer")
        return refused("no single constraint keeps it from having an answer: it is no near miss")
    idle = idle_hops(program, facts, targets)
    if idle:
        return refused(f"can be left out: {', '.join(sorted(c.predicate for c in idle))}")
    return passed(f"each of {len(relations(program))} relations and of the target's own facts is needed")
