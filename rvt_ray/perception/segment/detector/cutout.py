"""From a detector's box to a mask: GrabCut (Rother et al. 2004) in a crop around the box.

GrabCut only knows colours. A white dog on a white road, or a wall seen through a bent arm, defeats it unless
it is told more: where the thing was expected, and which pixels differ from the empty scene. Each hint may
mislead too, so several cuts are made, and the one is taken that agrees best with the box (an independent
witness: the detector looked at shapes), with the picture's edges, and with what was expected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks import clean as cleaning
from rvt_ray.masks import geometry
from rvt_ray.masks.rle import Box, Mask
from rvt_ray.video.frames import FrameArray

Marks = npt.NDArray[np.uint8]

_MARGIN = 0.25  # of the box's sides: what is seen around it teaches the background's colours
_SLACK = 0.05  # of the box's sides: a thing may stick out of its box so far
_CROP_SIDE = 144  # GrabCut's time grows with the pixels; its outline is as good at this size
_ROUNDS = 3
_LEAST_FILL = 0.12  # of the box; a mask that holds less has lost the thing
_MOST_FILL = 0.97  # of what was allowed; a mask that holds more found no outline
_CHANGED_SHARE = 0.2  # of the box, from which change tells a thing from what is behind it
_FAR = 0.08  # of the box's shorter side: so far from any change there is only background
_MOVED = 0.7  # share of what was expected that changed, from which all of the thing did
_CORE = 0.25  # of the box's sides: half sides of its middle
# An even kernel would shift what it opens by a pixel.
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.uint8)
_EDGE_WEIGHT = 0.5
_PRIOR_WEIGHT = 0.5
_CHANGE_WEIGHT = 0.15  # little: a plate may hold the ghost of a thing that hardly moved
_SURE_FIT, _SURE_PRIOR = 0.88, 0.8  # of a cut that agrees with box and prior so well that no other is made
_SOLID = 0.75  # ... and is not a pair of arms
_WHOLE_FIT, _WHOLE_EDGE = 0.7, 0.7  # of a cut by colours alone that shows the whole thing
_LIMBS = 0.6  # ... and the least share of it that another cut must have
_DOUBTFUL_FIT = 0.75  # of the best cut, below which what was expected may stand instead
_GOOD_FIT = 0.3  # below, a mask says nothing about what is in the box


class Hint(Enum):
    """What a cut starts from."""

    PRIOR = "where it was expected"
    CHANGE = "what differs from the empty scene"
    BOX = "nothing but the box"
    MIDDLE = "the middle of the box"


@dataclass(frozen=True)
class _Try:
    """A cut and what speaks for it; `sure`: no other needs to be made."""

    hint: Hint
    mask: Mask
    fit: float
    edge: float
    worth: float
    sure: bool


@dataclass(frozen=True)
class Cut:
    """A thing cut out of a frame.

    Attributes:
        mask: bool, shape of the frame.
        fit: IoU of the mask's box with the box that was asked for.
    """

    mask: Mask
    fit: float


def cut_out(
    frame: FrameArray,
    box: Box,
    prior: Mask | None = None,
    changed: Mask | None = None,
    taken: Mask | None = None,
) -> Cut | None:
    """The thing in a box.

    Args:
        frame: RGB (height, width, 3).
        box: x, y, w, h in its pixels.
        prior: where the thing is expected (carried from another frame).
        changed: pixels that differ from the empty scene; null: not known.
        taken: pixels that surely belong to other things.

    Returns:
        The best of the cuts; None where no outline can be found.
    """
    height, width = frame.shape[:2]
    x, y, w, h = box
    left, top = max(round(x - _MARGIN * w), 0), max(round(y - _MARGIN * h), 0)
    right, bottom = min(round(x + w * (1 + _MARGIN)), width), min(round(y + h * (1 + _MARGIN)), height)
    if right - left < 4 or bottom - top < 4:
        return None
    window = slice(top, bottom), slice(left, right)
    scale = min(1.0, _CROP_SIDE / max(right - left, bottom - top))
    crop = np.ascontiguousarray(frame[window][:, :, ::-1])
    if scale < 1.0:
        crop = np.asarray(cv2.resize(crop, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA))
    rows, columns = crop.shape[:2]
    sx, sy = columns / (right - left), rows / (bottom - top)
    inner = ((x - left) * sx, (y - top) * sy, w * sx, h * sy)
    expected, differs, others = (
        None if m is None else geometry.resize(m[window], rows, columns) for m in (prior, changed, taken)
    )
    edges = edge_ranks(crop)
    tried: list[_Try] = []
    for hint, marks in guesses((rows, columns), inner, expected, differs, others):
        if hint is Hint.MIDDLE and tried:
            break
        found = _cut(crop, marks)
        if found is None or not _plausible(found, marks, inner):
            continue
        tried += _weighed(
            hint, found, inner, edges, expected, differs & (marks != 0) if differs is not None else None
        )
        if tried and tried[-1].sure:
            break
    if expected is not None and all(t.fit < _DOUBTFUL_FIT for t in tried):
        # What was carried here may be better than any cut: a thing in front of the like-coloured.
        kept = expected if others is None else expected & ~others
        tried += _weighed(Hint.PRIOR, kept, inner, edges, expected, None)
    best = _best(tried)
    if best is None:
        return None
    mask = np.zeros((height, width), np.bool_)
    mask[window] = geometry.smooth_resize(best.mask, bottom - top, right - left)
    if taken is not None:
        mask &= ~taken
    return Cut(mask, best.fit) if mask.any() else None


def guesses(
    shape: tuple[int, int], box: Box, prior: Mask | None, changed: Mask | None, taken: Mask | None
) -> Iterator[tuple[Hint, Marks]]:
    """GrabCut's marks to start from, uint8 of shape (rows, columns), one array per hint that there is: what
    was expected, what changed, nothing but the box. The last resort comes last: that the
    middle of the box is the thing."""
    rows, columns = shape
    x, y, w, h = box
    x0, y0 = max(round(x - _SLACK * w), 0), max(round(y - _SLACK * h), 0)
    x1, y1 = min(round(x + w * (1 + _SLACK)), columns), min(round(y + h * (1 + _SLACK)), rows)
    inside = slice(y0, y1), slice(x0, x1)
    plain = np.full(shape, cv2.GC_BGD, np.uint8)
    plain[inside] = cv2.GC_PR_FGD
    hints: list[tuple[Hint, Marks]] = []
    likely = None
    if prior is not None and prior[inside].any():
        likely = prior
        if changed is not None and (prior & changed).sum() >= _MOVED * prior.sum():
            # Most of it stands out of the empty scene: what does not was dragged along.
            likely = prior & geometry.dilate(changed, 2)
        marks = np.full(shape, cv2.GC_BGD, np.uint8)
        near = geometry.dilate(likely, max(2, round(0.1 * min(w, h))))
        marks[inside] = np.where(near[inside], cv2.GC_PR_FGD, cv2.GC_PR_BGD)
        hints.append((Hint.PRIOR, marks))
    if changed is not None and changed[inside].mean() >= _CHANGED_SHARE:
        marks = np.full(shape, cv2.GC_BGD, np.uint8)
        near = geometry.dilate(changed, max(2, round(_FAR * min(w, h))))
        part = np.where(near[inside], cv2.GC_PR_BGD, cv2.GC_BGD)
        # The plate holds the ghost of what hardly moved: that it did not change says nothing there.
        mine = changed if likely is None else changed | likely
        marks[inside] = np.where(mine[inside], cv2.GC_PR_FGD, part)
        marks[inside][geometry.erode(changed, 1)[inside]] = cv2.GC_FGD
        hints.append((Hint.CHANGE, marks))
    hints.append((Hint.BOX, plain))
    middle = plain.copy()
    cx, cy, rx, ry = x + w / 2, y + h / 2, _CORE * w, _CORE * h
    middle[max(round(cy - ry), 0) : round(cy + ry) + 1, max(round(cx - rx), 0) : round(cx + rx) + 1] = (
        cv2.GC_FGD
    )
    for hint, marks in [*hints, (Hint.MIDDLE, middle)]:
        if taken is not None:
            marks[taken] = cv2.GC_BGD
        yield hint, marks


def edge_ranks(crop: FrameArray) -> npt.NDArray[np.float32]:
    """How strong the strongest edge around each pixel is, as its rank among the picture's pixels, 0..1."""
    smooth = cv2.GaussianBlur(crop, (3, 3), 0).astype(np.float32)
    strength = np.zeros(crop.shape[:2], np.float32)
    for channel in range(3):
        dx = cv2.Sobel(smooth[..., channel], cv2.CV_32F, 1, 0)
        dy = cv2.Sobel(smooth[..., channel], cv2.CV_32F, 0, 1)
        strength = np.maximum(strength, np.hypot(dx, dy))
    strength = np.asarray(cv2.dilate(strength, np.ones((3, 3), np.uint8)))
    order = np.sort(strength.ravel())
    ranks = np.searchsorted(order, strength.ravel(), side="left") / order.size
    return ranks.reshape(strength.shape).astype(np.float32)


