"""Tracks against proposals of one frame: who overlaps whom, who is in pieces, who is lumped together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle

Floats = npt.NDArray[np.float64]

_LEAST_SHARE = 0.1  # of a lump; what covers less of it does not make it one
_GAIN = 0.1  # IoU by which a lump or a joined mask must fit better than the best single one


@dataclass(frozen=True)
class Overlaps:
    """Pixels that tracks (rows) and proposals (columns) share, from run lengths alone.

    Attributes:
        tracks, proposals: RLEs.
        iou, shared: shape (tracks, proposals); `shared` in pixels.
        track_area, area: pixels, shapes (tracks,) and (proposals,).
    """

    tracks: Sequence[str]
    proposals: Sequence[str]
    iou: Floats
    shared: Floats
    track_area: Floats
    area: Floats
    height: int
    width: int

    @classmethod
    def of(cls, tracks: Sequence[str], proposals: Sequence[str], height: int, width: int) -> Overlaps:
        iou = rle.iou_matrix(tracks, proposals, height, width)
        rows, columns = rle.areas(tracks).astype(np.float64), rle.areas(proposals).astype(np.float64)
        iou[rows == 0] = 0.0
        shared = iou / (1 + iou) * (rows[:, None] + columns[None, :])
        return cls(tracks, proposals, iou, shared, rows, columns, height, width)

    def covers(self) -> Floats:
        """Share of each track that lies in each proposal."""
        return np.asarray(self.shared / np.maximum(self.track_area[:, None], 1))

    def lies_in(self) -> Floats:
        """Share of each proposal that lies in each track."""
        return np.asarray(self.shared / np.maximum(self.area[None, :], 1))

    def lumps(self, inside: float) -> dict[int, list[int]]:
        """Proposals that are several tracks at once: column -> rows.

        A lump holds at least two tracks that do not overlap each other, and fits all of them together better
        than any one: a whole with its parts is none.
        """
        found: dict[int, list[int]] = {}
        covers = self.covers()
        for column in range(len(self.proposals)):
            rows = [
                int(r)
                for r in np.flatnonzero(covers[:, column] >= inside)
                if self.shared[r, column] >= _LEAST_SHARE * self.area[column]
            ]
            rows = self._apart(sorted(rows, key=lambda r: -self.track_area[r]))
            if len(rows) < 2:
                continue
            together = float(self.shared[rows, column].sum())
            either = float(self.track_area[rows].sum()) + self.area[column] - together
            if together / either >= max(0.5, float(self.iou[:, column].max()) + _GAIN):
                found[column] = sorted(rows)
        return found

    def pieces(self, row: int, columns: Collection[int], inside: float, alone: float) -> list[int]:
        """Proposals that make up a track only together, largest first; none if one alone does as well.

        Args:
            row: the track.
            columns: proposals that are nobody's.
            inside: least share of a piece that lies in the track.
            alone: IoU of the best single proposal with the track.
        """
        lies_in = self.lies_in()[row]
        pieces = self._unlike([c for c in columns if lies_in[c] >= inside and self.shared[row, c] > 0])
        if len(pieces) < 2:
            return []
        together = float(self.shared[row, pieces].sum())
        either = self.track_area[row] + float(self.area[pieces].sum()) - together
        return pieces if together / either >= max(0.5, alone + _GAIN) else []

    def _apart(self, rows: list[int]) -> list[int]:
        """Of nested or overlapping tracks the first."""
        kept: list[int] = []
        for row in rows:
            mine = [self.tracks[k] for k in kept]
            iou = rle.iou_matrix([self.tracks[row]], mine, self.height, self.width)[0]
            areas = self.track_area[kept]
            shared = iou / (1 + iou) * (self.track_area[row] + areas)
            if bool((shared < 0.2 * np.minimum(areas, self.track_area[row])).all()):
                kept.append(row)
        return kept

    def _unlike(self, columns: list[int]) -> list[int]:
        kept: list[int] = []
        for column in sorted(columns, key=lambda c: -self.area[c]):
            mine = [self.proposals[k] for k in kept]
            iou = rle.iou_matrix([self.proposals[column]], mine, self.height, self.width)[0]
            if bool((iou < 0.1).all()):
                kept.append(column)
        return kept
