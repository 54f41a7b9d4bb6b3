"""Times and spans: repair of presentation times, and how shots become clips. Pure functions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]


# No container has a finer clock than this: times that are closer are the same time.
_CLOCK_S = 1e-6


def repair(pts_s: Times, fps: float | None) -> tuple[Times, bool]:
    """Make times start at 0 and strictly increase.

    A time that is missing (NaN) or not later than all before it is replaced by interpolation between its
    good neighbours; after the last good one the nominal interval goes on.

    Args:
        pts_s: (n,) seconds in order of presentation.
        fps: nominal rate, for times that have no good neighbour.

    Returns:
        (n,) repaired times, and whether anything had to be repaired.
    """
    if len(pts_s) == 0:
        return pts_s, False
    latest = -math.inf
    good = np.zeros(len(pts_s), dtype=bool)
    for i, t in enumerate(pts_s):
        if math.isfinite(t) and t > latest + _CLOCK_S:
            good[i] = True
            latest = t
    if good.all():
        return pts_s - pts_s[0], False
    step = _interval(pts_s[good], fps)
    known = np.flatnonzero(good)
    if len(known) == 0:
        return np.arange(len(pts_s), dtype=np.float64) * step, True
    index = np.arange(len(pts_s))
    times = np.asarray(np.interp(index, known, pts_s[known]), dtype=np.float64)
    before, after = index < known[0], index > known[-1]
    times[before] = pts_s[known[0]] - (known[0] - index[before]) * step
    times[after] = pts_s[known[-1]] + (index[after] - known[-1]) * step
    return times - times[0], True


def _interval(times: Times, fps: float | None) -> float:
    if len(times) > 1:
        return float(np.median(np.diff(times)))
    return 1.0 / fps if fps and fps > 0 else 0.04


def is_vfr(pts_s: Times, time_base_s: float) -> bool:
    """Whether index / fps would be wrong: no constant rate puts every frame within half an interval, or an
    interval differs from the median by more than a quarter.

    Args:
        pts_s: (n,) strictly increasing seconds.
        time_base_s: the container's clock tick; rounding to it is not variation.
    """
    if len(pts_s) < 3:
        return False
    deltas = np.diff(pts_s)
    median = float(np.median(deltas))
    if np.any(np.abs(deltas - median) > 0.25 * median + 2 * time_base_s):
        return True
    grid = pts_s[0] + np.arange(len(pts_s)) * (pts_s[-1] - pts_s[0]) / (len(pts_s) - 1)
    return bool(np.any(np.abs(pts_s - grid) > 0.5 * median + 2 * time_base_s))


def ends_early(pts_s: Times, duration_s: float | None, fps: float | None) -> bool:
    """Whether the header promised much more than came (a demuxer that lost its way ends without an error).

    A last frame may be meant to stay for a while, so that half a second, or five times the longest interval
    of the film, is not held against it.
    """
    if duration_s is None:
        return False
    if len(pts_s) > 1:
        longest = float(np.diff(pts_s).max())
    else:
        longest = 1 / fps if fps else duration_s
    return duration_s - float(pts_s[-1]) > max(0.5, 5 * longest)


def cut(
    pts_s: Times, cuts: list[int], max_clip_s: float, max_clip_frames: int, min_clip_frames: int
) -> list[tuple[int, int]]:
    """Shots as (start, stop) spans, the long ones in equal pieces.

    Pieces respect both upper bounds, except that none is cut shorter than `min_clip_frames` for the sake of
    `max_clip_s` (a slide show at one frame a minute). `max_clip_frames` always holds: it bounds memory.

    Args:
        pts_s: (n,) strictly increasing seconds.
        cuts: first frames of new shots, ascending, inside 1..n-1.
    """
    edges = [0, *cuts, len(pts_s)]
    spans: list[tuple[int, int]] = []
    for start, stop in itertools.pairwise(edges):
        frames = stop - start
        least = math.ceil(frames / max_clip_frames)
        most = max(least, frames // min_clip_frames)
        pieces = least
        while pieces < most and _longest(pts_s, _split(start, stop, pieces)) > max_clip_s:
            pieces += 1
        spans += _split(start, stop, pieces)
    return spans


def _split(start: int, stop: int, pieces: int) -> list[tuple[int, int]]:
    edges = [start + (stop - start) * i // pieces for i in range(pieces + 1)]
    return list(itertools.pairwise(edges))


def _longest(pts_s: Times, spans: list[tuple[int, int]]) -> float:
    return max(float(pts_s[stop - 1] - pts_s[start]) for start, stop in spans)
