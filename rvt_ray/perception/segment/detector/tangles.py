"""Things of one name that come too close for place to tell them apart: who is who then, and how sure that is.

When one box holds two people, or a detection lies as well on the one as on the other, overlap says little,
and what flow carried may have jumped. Such things are *tangled*. Their colours are kept as they were before,
and decide, then and when they come apart. Where colours cannot tell either (look-alikes), nobody knows: the
tracks go on, but from there on no mask of theirs is scored high enough to prove anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from rvt_ray.masks import rle
from rvt_ray.perception.linking.looks import Colours, alike
from rvt_ray.perception.proposals import Proposal

TELLS = 0.12  # histogram intersection by which one answer must beat the next best to be the answer
_SAME = 0.6  # ... and from which two things look the same: light and hands make more of a difference
_CLEAR = 0.5  # of two pairs' places over the swapped pairs': from here on place alone tells
_SWALLOWED = 0.6  # share of a carried mask inside of another thing's new one
_APART = 0.3  # share of the smaller box that another one covers, below which things are apart again


@dataclass(frozen=True)
class Span:
    """Frames `start` <= t < `stop` (null: to the end) on which a track may be any of `among`.

    Attributes:
        absent: where it has no mask, it is not known why either.
    """

    start: int
    stop: int | None
    among: frozenset[int]
    absent: bool

    def frames(self, num_frames: int) -> range:
        """The frames of a clip of `num_frames`."""
        return range(self.start, num_frames if self.stop is None else min(self.stop, num_frames))


@dataclass
class Tangle:
    """Attributes:
    since: frame of the last look at which they were clear.
    colours: of each member, as they were then.
    """

    since: int
    colours: dict[int, Colours | None]


@dataclass
class Look:
    """One look at the clip.

    Attributes:
        frame, before, after: of this look, the one before and the next (the clip's length after the last).
        carried: id -> mask that was carried here.
        proposals, boxes: what was found.
        place: id, proposal index -> how well their places agree, 0..1.
    """

    frame: int
    before: int
    after: int
    carried: Mapping[int, str]
    proposals: Sequence[Proposal]
    boxes: Sequence[rle.Box]
    place: Callable[[int, int], float]


@dataclass
class Tangles:
    """All tangles of a clip.

    Attributes:
        doubts: id -> spans on which its identity is not sure.
    """

    height: int
    width: int
    doubts: dict[int, list[Span]] = field(default_factory=dict)
    _open: list[Tangle] = field(default_factory=list)

    def holds(self, i: int) -> bool:
        """Whether a thing is tangled now: its colours are not to be learned."""
        return any(i in tangle.colours for tangle in self._open)

    def settle(
        self,
        look: Look,
        owner: Mapping[int, int],
        known: Collection[int],
        namesakes: Callable[[int, int], bool],
        colours: Callable[[int], Colours | None],
    ) -> dict[int, int]:
        """Who is what, tangles considered.

        Args:
            owner: proposal index -> id, as place and looks have it.
            known: ids of things, candidates left out: those may be parts of things.
            namesakes: whether two ids were ever called the same.
            colours: of an id, before this look.

        Returns:
            proposal index -> id.
        """
        column = {i: c for c, i in owner.items()}
        for a, b in combinations(sorted(i for i in known if i in look.carried), 2):
            if namesakes(a, b) and self._close(look, a, b, column):
                self._join(look.before, {i: colours(i) for i in (a, b)})
        settled = dict(owner)
        for tangle in list(self._open):
            columns = sorted(c for c, i in owner.items() if i in tangle.colours)
            ids, sure = _by_colours(
                tangle.colours, [look.proposals[c] for c in columns], [owner[c] for c in columns]
            )
            settled.update(zip(columns, ids, strict=True))
            if len(columns) == len(tangle.colours) and self._are_apart([look.boxes[c] for c in columns]):
                self._open.remove(tangle)
                if not sure:
                    self.doubt(tangle.colours, tangle.since + 1)
                continue
            hidden = [i for i in tangle.colours if i not in ids]
            self.doubt(
                hidden if sure else tangle.colours,
                look.before + 1,
                look.after,
                among=tangle.colours,
                absent=not sure,
            )
        return settled

    def doubt(
        self,
        ids: Collection[int],
        start: int,
        stop: int | None = None,
        *,
        among: Collection[int] | None = None,
        absent: bool = True,
    ) -> None:
        """Note that any of `ids` may be any of `among` (null: of `ids`)."""
        for i in ids:
            span = Span(start, stop, frozenset(ids if among is None else among), absent)
            self.doubts.setdefault(i, []).append(span)

    def _close(self, look: Look, a: int, b: int, column: Mapping[int, int]) -> bool:
        if a in column and b in column:
            mine = look.place(a, column[a]) + look.place(b, column[b])
            return mine - look.place(a, column[b]) - look.place(b, column[a]) < _CLEAR
        if a not in column and b not in column:
            return any(all(self._holds(p, look.carried[i]) for i in (a, b)) for p in look.proposals)
        found, missed = (a, b) if a in column else (b, a)
        return self._holds(look.proposals[column[found]], look.carried[missed])

    def _holds(self, proposal: Proposal, mask: str) -> bool:
        both = rle.intersection([mask, proposal.rle], self.height, self.width)
        return rle.area(both) >= _SWALLOWED * rle.area(mask)

    def _join(self, since: int, colours: dict[int, Colours | None]) -> None:
        met = [t for t in self._open if t.colours.keys() & colours.keys()]
        for tangle in met:
            since, colours = min(since, tangle.since), colours | tangle.colours
        self._open = [t for t in self._open if t not in met]
        self._open.append(Tangle(since, colours))

    @staticmethod
    def _are_apart(boxes: Sequence[rle.Box]) -> bool:
        return all(covered_share(a, b) < _APART for a, b in combinations(boxes, 2))


def _by_colours(
    colours: Mapping[int, Colours | None], found: Sequence[Proposal], owners: Sequence[int]
) -> tuple[list[int], bool]:
    """The members that the proposals look most like, and whether that is sure; else the owners there were."""
    members = sorted(colours)
    table = np.array([[_alike(colours[i], p.colours) for i in members] for p in found])
    if not found or any(_alike(colours[a], colours[b]) >= _SAME for a, b in combinations(members, 2)):
        return list(owners), False
    rows, best = linear_sum_assignment(-table)
    total = float(table[rows, best].sum())
    second = 0.0
    for row, chosen in zip(rows, best, strict=True):
        other = table.copy()
        other[row, chosen] = -len(found)  # any other answer is better
        second = max(second, float(other[linear_sum_assignment(-other)].sum()))
    if total - second < TELLS:
        return list(owners), False
    return [members[k] for k in best], True


def _alike(a: Colours | None, b: Colours | None) -> float:
    return alike(a, b) or 0.0


def covered_share(a: rle.Box, b: rle.Box) -> float:
    """Share of the smaller box that the other covers."""
    across = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    down = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return max(across, 0.0) * max(down, 0.0) / max(min(a[2] * a[3], b[2] * b[3]), 1e-9)
