"""Box metrics of spatio-temporal grounding, for one sample.

Boxes are (x, y, w, h) in pixels with w = xmax - xmin + 1, so a box covers [x, x + w) x [y, y + h).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

Floats = npt.NDArray[np.float64]
Boxes = Sequence[Sequence[float]]


def iou_matrix(a: Boxes, b: Boxes) -> Floats:
    """IoU of each box of `a` with each of `b`, shape (len(a), len(b)); boxes without area overlap nothing."""
    first = np.asarray(a, np.float64).reshape(-1, 1, 4)
    second = np.asarray(b, np.float64).reshape(1, -1, 4)
    low = np.maximum(first[..., :2], second[..., :2])
    high = np.minimum(first[..., :2] + first[..., 2:], second[..., :2] + second[..., 2:])
    intersection = np.prod(np.maximum(high - low, 0), axis=-1)
    union = np.prod(first[..., 2:], axis=-1) + np.prod(second[..., 2:], axis=-1) - intersection
    return np.asarray(np.where(union > 0, intersection / np.where(union > 0, union, 1), 0.0), np.float64)


def matched_ious(truth: Boxes, prediction: Boxes) -> Floats:
    """IoUs of the best one-to-one matching (largest sum), shape (min(len(truth), len(prediction)),)."""
    if len(truth) == 0 or len(prediction) == 0:
        return np.zeros(0)
    matrix = iou_matrix(truth, prediction)
    if 1 in matrix.shape:
        return np.array([matrix.max()])
    rows, columns = linear_sum_assignment(matrix, maximize=True)
    return np.asarray(matrix[rows, columns], np.float64)


def score_boxes(truth: Sequence[Boxes], prediction: Sequence[Boxes]) -> dict[str, float | None]:
    """The numbers of one sample.

    Args:
        truth, prediction: per frame the boxes, equally many frames.

    Returns:
        `box_f1`: F1 over all frames, a matched pair with IoU >= 0.5 is a hit; `box_iou`: mean IoU
        over the true boxes, a missed one being 0, null without a true box; `viou`: the IoUs of the frames
        where both have boxes, summed, over the number of frames where either has (a frame's IoU is the
        matched sum over the larger number of boxes, so that false boxes cost); `viou_30`, `viou_50`: 1 where
        viou is above 0.3, 0.5 (strictly); `tiou`: frames where both have boxes over frames where either has;
        `box_false_alarm`: share of frames without a true box on which something is predicted, null where
        there is no such frame. Without any box on either side all are 1 (and the
        false alarm 0): nothing was asked for and nothing was found.

    Raises:
        ValueError: different numbers of frames.
    """
    if len(truth) != len(prediction):
        raise ValueError(f"{len(truth)} frames of truth but {len(prediction)} of prediction")
    hits = 0
    matched = 0.0
    frame_ious: list[float] = []
    both = 0
    for a, b in zip(truth, prediction, strict=True):
        if len(a) == 0 and len(b) == 0:
            continue
        ious = matched_ious(a, b)
        hits += int((ious >= 0.5).sum())
        matched += float(ious.sum())
        frame_ious.append(float(ious.sum()) / max(len(a), len(b)))
        both += len(a) > 0 and len(b) > 0
    wanted = sum(len(a) for a in truth)
    total = wanted + sum(len(b) for b in prediction)
    either = len(frame_ious)
    viou = sum(frame_ious) / either if either else 1.0
    absent = [len(b) > 0 for a, b in zip(truth, prediction, strict=True) if len(a) == 0]
    return {
        "box_f1": 2 * hits / total if total else 1.0,
        "box_iou": matched / wanted if wanted else None,
        "viou": viou,
        "viou_30": float(viou > 0.3),
        "viou_50": float(viou > 0.5),
        "tiou": both / either if either else 1.0,
        "box_false_alarm": sum(absent) / len(absent) if absent else None,
    }
