"""What a mask looks like: a colour histogram, small enough to remember for every track."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.masks.rle import Mask
from rvt_ray.perception.segment.motion.assign import histogram
from rvt_ray.perception.segment.motion.plate import quantise
from rvt_ray.perception.segment.motion.spool import to_lab
from rvt_ray.video.frames import FrameArray

Colours = npt.NDArray[np.float32]
"""Shares of 512 CIELAB bins (8 of lightness, 8 x 8 of colour), shape (512,), sum 1."""

_LEARN = 0.2  # weight of the newest look


def colours(frame: FrameArray, masks: Sequence[Mask]) -> list[Colours]:
    """The histogram of each mask.

    Args:
        frame: uint8 RGB, shape (height, width, 3).
        masks: bool, shape (height, width), each with at least one pixel.
    """
    bins = quantise(to_lab(frame))
    return [_coarse(bins[mask]) for mask in masks]


def colours_of(frame: FrameArray, texts: Sequence[str]) -> list[Colours]:
    """As `colours`, of run-length masks; one is decoded at a time."""
    height, width = frame.shape[:2]
    bins = quantise(to_lab(frame))
    return [_coarse(bins[rle.decode(text, height, width)]) for text in texts]


def alike(whole: Colours | None, part: Colours | None, slack: float = 1.0) -> float | None:
    """Histogram intersection, 0..1; null where one was not measured.

    Args:
        slack: how many times the share of a colour may be larger in `part`: what is seen of a thing that is
            half hidden may be its one red corner.
    """
    if whole is None or part is None:
        return None
    return float(np.minimum(slack * whole, part).sum())


def learned(known: Colours | None, seen: Colours | None) -> Colours | None:
    """Colours that are slow to forget, after one more look."""
    if known is None or seen is None:
        return seen if known is None else known
    return np.asarray(known + _LEARN * (seen - known), np.float32)


def _coarse(bins: npt.NDArray[np.int32]) -> Colours:
    fine = histogram(bins).reshape(8, 8, 2, 8, 2)
    return np.asarray(fine.sum(axis=(2, 4)).ravel(), np.float32)
