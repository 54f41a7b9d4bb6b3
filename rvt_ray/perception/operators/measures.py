"""What plain image processing says of every frame: light, sharpness, change, and what is odd about it.

Everything is measured on a small grey or coloured copy of the frame, and nothing of a frame is kept but a few
numbers and a coarse histogram.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.perception.operators.camera import CameraEstimator, Mask, working_scale
from rvt_ray.records import CameraStep, FrameFlag, FrameMeasure
from rvt_ray.video.frames import FrameArray, FrameStream

Floats = npt.NDArray[np.float64]

# Luma, 0..1. A black frame holds nothing; a dark one holds something that is hard to see.
_BLACK_MEAN, _BLACK_TOP = 0.06, 0.12
_DARK_MEAN = 0.15
_BURNT_LUMA, _BURNT_SHARE = 0.98, 0.4
_FROZEN_CHANGE = 0.0004  # mean over the frame; sensor noise alone is above, a repeated frame below
_FROZEN_S, _FROZEN_FRAMES = 0.3, 3  # single repeated frames are what frame rate conversion leaves
_BLURRED = 0.4  # of the clip's own sharp frames (90th percentile)
_CUT_DISTANCE = 0.45  # Hellinger distance of colour histograms, 0..1
_CUT_CHANGE = 0.06
_CUT_MEMORY = 12  # frames before, that a cut must differ from
_HISTOGRAM = (12, 4, 4)  # hue, saturation, value


class FrameMeter:
    """Takes a clip's frames one by one.

    Args:
        height, width: of the frames.
    """

    def __init__(self, height: int, width: int) -> None:
        self._scale = working_scale(height, width)
        self._previous: npt.NDArray[np.float32] | None = None
        self._numbers: list[tuple[float, float, float, float, float]] = []
        self._histograms: list[npt.NDArray[np.float32]] = []

    def push(self, frame: FrameArray) -> None:
        """Measure the next frame, uint8 RGB (height, width, 3)."""
        if self._scale < 1.0:
            frame = np.asarray(
                cv2.resize(frame, None, fx=self._scale, fy=self._scale, interpolation=cv2.INTER_AREA),
                np.uint8,
            )
        grey = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY).astype(np.float32) / 255.0
        change = float("nan") if self._previous is None else float(np.abs(grey - self._previous).mean())
        self._previous = grey
        variance = float(grey.var())
        gradient = cv2.Sobel(grey, cv2.CV_32F, 1, 0) ** 2 + cv2.Sobel(grey, cv2.CV_32F, 0, 1) ** 2
        # Over the variance: a frame of low contrast is not blurred for that.
        sharpness = float(gradient.mean()) / variance if variance > 1e-6 else 0.0
        self._numbers.append(
            (
                float(grey.mean()),
                sharpness,
                change,
                float(np.quantile(grey, 0.99)),
                float((grey >= _BURNT_LUMA).mean()),
            )
        )
        self._histograms.append(_histogram(frame))

    def result(self, pts_s: Sequence[float] | Floats, camera: Sequence[CameraStep]) -> list[FrameMeasure]:
        """One entry per frame pushed; flags that need the whole clip are decided here.

        Args:
            pts_s: presentation times.
            camera: one step per frame; a cut leaves no step that could be known.
        """
        table = np.array(self._numbers).reshape(-1, 5)
        brightness, sharpness, change, top, burnt = table.T
        black = (brightness <= _BLACK_MEAN) & (top <= _BLACK_TOP)
        lit = sharpness[~black]
        sharp = float(np.quantile(lit, 0.9)) if lit.size else 0.0
        flags: dict[FrameFlag, npt.NDArray[np.bool_]] = {
            FrameFlag.BLACK: black,
            FrameFlag.DARK: (brightness <= _DARK_MEAN) & ~black,
            FrameFlag.OVEREXPOSED: burnt >= _BURNT_SHARE,
            FrameFlag.BLURRED: (sharpness < _BLURRED * sharp) & ~black,
            FrameFlag.FROZEN: _frozen(change, np.asarray(pts_s, np.float64)),
            FrameFlag.CUT: self._cuts(change, black, camera),
        }
        return [
            FrameMeasure(
                brightness=float(brightness[i]),
                sharpness=float(sharpness[i]),
                change=None if np.isnan(change[i]) else float(change[i]),
                flags=[flag for flag in FrameFlag if flags[flag][i]],
            )
            for i in range(len(table))
        ]

    def _cuts(
        self, change: Floats, black: npt.NDArray[np.bool_], camera: Sequence[CameraStep]
    ) -> npt.NDArray[np.bool_]:
        """Where picture and colours change at once and are like nothing shortly before, on this frame and the
        next: a flash, or a moment of black, comes back."""
        n = len(self._histograms)
        found = np.zeros(n, bool)
        for t in range(1, n):
            if camera[t].known or black[t] or not change[t] >= _CUT_CHANGE:
                continue
            before = [k for k in range(max(t - _CUT_MEMORY, 0), t) if not black[k]]
            pair = (self._histograms[t], self._histograms[min(t + 1, n - 1)])
            apart = [_distance(self._histograms[k], picture) for k in before for picture in pair]
            found[t] = bool(apart) and min(apart) >= _CUT_DISTANCE
        return found


def look_through(
    frames: FrameStream, exclude: Callable[[int], Mask | None] | None = None
) -> tuple[list[CameraStep], list[FrameMeasure]]:
    """Camera motion and measures of every frame of a clip, in one pass.

    Args:
        exclude: clip frame index -> bool (height, width), true on known objects, which move on their own;
            None: nothing known on that frame.

    Raises:
        ClipError: the frames cannot be decoded.
    """
    estimator, meter = (
        CameraEstimator(frames.height, frames.width),
        FrameMeter(frames.height, frames.width),
    )
    steps: list[CameraStep] = []
    for window in frames.windows():
        for index, frame in zip(window.indices, window.frames, strict=True):
            hidden = exclude(int(index) - 1) if exclude is not None and index > 0 else None
            steps.append(estimator.push(frame, hidden))
            meter.push(frame)
    return steps, meter.result(frames.pts_s, steps)


def flags_of(measures: Sequence[FrameMeasure]) -> list[FrameFlag]:
    """The flags of any of the frames."""
    found = {flag for measure in measures for flag in measure.flags}
    return [flag for flag in FrameFlag if flag in found]


def _frozen(change: Floats, pts_s: Floats) -> npt.NDArray[np.bool_]:
    """Frames that repeat the one before, in runs that are long enough to be seen."""
    same = np.nan_to_num(change, nan=1.0) <= _FROZEN_CHANGE
    out = np.zeros(len(same), bool)
    start = 0
    while start < len(same):
        if not same[start]:
            start += 1
            continue
        stop = start
        while stop < len(same) and same[stop]:
            stop += 1
        long_enough = pts_s[stop - 1] - pts_s[start - 1] >= _FROZEN_S
        out[start:stop] = long_enough and stop - start >= _FROZEN_FRAMES
        start = stop
    return out


def _histogram(frame: FrameArray) -> npt.NDArray[np.float32]:
    hsv = cv2.cvtColor(frame, cv2.COLOR_RGB2HSV)
    counts = cv2.calcHist([hsv], [0, 1, 2], None, list(_HISTOGRAM), [0, 180, 0, 256, 0, 256])
    # The square root: distances between these are Hellinger's.
    return np.asarray(np.sqrt(counts.ravel() / max(float(counts.sum()), 1.0)), np.float32)


def _distance(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> float:
    return float(np.sqrt(max(0.0, 1.0 - float(a @ b))))
