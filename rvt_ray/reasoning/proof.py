"""What a candidate carries as proof: the facts that it rests on, and the reasoning tree."""

from __future__ import annotations

import hashlib

from rvt_ray.reasoning.execute import Execution
from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.records import Evidence, Tree, TreeEdge, TreeNode
from rvt_ray.twin.facts import Facts, fact_id


def fact_ids(constraint: Constraint, execution: Execution) -> list[str]:
    """The facts that a constraint stands for: one per target, with that target's anchors."""
    found = {
        fact_id(
            constraint.predicate, [world[v] for v in constraint.args], constraint.value, constraint.scope
        ): None
        for _, world in sorted(execution.witness.items())
    }
    return list(found)


def evidence(program: Program, execution: Execution, facts: Facts) -> tuple[Evidence, ...]:
    """One entry per fact, in the order of the program's constraints."""
    rows: dict[str, Evidence] = {}
    for c in program.constraints:
        for _, world in sorted(execution.witness.items()):
            fact = facts.value(c.predicate, [world[v] for v in c.args], c.value, c.scope)
            rows.setdefault(
                fact.fact_id,
                Evidence(
                    fact_id=fact.fact_id, statement=fact.statement, margin=fact.margin, frames=fact.frames
                ),
            )
    return tuple(rows.values())


def tree(clip_id: str, targets: frozenset[int], lineage: list[tuple[int, Program, Execution]]) -> Tree:
    """The reasoning tree of a target over its programs so far, shallow first: (level, program, execution).

    Nodes are objects, so that a thing that two levels name is one node; `level` is the first that uses it.
    """
    ids = sorted(targets)
    name = "target"
    nodes = {name: TreeNode(node=name, instance_ids=ids, role="target", level=1)}
    edges: dict[tuple[str, str, str | None], TreeEdge] = {}
    for level, program, execution in lineage:
        worlds = [world for _, world in sorted(execution.witness.items())]
        for v in program.variables:
            if v != program.target:
                bound = sorted({world[v] for world in worlds})
                node = "anchor_" + "_".join(map(str, bound))
                nodes.setdefault(node, TreeNode(node=node, instance_ids=bound, role="anchor", level=level))
        for c in program.constraints:
            ends = [
                name
                if v == program.target
                else "anchor_" + "_".join(map(str, sorted({world[v] for world in worlds})))
                for v in c.args
            ]
            label = c.predicate
            label += f"={c.value}" if c.value is not None else ""
            label += f"@{c.scope}" if c.scope is not None else ""
            key = (ends[0], label, ends[1] if len(ends) > 1 else None)
            edges.setdefault(
                key,
                TreeEdge(
                    subject=key[0],
                    predicate=label,
                    object=key[2],
                    level=level,
                    fact_ids=fact_ids(c, execution),
                ),
            )
    first = lineage[0][1].to_json() if lineage else ""
    digest = hashlib.sha256(f"{clip_id}|{ids}|{first}".encode()).hexdigest()[:12]
    return Tree(tree_id=f"tree-{digest}", nodes=list(nodes.values()), edges=list(edges.values()))
