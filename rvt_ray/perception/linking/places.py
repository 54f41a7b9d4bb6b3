"""Where masks are: their boxes, the frame's border, each other."""

from __future__ import annotations

from collections.abc import Sequence

from rvt_ray.masks import rle

_EDGE_PX = 1.0
_NEAR_PX = 2.0


def box_of(text: str, height: int, width: int) -> rle.Box:
    """The box of a mask that has a pixel."""
    box = rle.bbox(text, height, width)
    assert box is not None, "masks without a pixel are left out before"
    return box


def at_edge(box: rle.Box, height: int, width: int) -> bool:
    """Whether a box touches the frame's border."""
    x, y, w, h = box
    return x <= _EDGE_PX or y <= _EDGE_PX or x + w >= width - _EDGE_PX or y + h >= height - _EDGE_PX


def cut_sides(a: Sequence[float], b: Sequence[float], size: int) -> tuple[bool, bool]:
    """Whether, along one axis, either of two spans (start, length) touches the frame's borders."""
    return min(a[0], b[0]) <= _EDGE_PX, max(sum(a), sum(b)) >= size - _EDGE_PX


def gap(a: rle.Box, b: rle.Box) -> float:
    """Pixels between two boxes along the axis that parts them most; negative where they overlap."""
    across = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    down = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return -min(across, down)


def near(a: rle.Box, b: rle.Box) -> bool:
    """Whether two boxes touch, or nearly."""
    return gap(a, b) <= _NEAR_PX


def meet(a: rle.Box, b: rle.Box) -> bool:
    """Whether two boxes overlap."""
    return gap(a, b) < 0
