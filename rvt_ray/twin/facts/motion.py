"""How each instance moves in the scene, camera motion removed: excursions, net displacement, speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rvt_ray.config.settings import FactSettings
from rvt_ray.twin.facts.logic import Bools, Floats
from rvt_ray.twin.facts.tracks import TrackArrays

MIN_SEEN = 4
STEP_SPREAD = 0.954
"""Median size of the difference of two normal values, in standard deviations of one: 0.6745 times root 2."""
MEDIAN_ERROR = 1.25
"""Standard error of a median, in those of a mean: root of pi / 2."""
STEADY = 0.75
"""Least share of its visible size that a thing in part cut or covered keeps if its place can be told."""


@dataclass(frozen=True)
class Motion:
    """Per instance, lengths in frame diagonals of frame 0.

    Attributes:
        placed: (instances, frames) frames whose positions count.
        shown: placed wherever it is seen, so that no motion escapes.
        known: at least `MIN_SEEN` such frames whose positions can be compared.
        slack: allowance for the camera's estimated motion.
        left, right, up, down: the farthest that it ever gets in this direction, from any moment to any
            later one.
        net_x, net_y: displacement from its first to its last moments.
        edges_x, edges_y: (instances, 2) the same for its box's left/right and top/bottom edges; a cut edge
            (at the frame's border) holds NaN. An occluder that slides over a thing moves one edge only.
        speed: mean speed, diagonals per second, along all that its measured place does: jitter and what
            hides it make it too large, hardly ever too small.
        least_speed: the same along what surely was motion: without the sights on which something covers it
            for a while, and in strides of `still_shift`.
        first, last: first and last placed frame; -1 for none.
        x, y: (instances, frames) smoothed position; NaN where not placed.
        velocity_x, velocity_y: (instances, frames) diagonals per second, NaN where not placed.
    """

    placed: Bools
    shown: Bools
    known: Bools
    slack: Floats
    left: Floats
    right: Floats
    up: Floats
    down: Floats
    net_x: Floats
    net_y: Floats
    edges_x: Floats
    edges_y: Floats
    speed: Floats
    least_speed: Floats
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    x: Floats
    y: Floats
    velocity_x: Floats
    velocity_y: Floats

    @property
    def extent(self) -> Floats:
        """The farthest that it gets from anywhere it was, along either axis."""
        farthest: Floats = np.maximum.reduce([self.left, self.right, self.up, self.down])
        return farthest


def smooth(values: Floats, pts: Floats, seconds: float) -> Floats:
    """Centred moving mean over about `seconds`, of one-dimensional values without gaps."""
    if len(values) < 3:
        return values
    period = float(np.median(np.diff(pts)))
    half = min(round(seconds / 2 / period) if period > 0 else 0, (len(values) - 1) // 2)
    if half < 1:
        return values
    total: Floats = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    reach = np.minimum(half, np.minimum(at, len(values) - 1 - at))  # shrinks at the ends: no lag there
    smoothed: Floats = np.divide(total[at + reach + 1] - total[at - reach], 2 * reach + 1)
    return smoothed


def rise(values: Floats) -> float:
    """The largest increase from any moment to any later one, >= 0."""
    return float((values - np.minimum.accumulate(values)).max())


def strides(x: Floats, y: Floats, length: float) -> float:
    """How long a path is for a walker whose every stride is at least so long, from the path's first place to
    its next that is that far away, and at last to its end. What stays within a stride is no way at all: a
    flapping wing moves a centroid to and fro on every frame, and the sum of that has no end."""
    total, start = 0.0, 0
    while True:
        away = np.hypot(x[start:] - x[start], y[start:] - y[start])
        far = away >= length
        step = int(far.argmax())
        if not far[step]:
            return total + float(away[-1])
        total, start = total + float(away[step]), start + step


def steady(area: Floats) -> Bools:
    """Where, of the sights of one thing in order, it is not covered for a while: it shows `STEADY` of the
    area that it shows both at some sight before and at some sight after."""
    before = np.maximum.accumulate(area)
    after = np.maximum.accumulate(area[::-1])[::-1]
    found: Bools = area >= STEADY * np.minimum(before, after)
    return found


def ends(values: Floats, at: npt.NDArray[np.int64] | slice = slice(None)) -> tuple[float, float]:
    """Median of the first and of the last few values (a tenth, 1 to 5)."""
    values = values[at]
    k = end_length(len(values))
    return _median(values[:k].tolist()), _median(values[-k:].tolist())


def change(values: Floats) -> tuple[float, float]:
    """Last less first value (`ends`), and the standard error of that, told by how the values scatter from
    one to the next about their common trend."""
    start, stop = ends(values)
    steps = np.diff(values)
    spread = float(np.median(np.abs(steps - np.median(steps)))) / STEP_SPREAD
    return stop - start, MEDIAN_ERROR * spread * float(np.sqrt(2 / end_length(len(values))))


def end_length(count: int) -> int:
    """Of how many values of so many the first (or last) value is the median."""
    return min(max(count // 10, 1), 5)


def _median(few: list[float]) -> float:
    few.sort()  # an order of magnitude quicker than NumPy on five numbers
    half = len(few) // 2
    return few[half] if len(few) % 2 else (few[half - 1] + few[half]) / 2


def cut_sides(tracks: TrackArrays, settings: FactSettings) -> tuple[Bools, Bools, Bools, Bools]:
    """(instances, frames) where a box's left, right, top and bottom edge is cut by the frame's border."""
    rim = settings.edge_px
    return (
        tracks.x0 < rim,
        tracks.x1 > tracks.width - rim,
        tracks.y0 < rim,
        tracks.y1 > tracks.height - rim,
    )


def uncut(tracks: TrackArrays, settings: FactSettings) -> Bools:
    """(instances, frames) where a thing is seen and no edge of its box is cut. What is cut on the same sides
    all along, and never by much more or less, is as good as its visible part: all of its frames count."""
    left, right, top, bottom = cut_sides(tracks, settings)
    alike = np.ones(len(tracks.ids), bool)
    for sides, size in (((left, right), tracks.x1 - tracks.x0), ((top, bottom), tracks.y1 - tracks.y0)):
        most = np.max(np.where(tracks.seen, size, 0.0), axis=1, initial=0.0)
        least = np.min(np.where(tracks.seen, size, np.inf), axis=1, initial=np.inf)
        for side in sides:
            always = (side | ~tracks.seen).all(1) & (least >= STEADY * most)
            alike &= always | ~(side & tracks.seen).any(1)
    found: Bools = tracks.seen & (~tracks.edge | alike[:, None])
    return found


def measure_motion(tracks: TrackArrays, settings: FactSettings, placed: Bools) -> Motion:
    """Measure every instance of a twin on the frames of `placed`."""
    n, frames = tracks.seen.shape
    unit = tracks.diagonal
    numbers = {name: np.zeros(n) for name in ("slack", "left", "right", "up", "down", "speed", "least_speed")}
    net = np.full((n, 2), np.nan)
    edges = np.full((n, 4), np.nan)
    known = np.zeros(n, bool)
    first, last = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    x, y = np.full((n, frames), np.nan), np.full((n, frames), np.nan)
    vx, vy = np.full((n, frames), np.nan), np.full((n, frames), np.nan)
    lines = [tracks.stabilise(a, tracks.cy)[0] / unit for a in (tracks.x0, tracks.x1)]
    lines += [tracks.stabilise(tracks.cx, a)[1] / unit for a in (tracks.y0, tracks.y1)]
    cut = cut_sides(tracks, settings)
    for i in range(n):
        at = np.flatnonzero(placed[i])
        if not at.size:
            continue
        first[i], last[i] = at[0], at[-1]
        known[i] = len(at) >= MIN_SEEN and tracks.camera_block[at[0]] == tracks.camera_block[at[-1]]
        pts = tracks.pts[at]
        px = smooth(tracks.sx[i, at] / unit, pts, settings.smooth_s)
        py = smooth(tracks.sy[i, at] / unit, pts, settings.smooth_s)
        x[i, at], y[i, at] = px, py
        if len(at) < 2:
            continue
        shift = tracks.camera_shift[at]
        numbers["slack"][i] = settings.camera_drift * float(np.ptp(shift)) / unit
        numbers["left"][i], numbers["right"][i] = rise(-px), rise(px)
        numbers["up"][i], numbers["down"][i] = rise(-py), rise(py)
        for axis, p in enumerate((px, py)):
            start, stop = ends(p)
            net[i, axis] = stop - start
        for k, line in enumerate(lines):
            start, stop = ends(line[i], at)
            edges[i, k] = np.nan if cut[k][i, at].any() else stop - start
        vx[i, at], vy[i, at] = np.gradient(px, pts), np.gradient(py, pts)
        path = float(np.hypot(np.diff(px), np.diff(py)).sum())
        seconds = max(float(pts[-1] - pts[0]), 1e-9)
        numbers["speed"][i] = path / seconds
        kept = steady(tracks.area[i, at])
        if not kept.all():
            px = smooth(tracks.sx[i, at[kept]] / unit, pts[kept], settings.smooth_s)
            py = smooth(tracks.sy[i, at[kept]] / unit, pts[kept], settings.smooth_s)
        numbers["least_speed"][i] = min(strides(px, py, settings.still_shift), path) / seconds
    return Motion(
        placed=placed,
        shown=(placed == tracks.seen).all(axis=1),
        known=known,
        net_x=net[:, 0],
        net_y=net[:, 1],
        edges_x=edges[:, :2],
        edges_y=edges[:, 2:],
        first=first,
        last=last,
        x=x,
        y=y,
        velocity_x=vx,
        velocity_y=vy,
        **numbers,
    )
