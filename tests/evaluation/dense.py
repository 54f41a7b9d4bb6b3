"""An independent, dense, slow implementation of J and F, written from the definitions alone."""

from __future__ import annotations

import math

import numpy as np


def dense_j(truth, prediction):
    union = np.logical_or(truth, prediction).sum()
    return 1.0 if union == 0 else np.logical_and(truth, prediction).sum() / union


def dense_contour(mask):
    """A pixel is on the contour if its right, lower or lower right neighbour exists and differs."""
    height, width = mask.shape
    found = np.zeros((height, width), bool)
    for y in range(height):
        for x in range(width):
            for dy, dx in ((0, 1), (1, 0), (1, 1)):
                if y + dy < height and x + dx < width and mask[y, x] != mask[y + dy, x + dx]:
                    found[y, x] = True
    return found


def dense_f(truth, prediction, tolerance=None):
    if tolerance is None:
        tolerance = math.ceil(0.008 * math.sqrt(truth.shape[0] ** 2 + truth.shape[1] ** 2))
    a, b = (np.argwhere(dense_contour(m)).astype(np.int64) for m in (truth, prediction))
    if len(a) == 0 and len(b) == 0:
        return 1.0
    if len(a) == 0 or len(b) == 0:
        return 0.0
    squared = ((a[:, None] - b[None]) ** 2).sum(-1)
    recall = (squared.min(1) <= tolerance**2).mean()
    precision = (squared.min(0) <= tolerance**2).mean()
    return 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall)
