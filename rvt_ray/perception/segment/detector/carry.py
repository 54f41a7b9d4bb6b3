"""Masks between two looks: carried forwards from the one and backwards from the other by optical flow."""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks import clean as cleaning
from rvt_ray.masks.rle import Mask
from rvt_ray.perception.segment.motion.flow import DenseFlow, pull
from rvt_ray.perception.segment.motion.spool import Spool

Masks = dict[int, Mask]

_BLUR = 5  # px: softens outlines before two masks are blended
_FRAGMENT = 0.08  # of the largest piece: smaller ones are torn off by the flow


class Carrier:
    """Carries masks over the frames of a spool, by DIS optical flow from neighbour to neighbour.

    Args:
        frames: RGB frames of one size, by clip frame index.
    """

    def __init__(self, frames: Spool) -> None:
        self._frames = frames
        self._flow = DenseFlow()

    def carry(self, masks: Mapping[int, Mask], source: int, target: int) -> dict[int, Masks]:
        """The masks on every frame after `source` up to `target`, which may lie before it.

        What has moved out of the picture is an empty mask.
        """
        out: dict[int, Masks] = {}
        current = dict(masks)
        step = 1 if target >= source else -1
        before = self._frames[source] if current and source != target else None
        for t in range(source + step, target + step, step) if source != target else ():
            if before is None:
                out[t] = {}
                continue
            after = self._frames[t]
            flow = self._flow(after, before)
            current = {i: _pulled(mask, flow) for i, mask in current.items()}
            out[t], before = dict(current), after
        return out


def _pulled(mask: Mask, flow: npt.NDArray[np.float32]) -> Mask:
    if not mask.any():
        return mask
    moved: Mask = pull(mask.astype(np.float32), flow) > 0.5
    return cleaning.clean(moved, min_share=_FRAGMENT) if moved.any() else moved


def blend(first: Mask, second: Mask, share: float) -> Mask:
    """A mask between two of the same thing, `share` of the way (0..1) from the first to the second.

    Where one of them is empty it is the other: the thing came into view, or left it.
    """
    if not first.any() or not second.any():
        return first if first.any() else second
    a = cv2.GaussianBlur(first.astype(np.float32), (_BLUR, _BLUR), 0)
    b = cv2.GaussianBlur(second.astype(np.float32), (_BLUR, _BLUR), 0)
    return np.asarray((1 - share) * a + share * b > 0.5)


def agreement(first: Mask, second: Mask) -> float:
    """IoU; 0 where either is empty."""
    union = int((first | second).sum())
    return int((first & second).sum()) / union if union and first.any() and second.any() else 0.0
