"""One video as a source names it, before anybody has looked inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SourceItem:
    """A video file or a folder of frames that a source offers.

    Attributes:
        source: the source's name in the config.
        name: the video's name inside its source, for people and for finding its annotation (no extension).
        uri: absolute local path or fsspec URI of the file or of the folder of frames.
        kind: `video` (one file) or `frames` (one folder of images).
        license: SPDX id or text.
        fps: frame rate of a folder of frames, which has no clock of its own; None for videos.
        annotation_uri, annotation_format: what the `annotations` backend opens for this video.
        annotation_sha256: content hash of the annotation.
        sha256: content hash of the video; None until somebody computes it.
    """

    source: str
    name: str
    uri: str
    kind: Literal["video", "frames"] = "video"
    license: str = "unknown"
    fps: float | None = None
    annotation_uri: str | None = None
    annotation_format: str | None = None
    annotation_sha256: str | None = None
    sha256: str | None = None
