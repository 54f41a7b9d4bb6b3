"""The answer of one predicate for all of its arguments at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rvt_ray.twin.facts.logic import Floats, Truths

Moments = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """Truth of a predicate (with its value and scope) for every instance or ordered pair.

    Attributes:
        truth: int8, (instances,) or (instances, instances) as [subject, object]; -1, 0, 1.
        margin: same shape, >= 0, how far beyond its threshold; 0 where unknown.
        moments: (..., k) frames that show it, -1 where there are fewer; null: frames are looked up on
            demand (frame predicates) or there are none (semantic ones).
    """

    truth: Truths
    margin: Floats
    moments: Moments | None = None

    def swapped(self) -> Table:
        """The table of the inverse relation."""
        moments = None if self.moments is None else np.swapaxes(self.moments, 0, 1)
        return Table(self.truth.T, self.margin.T, moments)


def decided(true: npt.ArrayLike, false: npt.ArrayLike, margin_true: Floats, margin_false: Floats) -> Table:
    """A table from what is surely so, what is surely not, and the margins of both."""
    yes = np.asarray(true, bool)
    no = np.asarray(false, bool) & ~yes
    truth = np.where(yes, 1, np.where(no, -1, 0)).astype(np.int8)
    margin = np.where(yes, margin_true, np.where(no, margin_false, 0.0))
    return Table(truth, np.maximum(np.nan_to_num(margin), 0.0))
