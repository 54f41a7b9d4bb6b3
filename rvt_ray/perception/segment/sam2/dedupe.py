"""Which of many overlapping masks are the same thing, and which is a part of which.

Duplicates are judged by mask IoU, not by boxes: a part and its whole can have nearly the same box. Parts are
kept and know their whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.masks.rle import Mask

# Masks are first compared as bitmaps of about this many pixels a side; only close calls are decided exactly.
_SMALL_SIDE = 128
_CLOSE = 0.15
_TRUSTED_PIXELS = 60


def shrink(mask: Mask) -> Mask:
    """The small bitmap of a mask for `overlaps`: every pixel that is at least half covered."""
    height, width = mask.shape
    scale = min(1.0, _SMALL_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    return np.asarray(small) >= 0.5


def overlaps(
    rles: Sequence[str], bitmaps: npt.NDArray[np.bool_], height: int, width: int, worth: float
) -> npt.NDArray[np.float64]:
    """Intersections in pixels, exact wherever they can matter.

    Args:
        bitmaps: `shrink` of each mask, shape (n, h, w).
        worth: least IoU or containment that anybody will ask for.

    Returns:
        Shape (n, n), symmetric; the areas on the diagonal. Pairs that surely overlap less than `worth` may be
        0 or approximate.
    """
    n = len(rles)
    areas = rle.areas(rles).astype(np.float64)
    flat = bitmaps.reshape(n, -1).astype(np.float32)
    small = (flat @ flat.T).astype(np.float64)
    pixels = np.maximum(np.diagonal(small), 1.0)
    share = small / np.minimum(pixels[:, None], pixels[None, :])
    tiny = (pixels < _TRUSTED_PIXELS)[:, None] | (pixels < _TRUSTED_PIXELS)[None, :]
    ask = np.triu((share >= worth - _CLOSE) | tiny, 1)
    shared = small * (height * width / flat.shape[1])
    for i in range(n):
        others = np.flatnonzero(ask[i])
        if others.size:
            iou = rle.iou_matrix([rles[i]], [rles[j] for j in others], height, width)[0]
            shared[i, others] = iou / (1 + iou) * (areas[i] + areas[others])
            shared[others, i] = shared[i, others]
    np.fill_diagonal(shared, areas)
    return shared


def dedupe(
    shared: npt.NDArray[np.float64],
    scores: npt.NDArray[np.float64],
    same_iou: float = 0.8,
    inside_share: float = 0.9,
) -> tuple[list[int], list[int | None]]:
    """Keep the best of each thing, and find the whole of each part.

    Args:
        shared: intersections in pixels, areas on the diagonal.
        scores: the better of two duplicates stays.
        same_iou: masks at least this alike are one thing.
        inside_share: a mask of which at least this share lies in a larger one is a part of it.

    Returns:
        Indices of the kept ones, best first; and for each the position in that list of its smallest whole.
    """
    areas = np.diagonal(shared)
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable").tolist():
        if areas[i] <= 0:
            continue
        rivals = np.array(kept, int)
        iou = shared[i, rivals] / np.maximum(areas[i] + areas[rivals] - shared[i, rivals], 1.0)
        if not bool((iou >= same_iou).any()):
            kept.append(i)
    parents: list[int | None] = []
    for i in kept:
        wholes = [
            place
            for place, k in enumerate(kept)
            if areas[k] > areas[i] and shared[i, k] >= inside_share * areas[i]
        ]
        parents.append(min(wholes, key=lambda place: areas[kept[place]], default=None))
    return kept, parents
