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
_MIN_INLIERS = 0.6
_MAX_WORLD = 4.0  # frame sides; a camera that travels further is aligned on what it saw first
_ROUNDS = 3


class DepthAligner:
    """Collects a clip's depth maps, a few thousand points of each, and finds the maps in the end.

    Args:
        height, width: of the maps.
        camera: one step per frame of the clip. Frames on the two sides of an unknown step cannot be
            compared: only the longest stretch of known steps is aligned.
    """

    def __init__(self, height: int, width: int, camera: Sequence[CameraStep]) -> None:
        self._height, self._width = height, width
        self._motion = cumulative_motion(camera, height, width)
        self._stretch = np.cumsum([i > 0 and not step.known for i, step in enumerate(camera)])
        self._frames: list[int] = []
        self._points: list[npt.NDArray[np.float32]] = []
        self._worlds: dict[int, npt.NDArray[np.float64]] = {}

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
        world = self._world(int(self._stretch[frame]))
        x, y = (self._motion[frame] @ world)[:2].astype(np.float32)
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
        """One entry per frame that was added, ascending."""
        steps = {f: DepthStep(frame_idx=f, scale=None, shift=None, residual=None) for f in self._frames}
        if self._frames:
            stretch = self._stretch[self._frames]
            chosen = np.flatnonzero(stretch == np.bincount(stretch).argmax())
            points = np.stack([self._points[i] for i in chosen]).astype(np.float64)
            for i, (scale, shift, residual) in zip(chosen, align(points), strict=True):
                steps[self._frames[i]] = DepthStep(
                    frame_idx=self._frames[i],
                    scale=_known(scale),
                    shift=_known(shift),
                    residual=_known(residual),
                )
        return [steps[frame] for frame in sorted(steps)]

    def _world(self, stretch: int) -> Floats:
        """Homogeneous grid points, shape (3, n), over all that the camera sees in this stretch, in pixels of
        the clip's first frame."""
        if stretch not in self._worlds:
            h, w = self._height, self._width
            corners = np.array([[0, w - 1, 0, w - 1], [0, 0, h - 1, h - 1], [1, 1, 1, 1]], np.float64)
            seen = [np.linalg.inv(self._motion[i]) for i in np.flatnonzero(self._stretch == stretch)]
            spots = np.concatenate([(m @ corners)[:2] for m in seen], axis=1)
            first = (seen[0] @ corners)[:2].mean(axis=1)
            reach = _MAX_WORLD / 2 * np.array([w, h])
            low = np.maximum(spots.min(axis=1), first - reach)
            high = np.minimum(spots.max(axis=1), first + reach)
            pitch = max(float((high - low).max()) / _GRID, 1.0)
            x, y = np.meshgrid(*(np.arange(a + pitch / 2, b, pitch) for a, b in zip(low, high, strict=True)))
            self._worlds[stretch] = np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
        return self._worlds[stretch]


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
    """Scale > 0, shift and residual of a robust line from x to y; all NaN when there is too little to fit."""
    nothing = (float("nan"),) * 3
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < _MIN_POINTS:
        return nothing
    x, y = x[both], y[both]
    low, middle, high = np.quantile(x, [0.1, 0.5, 0.9])
    y_low, y_middle, y_high = np.quantile(y, [0.1, 0.5, 0.9])
    unit = float(np.subtract(*np.quantile(y, [0.95, 0.05])))
    if high - low <= 1e-6 * max(abs(middle), 1e-12) or unit <= 1e-6 * max(abs(y_middle), 1e-12):
        return nothing  # a flat background fixes no scale
    # The order of depths is kept, so quantiles correspond: a start that outliers hardly move.
    scale = (y_high - y_low) / (high - low)
    shift = y_middle - scale * middle
    weight = np.ones_like(x)
    for _ in range(12):
        error = y - scale * x - shift
        spread = max(1.4826 * float(np.median(np.abs(error))), 1e-9 * unit)
        weight = np.clip(1 - (error / (4 * spread)) ** 2, 0, None) ** 2
        mean_x, mean_y = np.average(x, weights=weight), np.average(y, weights=weight)
        variance = float(weight @ (x - mean_x) ** 2)
        if variance <= 0:
            return nothing
        scale = float(weight @ ((x - mean_x) * (y - mean_y))) / variance
        shift = float(mean_y - scale * mean_x)
    error = np.abs(y - scale * x - shift)
    residual = float(np.median(error)) / unit
    if scale <= 0 or np.mean(error <= 3 * MAX_RESIDUAL * unit) < _MIN_INLIERS:
        return float("nan"), float("nan"), max(residual, 2 * MAX_RESIDUAL)
    return scale, shift, residual


def _median(lines: Floats) -> Floats:
    """Median over frames, NaN where no frame has a value (without NumPy's warning)."""
    seen = np.isfinite(lines).any(axis=0)
    out = np.full(lines.shape[1], np.nan)
    if seen.any():
        out[seen] = np.nanmedian(lines[:, seen], axis=0)
    return out


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
