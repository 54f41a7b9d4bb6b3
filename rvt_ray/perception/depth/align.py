"""Relative depth over time: one affine map per frame, found on the static background.

A network's relative inverse depth is only known up to scale and shift, and both flicker between frames. The
background does not: after the camera's motion is taken out, each of its points has one depth. So each frame
gets the scale and shift that bring its background onto that of the clip, and where none does (the camera
travels, the background is flat or hidden) the twin says so and nothing is concluded over time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks.geometry import dilate
from rvt_ray.perception.operators.camera import cumulative_motion
from rvt_ray.records import CameraStep, DepthStep

DepthMap = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

MAX_RESIDUAL = 0.03
"""Of the background's depth range: half the margin that a change of depth must exceed to count."""

_GRID = 64  # points along the longer side of all that the camera sees
_RIM_PX = 4  # depth near an outline mixes both sides
_MIN_POINTS = 60
_LEVELS = 12  # that the background's depth range is divided into
_MIN_PER_LEVEL = 4
_MIN_LEVELS = 4
_LEVELS_THAT_FIT = 0.75  # share of them; a thing that moves unnoticed spoils a few
_MAX_WORLD = 4.0  # frame sides; a camera that travels further is aligned on what it saw first
_ROUNDS = 2
_STEPS = 5  # of reweighting


class DepthAligner:
    """Collects a clip's depth maps, a few thousand points of each, and finds the maps in the end.

    Args:
        height, width: of the maps.
        camera: one step per frame of the clip. Unknown steps count as no motion: where that is wrong the
            background does not fit.
    """

    def __init__(self, height: int, width: int, camera: Sequence[CameraStep]) -> None:
        self._height, self._width = height, width
        self._motion = cumulative_motion(camera, height, width)
        self._world = self._grid()
        self._frames: list[int] = []
        self._points: list[npt.NDArray[np.float32]] = []

    def watch(
        self, maps: Iterable[tuple[int, DepthMap]], hidden: Callable[[int], Mask | None]
    ) -> Iterator[tuple[int, DepthMap]]:
        """Pass maps on, each taken into account.

        Args:
            hidden: clip frame index -> pixels that belong to objects; None: nothing is known of them.
        """
        for frame, depth in maps:
            if depth.shape == (self._height, self._width):
                self.add(frame, depth, hidden(frame))
            yield frame, depth

    def add(self, frame: int, depth: DepthMap, hidden: Mask | None = None) -> None:
        """Take the depth map of a frame into account; see `watch`."""
        x, y = (self._motion[frame] @ self._world)[:2].astype(np.float32)
        values = cv2.remap(
            depth.astype(np.float32),
            x[None],
            y[None],
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_CONSTANT,
            borderValue=float("nan"),
        )[0]
        if hidden is not None:
            column = np.clip(x.round().astype(int), 0, self._width - 1)
            row = np.clip(y.round().astype(int), 0, self._height - 1)
            values = np.where(dilate(hidden, _RIM_PX)[row, column], np.float32(np.nan), values)
        self._frames.append(frame)
        self._points.append(values)

    def result(self) -> list[DepthStep]:
        """One entry per frame that was added, in that order."""
        if not self._frames:
            return []
        found = align(np.stack(self._points).astype(np.float64))
        return [
            DepthStep(frame_idx=frame, scale=_known(scale), shift=_known(shift), residual=_known(residual))
            for frame, (scale, shift, residual) in zip(self._frames, found, strict=True)
        ]

    def _grid(self) -> Floats:
        """Homogeneous points, shape (3, n), over all that the camera sees, in pixels of the clip's first
        frame."""
        h, w = self._height, self._width
        corners = np.array([[0, w - 1, 0, w - 1], [0, 0, h - 1, h - 1], [1, 1, 1, 1]], np.float64)
        spots = np.concatenate([(np.linalg.inv(m) @ corners)[:2] for m in self._motion], axis=1)
        reach = (_MAX_WORLD - 1) / 2 * np.array([w, h])
        low = np.maximum(spots.min(axis=1), -reach)
        high = np.minimum(spots.max(axis=1), np.array([w, h]) + reach)
        pitch = max(float((high - low).max()) / _GRID, 1.0)
        x, y = np.meshgrid(*(np.arange(a + pitch / 2, b, pitch) for a, b in zip(low, high, strict=True)))
        return np.stack([x.ravel(), y.ravel(), np.ones(x.size)])