def edge_share(mask: Mask, ranks: npt.NDArray[np.float32]) -> float:
    """Mean edge rank along a mask's outline, 0..1; outlines along the crop's border don't count."""
    outline = geometry.boundary(mask)
    outline[[0, -1]] = False
    outline[:, [0, -1]] = False
    return float(ranks[outline].mean()) if outline.any() else 0.0


def _weighed(
    hint: Hint,
    mask: Mask,
    box: Box,
    edges: npt.NDArray[np.float32],
    expected: Mask | None,
    differs: Mask | None,
) -> list[_Try]:
    """A cut and what speaks for it; nothing where it does not fit its box at all."""
    found = geometry.box(mask)
    fit = 0.0 if found is None else box_iou(found, _clipped(box, *mask.shape))
    if fit < _GOOD_FIT:
        return []
    edge = edge_share(mask, edges)
    likeness = 0.0 if expected is None else _iou(mask, expected)
    worth = fit + _EDGE_WEIGHT * edge + _PRIOR_WEIGHT * likeness
    if differs is not None:
        worth += _CHANGE_WEIGHT * _iou(mask, differs)
    sure = fit >= _SURE_FIT and likeness >= _SURE_PRIOR and solidity(mask) >= _SOLID
    return [_Try(hint, mask, fit, edge, worth, sure)]


