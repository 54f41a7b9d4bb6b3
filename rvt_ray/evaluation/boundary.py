"""The boundary measure F of many frames at once.

Full frames are never built. The parts of all frames that hold truth or prediction are painted side by side
into one picture (a mosaic) with gaps wide enough that no frame can see its neighbour; contours, dilation and
counting are then a few calls of OpenCV for the whole sample, instead of a few for each frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.evaluation import runs as run_masks
from rvt_ray.evaluation.runs import Ints, Runs

Bits = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

_SMALL_RADIUS = 5  # up to here dilating by the disk itself is the fastest
_MAX_PIXELS = 1 << 21  # of one mosaic
_MAX_LOOKUPS = 1 << 22
_SQUARE_2 = np.ones((2, 2), np.uint8)


@dataclass(frozen=True)
class _Mosaic:
    """Where each frame of a chunk lies.

    Attributes:
        frames: the chunk.
        x0, y0, x1, y1: the part of each frame that is shown, exclusive ends, shape (frames,).
        left: the mosaic's column of each frame's column x0. The mosaic's row 0 is each frame's row y0.
        height, width: of the mosaic.
    """

    frames: slice
    x0: Ints
    y0: Ints
    x1: Ints
    y1: Ints
    left: Ints
    height: int
    width: int


def boundary_f(a: Runs, b: Runs, radius: int) -> Floats:
    """F of every frame, shape (num_frames,).

    Args:
        a, b: truth and prediction, of one size and number of frames.
        radius: tolerance in pixels: contour pixels that are at most this far apart match.
    """
    result = np.ones(a.num_frames)
    box_a, box_b = run_masks.boxes(a), run_masks.boxes(b)
    # One pixel around: a contour lies left of and above its mask, too; past the frame's edge is nothing.
    low = np.maximum(np.minimum(box_a[:, :2], box_b[:, :2]) - 1, 0)
    high = np.minimum(np.maximum(box_a[:, 2:], box_b[:, 2:]) + 2, [a.width, a.height])
    high = np.maximum(high, low)  # both masks empty
    for mosaic in _chunks(low, high, radius):
        result[mosaic.frames] = _score(a, b, mosaic, radius)
    return result


def _chunks(low: Ints, high: Ints, radius: int) -> list[_Mosaic]:
    """Cut the frames into mosaics of bounded size."""
    gap = radius + 2  # room for the replicated edge, then `radius` clear columns
    width, height = (high - low).T
    chunks = []
    start = 0
    while start < len(low):
        right = np.cumsum(width[start:] + gap)
        tall = np.maximum.accumulate(height[start:]) + 2  # a row for the replicated edge, one to end it
        stop = start + max(1, int(np.searchsorted(right * tall, _MAX_PIXELS, side="right")))
        frames, count = slice(start, stop), stop - start
        left = right[:count] - width[frames]  # a gap before each frame
        (x0, y0), (x1, y1) = low[frames].T, high[frames].T
        size = int(tall[count - 1]), int(right[count - 1]) + gap
        chunks.append(_Mosaic(frames, x0, y0, x1, y1, left, *size))
        start = stop
    return chunks


def _score(a: Runs, b: Runs, mosaic: _Mosaic, radius: int) -> Floats:
    contour_a, contour_b = _contours(a, mosaic), _contours(b, mosaic)
    n_a, n_b = _per_frame(contour_a, mosaic), _per_frame(contour_b, mosaic)
    recall = _per_frame(_found(contour_a, contour_b, radius), mosaic) / np.maximum(n_a, 1)
    precision = _per_frame(_found(contour_b, contour_a, radius), mosaic) / np.maximum(n_b, 1)
    total = precision + recall
    f = 2 * precision * recall / np.where(total > 0, total, 1)
    return np.where((n_a == 0) & (n_b == 0), 1.0, f)


def _contours(runs: Runs, mosaic: _Mosaic) -> Bits:
    """DAVIS' contour map (`seg2bmap`): pixels that differ from their right, lower or lower right neighbour.

    A neighbour outside the frame does not count: the frame's last column and row are painted once more
    beyond the edge, so that they differ from nothing.
    """
    frame, x, top, bottom = run_masks.columns(runs, mosaic.frames)
    local = frame - mosaic.frames.start
    bottom = bottom + (bottom == runs.height)
    column = mosaic.left[local] + x - mosaic.x0[local]
    top, bottom = top - mosaic.y0[local], bottom - mosaic.y0[local]
    edge = x == runs.width - 1
    if edge.any():
        column = np.concatenate([column, column[edge] + 1])
        top, bottom = np.concatenate([top, top[edge]]), np.concatenate([bottom, bottom[edge]])

    # +1 where a run begins and -1 past its end, then a running sum down the rows. Touching runs share a
    # pixel, where the two must add up; beginnings alone, and ends alone, are never at the same pixel.
    painted = np.zeros((mosaic.height, mosaic.width), np.uint8)
    painted[top, column] = 1
    painted[bottom, column] -= 1
    for y in range(1, mosaic.height):
        np.add(painted[y], painted[y - 1], out=painted[y])

    contour: Bits = cv2.morphologyEx(
        painted, cv2.MORPH_GRADIENT, _SQUARE_2, anchor=(0, 0), borderType=cv2.BORDER_REPLICATE
    )
    # What lies beyond the frames is no contour: the gaps, and the row below a frame's last.
    shown = np.zeros(mosaic.width + 1, np.int64)
    np.add.at(shown, mosaic.left, 1)
    np.subtract.at(shown, mosaic.left + mosaic.x1 - mosaic.x0, 1)
    contour[:, np.cumsum(shown[:-1]) == 0] = 0
    for i in np.flatnonzero(mosaic.y1 == runs.height):
        first = mosaic.left[i]
        contour[runs.height - mosaic.y0[i] :, first : first + mosaic.x1[i] - mosaic.x0[i]] = 0
    return contour


def _per_frame(pixels: Bits, mosaic: _Mosaic) -> Ints:
    per_column = cv2.reduce(pixels, 0, cv2.REDUCE_SUM, dtype=cv2.CV_32S).ravel()
    before = np.concatenate([[0], np.cumsum(per_column, dtype=np.int64)])
    return np.asarray(before[mosaic.left + mosaic.x1 - mosaic.x0] - before[mosaic.left], np.int64)


def _found(points: Bits, others: Bits, radius: int) -> Bits:
    """Those pixels of `points` that have a pixel of `others` within `radius` (Euclidean)."""
    if radius <= _SMALL_RADIUS:
        return np.asarray(cv2.bitwise_and(points, cv2.dilate(others, disk(radius))), np.uint8)
    # A large disk is costly to dilate by, squares are not: the square inside the disk proves most pixels
    # found, the square around it proves most others lost, and the few in between are looked at one by one.
    inner = int(radius / math.sqrt(2))
    found = np.asarray(cv2.bitwise_and(points, cv2.dilate(others, _square(inner))), np.uint8)
    candidates = cv2.bitwise_and(cv2.subtract(points, found), cv2.dilate(others, _square(radius)))
    where = cv2.findNonZero(candidates)
    if where is None or len(where) == 0:
        return found
    x, y = where.reshape(-1, 2).T.astype(np.int64)
    padded = cv2.copyMakeBorder(others, radius, radius, radius, radius, cv2.BORDER_CONSTANT, value=0)
    flat, stride = padded.ravel(), padded.shape[1]
    ring = disk(radius).copy()
    ring[radius - inner : radius + inner + 1, radius - inner : radius + inner + 1] = 0
    dy, dx = np.nonzero(ring)  # offsets from the disk's corner, which the padding turns into the point's
    centre = y * stride + x
    step = max(1, _MAX_LOOKUPS // len(dy))
    for part in range(0, len(centre), step):
        near = flat[centre[part : part + step, None] + (dy * stride + dx)].any(axis=1)
        found[y[part : part + step][near], x[part : part + step][near]] = 1
    return found


_DISKS: dict[int, Bits] = {}


def disk(radius: int) -> Bits:
    """All pixels within `radius` of the centre, shape (2 radius + 1, 2 radius + 1)."""
    if radius not in _DISKS:
        y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
        _DISKS[radius] = (x * x + y * y <= radius * radius).astype(np.uint8)
    return _DISKS[radius]


def _square(radius: int) -> Bits:
    return np.ones((2 * radius + 1, 2 * radius + 1), np.uint8)
