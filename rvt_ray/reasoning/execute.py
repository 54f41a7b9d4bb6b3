"""Runs a program on a twin's facts. The result *is* the truth of a query.

A target t is **certain** when there are distinct instances for the anchors such that every constraint is
TRUE, all of confirmed tracks. It is **possible** when there are instances, distinct or not, such that none is
FALSE; an uncertain track may stand for anything. Certain targets are possible.

Not distinct, since a sentence does not say so: of "what is close to the one that swaps sides with the ball" a
reader may well take the ball, if it is close too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rvt_ray.reasoning.program import Program
from rvt_ray.twin.facts import Facts
from rvt_ray.twin.facts.logic import members


@dataclass(frozen=True)
class Execution:
    """What a program means on one twin.

    Attributes:
        certain, possible: instance ids of the target.
        witness: per certain target one assignment of instance ids to all variables that proves it.
        bindings: per variable the instance ids that it has in some possible assignment.
    """

    certain: frozenset[int]
    possible: frozenset[int]
    witness: dict[int, dict[str, int]] = field(default_factory=dict)
    bindings: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def is_exactly(self, targets: frozenset[int]) -> bool:
        """Whether the program is valid for this target set."""
        return self.certain == targets and self.possible == targets


class _Matcher:
    """All assignments under one reading (certain or possible). Sets of instances are int bit masks."""

    def __init__(self, program: Program, facts: Facts, *, certain: bool) -> None:
        everyone = (1 << len(facts.ids)) - 1
        base = facts.confirmed_bits if certain else everyone
        self._distinct = certain
        self.order = program.variables
        self.domain = dict.fromkeys(program.variables, base)
        self.edges: dict[str, list[tuple[str, tuple[int, ...]]]] = {v: [] for v in program.variables}
        for c in program.constraints:
            table = facts.bits(c.predicate, c.value, c.scope)
            if len(c.args) == 1:
                self.domain[c.args[0]] &= table.certain[0] if certain else table.possible[0]
            else:
                x, y = c.args
                self.edges[x].append((y, table.certain if certain else table.possible))
                self.edges[y].append((x, table.certain_of if certain else table.possible_of))
        self._prune()

    def _prune(self) -> None:
        changed = True
        while changed:
            changed = False
            for v in self.order:
                keep = 0
                for row in members(self.domain[v]):
                    if all(rows[row] & self.domain[other] for other, rows in self.edges[v]):
                        keep |= 1 << row
                if keep != self.domain[v]:
                    self.domain[v] = keep
                    changed = True

    def assignments(self, fixed: dict[str, int]) -> Iterator[dict[str, int]]:
        """Assignments of rows to all variables that agree with `fixed`."""
        chosen = dict(fixed)
        used = 0
        for v, row in fixed.items():
            if not (self.domain[v] >> row) & 1 or (used >> row) & 1:
                return
            used |= self._taken(row)
            for other, rows in self.edges[v]:
                if other in fixed and not (rows[row] >> fixed[other]) & 1:
                    return
        yield from self._extend(chosen, used, [v for v in self.order if v not in fixed])

    def _extend(self, chosen: dict[str, int], used: int, rest: list[str]) -> Iterator[dict[str, int]]:
        if not rest:
            yield dict(chosen)
            return
        options = {v: self.domain[v] & ~used for v in rest}
        for w, row in chosen.items():
            for other, rows in self.edges[w]:
                if other in options:
                    options[other] &= rows[row]
        v = min(rest, key=lambda name: options[name].bit_count())
        left = [w for w in rest if w != v]
        for row in members(options[v]):
            chosen[v] = row
            yield from self._extend(chosen, used | self._taken(row), left)
            del chosen[v]

    def _taken(self, row: int) -> int:
        """What may not stand for another variable once this instance stands for one."""
        return 1 << row if self._distinct else 0


def execute(program: Program, facts: Facts, *, bindings: bool = False) -> Execution:
    """Evaluate a program.

    Args:
        bindings: also work out `Execution.bindings`, which costs a search per variable and instance.

    Raises:
        ValueError: the program is not well formed (unknown predicate, wrong arity, value or scope,
            unused or undeclared variable, not connected).
    """
    program.check()
    target = program.target
    sure = _Matcher(program, facts, certain=True)
    witness: dict[int, dict[str, int]] = {}
    for row in members(sure.domain[target]):
        proof = next(sure.assignments({target: row}), None)
        if proof is not None:
            witness[facts.ids[row]] = {v: facts.ids[r] for v, r in proof.items()}
    maybe = _Matcher(program, facts, certain=False)
    found: dict[str, set[int]] = {v: set() for v in program.variables}
    for row in members(maybe.domain[target]):
        if row in found[target]:
            continue
        proof = next(maybe.assignments({target: row}), None)
        if proof is not None:
            for v, r in proof.items():
                found[v].add(r)
    if bindings:
        for v in program.variables:
            for row in members(maybe.domain[v]):
                if row not in found[v]:  # earlier proofs may have shown it already
                    proof = next(maybe.assignments({v: row}), None)
                    for w, r in (proof or {}).items():
                        found[w].add(r)
    return Execution(
        certain=frozenset(witness),
        possible=frozenset(facts.ids[r] for r in found[target]),
        witness=witness,
        bindings={v: tuple(sorted(facts.ids[r] for r in rows)) for v, rows in found.items()}
        if bindings
        else {},
    )
