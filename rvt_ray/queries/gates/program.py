"""Gate 1: the program, run anew on the full twin, gives exactly the target set; so do the answer's facts."""

from __future__ import annotations

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.base import Finding, passed, refused
from rvt_ray.reasoning import execute
from rvt_ray.twin.facts import Facts, Truth


def check_program(facts: Facts, draft: Draft) -> Finding:
    """certain = possible = targets, every fact that the answer cites as certain as it claims, no negative
    margin."""
    candidate = draft.candidate
    result = execute(candidate.program, facts)
    targets = frozenset(candidate.target_ids)
    if not (result.certain == result.possible == targets):
        return refused(
            f"certain {sorted(result.certain)}, possible {sorted(result.possible)}, "
            f"but the target set is {sorted(targets)}"
        )
    for use in draft.uses:
        truth = facts.value(use.predicate, use.ids, use.value, use.scope).truth
        wanted = Truth.TRUE if use.true else Truth.FALSE
        if truth is not wanted:
            return refused(f"the answer needs {use.predicate}{use.ids} {wanted.name}, but it is {truth.name}")
    margins = [e.margin for e in (*candidate.evidence, *draft.evidence)]
    if any(m < 0 for m in margins):
        return refused(f"a fact lies {-min(margins):.4g} inside its margin")
    return passed(f"certain = possible = {len(targets)} of {len(facts.ids)}; {len(margins)} facts cited")
