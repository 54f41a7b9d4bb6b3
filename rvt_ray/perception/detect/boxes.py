"""Boxes of one frame: each thing once, and what tiles add to the whole picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rvt_ray.perception.detect.base import Detection

_SAME_BOX = 0.6  # IoU of boxes from which they show one thing, whatever they are called
_PART = 0.75  # share of a tile's box inside a box of the same name from which it is a part of that
_SEAM = 0.02  # of a tile's side: what comes closer to a seam is cut by it


def tiles(height: int, width: int) -> list[tuple[int, int, int]]:
    """x, y, side of square tiles that cover the frame and overlap by half a side at least; none where the
    frame is nearly square already."""
    side, long = min(height, width), max(height, width)
    if long < 1.3 * side:
        return []
    count = int(np.ceil((long - side) / (0.5 * side))) + 1
    starts = np.linspace(0, long - side, count).round().astype(int).tolist()
    return [(s, 0, side) if width >= height else (0, s, side) for s in starts]


def cut_by_seam(d: Detection, x: int, y: int, side: int, height: int, width: int) -> bool:
    """Whether a box ends where its tile does, though the frame goes on."""
    near = _SEAM * side
    return (
        (x > 0 and d.x - x < near)
        or (y > 0 and d.y - y < near)
        or (x + side < width and x + side - (d.x + d.w) < near)
        or (y + side < height and y + side - (d.y + d.h) < near)
    )


def overlap(a: Detection, b: Detection) -> tuple[float, float]:
    """IoU of two boxes, and the share of `a` that lies in `b`."""
    across = min(a.x + a.w, b.x + b.w) - max(a.x, b.x)
    down = min(a.y + a.h, b.y + b.h) - max(a.y, b.y)
    shared = max(across, 0.0) * max(down, 0.0)
    return shared / (a.area + b.area - shared), shared / a.area


def suppress(found: Sequence[Detection]) -> list[Detection]:
    """Each thing once, best first: of boxes that overlap nearly fully, whatever their labels, one stays."""
    kept: list[Detection] = []
    for d in sorted(found, key=lambda d: (-d.score, d.x, d.y)):
        if all(overlap(d, k)[0] < _SAME_BOX for k in kept):
            kept.append(d)
    return kept


def add_from_tiles(whole: Sequence[Detection], inner: Sequence[Detection]) -> list[Detection]:
    """What tiles show besides what the whole picture shows. A tile sees more detail and less context: it
    renames what it is surer of, but a hand is not another person."""
    kept = suppress([*whole, *inner])
    firm = set(whole)

    def is_part(d: Detection) -> bool:
        return any(k.label == d.label and k.area > d.area and overlap(d, k)[1] >= _PART for k in kept)

    return [d for d in kept if d in firm or not is_part(d)]
