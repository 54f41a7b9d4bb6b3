"""Unique descriptions of single things: what an anchor is called, so that a wording may say "the"."""

from __future__ import annotations

import itertools
import random

from rvt_ray.reasoning.pool import Pool, Sets
from rvt_ray.reasoning.shapes import Link, Shape, Term
from rvt_ray.twin.facts import EXTREMES
from rvt_ray.twin.facts.kinds import NEUTRAL

MAX_TERMS = 40


class Describer:
    """Finds descriptions of instances by 0 or more relations; remembers them."""

    def __init__(self, pool: Pool, rng: random.Random) -> None:
        self._pool = pool
        self._rng = rng
        self._direct: dict[int, list[Shape]] = {}
        self._related: dict[int, list[Shape]] = {}

    def direct(self, row: int) -> list[Shape]:
        """Descriptions without relations; a name comes first where one is surely known."""
        found = self._direct.get(row)
        if found is None:
            found = self._direct[row] = self._find_direct(row)
        return found

    def _name(self, row: int) -> tuple[Term, Sets] | None:
        """The most special kind that is surely known."""
        named = [(t, s) for t, s in self._pool.holding(1 << row) if t.predicate == "category"]
        return min(named, key=lambda n: (n[1].certain.bit_count(), n[0]), default=None)

    def _find_direct(self, row: int) -> list[Shape]:
        pool, one = self._pool, 1 << row
        name = self._name(row)
        base = Sets(pool.confirmed, pool.everyone)
        start: tuple[Term, ...] = ()
        if name is not None:
            start, base = (name[0],), name[1]
            if base.is_exactly(one):
                return [Shape(start)]
        terms = [(t, s) for t, s in pool.holding(one) if t.predicate not in ("category", "function")]
        order = pool.pick([(pool.weight(t), i) for i, (t, _) in enumerate(terms)], self._rng, MAX_TERMS)
        terms = [terms[i] for i in order]
        single = []
        for t, s in terms:
            if t.predicate in EXTREMES:
                # "the largest box" says that it is a box; "the box that is the largest container" is odd.
                if s.is_exactly(one) and t.value == (start[0].value if start else NEUTRAL):
                    single.append(Shape((t,)))
            elif s.meet(base).is_exactly(one):
                single.append(Shape((*start, t)))
        terms = [(t, s) for t, s in terms if t.predicate not in EXTREMES]
        if single or len(start) > 1:
            return single[:4]
        pairs = (
            Shape((*start, a[0], b[0]))
            for a, b in itertools.combinations(terms, 2)
            if a[0].predicate != b[0].predicate and a[1].meet(b[1]).meet(base).is_exactly(one)
        )
        return list(itertools.islice(pairs, 3))

    def related(self, row: int) -> list[Shape]:
        """Descriptions by one relation to a directly described anchor, with its name or one attribute."""
        found = self._related.get(row)
        if found is None:
            found = self._related[row] = self._find_related(row)
        return found

    def _find_related(self, row: int) -> list[Shape]:
        pool, one = self._pool, 1 << row
        name = self._name(row)
        bases: list[tuple[tuple[Term, ...], Sets]] = [((), Sets(pool.confirmed, pool.everyone))]
        if name is not None and not name[1].is_exactly(one):
            bases.insert(0, ((name[0],), name[1]))
        options = [(t, a) for t, a in pool.relations_from(one) if self.direct(a)]
        order = pool.pick([(pool.weight(t), i) for i, (t, _) in enumerate(options)], self._rng, MAX_TERMS)
        found: list[Shape] = []
        for i in order:
            term, anchor = options[i]
            link = Link(term, anchor, self._rng.choice(self.direct(anchor)))
            sets = pool.link_sets(link)
            for unary, base in bases:
                if sets.meet(base).is_exactly(one):
                    found.append(Shape(unary, (link,)))
                    break
            if len(found) >= 6:
                break
        return found
