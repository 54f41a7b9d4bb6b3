"""Which of many overlapping masks are the same thing, and which is a part of which.

Duplicates are judged by mask IoU, not by boxes: a part and its whole can have nearly the same box. Parts are
kept and know their whole. Masks are compared as small bitmaps first; only close calls are decided exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks.rle import Mask

_SMALL_SIDE = 128
# How far a ratio of small bitmaps can be from the exact one, and from how many small pixels that holds.
_CLOSE = 0.15
_TRUSTED_PIXELS = 60

_ONES = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


@dataclass(frozen=True)
class Candidate:
    """A mask in an eighth of its memory.

    Attributes:
        bits: the mask, row-major, eight pixels a byte.
        small: the mask at about 128 pixels a side.
        area: pixels.
        score: the better of two duplicates stays.
        source: position among what it was made from.
    """

    bits: npt.NDArray[np.uint8]
    small: npt.NDArray[np.bool_]
    area: int
    score: float
    source: int

    @classmethod
    def of(cls, mask: Mask, score: float, source: int = 0) -> Candidate:
        """Pack a mask, bool, shape (height, width)."""
        height, width = mask.shape
        scale = min(1.0, _SMALL_SIDE / max(height, width))
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        small = cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_AREA)
        area = int(np.count_nonzero(mask))
        return cls(np.packbits(mask), np.asarray(small) >= 0.5, area, score, source)

    def mask(self, height: int, width: int) -> Mask:
        """The mask as it was."""
        return np.unpackbits(self.bits, count=height * width).reshape(height, width).view(np.bool_)


def distinct(candidates: Sequence[Candidate], same_iou: float = 0.8) -> list[int]:
    """Indices of the best mask of each thing, best first; masks at least this alike are one thing."""
    return _distinct(_Overlaps(candidates), candidates, same_iou) if candidates else []


def dedupe(
    candidates: Sequence[Candidate], same_iou: float = 0.8, inside_share: float = 0.9
) -> tuple[list[int], list[int | None]]:
    """Keep the best of each thing, and find the whole of each part.

    Args:
        candidates: masks of one frame.
        same_iou: masks at least this alike are one thing.
        inside_share: a mask of which at least this share lies in a larger one is a part of it.

    Returns:
        Indices of the kept ones, best first; and for each the position in that list of its smallest whole.
    """
    if not candidates:
        return [], []
    overlaps = _Overlaps(candidates)
    area = [c.area for c in candidates]
    kept = _distinct(overlaps, candidates, same_iou)
    parents: list[int | None] = []
    for i in kept:
        wholes = [
            place
            for place, k in enumerate(kept)
            if area[k] > area[i] and overlaps.inside_at_least(i, k, inside_share)
        ]
        parents.append(min(wholes, key=lambda place: area[kept[place]], default=None))
    return kept, parents


def _distinct(overlaps: _Overlaps, candidates: Sequence[Candidate], same_iou: float) -> list[int]:
    kept: list[int] = []
    for i in sorted(range(len(candidates)), key=lambda k: (-candidates[k].score, k)):
        if candidates[i].area > 0 and not any(overlaps.iou_at_least(i, k, same_iou) for k in kept):
            kept.append(i)
    return kept


class _Overlaps:
    """Answers "at least this much?" for pairs of masks."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = candidates
        flat = np.stack([c.small for c in candidates]).reshape(len(candidates), -1).astype(np.float32)
        self._small = flat @ flat.T
        self._pixels = np.diagonal(self._small)
        self._exact: dict[tuple[int, int], int] = {}

    def iou_at_least(self, i: int, k: int, bound: float) -> bool:
        a, b = self._candidates[i].area, self._candidates[k].area
        if min(a, b) < bound * max(a, b):
            return False
        union = self._pixels[i] + self._pixels[k] - self._small[i, k]
        verdict = self._coarse(i, k, float(self._small[i, k] / max(union, 1)), bound)
        if verdict is None:
            shared = self._shared(i, k)
            verdict = shared >= bound * (a + b - shared)
        return verdict

    def inside_at_least(self, i: int, k: int, bound: float) -> bool:
        share = float(self._small[i, k] / max(self._pixels[i], 1))
        verdict = self._coarse(i, k, share, bound)
        return self._shared(i, k) >= bound * self._candidates[i].area if verdict is None else verdict

    def _coarse(self, i: int, k: int, ratio: float, bound: float) -> bool | None:
        if min(self._pixels[i], self._pixels[k]) < _TRUSTED_PIXELS or abs(ratio - bound) <= _CLOSE:
            return None
        return ratio > bound

    def _shared(self, i: int, k: int) -> int:
        pair = (min(i, k), max(i, k))
        if pair not in self._exact:
            both = self._candidates[i].bits & self._candidates[k].bits
            self._exact[pair] = int(_ONES[both].sum(dtype=np.int64))
        return self._exact[pair]