def align(points: Floats) -> Floats:
    """Scale, shift and residual of each frame.

    Args:
        points: (frames, points) the depth of the same places of the background in each frame; NaN where a
            place cannot be seen.

    Returns:
        (frames, 3), in units of the background's depth range (5th to 95th percentile). Scale and shift are
        NaN where nothing fits, the residual where nothing could be tried.
    """
    have = np.isfinite(points)
    if not have.any():
        return np.full((len(points), 3), np.nan)
    first = int(have.sum(axis=1).argmax())
    total, count = np.where(have[first], points[first], 0.0), have[first].astype(np.float64)
    # Outwards from the fullest frame, so that a pan finds something in common with what is known.
    for t in sorted(range(len(points)), key=lambda t: (abs(t - first), t)):
        known = count > 0
        scale, shift, residual = _fit(points[t], np.where(known, total / np.maximum(count, 1), np.nan))
        if t != first and residual <= MAX_RESIDUAL:
            total += np.where(have[t], scale * points[t] + shift, 0.0)
            count += have[t]
    background = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    for _ in range(_ROUNDS):
        fits = np.array([_fit(line, background) for line in points])
        good = fits[:, 2] <= MAX_RESIDUAL
        if not good.any():
            break
        # The median over time: what passes by unnoticed is no background.
        background = _median(fits[good, :1] * points[good] + fits[good, 1:2])
        low, high = np.nanquantile(background, [0.05, 0.95])
        background = (background - low) / (high - low)
    out = np.array([_fit(line, background) for line in points])
    out[~(out[:, 2] <= MAX_RESIDUAL), :2] = np.nan
    return out


def _fit(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Scale > 0, shift and residual of a robust line from x to y; all NaN when there is too little to fit.

    Every depth counts alike, however many points have it: a wall that fills the frame fixes no scale.
    """
    nothing = (float("nan"),) * 3
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < _MIN_POINTS:
        return nothing
    x, y = x[both], y[both]
    low, high = np.quantile(y, [0.02, 0.98])
    unit = float(high - low)
    if unit <= 1e-6 * float(np.abs(y).max()):
        return nothing
    level = np.clip((_LEVELS * (y - low) / unit).astype(int), 0, _LEVELS - 1)
    count = np.bincount(level, minlength=_LEVELS)
    levels = np.flatnonzero(count >= _MIN_PER_LEVEL)
    if len(levels) < _MIN_LEVELS:
        return nothing
    middle = np.array([_level_medians(a, level, count)[levels] for a in (x, y)])
    a, b = np.triu_indices(len(levels), 1)
    run, rise = middle[:, b] - middle[:, a]
    if not (run > 0).any():
        return nothing
    # Theil-Sen over the levels, then all points, those far from the line without a say.
    scale = float(np.median(rise[run > 0] / run[run > 0]))
    shift = float(np.median(middle[1] - scale * middle[0]))
    alike = np.where(count >= _MIN_PER_LEVEL, 1 / np.maximum(count, 1), 0.0)[level]
    for _ in range(_STEPS):
        error = y - scale * x - shift
        reach = max(6 * float(np.median(np.abs(error))), MAX_RESIDUAL * unit)
        weight = alike * np.maximum(1 - (error / reach) ** 2, 0) ** 2
        total = float(weight.sum())
        if total <= 0:
            return nothing
        mean_x, mean_y = float(weight @ x) / total, float(weight @ y) / total
        variance = float(weight @ (x - mean_x) ** 2)
        if variance <= 0:
            return nothing
        scale = float(weight @ ((x - mean_x) * (y - mean_y))) / variance
        shift = float(mean_y - scale * mean_x)
    error = np.abs(y - scale * x - shift) / unit
    by_level = _level_medians(error, level, count)[levels]
    residual = float(np.quantile(by_level, _LEVELS_THAT_FIT))
    return (scale, shift, residual) if scale > 0 else (scale, shift, max(residual, 1.0))


def _level_medians(values: Floats, level: npt.NDArray[np.int64], count: npt.NDArray[np.int64]) -> Floats:
    """The (upper) median of the values on each level; meaningless where a level is empty."""
    ordered = values[np.lexsort((values, level))]
    middle = np.cumsum(count) - count + count // 2
    out: Floats = ordered[np.minimum(middle, len(ordered) - 1)]
    return out


def _median(lines: Floats) -> Floats:
    """Median over frames, NaN where no frame has a value (without NumPy's warning)."""
    seen = np.isfinite(lines).any(axis=0)
    out = np.full(lines.shape[1], np.nan)
    if seen.any():
        out[seen] = np.nanmedian(lines[:, seen], axis=0)
    return out


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
