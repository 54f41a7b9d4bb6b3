"""No-target queries: a true program with one thing changed, so that surely nothing fits it any more."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

from rvt_ray.reasoning.candidate import Candidate
from rvt_ray.reasoning.contradiction import contradicts_itself
from rvt_ray.reasoning.execute import execute
from rvt_ray.reasoning.levels import categories, level
from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.records import Evidence, Tree, TreeEdge, TreeNode
from rvt_ray.twin.facts import CATALOGUE, EXTREMES, Facts, Truth

MAX_EVIDENCE = 12
FLIPPED = {"start": "end", "end": "start"}


def near_misses(
    found: list[Candidate], facts: Facts, rng: random.Random, count: int, seen: set[str]
) -> list[Candidate]:
    """`count` programs (fewer if there are not so many) that are possible for nothing.

    What is changed is a constraint that the target takes part in: its value becomes another that occurs
    in the twin, a relation its opposite, the start the end. Each anchor is still described uniquely, and
    less the changed constraint something does fit: it is a near miss, not nonsense. Nor is it impossible by
    its own words: one has to look to know that nothing fits.
    """
    sources = list(found)
    rng.shuffle(sources)
    made: list[Candidate] = []
    for source in sources:
        if len(made) >= count:
            break
        changes = list(_changes(source.program, facts))
        rng.shuffle(changes)
        for old, new in changes:
            program = source.program.replacing(old, new)
            text = program.to_json()
            if text in seen or not _is_near_miss(program, new, facts):
                continue
            seen.add(text)
            made.append(_candidate(program, source, facts))
            break
    return made


def _changes(program: Program, facts: Facts) -> Iterator[tuple[Constraint, Constraint]]:
    present = set(program.constraints)
    for c in program.constraints:
        # That nothing is the leftmost truck means a tie, or one truck only: one would point at a truck still.
        if c.args[0] != program.target or c.predicate in EXTREMES:
            continue
        spec = CATALOGUE[c.predicate]
        changed = []
        if c.value is not None and c.predicate not in ("category", "function"):
            changed += [c.model_copy(update={"value": v}) for v in facts.values(c.predicate) if v != c.value]
        if spec.opposite is not None:
            changed.append(c.model_copy(update={"predicate": spec.opposite}))
        if c.scope in FLIPPED:
            changed.append(c.model_copy(update={"scope": FLIPPED[c.scope]}))
        yield from ((c, new) for new in changed if new not in present)


def _is_near_miss(program: Program, changed: Constraint, facts: Facts) -> bool:
    if contradicts_itself(program) or execute(program, facts).possible:
        return False
    if not execute(program.without(changed), facts).certain:
        return False
    others = [c for c in program.constraints if len(c.args) == 2 and c != changed]
    if any(not execute(program.without(c), facts).possible for c in others):
        return False  # a hop that changes nothing
    return all(
        len(execute(program.description(v), facts).possible) == 1
        for v in program.variables
        if v != program.target
    )


def _candidate(program: Program, source: Candidate, facts: Facts) -> Candidate:
    bound = {v: execute(program.description(v), facts) for v in program.variables if v != program.target}
    anchors = {v: tuple(sorted(e.possible)) for v, e in bound.items()}
    name = {v: "anchor_" + "_".join(map(str, ids)) for v, ids in anchors.items()}
    name[program.target] = "target"
    edges, proof = [], {}
    for c in program.constraints:
        refuted = _refuting(c, program, anchors, facts)
        proof.update({e.fact_id: e for e in refuted})
        label = c.predicate + (f"={c.value}" if c.value else "") + (f"@{c.scope}" if c.scope else "")
        edges.append(
            TreeEdge(
                subject=name[c.args[0]],
                predicate=label,
                object=name[c.args[1]] if len(c.args) > 1 else None,
                level=level(program),
                fact_ids=[e.fact_id for e in refuted],
            )
        )
    nodes = [TreeNode(node="target", instance_ids=[], role="target", level=1)]
    nodes += [
        TreeNode(node=name[v], instance_ids=list(ids), role="anchor", level=level(program))
        for v, ids in anchors.items()
    ]
    digest = hashlib.sha256(f"{source.tree.tree_id}|{program.to_json()}".encode()).hexdigest()[:12]
    return Candidate(
        target_ids=(),
        program=program,
        level=level(program),
        categories=categories(program),
        tree=Tree(tree_id=f"tree-{digest}", nodes=nodes, edges=edges),
        evidence=tuple(list(proof.values())[:MAX_EVIDENCE]),
        anchors=anchors,
        no_target=True,
    )


def _refuting(
    c: Constraint, program: Program, anchors: dict[str, tuple[int, ...]], facts: Facts
) -> list[Evidence]:
    """Why this constraint fails, for each instance for which it does: what the empty answer rests on."""
    if c.args[0] != program.target:
        return []
    rest = [anchors[v][0] for v in c.args[1:]]
    rows = []
    for instance_id in facts.ids:
        if instance_id in rest:
            continue
        fact = facts.value(c.predicate, [instance_id, *rest], c.value, c.scope)
        if fact.truth is Truth.FALSE:
            rows.append(
                Evidence(
                    fact_id=fact.fact_id,
                    statement=f"not so: {fact.statement}",
                    margin=fact.margin,
                    frames=fact.frames,
                )
            )
    return rows
