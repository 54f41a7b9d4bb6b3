"""Growing a description level by level: one direct attribute gives way to relations that imply the same."""

from __future__ import annotations

import itertools
import random

from rvt_ray.reasoning.describe import Describer
from rvt_ray.reasoning.pool import Pool, Sets
from rvt_ray.reasoning.shapes import Link, Shape, Term
from rvt_ray.twin.facts import EXTREMES

MAX_OPTIONS = 60
MAX_FOUND = 24
MAX_ANCHOR_LINKS = 30
MAX_STARS = 600

Part = tuple[tuple[Link, ...], Sets]
"""Links of one target, and what they mean together."""


def go_together(a: Term, b: Term) -> bool:
    """Whether two attributes of one thing read well side by side. A superlative stands alone: it names its
    kind, and "red and the largest box" is heard as "the largest red box"."""
    return a.predicate != b.predicate and not {a.predicate, b.predicate} & EXTREMES.keys()


class Grower:
    """Finds valid descriptions of a target set, and deeper ones that follow from them.

    "Valid" here is by set algebra over uniquely described anchors; the search runs every program that it
    keeps.
    """

    def __init__(self, pool: Pool, describer: Describer, rng: random.Random) -> None:
        self._pool = pool
        self._describer = describer
        self._rng = rng

    def _unary(self, rows: int) -> list[tuple[Term, Sets]]:
        terms = self._pool.holding(rows)
        weights = [(self._pool.weight(t), i) for i, (t, _) in enumerate(terms)]
        return [terms[i] for i in self._pool.pick(weights, self._rng, MAX_OPTIONS)]

    def _links(self, rows: int, depth: int) -> list[tuple[Link, Sets]]:
        """Relations of all of `rows` to anchors that are described by `depth` relations."""
        describe = self._describer.direct if depth == 0 else self._describer.related
        options = self._pool.relations_from(rows)
        order = self._pool.pick(
            [(self._pool.weight(t), i) for i, (t, _) in enumerate(options)], self._rng, 2 * MAX_OPTIONS
        )
        found: list[tuple[Link, Sets]] = []
        seen: set[tuple[int, int, int]] = set()
        for i in order:
            term, anchor = options[i]
            descriptions = describe(anchor)
            if not descriptions:
                continue
            link = Link(term, anchor, self._rng.choice(descriptions))
            if link.rows & rows:
                continue
            sets = self._pool.link_sets(link)
            key = (anchor, sets.certain, sets.possible)
            if rows & ~sets.certain == 0 and key not in seen:
                seen.add(key)
                found.append((link, sets))
                if len(found) >= MAX_OPTIONS:
                    break
        return found

    def direct(self, rows: int) -> list[Shape]:
        """Level 1: one attribute of the targets, or two."""
        terms = self._unary(rows)
        found = [Shape((t,)) for t, s in terms if s.is_exactly(rows)]
        weak = [(t, s) for t, s in terms if not s.is_exactly(rows)]
        pairs = (
            Shape(tuple(sorted((a[0], b[0]))))
            for a, b in itertools.combinations(weak, 2)
            if go_together(a[0], b[0]) and a[1].meet(b[1]).is_exactly(rows)
        )
        return [*found[:MAX_FOUND], *itertools.islice(pairs, MAX_FOUND)]

    def deeper(self, shape: Shape, rows: int) -> list[Shape]:
        """Descriptions with one more relation: an attribute of the target is replaced by a relation (with
        at most one other attribute), or an attribute of an anchor is replaced by a relation of the anchor."""
        return [*self._replace_own(shape, rows), *self._replace_anchors(shape, rows)]

    def _replace_own(self, shape: Shape, rows: int) -> list[Shape]:
        pool = self._pool
        taken = {(link.term.predicate, link.row) for link in shape.links}
        links = [x for x in self._links(rows, 0) if (x[0].term.predicate, x[0].row) not in taken]
        kept = [shape.unary[:i] + shape.unary[i + 1 :] for i in range(len(shape.unary))]
        if not shape.unary and not shape.links:
            kept = [()]
        extra = [(t, s) for t, s in self._unary(rows) if t not in shape.unary]
        found: list[Shape] = []
        for unary in kept:
            base = pool.sets(Shape(unary, shape.links))
            if base.is_exactly(rows):
                continue
            for link, sets in links:
                both = base.meet(sets)
                if both.is_exactly(rows):
                    found.append(Shape(unary, (*shape.links, link)))
            if len(unary) >= 1:
                continue
            open_links = [(link, base.meet(sets)) for link, sets in links]
            pairs = (
                Shape((*unary, term), (*shape.links, link))
                for (link, both), (term, sets) in itertools.product(open_links, extra[:30])
                if not both.is_exactly(rows)
                and not sets.is_exactly(rows)
                and both.meet(sets).is_exactly(rows)
            )
            found += itertools.islice(pairs, MAX_FOUND)
        return found

    def _replace_anchors(self, shape: Shape, rows: int) -> list[Shape]:
        pool = self._pool
        found: list[Shape] = []
        for i, link in enumerate(shape.links):
            others = shape.links[:i] + shape.links[i + 1 :]
            for deeper in self._deeper_anchor(link):
                new = Link(link.term, link.row, deeper)
                if new.rows & rows:
                    continue
                grown = Shape(shape.unary, (*others, new))
                if pool.sets(grown).is_exactly(rows):
                    found.append(grown)
        return found

    def _deeper_anchor(self, link: Link) -> list[Shape]:
        if not link.of.links:
            return self._describer.related(link.row)
        found = []
        for i, inner in enumerate(link.of.links):
            others = link.of.links[:i] + link.of.links[i + 1 :]
            for deeper in self._deeper_anchor(inner):
                new = Link(inner.term, inner.row, deeper)
                if not (new.rows >> link.row) & 1:
                    found.append(Shape(link.of.unary, (*others, new)))
        return found

    def afresh(self, rows: int, hops: int) -> list[Shape]:
        """Descriptions with this many relations from scratch: stars of anchors, and one attribute at most."""
        pool = self._pool
        near: list[Part] = [((link,), s) for link, s in self._links(rows, 0)[:MAX_ANCHOR_LINKS]]
        far: list[Part] = []
        if hops >= 2:
            far = [((link,), s) for link, s in self._links(rows, 1)[:MAX_ANCHOR_LINKS]]
        extra: list[tuple[tuple[Term, ...], Sets]] = [((), Sets(pool.confirmed, pool.everyone))]
        extra += [((t,), s) for t, s in self._unary(rows)[:12]]
        stars = near
        if hops == 2:
            stars = far + self._star(near, near)
        elif hops == 3:
            stars = self._star(near, far) + self._star(near, self._star(near, near)[:60])
        found: list[Shape] = []
        for links, sets in stars:
            for unary, more in extra:
                if sets.meet(more).is_exactly(rows):
                    found.append(Shape(unary, links))
                    break
            if len(found) >= MAX_FOUND * 2:
                break
        return found

    def _star(self, left: list[Part], right: list[Part]) -> list[Part]:
        """Combinations of which each part shrinks the other's set, the first `MAX_STARS`."""
        found: list[Part] = []
        for (a, sa), (b, sb) in itertools.product(left, right):
            certain, possible = sa.certain & sb.certain, sa.possible & sb.possible
            if possible in (sa.possible, sb.possible):
                continue
            if len({link.row for link in a + b}) == len(a) + len(b):
                found.append((a + b, Sets(certain, possible)))
                if len(found) >= MAX_STARS:
                    break
        return found
