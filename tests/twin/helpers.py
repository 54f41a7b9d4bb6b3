"""Small clips and drafts for the tests of the twin room."""

from __future__ import annotations

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.records import Absence, CameraStep, ClipRecord, Provenance, clip_id

PROVENANCE = Provenance(segment="s", depth="d", caption="c", settings="0" * 16, versions="{}")
IDENTITY = CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=True)


def make_clip(
    num_frames: int, width: int = 40, height: int = 30, pts: list[float] | None = None
) -> ClipRecord:
    return ClipRecord(
        clip_id=clip_id("0123456789abcdef", 0, num_frames),
        video_id="0123456789abcdef",
        source="test",
        name="made",
        uri="made.mp4",
        sha256="0" * 64,
        license="CC0-1.0",
        start_frame=0,
        num_frames=num_frames,
        pts_s=pts if pts is not None else [i / 10 for i in range(num_frames)],
        fps_nominal=10.0,
        width=width,
        height=height,
        rotation=0,
        decoder="test",
        decoder_version="0",
        num_frames_header=num_frames,
        flags=[],
    )


def make_draft(instance_id: int, masks: np.ndarray, **known: object) -> TrackDraft:
    """A draft over all frames from dense masks (n, h, w)."""
    return TrackDraft(
        instance_id=instance_id,
        frame_idx=list(range(len(masks))),
        rle=rle.encode_batch(masks),
        absence=[None if m.any() else Absence.UNKNOWN for m in masks],
        score=[0.9] * len(masks),
        **known,  # type: ignore[arg-type]
    )


def box_masks(boxes: list[tuple[int, int, int, int] | None], width: int = 40, height: int = 30) -> np.ndarray:
    """Dense masks (n, h, w) of one filled box x, y, w, h per frame; None: empty."""
    masks = np.zeros((len(boxes), height, width), bool)
    for mask, box in zip(masks, boxes, strict=True):
        if box is not None:
            x, y, w, h = box
            mask[y : y + h, x : x + w] = True
    return masks
