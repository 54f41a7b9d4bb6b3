"""The clip as the motion segmenter sees it: small frames on disk, the camera's path, clean plates."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.perception.operators.camera import CameraEstimator, step_matrix, working_scale
from rvt_ray.perception.segment.motion.assign import clean_foreground
from rvt_ray.perception.segment.motion.flow import DenseFlow, moving_pixels, pull
from rvt_ray.perception.segment.motion.plate import Plate, Sample, build_plate, difference, quantise
from rvt_ray.perception.segment.motion.spool import Spool, to_lab
from rvt_ray.perception.segment.motion.tracker import FrameView
from rvt_ray.video.frames import FrameArray, FrameStream

Matrix = npt.NDArray[np.float64]

_SPAN_SHIFT = 0.3  # of the diagonal: how far the camera may wander within one plate
_SPAN_FRAMES = 600
_SAMPLE_SHIFT = 0.6
_FLOW_GAP = 4  # frames between which a sample is checked for motion


@dataclass(frozen=True)
class Span:
    """Frames first..last (inclusive) that share a plate around frame `reference`."""

    first: int
    last: int
    reference: int


class Shot:
    """Small frames, camera path and plates of one clip.

    Attributes:
        poses: per frame the 3x3 mapping from pixels of the run's first frame to pixels of this frame.
        runs: stretches (first, last) whose camera steps are all known; nothing is followed across.
    """

    def __init__(self, frames: FrameStream, spool: Spool, side: int, samples: int) -> None:
        self._spool = spool
        self._samples = samples
        scale = working_scale(frames.height, frames.width, side)
        self.width = max(round(frames.width * scale), 8)
        self.height = max(round(frames.height * scale), 8)
        self.poses: list[Matrix] = []
        self.runs: list[tuple[int, int]] = []
        self._flow = DenseFlow()
        self._plate: tuple[Span, Plate] | None = None
        self._spans: list[Span] = []
        self._read(frames)
        for first, last in self.runs:
            self._spans += self._plan(first, last)

    def _read(self, frames: FrameStream) -> None:
        estimator = CameraEstimator(self.height, self.width)
        start = 0
        for window in frames.windows():
            for index, frame in zip(window.indices, window.frames, strict=True):
                small = frame
                if frame.shape[:2] != (self.height, self.width):
                    small = np.asarray(
                        cv2.resize(frame, (self.width, self.height), interpolation=cv2.INTER_AREA)
                    )
                self._spool.append(small)
                step = estimator.push(small)
                if step.known and self.poses:
                    move = np.vstack([step_matrix(step, self.height, self.width), [0, 0, 1]])
                    self.poses.append(move @ self.poses[-1])
                else:
                    if index > start:
                        self.runs.append((start, int(index) - 1))
                    start = int(index)
                    self.poses.append(np.eye(3))
        if self.poses:
            self.runs.append((start, len(self.poses) - 1))

    def frame(self, index: int) -> FrameArray:
        """The small frame, RGB."""
        return self._spool[index]

    def between(self, source: int, target: int) -> Matrix:
        """3x3 camera mapping from pixels of one frame to pixels of another of the same run."""
        return np.asarray(self.poses[target] @ np.linalg.inv(self.poses[source]))

    def carry(
        self, masks: dict[int, npt.NDArray[np.bool_]], source: int, target: int
    ) -> dict[int, npt.NDArray[np.bool_]]:
        """Masks of frame `source` where the optical flow puts them on frame `target`."""
        if not masks:
            return {}
        flow = self._flow(self.frame(target), self.frame(source))
        return {i: pull(mask.astype(np.float32), flow) > 0.5 for i, mask in masks.items()}

    def view(self, index: int, least_area: int) -> FrameView | None:
        """What differs from the scene on this frame; None where there is no plate."""
        span = next((s for s in self._spans if s.first <= index <= s.last), None)
        if span is None:
            return None
        if self._plate is None or self._plate[0] != span:
            self._plate = (span, self._build(span))
        lab = to_lab(self.frame(index))
        strength, _ = difference(lab, self._plate[1], self.between(span.reference, index))
        return FrameView(
            index=index,
            bins=quantise(lab),
            strength=strength,
            foreground=clean_foreground(strength, least_area),
            to_common=np.asarray(np.linalg.inv(self.poses[index]), np.float64),
        )

    def _shift(self, source: int, target: int) -> npt.NDArray[np.float64]:
        """Largest shift in x and y, pixels, of the frame's corners by the camera between two frames."""
        w, h = self.width - 1, self.height - 1
        corners = np.array([[0, 0, 1], [w, 0, 1], [0, h, 1], [w, h, 1]], np.float64).T
        moved = (self.between(source, target) @ corners)[:2]
        return np.asarray(np.abs(moved - corners[:2]).max(axis=1))

    def _plan(self, first: int, last: int) -> list[Span]:
        limit = _SPAN_SHIFT * float(np.hypot(self.width, self.height))
        spans, start = [], first
        for i in range(first, last + 2):
            full = i - start >= _SPAN_FRAMES
            if i > last or full or np.linalg.norm(self._shift(start, i)) > limit:
                if i > start:
                    spans.append(Span(start, i - 1, (start + i - 1) // 2))
                start = i
        return [s for s in spans if last - first + 1 >= 8]

    def _build(self, span: Span) -> Plate:
        run = next(r for r in self.runs if r[0] <= span.reference <= r[1])
        limit = _SAMPLE_SHIFT * min(self.width, self.height)
        pool = [
            i
            for i in range(max(run[0], span.first - _SPAN_FRAMES), min(run[1], span.last + _SPAN_FRAMES) + 1)
            if self._shift(span.reference, i).max() <= limit
        ]
        chosen = sorted({pool[round(k)] for k in np.linspace(0, len(pool) - 1, self._samples)})
        samples = []
        for i in chosen:
            frame = self.frame(i)
            others = [
                (self.frame(j), self.between(i, j))
                for j in (i - _FLOW_GAP, i + _FLOW_GAP)
                if run[0] <= j <= run[1]
            ]
            moving = moving_pixels(frame, others, self._flow)
            samples.append(Sample(to_lab(frame), moving, self.between(i, span.reference)))
        reach = np.max([self._shift(i, span.reference) for i in range(span.first, span.last + 1)], axis=0)
        mx, my = (int(np.ceil(v)) + 2 for v in reach)
        return build_plate(samples, self.height, self.width, (mx, my))
