"""One-to-one matching of masks (Hungarian), for linking tracks and for evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from rvt_ray.masks.rle import iou_matrix


def match(similarity: npt.NDArray[np.float64], threshold: float) -> list[tuple[int, int]]:
    """The one-to-one pairing with the greatest total similarity among pairs of at least `threshold`.

    Pairs below the threshold are removed before the assignment, so that they cannot take a partner away
    from a valid pair.

    Args:
        similarity: shape (n, m), bigger is more alike (IoU).
        threshold: least similarity of a pair; must be > 0.

    Returns:
        (row, column) pairs, ascending by row.
    """
    if threshold <= 0:
        raise ValueError(f"a match needs a threshold above 0, not {threshold}: nothing pairs with nothing")
    if similarity.size == 0:
        return []
    valid = np.where(similarity >= threshold, similarity, 0.0)
    rows, columns = linear_sum_assignment(valid, maximize=True)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if valid[i, j] > 0]


def match_rles(
    a: Sequence[str], b: Sequence[str], height: int, width: int, threshold: float = 0.5
) -> list[tuple[int, int, float]]:
    """(index in `a`, index in `b`, IoU) of the best one-to-one pairing of two lists of masks."""
    matrix = iou_matrix(a, b, height, width)
    return [(i, j, float(matrix[i, j])) for i, j in match(matrix, threshold)]
