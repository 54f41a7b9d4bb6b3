"""From a frame as stored to a frame as meant: square pixels, upright, bounded, 8-bit RGB."""

from __future__ import annotations

import cv2
import numpy as np

from rvt_ray.video.frames import FrameArray
from rvt_ray.video.probe import VideoProbe

# numpy turns counter-clockwise.
_TURNS = {0: 0, 90: 3, 180: 2, 270: 1}


def upright(image: FrameArray, probe: VideoProbe, size: tuple[int, int]) -> FrameArray:
    """Resample, then turn (the smaller image is the cheaper one to turn).

    Args:
        image: uint8 RGB (h, w, 3) as stored.
        probe: says rotation and mirroring.
        size: (width, height) of the result, from `VideoProbe.upright_size`.

    Returns:
        uint8 RGB (height, width, 3), contiguous.
    """
    width, height = size if probe.rotation in (0, 180) else (size[1], size[0])
    if image.shape[:2] != (height, width):
        shrinks = width * height < image.shape[0] * image.shape[1]
        image = cv2.resize(
            image, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        )
    if probe.mirrored:
        image = image[:, ::-1]
    return np.ascontiguousarray(np.rot90(image, _TURNS[probe.rotation]))
