"""Camera motion between consecutive frames, from tracked background features.

Corners are followed with pyramidal Lucas-Kanade (checked forwards and backwards) and a similarity is
fitted by RANSAC. A step that cannot be trusted says so (`known=False`): blank frames, hard cuts, too few
corners, corners that agree only inside a small part of the picture (which could be one moving object), or a
motion that explains the picture worse than none.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.records import CameraMotion, CameraStep
from rvt_ray.video.frames import FrameArray

Mask = npt.NDArray[np.bool_]
Affine = npt.NDArray[np.float64]

IDENTITY = CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=True)
UNKNOWN = CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=False)

_WORK_SIDE = 320  # px; corners are located to a few hundredths of a pixel even at this size
_MAX_CORNERS = 400
_MIN_INLIERS = 12
_MIN_INLIER_SHARE = 0.4
_MIN_SPREAD = 0.06  # of the frame: area of the ellipse-like extent of the agreeing corners
_RANSAC_PX = 1.0  # at the working size
_MAX_ZOOM = 1.25  # per frame; anything beyond is a wrong fit or a cut
_UNNOTICED_PX = 2.0  # at the working size
_MIN_CORRELATION = 0.35  # of the picture with its warped predecessor; a cut falls below

# A clip is still when nothing of the picture's content wanders further than this (share of the diagonal),
# moving when it wanders further than the second bound; between them nobody should have to decide.
_STILL_SHARE = 0.01
_MOVING_SHARE = 0.02
_MIN_KNOWN_SHARE = 0.8


def working_scale(height: int, width: int, side: int = _WORK_SIDE) -> float:
    """The factor <= 1 that brings the longer side down to `side` pixels."""
    return min(1.0, side / max(height, width))


def to_grey(frame: FrameArray, scale: float) -> npt.NDArray[np.uint8]:
    """Grey picture of an RGB frame at `scale`, uint8 (h, w)."""
    if scale < 1.0:
        frame = cv2.resize(frame, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY))


def step_matrix(step: CameraStep, height: int, width: int, scale: float = 1.0) -> Affine:
    """The step as a 2x3 matrix that maps pixels of the previous frame to pixels of this one.

    Args:
        height, width: of the frames the matrix is for (already scaled).
        scale: factor from clip pixels to those frames' pixels.
    """
    c = np.array([(width - 1) / 2, (height - 1) / 2])
    a = step.zoom * np.array(
        [[np.cos(step.roll), -np.sin(step.roll)], [np.sin(step.roll), np.cos(step.roll)]]
    )
    t = c + np.array([step.dx, step.dy]) * scale - a @ c
    return np.column_stack([a, t])


def step_from_matrix(m: Affine, height: int, width: int, scale: float = 1.0) -> CameraStep:
    """The inverse of `step_matrix` for a similarity matrix of frames of this size."""
    c = np.array([(width - 1) / 2, (height - 1) / 2])
    zoom = float(np.hypot(m[0, 0], m[1, 0]))
    shift = (m[:, :2] @ c + m[:, 2] - c) / scale
    roll = float(np.arctan2(m[1, 0], m[0, 0]))
    return CameraStep(dx=float(shift[0]), dy=float(shift[1]), zoom=zoom, roll=roll, known=True)


class CameraEstimator:
    """Estimates one `CameraStep` per frame pushed; keeps nothing but the previous grey frame.

    Args:
        height, width: of the clip's frames.
    """

    def __init__(self, height: int, width: int) -> None:
        self.scale = working_scale(height, width)
        self._previous: npt.NDArray[np.uint8] | None = None

    def push(self, frame: FrameArray, exclude: Mask | None = None) -> CameraStep:
        """The motion from the frame pushed before to this one (identity for the first).

        Args:
            frame: uint8 RGB (height, width, 3).
            exclude: pixels of the *previous* frame that belong to objects, bool (height, width).
        """
        grey = to_grey(frame, self.scale)
        previous, self._previous = self._previous, grey
        if previous is None:
            return IDENTITY
        allowed = None
        if exclude is not None:
            small = cv2.resize(
                exclude.astype(np.uint8), (grey.shape[1], grey.shape[0]), interpolation=cv2.INTER_AREA
            )
            # Corners at an object's outline move with the object: keep away from it.
            allowed = np.where(cv2.dilate(small, np.ones((9, 9), np.uint8)) > 0, 0, 255).astype(np.uint8)
        matrix = fit_similarity(previous, grey, allowed)
        if matrix is None:
            return UNKNOWN
        return step_from_matrix(matrix, grey.shape[0], grey.shape[1], self.scale)


def fit_similarity(
    before: npt.NDArray[np.uint8],
    after: npt.NDArray[np.uint8],
    allowed: npt.NDArray[np.uint8] | None = None,
) -> Affine | None:
    """The similarity that carries `before` to `after`, or None where it cannot be trusted.

    Args:
        before, after: grey uint8 (h, w).
        allowed: 255 where corners of `before` may be used.

    Returns:
        2x3 matrix in pixels of these pictures.
    """
    h, w = before.shape
    corners = cv2.goodFeaturesToTrack(
        before, _MAX_CORNERS, qualityLevel=0.01, minDistance=max(4, min(h, w) // 40), mask=allowed
    )
    if corners is None or len(corners) < _MIN_INLIERS:
        return None
    moved, ok = _follow(before, after, corners)
    back, ok_back = _follow(after, before, moved)
    drift = np.linalg.norm((back - corners).reshape(-1, 2), axis=1)
    good = ok & ok_back & (drift < 0.7)
    if good.sum() < _MIN_INLIERS:
        return None
    p, q = corners.reshape(-1, 2)[good], moved.reshape(-1, 2)[good]
    # OpenCV's RANSAC seeds its own generator with a constant: the same input gives the same model.
    matrix, inliers = cv2.estimateAffinePartial2D(
        p, q, method=cv2.RANSAC, ransacReprojThreshold=_RANSAC_PX, maxIters=500, confidence=0.995
    )
    if matrix is None:
        return None
    agree = inliers.ravel() == 1
    if agree.sum() < _MIN_INLIERS or agree.sum() < _MIN_INLIER_SHARE * len(p):
        return None
    # Corners that agree but sit close together say nothing about the camera (one object, one caption).
    spread = 4.0 * np.pi * np.sqrt(max(np.linalg.det(np.cov(p[agree].T)), 0.0)) / (h * w)
    zoom = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    if spread < _MIN_SPREAD or not 1 / _MAX_ZOOM < zoom < _MAX_ZOOM:
        return None
    likeness = _correlation(before, after, matrix, allowed)
    if likeness < _MIN_CORRELATION:
        return None
    # A repeating texture can match one period off. Below a pixel, resampling blurs more than it explains.
    frame = np.array([[0.0, w - 1, 0.0, w - 1], [0.0, 0.0, h - 1, h - 1], [1.0, 1.0, 1.0, 1.0]])
    shift = np.linalg.norm(matrix @ frame - frame[:2], axis=0).max()
    if shift > _UNNOTICED_PX and likeness < _correlation(before, after, np.eye(2, 3), allowed):
        return None
    return np.asarray(matrix, dtype=np.float64)


def _follow(
    before: npt.NDArray[np.uint8], after: npt.NDArray[np.uint8], points: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    moved, ok, _ = cv2.calcOpticalFlowPyrLK(before, after, points, None, winSize=(15, 15), maxLevel=3)
    return moved, ok.ravel() == 1


def _correlation(
    before: npt.NDArray[np.uint8],
    after: npt.NDArray[np.uint8],
    m: Affine,
    allowed: npt.NDArray[np.uint8] | None = None,
) -> float:
    """Of `after` with the warped `before`, where both show the background; 0 where that is little."""
    h, w = after.shape
    warped = cv2.warpAffine(before, m, (w, h), flags=cv2.INTER_LINEAR)
    known = np.full_like(before, 255)
    inside = cv2.warpAffine(known, m, (w, h), flags=cv2.INTER_NEAREST) > 0
    if inside.mean() < 0.3:
        return 0.0
    if allowed is not None:
        background = inside & (cv2.warpAffine(allowed, m, (w, h), flags=cv2.INTER_NEAREST) > 0)
        inside = background if background.mean() > 0.05 else inside
    a, b = warped[inside].astype(np.float32), after[inside].astype(np.float32)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norm if norm > 0 else 0.0


def cumulative_motion(steps: Sequence[CameraStep], height: int, width: int) -> list[Affine]:
    """Per frame the 3x3 matrix that maps pixels of frame 0 to pixels of this frame (unknown steps count
    as no motion)."""
    total = np.eye(3)
    out = []
    for step in steps:
        total = np.vstack([step_matrix(step, height, width), [0, 0, 1]]) @ total
        out.append(total)
    return out


def classify_camera(steps: Sequence[CameraStep], height: int, width: int) -> CameraMotion:
    """Still, moving or unknown, from how far the picture's content wanders over the clip.

    The measure is the largest displacement, between any two frames, of the points at a quarter and three
    quarters of both sides, as a share of the frame's diagonal: still up to 1 %, moving from 2 %. With less
    than 80 % of the steps known only `moving` can be said, and only on what is known.
    """
    if len(steps) < 2:
        return CameraMotion.UNKNOWN
    points = np.array([[x * width, y * height, 1.0] for x in (0.25, 0.75) for y in (0.25, 0.75)]).T
    paths = np.stack([(m @ points)[:2] for m in cumulative_motion(steps, height, width)])
    extent = np.linalg.norm(paths.max(axis=0) - paths.min(axis=0), axis=0).max()
    share = float(extent) / float(np.hypot(height, width))
    known = float(np.mean([s.known for s in steps[1:]]))
    if known >= _MIN_KNOWN_SHARE and share <= _STILL_SHARE:
        return CameraMotion.STILL
    if share >= _MOVING_SHARE and known >= 0.5:
        return CameraMotion.MOVING
    return CameraMotion.UNKNOWN
