"""Dense optical flow and what of it the camera does not explain."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.video.frames import FrameArray

Flow = npt.NDArray[np.float32]


class DenseFlow:
    """DIS optical flow (Kroeger et al. 2016) between two RGB frames of the same size."""

    def __init__(self) -> None:
        self._dis = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)

    def __call__(self, source: FrameArray, target: FrameArray) -> Flow:
        """Displacement of each pixel of `source` to where it is in `target`, float32 (h, w, 2)."""
        a = cv2.cvtColor(source, cv2.COLOR_RGB2GRAY)
        b = cv2.cvtColor(target, cv2.COLOR_RGB2GRAY)
        return np.asarray(self._dis.calc(a, b, None), dtype=np.float32)


def camera_flow(matrix: npt.NDArray[np.float64], height: int, width: int) -> Flow:
    """The displacement field of a 3x3 (affine) pixel mapping, float32 (h, w, 2)."""
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    m = matrix.astype(np.float32)
    u = m[0, 0] * x + m[0, 1] * y + m[0, 2] - x
    v = m[1, 0] * x + m[1, 1] * y + m[1, 2] - y
    return np.stack([u, v], axis=-1)


def pull(image: npt.NDArray, flow: Flow) -> npt.NDArray:
    """The image as seen from the frame that `flow` starts at: out(p) = image(p + flow(p)); 0 outside."""
    height, width = flow.shape[:2]
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    return np.asarray(cv2.remap(image, x + flow[..., 0], y + flow[..., 1], cv2.INTER_LINEAR, borderValue=0))


def moving_pixels(
    frame: FrameArray,
    others: list[tuple[FrameArray, npt.NDArray[np.float64]]],
    flow: DenseFlow,
    threshold_px: float = 0.7,
) -> npt.NDArray[np.bool_]:
    """Pixels of `frame` that move on their own, somewhat grown and filled.

    Args:
        others: frames a little before and after, each with the 3x3 camera mapping from pixels of `frame` to
            its pixels. Motion must show towards all of them: what is only uncovered by a moving thing
            shows towards one.
    """
    height, width = frame.shape[:2]
    moving = np.ones((height, width), np.bool_)
    for other, matrix in others:
        by_camera = camera_flow(matrix, height, width)
        residual = np.linalg.norm(flow(frame, other) - by_camera, axis=2)
        # What the whole picture does (a camera model that is slightly off) is not motion of a thing.
        found = residual > threshold_px + float(np.median(residual))
        expected = pull(other, by_camera)
        change = np.abs(frame.astype(np.int16) - expected.astype(np.int16)).max(axis=2)
        found |= (cv2.blur(change.astype(np.float32), (3, 3)) > 18) & (expected.max(axis=2) > 0)
        moving &= found
    if not others:
        return np.zeros((height, width), np.bool_)
    closed = cv2.morphologyEx(moving.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8))
    return np.asarray(cv2.dilate(closed, np.ones((3, 3), np.uint8)) > 0)
