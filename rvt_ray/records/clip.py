"""The clips table: one row is one bounded piece of one shot of one video."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from rvt_ray.records.base import Record, schema


class ClipRecord(Record):
    """A clip, described well enough to decode it again anywhere.

    Attributes:
        clip_id: `<video_id>-<start_frame>-<num_frames>`: derived from content and span, so the same on
            every machine.
        video_id: first 16 hex digits of the content's sha256.
        source: the source's name in the config.
        name: the video's name inside its source, for people (no extension).
        uri: where the bytes are; a file or a folder of frames.
        start_frame, num_frames: span in decoded frames of the video.
        pts_s: presentation time of each frame of the clip, seconds from the video's first frame,
            strictly increasing. Never computed as index / fps.
        fps_nominal: what the header claims; for information only.
        width, height: of the upright frame with square pixels, after any rescaling. Masks have this size.
        rotation: clockwise degrees that were applied to make frames upright (0, 90, 180, 270).
        num_frames_header: what the header claims the whole video has; null when it is silent.
        flags: `VideoFlag` values.
        annotation_uri, annotation_format, annotation_sha256: existing masks that belong to this video;
            null when there are none.
    """

    TABLE: ClassVar[str] = "clips"

    clip_id: str
    video_id: str
    source: str
    name: str
    uri: str
    sha256: str
    license: str
    start_frame: int
    num_frames: int
    pts_s: list[float]
    fps_nominal: float | None
    width: int
    height: int
    rotation: int
    decoder: str
    decoder_version: str
    num_frames_header: int | None
    flags: list[str]
    annotation_uri: str | None = None
    annotation_format: str | None = None
    annotation_sha256: str | None = None

    SCHEMA: ClassVar[pa.Schema] = schema(
        ("clip_id", pa.string()),
        ("video_id", pa.string()),
        ("source", pa.string()),
        ("name", pa.string()),
        ("uri", pa.string()),
        ("sha256", pa.string()),
        ("license", pa.string()),
        ("start_frame", pa.int32()),
        ("num_frames", pa.int32()),
        ("pts_s", pa.list_(pa.float64())),
        ("fps_nominal", pa.float64()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("rotation", pa.int32()),
        ("decoder", pa.string()),
        ("decoder_version", pa.string()),
        ("num_frames_header", pa.int32()),
        ("flags", pa.list_(pa.string())),
        ("annotation_uri", pa.string()),
        ("annotation_format", pa.string()),
        ("annotation_sha256", pa.string()),
    )


def clip_id(video_id: str, start_frame: int, num_frames: int) -> str:
    """The id of a clip; the same content and span give the same id on any machine."""
    return f"{video_id}-{start_frame:06d}-{num_frames:05d}"
