"""Mask metrics: region J, boundary F, robustness R, and what depends on the target being absent.

Definitions (docs/evaluation.md has them with sources):

* J of a frame: IoU; 1 where truth and prediction are both empty.
* F of a frame: DAVIS 2017. A contour pixel counts as found when the other contour has a pixel within
  ceil(0.008 * diagonal) pixels of it; F is the harmonic mean of the two shares. Both contours empty: 1;
  exactly one empty: 0. A mask that fills the frame has no contour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rvt_ray.evaluation import runs as run_masks
from rvt_ray.evaluation.boundary import boundary_f
from rvt_ray.evaluation.runs import Ints

Floats = npt.NDArray[np.float64]

BOUNDARY_SHARE = 0.008


@dataclass(frozen=True)
class FrameScores:
    """One sample, frame by frame; all of shape (num_frames,).

    Attributes:
        j, f: region and boundary measure, 0..1.
        intersection, union: pixels.
        truth_area, prediction_area: pixels.
    """

    j: Floats
    f: Floats
    intersection: Ints
    union: Ints
    truth_area: Ints
    prediction_area: Ints


def boundary_tolerance(height: int, width: int) -> int:
    """DAVIS' tolerance in pixels for a frame of this size."""
    return math.ceil(BOUNDARY_SHARE * math.hypot(height, width))


def score_frames(
    truth: Sequence[str], prediction: Sequence[str], height: int, width: int, tolerance: int | None = None
) -> FrameScores:
    """J and F of every frame.

    Args:
        truth, prediction: COCO compressed RLE per frame, equally many.
        tolerance: boundary tolerance in pixels; default: `boundary_tolerance`.

    Raises:
        ValueError: different numbers of frames, or a string that is no RLE of this size.
    """
    if len(truth) != len(prediction):
        raise ValueError(f"{len(truth)} frames of truth but {len(prediction)} of prediction")
    radius = boundary_tolerance(height, width) if tolerance is None else tolerance
    a = run_masks.parse(truth, height, width)
    b = run_masks.parse(prediction, height, width)
    intersection = run_masks.intersections(a, b)
    union = a.area + b.area - intersection
    j = np.where(union == 0, 1.0, intersection / np.maximum(union, 1))
    return FrameScores(j, boundary_f(a, b, radius), intersection, union, a.area, b.area)


def robustness(
    truth: Sequence[str], prediction: Sequence[str], foreground: Sequence[str], height: int, width: int
) -> Floats:
    """R of every frame (ReVOS): max(1 - |prediction and not truth| / |foreground|, 0), shape (num_frames,).

    Where nothing is annotated on a frame: 1 without a false pixel, else 0.

    Args:
        foreground: per frame the RLE of the union of everything annotated.
    """
    a = run_masks.parse(truth, height, width)
    b = run_masks.parse(prediction, height, width)
    wrong = b.area - run_masks.intersections(a, b)
    total = run_masks.parse(foreground, height, width).area
    share = np.where(total > 0, wrong / np.maximum(total, 1), (wrong > 0).astype(float))
    return np.asarray(np.maximum(1.0 - share, 0.0), np.float64)


def summarise(scores: FrameScores, skip_ends: bool = False) -> dict[str, float | None]:
    """The numbers of one sample; null where the sample has no such frame.

    Args:
        skip_ends: DAVIS' protocol leaves the first and the last frame out (a first frame is given there).

    Returns:
        `j`, `f`, `jf`: means over all frames; `j_visible`, `f_visible`, `jf_visible`: over frames where the
        truth is not empty; `false_alarm`: share of frames with an empty truth where something is predicted;
        `giou`: IoU of the whole volume; `intersection`, `union`: its pixels, from which cIoU is made.
    """
    keep = np.ones(len(scores.j), np.bool_)
    if skip_ends and len(keep) > 2:
        keep[[0, -1]] = False
    visible = keep & (scores.truth_area > 0)
    absent = keep & (scores.truth_area == 0)
    intersection, union = int(scores.intersection[keep].sum()), int(scores.union[keep].sum())
    result: dict[str, float | None] = {}
    for suffix, where in (("", keep), ("_visible", visible)):
        j, f = _mean(scores.j, where), _mean(scores.f, where)
        result |= {f"j{suffix}": j, f"f{suffix}": f}
        result[f"jf{suffix}"] = None if j is None or f is None else (j + f) / 2
    result["false_alarm"] = _mean((scores.prediction_area > 0).astype(float), absent)
    result["giou"] = intersection / union if union else 1.0
    result |= {"intersection": float(intersection), "union": float(union)}
    return result


def _mean(values: npt.NDArray[np.float64], where: npt.NDArray[np.bool_]) -> float | None:
    return float(values[where].mean()) if where.any() else None
