"""What COCO-style files call a segmentation, in all its forms, to one RLE string."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pycocotools import mask as coco

from rvt_ray.masks import rle as _rle


def from_segmentation(segmentation: Any) -> tuple[str, int, int]:
    """RLE, height and width of a COCO RLE dict: `{"size": [h, w], "counts": str | list[int]}`.

    Raises:
        ValueError: not such a dict, or its runs do not fill its size.
    """
    if not isinstance(segmentation, Mapping) or not {"size", "counts"} <= set(segmentation):
        raise ValueError("expected an RLE {'size': [height, width], 'counts': ...}")
    size = segmentation["size"]
    if not (isinstance(size, Sequence) and len(size) == 2 and all(float(v) >= 1 for v in size)):
        raise ValueError(f"'size' must be [height, width], not {size!r}")
    height, width = int(size[0]), int(size[1])
    runs = segmentation["counts"]
    if isinstance(runs, bytes):
        runs = runs.decode("ascii")
    if isinstance(runs, str):
        _rle.check(runs, height, width)
        return runs, height, width
    return _rle.from_counts([int(count) for count in runs], height, width), height, width


def from_polygons(polygons: Any, height: int, width: int) -> str:
    """RLE of the union of polygons `[[x1, y1, x2, y2, x3, y3, ...], ...]` in pixels.

    Raises:
        ValueError: a polygon has fewer than three points or an odd number of coordinates.
    """
    packed = []
    for polygon in polygons:
        flat = np.asarray(polygon, np.float64)
        if flat.ndim != 1 or flat.size < 6 or flat.size % 2 or not np.isfinite(flat).all():
            raise ValueError("a polygon is a flat list x1, y1, x2, y2, ... of at least three points")
        packed += coco.frPyObjects([flat.tolist()], height, width)
    if not packed:
        return _rle.empty(height, width)
    return str(coco.merge(packed, False)["counts"].decode("ascii"))
