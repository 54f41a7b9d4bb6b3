"""Descriptions as trees of terms: what the search builds, and how it becomes a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.twin.facts import EXTREMES

MAX_UNARY = 2
MAX_ANCHORS = 4


@dataclass(frozen=True)
class Term:
    """A predicate with value and scope, without arguments."""

    predicate: str
    value: str | None = None
    scope: str | None = None

    def __lt__(self, other: Term) -> bool:
        return self.key < other.key

    @property
    def key(self) -> tuple[str, str, str]:
        """For ordering."""
        return (self.predicate, self.value or "", self.scope or "")


@dataclass(frozen=True)
class Link:
    """A relation from the described thing to an anchor, which is one instance with its own description."""

    term: Term
    row: int
    of: Shape

    @property
    def hops(self) -> int:
        """Relations in it: this one and those that describe the anchor."""
        return 1 + self.of.hops

    @property
    def rows(self) -> int:
        """Bit mask of all instances that it names."""
        mask = 1 << self.row
        for link in self.of.links:
            mask |= link.rows
        return mask


@dataclass(frozen=True)
class Shape:
    """A description: unary terms and links to described anchors."""

    unary: tuple[Term, ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def hops(self) -> int:
        """Relations in the whole description."""
        return sum(link.hops for link in self.links)

    def terms(self) -> Iterator[Term]:
        """Every term, depth first."""
        yield from self.unary
        for link in self.links:
            yield link.term
            yield from link.of.terms()


def _readable(terms: list[Term], most: int) -> bool:
    """Few attributes, no predicate twice, and a superlative only by itself."""
    names = [t.predicate for t in terms]
    return (
        len(names) <= most
        and len(set(names)) == len(names)
        and (len(names) == 1 or not EXTREMES.keys() & set(names))
    )


def to_program(shape: Shape) -> tuple[Program, dict[str, int]] | None:
    """The program of a target's description, and the row of each anchor variable.

    An instance that is named twice becomes one variable. None when that makes a circle, too many anchors,
    or too many attributes for one thing.
    """
    order: list[int] = []  # anchors' rows, parents before children
    unary: dict[int | None, list[Term]] = {None: list(shape.unary)}
    edges: set[tuple[int | None, int, Term]] = set()

    def visit(subject: int | None, described: Shape, path: tuple[int, ...]) -> bool:
        for link in described.links:
            if link.row in path:
                return False
            edges.add((subject, link.row, link.term))
            found = unary.setdefault(link.row, [])
            found += [t for t in link.of.unary if t not in found]
            if not visit(link.row, link.of, (*path, link.row)):
                return False
            if link.row in order:
                order.remove(link.row)
            order.insert(0, link.row)
        return True

    if not visit(None, shape, ()) or len(order) > MAX_ANCHORS:
        return None
    if any(not _readable(terms, MAX_UNARY + (row is not None)) for row, terms in unary.items()):
        return None
    rank = {row: i for i, row in enumerate(order)}
    if any(s is not None and rank[s] > rank[o] for s, o, _ in edges):
        return None  # merged descriptions of two anchors lean on each other
    names: dict[int | None, str] = {None: "x"}
    names.update({row: "abcdefgh"[i] for i, row in enumerate(order)})
    constraints = [
        Constraint(predicate=t.predicate, args=(names[row],), value=t.value, scope=t.scope)
        for row in (None, *order)
        for t in sorted(unary[row])
    ]
    constraints += [
        Constraint(predicate=t.predicate, args=(names[s], names[o]), value=t.value, scope=t.scope)
        for s, o, t in sorted(edges, key=lambda e: (names[e[0]], names[e[1]], e[2]))
    ]
    program = Program(
        target="x", variables=tuple(names[row] for row in (None, *order)), constraints=tuple(constraints)
    )
    return program, {names[row]: row for row in order}
