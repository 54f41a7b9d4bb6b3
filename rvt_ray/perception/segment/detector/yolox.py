"""YOLOX detectors (Ge et al. 2021) as their official ONNX exports give them: raw grids, BGR 0..255."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.perception.onnx import OnnxModel, digest, locate
from rvt_ray.perception.segment.detector.labels import COCO_80
from rvt_ray.video.frames import FrameArray

ORIGIN = "the YOLOX releases (github.com/Megvii-BaseDetection/YOLOX, Apache-2.0)"

_STRIDES = (8, 16, 32)
_SIDES = (416, 640)  # of the released models' inputs
_PAD = 114.0
_SAME_BOX = 0.6  # IoU of boxes from which they show one thing, whatever they are called
_PART = 0.75  # share of a tile's box inside a box of the same name from which it is a part of that
_SEAM = 0.02  # of a tile's side: what comes closer to a seam is cut by it

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Detection:
    """A box on a frame.

    Attributes:
        x, y, w, h: pixels, inside the frame.
        label: one of `COCO_80`.
        score: 0..1, objectness times class probability.
    """

    x: float
    y: float
    w: float
    h: float
    label: str
    score: float

    @property
    def area(self) -> float:
        """Pixels."""
        return self.w * self.h


class Detector(Protocol):
    """Frame -> boxes; the seam for another detector, and for tests without weights."""

    def detect(self, frame: FrameArray) -> list[Detection]:
        """Boxes on an RGB frame (height, width, 3), best first, each thing once."""
        ...


class Yolox:
    """A YOLOX model.

    Args:
        path: its `.onnx` file.
        min_score: boxes scored below are left out.
        tiles: see `DetectorOptions`.
        what: the config field, for the error text.

    Raises:
        ConfigError: the file is no YOLOX export, or corrupt.
    """

    def __init__(self, path: Path, min_score: float, tiles: bool, what: str) -> None:
        self._model = OnnxModel(path, what, ORIGIN)
        self._min_score = min_score
        self._tiles = tiles
        self._side = self._find_side()
        self._grid, self._stride = grid(self._side)

    def _find_side(self) -> int:
        """The input's side: OpenCV does not tell, but the number of boxes does."""
        shape: tuple[int, ...] = ()
        for side in _SIDES:
            try:
                shape = self._model(np.full((1, 3, side, side), _PAD, np.float32)).shape
            except Exception as error:  # a network of fixed size refuses other sizes in several ways
                if side == _SIDES[-1]:
                    raise self._model.unusable(f"it runs at none of the sizes {_SIDES}") from error
                continue
            if shape == (1, len(grid(side)[0]), 5 + len(COCO_80)):
                return side
        raise self._model.unusable(
            f"its output has shape {shape}, which is not that of a YOLOX model of COCO"
        )

    def detect(self, frame: FrameArray) -> list[Detection]:
        """See `Detector`."""
        height, width = frame.shape[:2]
        found = suppress(self._on(frame))
        if not self._tiles:
            return found
        inner: list[Detection] = []
        for x, y, side in tiles(height, width):
            for d in self._on(np.ascontiguousarray(frame[y : y + side, x : x + side])):
                moved = Detection(d.x + x, d.y + y, d.w, d.h, d.label, d.score)
                if not _cut_by_seam(moved, x, y, side, height, width):
                    inner.append(moved)
        return add_from_tiles(found, inner)

    def _on(self, frame: FrameArray) -> list[Detection]:
        height, width = frame.shape[:2]
        side = self._side
        scale = side / max(height, width)
        small = cv2.resize(
            frame,
            (max(round(width * scale), 1), max(round(height * scale), 1)),
            interpolation=cv2.INTER_LINEAR,
        )
        blob = np.full((1, 3, side, side), _PAD, np.float32)
        blob[0, :, : small.shape[0], : small.shape[1]] = small[:, :, ::-1].transpose(2, 0, 1)
        boxes, classes, scores = decode(self._model(blob)[0], self._grid, self._stride, self._min_score)
        boxes /= scale
        x0, y0 = boxes[:, 0].clip(0, width), boxes[:, 1].clip(0, height)
        x1, y1 = (boxes[:, 0] + boxes[:, 2]).clip(0, width), (boxes[:, 1] + boxes[:, 3]).clip(0, height)
        return [
            Detection(float(x), float(y), float(r - x), float(b - y), COCO_80[k], float(s))
            for x, y, r, b, k, s in zip(x0, y0, x1, y1, classes, scores, strict=True)
            if r - x >= 2 and b - y >= 2
        ]


