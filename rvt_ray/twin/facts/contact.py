"""Predicates that depend on the shape of masks: near, touching, inside.

Mask gaps are computed on a grid of frames, from the run-length codes themselves: a mask is a set of
vertical segments, and the gap of two masks is the least distance between segments. No mask is decoded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rvt_ray.config.settings import FactSettings
from rvt_ray.masks import rle as rle_codec
from rvt_ray.records import DigitalTwin
from rvt_ray.twin.facts.logic import Floats, Truths, graded
from rvt_ray.twin.facts.scopes import FrameFacts
from rvt_ray.twin.facts.tracks import TrackArrays

BLOCK = 24

Segments = Callable[[int, int], Floats]
"""(row of an instance, entry of its track) -> the mask as vertical segments, (n, 3): x, first y, last y."""


class Gaps:
    """Least mask-to-mask distances in pixels, computed when first asked for.

    A gap of 1 means that two masks are neighbours. Beyond `reach` only the boxes are compared: the value
    is then a lower bound, which is all that a false `near` needs.

    Args:
        segments: where masks come from; null reads them off the twin.
    """

    def __init__(
        self,
        twin: DigitalTwin,
        tracks: TrackArrays,
        settings: FactSettings,
        segments: Segments | None = None,
    ) -> None:
        self._twin = twin
        self._tracks = tracks
        self._read = segments or self._from_rle
        step = max(1, -(-tracks.num_frames // settings.contact_frames))
        self.grid = np.zeros(tracks.num_frames, bool)
        self.grid[::step] = True
        self.grid[-1] = True
        self._reach = (settings.near_distance + settings.near_margin) * tracks.diagonal
        self._segments: dict[tuple[int, int], Floats] = {}
        self._at: list[dict[int, int]] = [
            {frame: k for k, frame in enumerate(i.track.frame_idx)} for i in twin.instances
        ]
        n = len(tracks.ids)
        self._rows: list[Floats | None] = [None] * n

    def row(self, i: int) -> Floats:
        """Gaps of instance `i` to all, shape (instances, frames); NaN off the grid and where either is
        not surely visible."""
        known = self._rows[i]
        if known is not None:
            return known
        t = self._tracks
        usable = t.seen & t.seen[i] & self.grid
        dx = np.maximum(np.maximum(t.x0, t.x0[i]) - np.minimum(t.x1, t.x1[i]) + 1, 0)
        dy = np.maximum(np.maximum(t.y0, t.y0[i]) - np.minimum(t.y1, t.y1[i]) + 1, 0)
        gaps = np.where(usable, np.hypot(dx, dy), np.nan)
        for j, frame in zip(*np.nonzero(usable & (gaps <= self._reach)), strict=True):
            other = self._rows[j]
            if j == i:
                gaps[j, frame] = 0.0
            elif other is not None:
                gaps[j, frame] = other[i, frame]
            else:
                gaps[j, frame] = self._gap(i, int(j), int(frame))
        self._rows[i] = gaps
        return gaps

    def _gap(self, i: int, j: int, frame: int) -> float:
        a, b = self._columns(i, frame), self._columns(j, frame)
        if not len(a) or not len(b):
            return float("nan")
        return _distance(a, b)

    def _columns(self, i: int, frame: int) -> Floats:
        """Vertical segments (x, first y, last y) of a mask, shape (segments, 3)."""
        key = (i, frame)
        known = self._segments.get(key)
        if known is None:
            known = self._segments[key] = self._read(i, self._at[i][frame])
        return known

    def _from_rle(self, row: int, entry: int) -> Floats:
        text = self._twin.instances[row].track.rle[entry]
        return segments_of(text or "", self._twin.height)


def segments_of(rle: str, height: int) -> Floats:
    """A mask as vertical segments (x, first y, last y), shape (segments, 3)."""
    if not rle:
        return np.empty((0, 3))
    edges = np.cumsum(rle_codec.counts(rle))
    first, stop = edges[0 : len(edges) - 1 : 2], edges[1::2]
    keep = stop > first
    first, last = first[keep], stop[keep] - 1
    x0, x1 = first // height, last // height
    if (x0 != x1).any():  # a run over several columns: cut it at the column ends
        repeat = x1 - x0 + 1
        index = np.repeat(np.arange(len(first)), repeat)
        step = np.arange(len(index)) - np.repeat(np.cumsum(repeat) - repeat, repeat)
        x = x0[index] + step
        top = np.where(step == 0, first[index] % height, 0)
        bottom = np.where(x == x1[index], last[index] % height, height - 1)
        return np.stack([x, top, bottom], axis=1).astype(np.float64)
    return np.stack([x0, first % height, last % height], axis=1).astype(np.float64)


def _distance(a: Floats, b: Floats) -> float:
    """Least distance between two sets of segments, exact.

    Large sets are compared block by block, the blocks with the nearest hulls first, until no hull is
    nearer than what was found.
    """
    if len(a) * len(b) <= BLOCK * BLOCK * 4:
        return _nearest(a, b)
    hulls_a, hulls_b = _hulls(a), _hulls(b)
    dx = np.maximum(hulls_a[:, None, 0] - hulls_b[None, :, 1], hulls_b[None, :, 0] - hulls_a[:, None, 1])
    dy = np.maximum(hulls_a[:, None, 2] - hulls_b[None, :, 3], hulls_b[None, :, 2] - hulls_a[:, None, 3])
    bound = np.hypot(np.maximum(dx, 0), np.maximum(dy, 0))
    best = np.inf
    for flat in np.argsort(bound, axis=None):
        i, j = divmod(int(flat), bound.shape[1])
        if bound[i, j] >= best:
            break
        best = min(best, _nearest(a[i * BLOCK : (i + 1) * BLOCK], b[j * BLOCK : (j + 1) * BLOCK]))
    return float(best)


def _nearest(a: Floats, b: Floats) -> float:
    dx = a[:, None, 0] - b[None, :, 0]
    dy = np.maximum(np.maximum(a[:, None, 1] - b[None, :, 2], b[None, :, 1] - a[:, None, 2]), 0)
    return float(np.sqrt((dx * dx + dy * dy).min()))


def _hulls(segments: Floats) -> Floats:
    """Bounding boxes (first x, last x, first y, last y) of runs of `BLOCK` segments."""
    at = np.arange(0, len(segments), BLOCK)
    x, y0, y1 = segments.T
    return np.stack(
        [
            np.minimum.reduceat(x, at),
            np.maximum.reduceat(x, at),
            np.minimum.reduceat(y0, at),
            np.maximum.reduceat(y1, at),
        ],
        axis=1,
    )


def near(gaps: Gaps, tracks: TrackArrays, i: int, s: FactSettings) -> tuple[Truths, Floats]:
    """Mask gap at most `near_distance` diagonals; on the grid of `gaps`."""
    return graded(
        -gaps.row(i) / tracks.diagonal, -s.near_distance - s.near_margin, -s.near_distance + s.near_margin
    )


def touching(
    gaps: Gaps, tracks: TrackArrays, i: int, s: FactSettings, depth: FrameFacts
) -> tuple[Truths, Floats]:
    """Mask gap at most `touch_px`, at no different depth; on the grid of `gaps`."""
    truth, margin = graded(-gaps.row(i), -s.touch_px - s.touch_margin_px, -s.touch_px)
    return _same_depth(tracks, i, truth, margin, depth)


def inside(tracks: TrackArrays, i: int, s: FactSettings, depth: FrameFacts) -> tuple[Truths, Floats]:
    """At least `inside_share` of the box of `i` in the other's box, at most half of its area, at no
    different depth."""
    w = np.minimum(tracks.x1, tracks.x1[i]) - np.maximum(tracks.x0, tracks.x0[i])
    h = np.minimum(tracks.y1, tracks.y1[i]) - np.maximum(tracks.y0, tracks.y0[i])
    own = (tracks.x1[i] - tracks.x0[i]) * (tracks.y1[i] - tracks.y0[i])
    share = np.maximum(w, 0) * np.maximum(h, 0) / own
    truth, margin = graded(share, s.inside_share - s.inside_margin, s.inside_share)
    bulky = (truth > 0) & (own > 0.5 * (tracks.x1 - tracks.x0) * (tracks.y1 - tracks.y0))
    truth[bulky] = 0
    margin[bulky] = 0.0
    return _same_depth(tracks, i, truth, margin, depth)


def _same_depth(
    tracks: TrackArrays, i: int, truth: Truths, margin: Floats, depth: FrameFacts
) -> tuple[Truths, Floats]:
    """Two things that meet in the image meet in the scene only if their depths allow it: unknown without
    depth, false where one is in front of the other."""
    meet = truth > 0
    measured = np.isfinite(tracks.near_side) & np.isfinite(tracks.near_side[i])
    apart = meet & measured & (depth.truth != 0)
    truth = np.where(apart, -1, np.where(meet & ~measured, 0, truth)).astype(np.int8)
    return truth, np.where(truth == 0, 0.0, np.where(apart, depth.margin, margin))
