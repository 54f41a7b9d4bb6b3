"""All terms that are worth using on one twin, with the sets of instances that they hold for."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from rvt_ray.reasoning.shapes import Link, Shape, Term
from rvt_ray.records import Category
from rvt_ray.twin.facts import CATALOGUE, EXTREMES, Facts
from rvt_ray.twin.facts.kinds import NEUTRAL
from rvt_ray.twin.facts.logic import members
from rvt_ray.twin.facts.scopes import THROUGHOUT, WHILE_MOVING

# How readily a term is taken. Scopes: what holds at a clear moment, or all along, is easy to say;
# what holds while a thing moves is rarely sure, and takes more watching than any single frame.
SCOPE_WEIGHT = {
    None: 1.0,
    THROUGHOUT: 1.0,
    "start": 0.9,
    "end": 0.9,
    "some_time": 0.35,
    WHILE_MOVING: 1.5,
}
PREDICATE_WEIGHT = {
    "category": 0.7,
    "function": 1.2,
    "larger": 0.7,
    "smaller": 0.7,
    "faster": 0.7,
    "slower": 0.7,
    "whole_of": 0.5,
    "still": 0.8,
    "moves": 0.8,
    "present_throughout": 0.6,
}
# Attributes that no viewer could check: "medium-sized" has no standard (size is said by comparison), and
# motion words are weaker than the temporal predicates.
VAGUE_ATTRIBUTES = ("size:", "motion:")
SPEEDS = {"faster", "slower", "fastest", "slowest"}
"""Compared only among things that move: "quicker than the chair" is true, and no way to speak of a thing."""
SOME_TIME_RELATIONS = {"near", "touching", "inside", "contains"}


@dataclass(frozen=True)
class Sets:
    """Bit masks over instance rows: surely so, and possibly so."""

    certain: int
    possible: int

    def meet(self, other: Sets) -> Sets:
        """Both hold."""
        return Sets(self.certain & other.certain, self.possible & other.possible)

    def is_exactly(self, rows: int) -> bool:
        """Valid for this set."""
        return self.certain == rows and self.possible == rows


class Pool:
    """The terms of a twin. Terms that hold for everything, or surely for nothing, are left out."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.everyone = (1 << len(facts.ids)) - 1
        self.confirmed = facts.confirmed_bits
        self.moving = facts.bits("moves").certain[0] & self.confirmed
        self.used: Counter[str] = Counter()
        self.unary: dict[Term, Sets] = {}
        self.relations: list[Term] = []
        for spec in CATALOGUE.values():
            for scope in spec.scopes or (None,):
                if scope == "some_time" and spec.name not in SOME_TIME_RELATIONS:
                    continue  # "at some time on the left": true, and a weak thing to say
                if spec.arity == 2:
                    self.relations.append(Term(spec.name, None, scope))
                else:
                    for value in facts.values(spec.name) if spec.value else (None,):
                        self._add(Term(spec.name, value, scope))
        self._from: dict[int, list[tuple[Term, int]]] = {}
        self._tables = [(t, facts.bits(t.predicate, None, t.scope)) for t in self.relations]

    def _add(self, term: Term) -> None:
        if term.predicate in EXTREMES and not self._plural(term.value or NEUTRAL):
            return
        if term.predicate == "attribute" and (term.value or "").startswith(VAGUE_ATTRIBUTES):
            return
        table = self.facts.bits(term.predicate, term.value, term.scope)
        sets = Sets(table.certain[0] & self.confirmed, table.possible[0])
        if term.predicate in SPEEDS and sets.certain & ~self.moving:
            return
        if sets.certain and sets.possible != self.everyone:
            self.unary[term] = sets

    def _plural(self, kind: str) -> bool:
        return self.facts.bits("category", kind).possible[0].bit_count() >= 2

    def link_sets(self, link: Link) -> Sets:
        """The things that stand in this relation to the anchor, none of which is named in it."""
        table = self.facts.bits(link.term.predicate, None, link.term.scope)
        free = ~link.rows
        return Sets(table.certain_of[link.row] & self.confirmed & free, table.possible_of[link.row] & free)

    def sets(self, shape: Shape) -> Sets:
        """What a description means, given that its anchors are described uniquely."""
        result = Sets(self.confirmed, self.everyone)
        for term in shape.unary:
            result = result.meet(self.unary[term])
        for link in shape.links:
            result = result.meet(self.link_sets(link))
        return result

    def weight(self, term: Term) -> float:
        """How readily a term is taken now: what was used often is taken less."""
        spec = CATALOGUE[term.predicate]
        base = PREDICATE_WEIGHT.get(term.predicate, 1.0) * SCOPE_WEIGHT[term.scope]
        return base / (1 + self.used[term.predicate]) / (1 + 0.3 * self.used[f"#{spec.category}"])

    def note_use(self, shape: Shape) -> None:
        """Remember what was used, so that the next choice differs."""
        for term in shape.terms():
            self.used[term.predicate] += 1
            self.used[f"#{CATALOGUE[term.predicate].category}"] += 1

    def holding(self, rows: int) -> list[tuple[Term, Sets]]:
        """The unary terms that surely hold for all of `rows`."""
        return [(t, s) for t, s in self.unary.items() if rows & ~s.certain == 0]

    def relations_from(self, rows: int) -> list[tuple[Term, int]]:
        """(relation, anchor) pairs that surely hold for all of `rows`, the anchor a confirmed other thing."""
        known = self._from.get(rows)
        if known is not None:
            return known
        found = self._from[rows] = []
        for term, table in self._tables:
            anchors = self.confirmed & ~rows
            if term.predicate in SPEEDS:
                anchors &= 0 if rows & ~self.moving else self.moving
            for row in members(rows):
                anchors &= table.certain[row]
            for anchor in members(anchors):
                if table.possible_of[anchor] | (1 << anchor) != self.everyone:
                    found.append((term, anchor))
        return found

    def pick(self, options: list[tuple[float, int]], rng: random.Random, count: int) -> list[int]:
        """`count` of the weighted options, without repetition, likelier the heavier."""
        # Efraimidis-Spirakis: the largest of u^(1/w) are a weighted sample without replacement.
        keyed = sorted(((rng.random() ** (1 / max(w, 1e-6)), index) for w, index in options), reverse=True)
        return [index for _, index in keyed[:count]]


def categories_of(shape: Shape) -> set[Category]:
    """The categories of the predicates in a description."""
    return {CATALOGUE[t.predicate].category for t in shape.terms()}