def load(models: str | None, file: str, min_score: float, tiles: bool, what: str) -> tuple[Yolox, str]:
    """The configured model, and what identifies its weights (`yolox_nano@0123456789abcdef`).

    Raises:
        MissingDependencyError: the weights are not on this machine.
        ConfigError: as `Yolox`.
    """
    path = locate(models, file, what, ORIGIN)
    return Yolox(path, min_score, tiles, what), f"{path.stem}@{digest(path)}"


def grid(side: int) -> tuple[Floats, Floats]:
    """Cell corners (n, 2) and strides (n, 1) of the output's rows, for a square input."""
    cells, strides = [], []
    for stride in _STRIDES:
        n = side // stride
        x, y = np.meshgrid(np.arange(n), np.arange(n))
        cells.append(np.stack([x, y], axis=-1).reshape(-1, 2))
        strides.append(np.full((n * n, 1), stride))
    return np.concatenate(cells).astype(np.float64), np.concatenate(strides).astype(np.float64)


def decode(
    raw: npt.NDArray[np.float32], cells: Floats, strides: Floats, min_score: float
) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """Boxes (n, 4: x, y, w, h in input pixels), classes and scores of a raw output (rows, 85)."""
    best = raw[:, 5:].argmax(axis=1)
    score = (raw[:, 4] * raw[np.arange(len(raw)), 5 + best]).astype(np.float64)
    keep = score >= min_score
    rows = raw[keep].astype(np.float64)
    centre = (rows[:, :2] + cells[keep]) * strides[keep]
    size = np.exp(np.minimum(rows[:, 2:4], 10.0)) * strides[keep]
    return np.concatenate([centre - size / 2, size], axis=1), best[keep], score[keep].clip(0, 1)


def tiles(height: int, width: int) -> list[tuple[int, int, int]]:
    """x, y, side of square tiles that cover the frame and overlap by half a side at least; none where the
    frame is nearly square already."""
    side, long = min(height, width), max(height, width)
    if long < 1.3 * side:
        return []
    count = int(np.ceil((long - side) / (0.5 * side))) + 1
    starts = np.linspace(0, long - side, count).round().astype(int).tolist()
    return [(s, 0, side) if width >= height else (0, s, side) for s in starts]


def _cut_by_seam(d: Detection, x: int, y: int, side: int, height: int, width: int) -> bool:
    near = _SEAM * side
    return (
        (x > 0 and d.x - x < near)
        or (y > 0 and d.y - y < near)
        or (x + side < width and x + side - (d.x + d.w) < near)
        or (y + side < height and y + side - (d.y + d.h) < near)
    )


def overlap(a: Detection, b: Detection) -> tuple[float, float]:
    """IoU of two boxes, and the share of `a` that lies in `b`."""
    across = min(a.x + a.w, b.x + b.w) - max(a.x, b.x)
    down = min(a.y + a.h, b.y + b.h) - max(a.y, b.y)
    shared = max(across, 0.0) * max(down, 0.0)
    return shared / (a.area + b.area - shared), shared / a.area


def suppress(found: Sequence[Detection]) -> list[Detection]:
    """Each thing once, best first: of boxes that overlap nearly fully, whatever their labels, one stays."""
    kept: list[Detection] = []
    for d in sorted(found, key=lambda d: (-d.score, d.x, d.y)):
        if all(overlap(d, k)[0] < _SAME_BOX for k in kept):
            kept.append(d)
    return kept


def add_from_tiles(whole: Sequence[Detection], inner: Sequence[Detection]) -> list[Detection]:
    """What tiles show besides what the whole picture shows. A tile sees more detail and less context: it
    renames what it is surer of, but a hand is not another person."""
    kept = suppress([*whole, *inner])
    firm = set(whole)

    def is_part(d: Detection) -> bool:
        return any(k.label == d.label and k.area > d.area and overlap(d, k)[1] >= _PART for k in kept)

    return [d for d in kept if d in firm or not is_part(d)]
