"""A followed thing as the track that perception reports, at the clip's size."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from rvt_ray.masks import geometry, rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.segment.motion.passes import StoredSight, Tracks
from rvt_ray.perception.segment.motion.shot import Shot
from rvt_ray.records import Absence, ClipRecord, TrackStatus

_FOUND_SCORE = 0.5  # from which a sight on a key frame counts as found again


def draft(
    clip: ClipRecord,
    shot: Shot,
    number: int,
    sights: dict[int, StoredSight],
    others: Tracks,
    key_frames: Sequence[int],
    confirmed: bool,
) -> TrackDraft:
    """The track of a thing.

    Args:
        number: its instance id.
        others: the other reported things, which may hide it.
        confirmed: false makes it `uncertain`.
    """
    first, last = min(sights), max(sights)
    nothing = rle.empty(clip.height, clip.width)
    texts: list[str] = []
    absence: list[Absence | None] = []
    score: list[float | None] = []
    nearest, reason = first, None
    for frame in range(clip.num_frames):
        sight = sights.get(frame)
        text = nothing if sight is None else _enlarge(sight.rle, shot, clip)
        seen = sight is not None and rle.area(text) > 0
        texts.append(text)
        score.append(sight.score if seen and sight is not None else None)
        if seen:
            nearest, reason = frame, None
        elif reason is None:  # one reason for a whole absence: what was seen as it began
            reason = _why_absent(frame, sights[nearest].rle, others, shot)
        absence.append(reason)
    looked = [k for k in key_frames if first <= k <= last]
    again = [k in sights and sights[k].score >= _FOUND_SCORE for k in looked]
    return TrackDraft(
        instance_id=number,
        frame_idx=list(range(clip.num_frames)),
        rle=texts,
        absence=absence,
        score=score,
        status=None if confirmed else TrackStatus.UNCERTAIN,
        redetection_rate=float(np.mean(again)) if looked else None,
    )


def _enlarge(text: str, shot: Shot, clip: ClipRecord) -> str:
    """A working-size mask at the clip's size, its outline smoothed rather than blocky."""
    if (shot.height, shot.width) == (clip.height, clip.width):
        return text
    small = rle.decode(text, shot.height, shot.width)
    return rle.encode(geometry.smooth_resize(small, clip.height, clip.width))


def _why_absent(frame: int, last_mask: str, others: Tracks, shot: Shot) -> Absence:
    """Out when it was last (or will first be) seen at the frame's border, occluded when something else is
    now where it was."""
    mask = rle.decode(last_mask, shot.height, shot.width)
    if mask[:2].any() or mask[-2:].any() or mask[:, :2].any() or mask[:, -2:].any():
        return Absence.OUT
    grown = cv2.dilate(mask.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    for other in others.values():
        if frame in other and bool((rle.decode(other[frame].rle, shot.height, shot.width) & grown).any()):
            return Absence.OCCLUDED
    return Absence.UNKNOWN
