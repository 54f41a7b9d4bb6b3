"""Which known thing does a foreground pixel belong to? By colour and by where the flow carried each thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Bins = npt.NDArray[np.int32]

COLOUR_BINS = 2048
_INSIDE_BONUS = 2.5  # log units for lying where the thing is expected
_REACH_PX = 4.0  # outside of it, the prior falls off like a Gaussian of this width
_OUTLINE_SHARE = 0.5
# An even kernel has no middle: opening with it moves a mask by a pixel.
_CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.uint8)
_NOBODY = -1.0  # a pixel that fits all things worse than this belongs to none of them


def histogram(bins: Bins) -> npt.NDArray[np.float64]:
    """Distribution over the colour bins of some pixels, slightly spread to neighbouring bins."""
    counts = np.bincount(bins.ravel(), minlength=COLOUR_BINS).reshape(8, 16, 16).astype(np.float64)
    for axis in range(3):
        padded = np.pad(counts, [(1, 1) if a == axis else (0, 0) for a in range(3)], mode="edge")
        low = np.take(padded, range(counts.shape[axis]), axis=axis)
        high = np.take(padded, range(2, counts.shape[axis] + 2), axis=axis)
        counts = 0.7 * counts + 0.15 * (low + high)
    flat = counts.ravel()
    return np.asarray(flat / max(flat.sum(), 1e-9))


def overlap(p: npt.NDArray[np.float64], q: npt.NDArray[np.float64]) -> float:
    """Histogram intersection, 0..1."""
    return float(np.minimum(p, q).sum())


@dataclass
class Expected:
    """A thing before this frame is looked at.

    Attributes:
        mask: where the flow carries it.
        colours: its histogram.
        speed: pixels per frame, for how far off it may be.
    """

    mask: Mask
    colours: npt.NDArray[np.float64]
    speed: float


def assign(foreground: Mask, bins: Bins, expected: Mapping[int, Expected]) -> npt.NDArray[np.int32]:
    """Label each foreground pixel with the id of the thing it fits best; 0: with none. Shape (h, w)."""
    best = np.full(foreground.shape, _NOBODY, np.float32)
    labels = np.zeros(foreground.shape, np.int32)
    for thing_id in sorted(expected):
        thing = expected[thing_id]
        if not thing.mask.any():
            continue  # carried out of the picture
        away = cv2.distanceTransform((~thing.mask).astype(np.uint8), cv2.DIST_L2, 3)
        reach = _REACH_PX + 0.5 * thing.speed
        fit = np.log(thing.colours * COLOUR_BINS + 0.05).astype(np.float32)[bins]
        # A colour that a thing has plenty of is no stronger an argument than one that it surely has.
        fit = np.minimum(fit, 3.0) + np.where(thing.mask, _INSIDE_BONUS, -0.5 * (away / reach) ** 2)
        wins = foreground & (fit > best) & (away < 4 * reach)
        best[wins] = fit[wins]
        labels[wins] = thing_id
    return labels


def clean_foreground(strength: npt.NDArray[np.float32], least_area: int) -> Mask:
    """Foreground from the difference to the plate: hysteresis, no specks, no slivers, no pinholes."""
    weak = (strength > 1.0).astype(np.uint8)
    weak = cv2.morphologyEx(weak, cv2.MORPH_OPEN, _CROSS)
    weak = cv2.morphologyEx(weak, cv2.MORPH_CLOSE, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (7, 7)))
    n, labels, stats, _ = cv2.connectedComponentsWithStats(weak, connectivity=8)
    depth = cv2.distanceTransform(weak, cv2.DIST_L2, 3)
    keep = np.zeros(n, np.bool_)
    for i in range(1, n):
        x, y, w, h, area = (int(v) for v in stats[i])
        if area < least_area:
            continue
        own = labels[y : y + h, x : x + w] == i
        strong = (strength[y : y + h, x : x + w][own] > 2.0).mean()
        keep[i] = strong > 0.1 and depth[y : y + h, x : x + w][own].max() >= 2.5
    return fill_holes(_trim(keep[labels], strength), 0.25)


def _trim(mask: Mask, strength: npt.NDArray[np.float32]) -> Mask:
    """Cut the halo: where a thing stands out strongly, the blur beside it passes the threshold as well. The
    outline lies where the difference falls to half of what it is just inside."""
    inner = cv2.erode(mask.astype(np.uint8), np.ones((7, 7), np.uint8), borderValue=1) > 0
    peak = cv2.dilate(strength, np.ones((5, 5), np.uint8))
    trimmed = mask & (inner | (strength >= _OUTLINE_SHARE * peak))
    smooth = cv2.morphologyEx(trimmed.astype(np.uint8), cv2.MORPH_OPEN, _CROSS)
    return np.asarray(smooth > 0)


def fill_holes(mask: Mask, max_share: float) -> Mask:
    """Fill enclosed holes up to a share of the mask's pixels."""
    n, labels, stats, _ = cv2.connectedComponentsWithStats((~mask).astype(np.uint8), connectivity=4)
    height, width = mask.shape
    x, y, w, h, area = stats.T
    inner = (x > 0) & (y > 0) & (x + w < width) & (y + h < height)
    hole = inner & (area <= max_share * mask.sum())
    hole[0] = False
    return np.asarray(mask | hole[labels]) if n > 1 else mask
