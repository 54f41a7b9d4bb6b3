"""Geometry of dense masks: bool, shape (height, width). Lengths in pixels, x to the right, y down."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from rvt_ray.masks.rle import Box, Mask

Points = npt.NDArray[np.int64]


def area(mask: Mask) -> int:
    """Number of mask pixels."""
    return int(np.count_nonzero(mask))


def box(mask: Mask) -> Box | None:
    """x, y, w, h with w = xmax - xmin + 1; None for an empty mask."""
    columns = np.flatnonzero(mask.any(axis=0))
    if columns.size == 0:
        return None
    rows = np.flatnonzero(mask.any(axis=1))
    x, y = int(columns[0]), int(rows[0])
    return float(x), float(y), float(columns[-1] - x + 1), float(rows[-1] - y + 1)


def centroid(mask: Mask) -> tuple[float, float] | None:
    """Mean x and mean y of the mask's pixel indices; None for an empty mask."""
    pixels = area(mask)
    if pixels == 0:
        return None
    per_column = np.count_nonzero(mask, axis=0)
    per_row = np.count_nonzero(mask, axis=1)
    x = float(np.arange(mask.shape[1]) @ per_column) / pixels
    y = float(np.arange(mask.shape[0]) @ per_row) / pixels
    return x, y


def dilate(mask: Mask, radius: int) -> Mask:
    """Every pixel within `radius` (Euclidean) of the mask."""
    return _morph(cv2.dilate, mask, radius)


def erode(mask: Mask, radius: int) -> Mask:
    """The pixels that are farther than `radius` (Euclidean) from the background.

    The frame's border does not count as background: an object that the frame cuts off is not eroded there.
    """
    return _morph(cv2.erode, mask, radius)


def boundary(mask: Mask) -> Mask:
    """The mask's pixels that have a 4-neighbour outside the mask, or lie on the frame's border."""
    padded = np.pad(mask, 1)
    inside = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return mask & ~inside


def boundary_points(mask: Mask) -> Points:
    """x, y of the boundary pixels, shape (n, 2); the form that `points_distance` takes."""
    found = box(mask)
    if found is None:
        return np.zeros((0, 2), np.int64)
    x, y, w, h = (int(v) for v in found)
    ys, xs = np.nonzero(boundary(mask[y : y + h, x : x + w]))
    return np.stack([xs + x, ys + y], axis=1)


def points_distance(a: Points, b: Points) -> float | None:
    """Least distance between two sets of points; None when one is empty."""
    if len(a) == 0 or len(b) == 0:
        return None
    few, many = (a, b) if len(a) <= len(b) else (b, a)
    distance, _ = cKDTree(many).query(few, k=1)
    return float(np.min(distance))


def distance(a: Mask, b: Mask) -> float | None:
    """Least distance between pixel centres of two masks.

    0 when they share a pixel, 1 when they touch side by side; None when one is empty.
    """
    if bool((a & b).any()):
        return 0.0
    return points_distance(boundary_points(a), boundary_points(b))


def distance_matrix(masks: Sequence[Mask]) -> npt.NDArray[np.float64]:
    """`distance` of every pair, shape (n, n), symmetric, 0 on the diagonal; NaN when one is empty."""
    points = [boundary_points(mask) for mask in masks]
    matrix = np.full((len(masks), len(masks)), np.nan)
    for i, a in enumerate(masks):
        if len(points[i]):
            matrix[i, i] = 0.0
        for j in range(i):
            found = 0.0 if bool((a & masks[j]).any()) else points_distance(points[i], points[j])
            if found is not None:
                matrix[i, j] = matrix[j, i] = found
    return matrix


def containment(inner: Mask, outer: Mask) -> float:
    """The share of `inner` that lies in `outer`; 0 when `inner` is empty."""
    pixels = area(inner)
    return area(inner & outer) / pixels if pixels else 0.0


def resize(mask: Mask, height: int, width: int) -> Mask:
    """The mask at another size, nearest neighbour (a mask is never interpolated)."""
    if mask.shape == (height, width):
        return mask
    scaled = cv2.resize(mask.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST_EXACT)
    return np.asarray(scaled).astype(np.bool_)


def smooth_resize(mask: Mask, height: int, width: int) -> Mask:
    """A coarse mask at another size, its outline smoothed rather than blocky; itself at its own size."""
    if mask.shape == (height, width):
        return mask
    soft = cv2.GaussianBlur(mask.astype(np.float32), (3, 3), 0)
    return np.asarray(cv2.resize(soft, (width, height), interpolation=cv2.INTER_LINEAR)) > 0.5


def _morph(operation: object, mask: Mask, radius: int) -> Mask:
    if radius < 0:
        raise ValueError(f"a radius is >= 0, not {radius}")
    if radius == 0:
        return mask.copy()
    reach = np.arange(-radius, radius + 1)
    disk = (reach[:, None] ** 2 + reach[None, :] ** 2 <= radius**2).astype(np.uint8)
    assert callable(operation)
    return np.asarray(operation(mask.astype(np.uint8), disk)).astype(np.bool_)
