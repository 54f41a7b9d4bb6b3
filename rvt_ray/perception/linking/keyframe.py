"""One key frame linked: proposals against what is remembered, from the surest step to the boldest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.masks.matching import match
from rvt_ray.perception.linking.looks import alike
from rvt_ray.perception.linking.memory import Expectation, TrackMemory
from rvt_ray.perception.linking.overlap import Overlaps
from rvt_ray.perception.linking.places import at_edge, near
from rvt_ray.perception.linking.reidentify import Arrival, likely_back
from rvt_ray.perception.linking.settings import LinkSettings
from rvt_ray.perception.proposals import Proposal, Sight

_UNMEASURED = 0.5  # likeness of colours where there are none
_BY_COLOUR = 0.3  # weight of colours beside IoU
_LEAST_ALIKE = 0.25  # of a thing at its very place; light changes, and half of it may be hidden


@dataclass(frozen=True)
class Found:
    """A track on a key frame.

    Attributes:
        proposal: what it is there; joined from pieces, or a share of a lump, where need be.
        again: found as itself, so that it counts.
        back: its mask has to be given anew whatever was propagated.
    """

    proposal: Proposal
    again: bool = True
    back: bool = False


class KeyFrame:
    """The steps of linking one key frame. They must run in the order in which they stand here.

    Args:
        memories: track id -> memory, of all tracks that are still looked for.
        seen: as in `Linker.key_frame`.

    Attributes:
        found: track id -> what it is.
        lumped: tracks that are in a proposal with others.
        gone: tracks that turned out to be no things of their own.
    """

    def __init__(
        self,
        frame: int,
        proposals: Sequence[Proposal],
        memories: Mapping[int, TrackMemory],
        seen: Mapping[int, Sight],
        settings: LinkSettings,
        size: tuple[int, int],
    ) -> None:
        self._proposals = proposals
        self._settings = settings
        self._height, self._width = size
        self._frame = frame
        self._seen = seen
        self._memories = memories
        self._ids = list(memories)
        self._row = {i: row for row, i in enumerate(self._ids)}
        self._expected = [self._expect(i) for i in self._ids]
        self._view = Overlaps.of([e.rle for e in self._expected], [p.rle for p in proposals], *size)
        self._recent = [
            r
            for r, i in enumerate(self._ids)
            if self._expected[r].seen or memories[i].missed < settings.recent_looks
        ]
        self._matched: dict[int, int] = {}  # row -> column
        self._free = set(range(len(proposals)))
        self._released: set[int] = set()
        self._boxes = [box for box in (rle.bbox(p.rle, *size) for p in proposals) if box is not None]
        self._lumps: dict[int, list[int]] = {}
        self.found: dict[int, Found] = {}
        self.lumped: set[int] = set()
        self.gone: set[int] = set()

    def is_expected(self, i: int) -> bool:
        """Whether a track was propagated to this frame, and is on it."""
        return self._expected[self._row[i]].seen

    def find_lumps(self) -> None:
        """Proposals that are several tracks: nobody's, and nothing new."""
        lumps = self._view.lumps(self._settings.inside)
        for column, rows in lumps.items():
            rows = [r for r in rows if r in self._recent]
            if len(rows) >= 2:
                self._lumps[column] = rows
                self._free.discard(column)

    def match_same(self) -> None:
        """One-to-one, by overlap where a track is or should be, helped by colours."""
        s = self._settings
        value = np.zeros(self._view.iou.shape)
        for row in self._recent:
            memory, seen = self._memories[self._ids[row]], self._expected[row].seen
            for column in self._free:
                iou = self._view.iou[row, column]
                if iou < (s.same_iou if seen else s.guess_iou):
                    continue
                measured = alike(memory.colours, self._proposals[column].colours)
                likeness = _UNMEASURED if measured is None else measured
                if not seen and likeness < (_LEAST_ALIKE if iou >= s.same_iou else s.alike):
                    continue
                value[row, column] = iou + _BY_COLOUR * likeness
        if self._free:
            self._matched = dict(match(value, s.guess_iou))
            self._free -= set(self._matched.values())

    def join_pieces(self) -> None:
        """Tracks that were found in pieces; for long, and the pieces are things of their own."""
        for row in sorted(self._recent, key=lambda r: -self._view.track_area[r]):
            memory, column = self._memories[self._ids[row]], self._matched.get(row)
            mine = {column} if column is not None else set()
            alone = float(self._view.iou[row, column]) if column is not None else 0.0
            pieces = self._view.pieces(row, self._free | mine, self._settings.inside, alone)
            if not pieces:
                memory.pieces = 0
                continue
            memory.pieces += 1
            self._free -= set(pieces)
            self._matched.pop(row, None)
            if memory.pieces < self._settings.piece_looks + (not memory.is_candidate):
                joined = self._joined(pieces)
                self.found[self._ids[row]] = Found(joined, again=not memory.is_candidate)
                continue
            memory.pieces = 0
            if memory.is_candidate:
                self.gone.add(self._ids[row])  # two things taken for one when they were first seen
                rest = pieces
            else:
                keep = max(pieces, key=lambda c: self._view.iou[row, c])
                self.found[self._ids[row]] = Found(self._proposals[keep], back=True)
                rest = [c for c in pieces if c != keep]
            self._free |= set(rest)
            self._released |= set(rest)

    def accept_matches(self) -> None:
        """The pairs of `match_same` that are still pairs."""
        for row, column in self._matched.items():
            self.found[self._ids[row]] = Found(self._proposals[column])

    def share_lumps(self) -> None:
        """Who is in a lump and not found otherwise. Candidates that always are lumped are pieces of it."""
        for column, rows in self._lumps.items():
            ids = [self._ids[r] for r in rows if self._ids[r] not in self.found]
            if len(ids) < 2:
                continue
            memories = [self._memories[i] for i in ids]
            for memory in memories:
                memory.grouped += 1
            if all(m.is_candidate and m.grouped >= self._settings.piece_looks for m in memories):
                whole = max(ids, key=lambda i: (self._memories[i].usual_area, -i))
                self.found[whole] = Found(self._proposals[column], again=False, back=True)
                self.gone.update(i for i in ids if i != whole)
                continue
            self.lumped.update(ids)
            for i in ids:
                if i not in self._seen:
                    part = self._part(column, i, ids)
                    if part is not None:
                        self.found[i] = Found(part, again=False)

    def grow_candidates(self) -> None:
        """A candidate was a piece of a thing if that is all there is where it should be."""
        s = self._settings
        covers = self._view.covers()
        for row in self._recent:
            i = self._ids[row]
            if i in self.found or i in self.gone or not self._memories[i].is_candidate:
                continue
            for column in sorted(self._free, key=lambda c: -self._view.iou[row, c]):
                others = [r for r in self._recent if r != row and covers[r, column] >= s.covered]
                if (
                    covers[row, column] >= s.inside
                    and self._view.iou[row, column] >= s.guess_iou
                    and not others
                ):
                    self.found[i] = Found(self._proposals[column], again=False, back=True)
                    self._free.discard(column)
                    break

    def find_lost(self) -> None:
        """Tracks that are nowhere and proposals that are nobody's: by motion, size and colours together."""
        s = self._settings
        sure = [r for r in self._recent if self._expected[r].seen or self._ids[r] in self.found]
        columns = [c for c in sorted(self._free) if c in self._released or not self._known(c, sure)]
        rows = [
            r
            for r, i in enumerate(self._ids)
            if i not in self.found
            and i not in self.lumped | self.gone
            and not self._expected[r].seen
            and not (self._memories[i].is_candidate and self._memories[i].missed >= s.candidate_looks)
        ]
        value = np.zeros((len(rows), len(columns)))
        for b, column in enumerate(columns):
            arrival = Arrival.of(self._proposals[column], self._is_cut(column), self._height, self._width)
            for a, row in enumerate(rows):
                memory, iou = self._memories[self._ids[row]], float(self._view.iou[row, column])
                value[a, b] = likely_back(memory, self._expected[row], arrival, iou, s)
        if value.size:
            for a, b in match(value, s.reidentify):
                self.found[self._ids[rows[a]]] = Found(self._proposals[columns[b]], back=True)
                self._free.discard(columns[b])

    def new(self) -> list[int]:
        """Proposals that no track knows anything of, best first."""
        rows = [r for r in self._recent if self._ids[r] not in self.gone]
        order = sorted(self._free, key=lambda c: (-self._proposals[c].score, c))
        return [c for c in order if c in self._released or not self._known(c, rows)]

    def _expect(self, i: int) -> Expectation:
        sight, memory = self._seen.get(i), self._memories[i]
        if sight is not None and rle.area(sight.rle) > 0:
            return Expectation(sight.rle, True, 0.0, memory.centre)
        return memory.expect(self._frame, self._height, self._width)

    def _known(self, column: int, rows: Sequence[int]) -> bool:
        """Whether a proposal overlaps one of the tracks too much to be anything new."""
        s = self._settings
        return bool(
            (self._view.iou[rows, column] >= s.known_iou).any()
            or (self._view.shared[rows, column] >= s.covered * self._view.area[column]).any()
        )

    def _is_cut(self, column: int) -> bool:
        """Whether a proposal touches the border or another one, so that there may be more of it."""
        box = self._boxes[column]
        return at_edge(box, self._height, self._width) or any(
            k != column and near(box, other) for k, other in enumerate(self._boxes)
        )

    def _joined(self, columns: Sequence[int]) -> Proposal:
        parts = [self._proposals[c] for c in columns]
        whole = rle.union([p.rle for p in parts], self._height, self._width)
        return replace(parts[0], rle=whole, score=min(p.score for p in parts), parent=None, colours=None)

    def _part(self, column: int, i: int, members: Sequence[int]) -> Proposal | None:
        """What of a lump lies where a member should be and no other should."""
        size = (self._height, self._width)
        lump = self._proposals[column]
        mine = rle.decode(self._expected[self._row[i]].rle, *size) & rle.decode(lump.rle, *size)
        for other in members:
            if other != i:
                mine &= ~rle.decode(self._expected[self._row[other]].rle, *size)
        if not mine.any():
            return None
        return replace(
            lump, rle=rle.encode(mine), score=lump.score / 2, label=None, parent=None, colours=None
        )
