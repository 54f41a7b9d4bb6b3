"""Run-length masks: COCO compressed strings, column-major, of a known height and width.

The string alone does not hold its size: every function that needs it takes `height` and `width`, and
refuses a string that does not fill exactly that size. Dense masks are bool, shape (height, width).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from pycocotools import mask as coco

Mask = npt.NDArray[np.bool_]
Box = tuple[float, float, float, float]
_Ints = npt.NDArray[np.int64]


def encode(mask: npt.NDArray[Any]) -> str:
    """The RLE of a dense mask.

    Args:
        mask: bool or 0/1 numbers, shape (height, width); any memory order.

    Raises:
        ValueError: not two-dimensional, or without pixels.
    """
    if mask.ndim != 2:
        raise ValueError(f"a mask has shape (height, width), not {mask.shape}; encode_batch takes a stack")
    return encode_batch(mask[None])[0]


def encode_batch(masks: npt.NDArray[Any]) -> list[str]:
    """The RLEs of a stack of masks of shape (n, height, width), in one call of the codec."""
    if masks.ndim != 3:
        raise ValueError(f"a stack of masks has shape (n, height, width), not {masks.shape}")
    if 0 in masks.shape[1:]:
        raise ValueError(f"a mask needs at least one pixel, not shape {masks.shape[1:]}")
    if len(masks) == 0:
        return []
    if masks.dtype != np.bool_:
        masks = masks != 0
    # The codec wants (height, width, n) in Fortran order: each mask column by column. OpenCV's blocked
    # transpose is several times faster than NumPy's strided copy.
    n, height, width = masks.shape
    columns = np.empty((n, width, height), np.uint8)
    for mask, target in zip(masks, columns, strict=True):
        target[...] = cv2.transpose(np.ascontiguousarray(mask).view(np.uint8)).reshape(width, height)
    return [item["counts"].decode("ascii") for item in coco.encode(columns.transpose(2, 1, 0))]


def decode(rle: str, height: int, width: int) -> Mask:
    """The dense mask, bool, shape (height, width), C order.

    Raises:
        ValueError: the string is not an RLE, or not one of this size.
    """
    mask: Mask = decode_batch([rle], height, width)[0]
    return mask


def decode_batch(rles: Sequence[str], height: int, width: int) -> npt.NDArray[np.bool_]:
    """Dense masks of shape (n, height, width).

    Raises:
        ValueError: a string is not an RLE of this size.
    """
    masks = np.empty((len(rles), height, width), np.uint8)
    for mask, rle in zip(masks, rles, strict=True):
        lengths = counts(rle)
        total = int(lengths.sum())
        if total != height * width:
            raise ValueError(_size_message(total, height, width))
        value = np.arange(lengths.size, dtype=np.uint8) & 1  # runs alternate, background first
        mask[...] = cv2.transpose(np.repeat(value, lengths).reshape(width, height)).reshape(height, width)
    return masks.view(np.bool_)


def empty(height: int, width: int) -> str:
    """The RLE of a mask without a pixel: annotated and absent (null means: not annotated)."""
    return from_counts([height * width], height, width)


def from_counts(counts: Sequence[int], height: int, width: int) -> str:
    """The compressed string of plain run lengths (column-major, the first run is background).

    Raises:
        ValueError: the runs do not fill the size.
    """
    total = sum(counts)
    if total != height * width or any(count < 0 for count in counts):
        raise ValueError(_size_message(total, height, width))
    packed = coco.frPyObjects({"size": [height, width], "counts": list(counts)}, height, width)
    return str(packed["counts"].decode("ascii"))


def counts(rle: str) -> _Ints:
    """The run lengths, background first: what the string says, column by column.

    Raises:
        ValueError: the string is not a COCO compressed RLE.
    """
    try:
        code = np.frombuffer(rle.encode("ascii"), np.uint8).astype(np.int64) - 48
    except UnicodeEncodeError as error:
        raise ValueError(f"not a COCO compressed RLE: {_short(rle)}") from error
    if code.size == 0 or code.min() < 0 or code.max() > 63 or code[-1] & 32:
        raise ValueError(f"not a COCO compressed RLE (empty, cut or foreign characters): {_short(rle)}")
    # Each number is groups of 5 bits, lowest first; bit 5 says "more follows", bit 4 of the last is the sign.
    last = (code & 32) == 0
    first = np.flatnonzero(np.concatenate(([True], last[:-1])))
    place = np.arange(code.size) - np.repeat(first, np.diff(np.append(first, code.size)))
    if place.max() > 10:
        raise ValueError(f"not a COCO compressed RLE (a run is too long): {_short(rle)}")
    numbers = np.add.reduceat((code & 31) << (5 * place), first)
    negative = (code[last] & 16) != 0
    numbers -= np.where(negative, np.int64(1) << (5 * (place[last] + 1)), 0)
    # From the fourth number on, each is the difference to the number two before it.
    numbers[1::2] = np.cumsum(numbers[1::2])
    numbers[2::2] = np.cumsum(numbers[2::2])
    if numbers.min() < 0:
        raise ValueError(f"not a COCO compressed RLE (negative run): {_short(rle)}")
    return numbers


def check(rle: str, height: int, width: int) -> None:
    """Refuse what is not the RLE of a mask of this size.

    Raises:
        ValueError: says which size the string has.
    """
    total = int(counts(rle).sum())
    if total != height * width:
        raise ValueError(_size_message(total, height, width))


def area(rle: str) -> int:
    """Number of mask pixels."""
    return int(counts(rle)[1::2].sum())


def areas(rles: Sequence[str]) -> npt.NDArray[np.int64]:
    """Number of mask pixels of each, shape (n,)."""
    return np.array([area(rle) for rle in rles], np.int64)


def bbox(rle: str, height: int, width: int) -> Box | None:
    """x, y, w, h in pixels with w = xmax - xmin + 1; None for an empty mask."""
    start, stop = _runs(rle, height, width)
    if start.size == 0:
        return None
    left, right = start // height, (stop - 1) // height
    wraps = bool((left != right).any())  # a run over a column's end touches the top and the bottom row
    top = 0 if wraps else int((start % height).min())
    bottom = height - 1 if wraps else int(((stop - 1) % height).max())
    xmin, xmax = int(left.min()), int(right.max())
    return float(xmin), float(top), float(xmax - xmin + 1), float(bottom - top + 1)


def centroid(rle: str, height: int, width: int) -> tuple[float, float] | None:
    """Mean x and mean y of the mask's pixel indices, without decoding; None for an empty mask."""
    start, stop = _runs(rle, height, width)
    if start.size == 0:
        return None
    pixels = int((stop - start).sum())
    sum_x = int((_columns_before(stop, height) - _columns_before(start, height)).sum())
    sum_index = int((stop * (stop - 1) // 2 - start * (start - 1) // 2).sum())
    return sum_x / pixels, (sum_index - height * sum_x) / pixels


def union(rles: Sequence[str], height: int, width: int) -> str:
    """Pixels of any of the masks; the empty mask for none."""
    return _merge(rles, height, width, intersect=False) if rles else empty(height, width)


def intersection(rles: Sequence[str], height: int, width: int) -> str:
    """Pixels of all of the masks.

    Raises:
        ValueError: no mask was given.
    """
    if not rles:
        raise ValueError("the intersection of no masks is not defined; give at least one")
    return _merge(rles, height, width, intersect=True)


def iou(a: str, b: str, height: int, width: int) -> float:
    """Intersection over union; 1 for two empty masks (DAVIS; pycocotools says 0)."""
    return float(iou_matrix([a], [b], height, width)[0, 0])


def iou_matrix(a: Sequence[str], b: Sequence[str], height: int, width: int) -> npt.NDArray[np.float64]:
    """IoU of each of `a` with each of `b`, shape (len(a), len(b)); 1 where both are empty.

    Raises:
        ValueError: a string is not an RLE of this size.
    """
    left = [_checked(rle, height, width) for rle in a]
    right = [_checked(rle, height, width) for rle in b]
    if not left or not right:
        return np.zeros((len(left), len(right)))
    matrix: npt.NDArray[np.float64] = np.array(coco.iou(left, right, [0] * len(right)), np.float64)
    both_empty = np.outer(coco.area(left) == 0, coco.area(right) == 0)
    matrix[both_empty] = 1.0
    return matrix


def _checked(rle: str, height: int, width: int) -> dict[str, Any]:
    # The C codec reads beyond its runs when the size is wrong: never let it see such a string.
    check(rle, height, width)
    return {"size": [height, width], "counts": rle.encode("ascii")}


def _merge(rles: Sequence[str], height: int, width: int, *, intersect: bool) -> str:
    merged = coco.merge([_checked(rle, height, width) for rle in rles], intersect)
    return str(merged["counts"].decode("ascii"))


def _runs(rle: str, height: int, width: int) -> tuple[_Ints, _Ints]:
    """First and one-past-last column-major pixel index of every foreground run."""
    lengths = counts(rle)
    edges = np.cumsum(lengths)
    if edges[-1] != height * width:
        raise ValueError(_size_message(int(edges[-1]), height, width))
    stop, length = edges[1::2], lengths[1::2]
    keep = length > 0
    return (stop - length)[keep], stop[keep]


def _columns_before(index: _Ints, height: int) -> _Ints:
    """Sum of p // height over all p < index."""
    column, row = index // height, index % height
    return height * (column * (column - 1) // 2) + column * row


def _size_message(total: int, height: int, width: int) -> str:
    return (
        f"the RLE fills {total} pixels, but a mask of height {height} x width {width} has {height * width}; "
        "give the size that it was encoded with (height first), or rescale the mask"
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
