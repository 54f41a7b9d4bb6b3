"""How each instance moves in the scene, camera motion removed: excursions, net displacement, speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rvt_ray.config.settings import FactSettings
from rvt_ray.twin.facts.logic import Bools, Floats
from rvt_ray.twin.facts.tracks import TrackArrays

MIN_SEEN = 4


@dataclass(frozen=True)
class Motion:
    """Per instance, lengths in frame diagonals of frame 0.

    Attributes:
        known: seen on at least `MIN_SEEN` frames whose positions can be compared.
        slack: allowance for the camera's estimated motion.
        left, right, up, down: the farthest that it ever gets in this direction, from any moment to any
            later one.
        net_x, net_y: displacement from its first to its last moments.
        edges_x, edges_y: (instances, 2) the same for its box's left/right and top/bottom edges; a cut edge
            (at the frame's border) holds NaN. An occluder that slides over a thing moves one edge only.
        speed: mean speed, diagonals per second.
        first, last: first and last frame on which it is surely seen; -1 for none.
        x, y: (instances, frames) smoothed position; NaN where not seen.
        velocity_x, velocity_y: (instances, frames) diagonals per second, NaN where not seen.
    """

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


def ends(values: Floats, at: npt.NDArray[np.int64] | slice = slice(None)) -> tuple[float, float]:
    """Median of the first and of the last few values (a tenth, 1 to 5)."""
    values = values[at]
    k = min(max(len(values) // 10, 1), 5)
    return _median(values[:k].tolist()), _median(values[-k:].tolist())


def _median(few: list[float]) -> float:
    few.sort()  # an order of magnitude quicker than NumPy on five numbers
    half = len(few) // 2
    return few[half] if len(few) % 2 else (few[half - 1] + few[half]) / 2


def measure_motion(tracks: TrackArrays, settings: FactSettings) -> Motion:
    """Measure every instance of a twin."""
    n, frames = tracks.seen.shape
    unit = tracks.diagonal
    numbers = {name: np.zeros(n) for name in ("slack", "left", "right", "up", "down", "speed")}
    net = np.full((n, 2), np.nan)
    edges = np.full((n, 4), np.nan)
    known = np.zeros(n, bool)
    first, last = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    x, y = np.full((n, frames), np.nan), np.full((n, frames), np.nan)
    vx, vy = np.full((n, frames), np.nan), np.full((n, frames), np.nan)
    lines = [tracks.stabilise(a, tracks.cy)[0] / unit for a in (tracks.x0, tracks.x1)]
    lines += [tracks.stabilise(tracks.cx, a)[1] / unit for a in (tracks.y0, tracks.y1)]
    rim = settings.edge_px
    cut = [tracks.x0 < rim, tracks.x1 > tracks.width - rim, tracks.y0 < rim, tracks.y1 > tracks.height - rim]
    for i in range(n):
        at = np.flatnonzero(tracks.seen[i])
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
        path = float(np.hypot(np.diff(px), np.diff(py)).sum())
        numbers["speed"][i] = path / max(float(pts[-1] - pts[0]), 1e-9)
        vx[i, at], vy[i, at] = np.gradient(px, pts), np.gradient(py, pts)
    return Motion(
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