def _best(tried: Sequence[_Try]) -> _Try | None:
    """The cut of the most worth. One that is only limbs of what colours alone show well does not count: what
    moves, or was followed, may be the arms of somebody who sits still."""
    plain = next((t for t in tried if t.hint is Hint.BOX), None)
    whole = plain is not None and plain.fit >= _WHOLE_FIT and plain.edge >= _WHOLE_EDGE
    if plain is not None and whole:
        least = _LIMBS * int(plain.mask.sum())
        tried = [t for t in tried if int((t.mask & plain.mask).sum()) >= least]
    return max(tried, key=lambda t: t.worth, default=None)


def solidity(mask: Mask) -> float:
    """Share of the convex hull that a mask fills; 1 for a disc, little for a pair of arms."""
    points = geometry.boundary_points(mask)
    if len(points) < 3:
        return 1.0
    hull = cv2.contourArea(cv2.convexHull(points.astype(np.int32)))
    return min(int(mask.sum()) / hull, 1.0) if hull > 0 else 1.0


def tidy(mask: Mask) -> Mask:
    """Without specks, hairs and pinholes: opened a little, small pieces dropped, small holes filled."""
    opened = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, CROSS) > 0
    padded = np.pad(opened if opened.any() else mask, 1)
    return cleaning.clean(padded, min_share=0.15, max_hole_share=0.05)[1:-1, 1:-1]


def box_iou(a: Box, b: Box) -> float:
    """IoU of two boxes x, y, w, h."""
    across = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    down = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    shared = max(across, 0.0) * max(down, 0.0)
    return shared / (a[2] * a[3] + b[2] * b[3] - shared)


def _cut(crop: FrameArray, marks: Marks) -> Mask | None:
    thing = int(((marks == cv2.GC_FGD) | (marks == cv2.GC_PR_FGD)).sum())
    if thing < 20 or marks.size - thing < 20:  # too little to learn five colour clusters of each side from
        return None
    cv2.setRNGSeed(1)  # its k-means draws from OpenCV's own generator: the same input gives the same mask
    out = marks.copy()
    try:
        cv2.grabCut(crop, out, None, np.zeros((1, 65)), np.zeros((1, 65)), _ROUNDS, cv2.GC_INIT_WITH_MASK)
    except cv2.error:  # all pixels of one side have the same colour
        return None
    return tidy((out == cv2.GC_FGD) | (out == cv2.GC_PR_FGD))


def _plausible(mask: Mask, marks: Marks, box: Box) -> bool:
    """Neither lost nor simply everything that was allowed: a thing may fill its box, but not the slack."""
    allowed = marks != cv2.GC_BGD
    surrounded = float(allowed.mean()) < 0.95
    filled = float(mask.sum()) > _MOST_FILL * float(allowed.sum())
    return float(mask.sum()) >= _LEAST_FILL * max(box[2] * box[3], 1.0) and not (filled and surrounded)


def _clipped(box: Box, rows: int, columns: int) -> Box:
    x, y = max(box[0], 0.0), max(box[1], 0.0)
    return x, y, min(box[0] + box[2], columns) - x, min(box[1] + box[3], rows) - y


def _iou(a: Mask, b: Mask) -> float:
    union = int((a | b).sum())
    return int((a & b).sum()) / union if union else 0.0
