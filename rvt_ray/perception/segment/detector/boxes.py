"""YOLOX as a source of boxes for another segmenter (`perceive.segment.options.detector` of `sam2`)."""

from __future__ import annotations

from pydantic import Field

from rvt_ray import backends
from rvt_ray.perception.proposals import DetectedBox
from rvt_ray.perception.segment.detector.yolox import Yolox, load
from rvt_ray.records import ModelWeights
from rvt_ray.video.frames import FrameArray

_WHAT = "perceive.segment.options.detector.options"


class BoxOptions(backends.Options):
    """Which detector, and which of its boxes.

    Attributes:
        models, file, license, tiles: as in `DetectorOptions`.
        min_score: boxes scored below are left out.
    """

    models: str | None = None
    file: str = "yolox_nano.onnx"
    license: str = "Apache-2.0"
    tiles: bool = True
    min_score: float = Field(default=0.3, gt=0, lt=1)


class YoloxBoxes:
    """See `rvt_ray.perception.proposals.Detector`.

    Raises:
        MissingDependencyError: the weights are not on this machine.
        ConfigError: the weights are corrupt, or not a YOLOX model.
    """

    Options = BoxOptions

    def __init__(self, options: BoxOptions | None = None) -> None:
        o = options or BoxOptions()
        self._model, model = self._load(o)
        self.name = f"yolox:{model}"
        self.weights = (ModelWeights(part="segment", model=self.name, license=o.license),)

    @classmethod
    def preflight(cls, options: BoxOptions) -> None:
        """Whether the weights are there and run; they are small, so they are tried.

        Raises:
            MissingDependencyError, ConfigError: as the constructor.
        """
        cls._load(options)

    def detect(self, frame: FrameArray) -> list[DetectedBox]:
        """See `rvt_ray.perception.proposals.Detector`."""
        return [
            DetectedBox(d.label, d.score, (d.x, d.y, d.x + d.w, d.y + d.h)) for d in self._model.detect(frame)
        ]

    @staticmethod
    def _load(options: BoxOptions) -> tuple[Yolox, str]:
        return load(options.models, options.file, options.min_score, options.tiles, _WHAT)
