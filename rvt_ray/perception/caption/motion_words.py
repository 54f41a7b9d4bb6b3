"""One word for how an instance moves over the clip, after the camera's own motion is taken out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.operators import cumulative_motion
from rvt_ray.records import Attribute, CameraStep, ClipRecord

# Shares of the frame's diagonal: below the first nothing moved, above the second it certainly did.
_STILL_EXTENT = 0.015
_MOVING_EXTENT = 0.03
_DIRECT = 0.6  # net displacement over path extent; below, the motion goes back and forth
_WORDS = {(1, 0): "moving right", (-1, 0): "moving left", (0, 1): "moving down", (0, -1): "moving up"}


def motion_word(
    track: TrackDraft, clip: ClipRecord, camera: Sequence[CameraStep], source: str
) -> Attribute | None:
    """Attribute `motion`: still, moving left / right / up / down, or moving back and forth.

    None where it cannot be said: fewer than three sights, camera steps unknown in between, an extent
    between still and moving, or a box that the frame cuts (its centroid moves as it enters).

    Args:
        camera: one step per clip frame.
    """
    height, width = clip.height, clip.width
    to_now = cumulative_motion(camera, height, width)
    points, frames = [], []
    for frame, text in zip(track.frame_idx, track.rle, strict=True):
        box, middle = rle.bbox(text, height, width), rle.centroid(text, height, width)
        if box is None or middle is None:
            continue
        if box[0] <= 0 or box[1] <= 0 or box[0] + box[2] >= width or box[1] + box[3] >= height:
            continue
        # Back to the coordinates of the first frame, where the background stands still.
        p = np.linalg.inv(to_now[frame]) @ np.array([*middle, 1.0])
        points.append(p[:2] / p[2])
        frames.append(frame)
    if len(points) < 3 or not all(step.known for step in camera[frames[0] + 1 : frames[-1] + 1]):
        return None
    path = np.stack(points)
    diagonal = float(np.hypot(width, height))
    extent = float(np.linalg.norm(path.max(axis=0) - path.min(axis=0))) / diagonal
    coverage = len(points) / max(len(track.frame_idx), 1)
    if extent <= _STILL_EXTENT:
        return Attribute(name="motion", value="still", score=coverage, source=source)
    if extent < _MOVING_EXTENT:
        return None
    third = max(len(path) // 6, 1)
    net = path[-third:].mean(axis=0) - path[:third].mean(axis=0)
    directness = float(np.linalg.norm(net)) / (extent * diagonal)
    if directness < _DIRECT:
        return Attribute(
            name="motion", value="moving back and forth", score=coverage * (1 - directness), source=source
        )
    axis = int(np.argmax(np.abs(net)))
    unit = (int(np.sign(net[0])), 0) if axis == 0 else (0, int(np.sign(net[1])))
    # A diagonal path is half one word, half the other.
    pure = float(np.abs(net[axis]) / np.abs(net).sum())
    return Attribute(name="motion", value=_WORDS[unit], score=coverage * pure, source=source)
