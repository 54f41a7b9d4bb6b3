"""Three-valued (Kleene) logic on single values and on int8 arrays.

FALSE < UNKNOWN < TRUE, so that `and` is the minimum, `or` the maximum and `not` the negation.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

Truths = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Truth(IntEnum):
    """A truth value. Compare with `is`, never by truthiness: `bool(Truth.FALSE)` is true."""

    FALSE = -1
    UNKNOWN = 0
    TRUE = 1


def all_of(*terms: Truths) -> Truths:
    """Kleene `and`, elementwise."""
    result = terms[0]
    for term in terms[1:]:
        result = np.minimum(result, term)
    return result


def any_of(*terms: Truths) -> Truths:
    """Kleene `or`, elementwise."""
    result = terms[0]
    for term in terms[1:]:
        result = np.maximum(result, term)
    return result


def negate(term: Truths) -> Truths:
    """Kleene `not`."""
    return np.negative(term)


def from_bounds(true: Bools, false: Bools) -> Truths:
    """TRUE where `true`, FALSE where `false` (and not `true`), else UNKNOWN."""
    return np.where(true, 1, np.where(false, -1, 0)).astype(np.int8)


def graded(measure: Floats, low: float | Floats, high: float | Floats) -> tuple[Truths, Floats]:
    """TRUE from `high` up, FALSE from `low` down, UNKNOWN between and for NaN.

    Returns:
        truth: int8, the shape of `measure`.
        margin: how far beyond its own threshold a decided value lies, >= 0; 0 where unknown.
    """
    above, below = measure - high, low - measure
    truth = from_bounds(above >= 0, below >= 0)
    margin = np.where(truth > 0, above, np.where(truth < 0, below, 0.0))
    return truth, margin


def bits(mask: Bools) -> int:
    """A bool vector as an integer whose bit i is element i."""
    packed = np.packbits(mask, bitorder="little").tobytes()
    return int.from_bytes(packed, "little")


def members(mask: int) -> list[int]:
    """The set bits of a mask, ascending."""
    out = []
    while mask:
        low = mask & -mask
        out.append(low.bit_length() - 1)
        mask ^= low
    return out
