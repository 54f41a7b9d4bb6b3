"""The `onnx` depth: a small network of the CPU tier in `cv2.dnn`.

Its numbers are relative inverse depth unless the options say otherwise: bigger is nearer, comparable inside
one frame only; scale and shift change from frame to frame (see `align`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt
from pydantic import Field

from rvt_ray.backends import Options
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.perception.onnx import OnnxModel, digest, locate
from rvt_ray.records import ClipRecord, DepthKind, FailureCode, ModelWeights
from rvt_ray.video.frames import FrameArray, FrameStream

DepthMap = npt.NDArray[np.float32]

_WHAT = "perceive.depth.options"
_DEFAULT = "tcmonodepth_tcsmallnet_192x320.onnx"
_LICENSES = {_DEFAULT: "MIT"}
ORIGIN = "an ONNX export of TCMonoDepth's small network (github.com/yu-li/TCMonoDepth, MIT)"


class OnnxDepthOptions(Options):
    """How to estimate depth.

    Attributes:
        models: folder that holds the network; null: `$RVT_RAY_MODELS`, else `models` below the weights cache.
        file: the network in it: takes one RGB picture (1, 3, height, width), gives one number per pixel.
        height, width: of its input.
        divisor, mean, std: a channel value 0..255 goes in as (value / divisor - mean) / std.
        kind: what its numbers mean; `relative_inverse`: bigger is nearer.
        license: of the weights; stands in every twin. Null: known for the default file, else `unknown`.
        frames: `all` of the clip, or its `key` frames only (cheaper; motion in depth is then mostly unknown).
    """

    models: str | None = None
    file: str = _DEFAULT
    height: int = Field(default=192, ge=16)
    width: int = Field(default=320, ge=16)
    divisor: float = Field(default=1.0, gt=0)
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    kind: DepthKind = DepthKind.RELATIVE_INVERSE
    license: str | None = None
    frames: Literal["all", "key"] = "all"


class OnnxDepth:
    """One network for many clips.

    Raises:
        MissingDependencyError: the weights are not on this machine.
        ConfigError: they are corrupt, or do not give depth for an input of the configured size.
    """

    Options = OnnxDepthOptions

    def __init__(self, options: OnnxDepthOptions | None = None) -> None:
        self._options = o = options or OnnxDepthOptions()
        path, self._model = _load(o)
        self.kind = o.kind
        model = f"{path.stem}@{digest(path)}"
        self.name = f"onnx:{model}"
        licence = o.license or _LICENSES.get(path.name, "unknown")
        self.weights = (ModelWeights(part="depth", model=model, license=licence),)

    @classmethod
    def preflight(cls, options: OnnxDepthOptions) -> None:
        """Whether the weights are there and run; they are small, so they are tried.

        Raises:
            MissingDependencyError, ConfigError: as the constructor.
        """
        _load(options)

    def depth(
        self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]
    ) -> Iterator[tuple[int, DepthMap]]:
        """See `rvt_ray.perception.base.DepthEstimator`.

        Raises:
            ClipError: BACKEND_ERROR: the network gave no numbers.
        """
        for index, frame in self._wanted(frames, key_frames):
            small = self._model(_blob(frame, self._options)).reshape(self._options.height, -1)
            if not np.isfinite(small).all():
                raise ClipError(
                    FailureCode.BACKEND_ERROR,
                    f"{clip.uri} (clip {clip.clip_id}): depth of frame {index} is not finite; check "
                    f"divisor, mean and std of {_WHAT}",
                )
            yield index, np.asarray(cv2.resize(small, (frames.width, frames.height)), np.float32)

    def _wanted(self, frames: FrameStream, key_frames: Sequence[int]) -> Iterator[tuple[int, FrameArray]]:
        if self._options.frames == "key":
            yield from frames.frames_at(sorted(key_frames))
            return
        for window in frames.windows():
            for index, frame in zip(window.indices, window.frames, strict=True):
                yield int(index), frame


def _load(o: OnnxDepthOptions) -> tuple[Path, OnnxModel]:
    if o.kind is DepthKind.NONE:
        raise ConfigError(
            f"{_WHAT}.kind: valid are relative_inverse and metric; "
            "for no depth set perceive.depth.backend=none"
        )
    if 0.0 in o.std:
        raise ConfigError(f"{_WHAT}.std: a channel cannot be divided by 0")
    path = locate(o.models, o.file, _WHAT, ORIGIN)
    model = OnnxModel(path, _WHAT, ORIGIN)
    shape = model(np.zeros((1, 3, o.height, o.width), np.float32)).shape
    if tuple(n for n in shape if n != 1) != (o.height, o.width):
        raise model.unusable(
            f"for an input of {o.height} x {o.width} its output has shape {shape}, not one number per pixel "
            "(another `height` and `width`?)"
        )
    return path, model


def _blob(frame: FrameArray, o: OnnxDepthOptions) -> npt.NDArray[np.float32]:
    """An RGB frame as the network's input, float32 (1, 3, height, width)."""
    small = cv2.resize(frame, (o.width, o.height), interpolation=cv2.INTER_AREA).astype(np.float32)
    scaled = (small / o.divisor - np.array(o.mean, np.float32)) / np.array(o.std, np.float32)
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None], np.float32)
