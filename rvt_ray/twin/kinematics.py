"""Numbers of one track, from its masks: geometry and velocity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Geometry:
    """Per mask, shape (n,): NaN where the mask is empty, except `area`, which is 0 there."""

    visible: npt.NDArray[np.bool_]
    area: Floats
    box: Floats  # (n, 4): x, y, w, h; w = xmax - xmin + 1
    centroid: Floats  # (n, 2): x, y


def measure(rles: Sequence[str], height: int, width: int) -> Geometry:
    """Area, box and centroid of every mask, from its runs alone.

    Raises:
        ValueError: a string is not the RLE of a mask of this size.
    """
    n = len(rles)
    area = np.zeros(n)
    box = np.full((n, 4), np.nan)
    centroid = np.full((n, 2), np.nan)
    for i, text in enumerate(rles):
        found, middle = rle.bbox(text, height, width), rle.centroid(text, height, width)
        if found is not None and middle is not None:
            area[i] = rle.area(text)
            box[i], centroid[i] = found, middle
    return Geometry(visible=area > 0, area=area, box=box, centroid=centroid)


def velocity(centroid: Floats, visible: npt.NDArray[np.bool_], time_s: Floats) -> Floats:
    """Velocity of a centroid in pixels per second, by differences over presentation times.

    Central where both neighbours are visible, one-sided where one is. Neighbours are the annotated frames
    just before and after. Unknown (NaN) on invisible frames and where no neighbour is visible.

    Args:
        centroid: (n, 2) pixels.
        visible: (n,).
        time_s: (n,), strictly increasing.

    Returns:
        (n, 2): x, y.
    """
    n = len(time_s)
    out = np.full((n, 2), np.nan)
    if n < 2:
        return out
    index = np.arange(n)
    before = np.maximum(index - 1, 0)
    after = np.minimum(index + 1, n - 1)
    before = np.where(visible[before], before, index)
    after = np.where(visible[after], after, index)
    known = visible & (after > before)
    dt = time_s[after[known]] - time_s[before[known]]
    out[known] = (centroid[after[known]] - centroid[before[known]]) / dt[:, None]
    return out


def visible_runs(visible: npt.NDArray[np.bool_]) -> int:
    """How many uninterrupted stretches of visible frames there are."""
    starts = visible & ~np.concatenate(([False], visible[:-1]))
    return int(starts.sum())
