"""Depth of one object in one frame: robust statistics under its eroded mask, whoever made the depth map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import geometry, rle

DEPTH_STATISTICS = ("median", "mean", "std", "p10", "p90", "min", "max")


def depth_statistics(
    mask_rle: str,
    box: Sequence[float],
    depth: npt.NDArray[np.float32],
    erode_px: int,
) -> dict[str, float] | None:
    """Statistics of the depth under an eroded mask: pixels at an outline mix object and background.

    Args:
        box: the mask's x, y, w, h in pixels.
        depth: (height, width); values that are not finite are left out.

    Returns:
        `DEPTH_STATISTICS`; None when no finite pixel is left.
    """
    height, width = depth.shape
    x, y, w, h = (int(v) for v in box)
    # Erosion needs the background next to the box; at the frame's border there is none to see.
    left, top = max(x - erode_px, 0), max(y - erode_px, 0)
    right, bottom = min(x + w + erode_px, width), min(y + h + erode_px, height)
    mask = rle.decode(mask_rle, height, width)[top:bottom, left:right]
    values = depth[top:bottom, left:right][geometry.erode(mask, erode_px)].astype(np.float64)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    p10, median, p90 = np.quantile(values, [0.1, 0.5, 0.9])
    return {
        "median": float(median),
        "mean": float(values.mean()),
        "std": float(values.std()),
        "p10": float(p10),
        "p90": float(p90),
        "min": float(values.min()),
        "max": float(values.max()),
    }
