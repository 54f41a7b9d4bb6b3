"""YOLOX detectors (Ge et al. 2021) as their official ONNX exports give them: raw grids, BGR 0..255."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
from pydantic import Field

from rvt_ray import backends
from rvt_ray.perception.detect.base import WHAT, Detection
from rvt_ray.perception.detect.boxes import add_from_tiles, cut_by_seam, suppress, tiles
from rvt_ray.perception.detect.labels import COCO_80
from rvt_ray.perception.onnx import OnnxModel, digest, locate
from rvt_ray.records import ModelWeights
from rvt_ray.video.frames import FrameArray

ORIGIN = "the YOLOX releases (github.com/Megvii-BaseDetection/YOLOX, Apache-2.0)"

_STRIDES = (8, 16, 32)
_SIDES = (416, 640)  # of the released models' inputs
_PAD = 114.0
_OPTIONS = f"{WHAT}.options"

Floats = npt.NDArray[np.float64]


class YoloxOptions(backends.Options):
    """Which model, and which of its boxes.

    Attributes:
        models: folder that holds it; null: `$RVT_RAY_MODELS`, else `models` below the weights cache.
        file: the model in it, an official YOLOX export to ONNX (any size, COCO-80 classes).
        license: of the weights; stands in every twin.
        tiles: look at overlapping square tiles of the picture as well as at the whole: finds small things,
            costs three times the time on a 16:9 frame.
        min_score: boxes scored below are left out.
    """

    models: str | None = None
    file: str = "yolox_nano.onnx"
    license: str = "Apache-2.0"
    tiles: bool = True
    min_score: float = Field(default=0.2, gt=0, lt=1)


class Yolox:
    """A YOLOX model; see `rvt_ray.perception.detect.Detector`.

    Raises:
        MissingDependencyError: the weights are not on this machine.
        ConfigError: they are corrupt, or not a YOLOX model.
    """

    Options = YoloxOptions

    def __init__(self, options: YoloxOptions | None = None) -> None:
        o = options or YoloxOptions()
        path = locate(o.models, o.file, _OPTIONS, ORIGIN)
        self._model = OnnxModel(path, _OPTIONS, ORIGIN)
        self._min_score = o.min_score
        self._tiles = o.tiles
        self._side = self._find_side()
        self._grid, self._stride = grid(self._side)
        self.name = f"{path.stem}@{digest(path)}"
        self.weights = (ModelWeights(part="segment", model=self.name, license=o.license),)

    @classmethod
    def preflight(cls, options: YoloxOptions) -> None:
        """Whether the weights are there and run; they are small, so they are tried.

        Raises:
            MissingDependencyError, ConfigError: as the constructor.
        """
        cls(options)

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
                if not cut_by_seam(moved, x, y, side, height, width):
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
