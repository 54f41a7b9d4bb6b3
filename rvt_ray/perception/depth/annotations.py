"""The `annotations` depth: maps that already exist, of synthetic clips or in a folder."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt
from pydantic import Field

from rvt_ray.backends import Options
from rvt_ray.errors import ConfigError
from rvt_ray.perception.files import (
    bad_annotation,
    child,
    files_in,
    is_folder,
    read_bytes,
    same_aspect,
    video_names,
)
from rvt_ray.perception.synthetic_truth import read_truth
from rvt_ray.records import ClipRecord, DepthKind
from rvt_ray.video.frames import FrameStream

DepthMap = npt.NDArray[np.float32]


class DepthOptions(Options):
    """Where depth maps lie.

    Attributes:
        path: folder of maps, or of one folder per video; null: beside the clip's synthetic truth. A map is
            `<video frame>.png` (16 bit, one channel; 0 is "no measurement") or `<video frame>.npz` (array
            `depth`, height x width; not finite is "no measurement").
        scale: value * scale is the depth (PNG in `path` only; synthetic truth knows its own).
        kind: what the numbers mean.
        frames: `all` that there are in the clip, or its `key` frames only.
    """

    path: str | None = None
    scale: float = Field(default=0.001, gt=0)
    kind: DepthKind = DepthKind.METRIC
    frames: Literal["all", "key"] = "all"


class AnnotationsDepth:
    """Reads the depth maps that belong to a clip; looks at no pixel of it. Unmeasured pixels are NaN."""

    name = "annotations"
    Options = DepthOptions

    def __init__(self, options: DepthOptions | None = None) -> None:
        self._options = options or DepthOptions()
        if self._options.kind is DepthKind.NONE:
            raise ConfigError(
                "perceive.depth.options.kind: valid are metric and relative_inverse; "
                "for no depth set perceive.depth.backend=none"
            )
        if self._options.path is None and self._options.kind is not DepthKind.METRIC:
            raise ConfigError(
                "perceive.depth.options.kind: the depth of synthetic truth is metric; "
                "another kind needs 'path'"
            )
        self.kind = self._options.kind

    def depth(
        self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]
    ) -> Iterator[tuple[int, DepthMap]]:
        """Yield (clip frame index, depth of shape (clip.height, clip.width)) ascending.

        Raises:
            ClipError: BAD_ANNOTATION: no maps for this clip, or an unusable one.
        """
        wanted = set(key_frames) if self._options.frames == "key" else None
        files, scale = self._files(clip)
        for number, file in sorted(files.items()):
            index = number - clip.start_frame
            if 0 <= index < clip.num_frames and (wanted is None or index in wanted):
                yield index, _fit(_read(file, scale), clip, file)

    def _files(self, clip: ClipRecord) -> tuple[dict[int, str], float]:
        """Video frame -> file; and the scale of its PNGs."""
        path = self._options.path
        if path is not None:
            inner = [child(path, name) for name in video_names(clip)]
            folder = next((item for item in inner if is_folder(item)), path)
            files = files_in(folder, ".png") + files_in(folder, ".npz")
            if not files:
                raise bad_annotation(folder, f"holds no .png or .npz depth maps for the video {clip.name!r}")
            return {_number(file): file for file in files}, self._options.scale
        if clip.annotation_uri is None or clip.annotation_format != "synthetic":
            raise bad_annotation(
                clip.annotation_uri or clip.uri,
                "this video has no synthetic truth to take depth from; set perceive.depth.options.path, "
                "or perceive.depth.backend=none",
            )
        uri, truth = read_truth(clip, clip.annotation_uri)
        if truth.depth is None:
            raise bad_annotation(
                uri, "depth: was not written; render it with depth, or use depth backend none"
            )
        folder = child(uri.rsplit("/", 1)[0], truth.depth.folder)
        return {n: child(folder, f"{n:05d}.png") for n in truth.depth.frames}, truth.depth.scale


def _number(file: str) -> int:
    stem = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    digits = stem[len(stem.rstrip("0123456789")) :]
    if not digits:
        raise bad_annotation(file, "the name of a depth map must end in the number of its video frame")
    return int(digits)


def _read(file: str, scale: float) -> DepthMap:
    data = read_bytes(file)
    if file.endswith(".npz"):
        try:
            with np.load(io.BytesIO(data)) as arrays:
                values = np.asarray(arrays["depth"], np.float32)
        except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
            raise bad_annotation(file, f"needs a numeric array 'depth': {error}") from error
        if values.ndim != 2:
            raise bad_annotation(file, f"depth: must have shape (height, width), not {values.shape}")
        return np.where(np.isfinite(values), values, np.float32(np.nan))
    steps = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED) if data else None
    if steps is None:
        raise bad_annotation(file, "not a readable PNG")
    if steps.dtype != np.uint16 or steps.ndim != 2:
        raise bad_annotation(
            file, f"a depth PNG has one channel of 16 bits, not {steps.dtype} of shape {steps.shape}"
        )
    return np.where(steps > 0, steps.astype(np.float32) * np.float32(scale), np.float32(np.nan))


def _fit(depth: DepthMap, clip: ClipRecord, file: str) -> DepthMap:
    height, width = depth.shape
    if (height, width) == (clip.height, clip.width):
        return depth
    same_aspect(height, width, clip, file, "size")
    # Nearest: between a near and a far surface there is nothing in the middle.
    scaled = cv2.resize(depth, (clip.width, clip.height), interpolation=cv2.INTER_NEAREST_EXACT)
    return np.asarray(scaled, np.float32)
