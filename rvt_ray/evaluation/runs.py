"""Many run-length masks at once: parsed, checked and measured with a handful of numpy calls.

The masks of all frames of a sample are laid one after the other in one flat pixel space (frame, column, row),
in which a mask is a sorted list of runs. Areas, intersections and boxes of every frame then need no pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Runs:
    """The foreground of `num_frames` masks of one size.

    Attributes:
        start, stop: runs [start, stop) in the flat space, ascending, none empty, shape (runs,). A run never
            crosses a frame's end.
        first: index of the first run of each frame, and the number of runs last; shape (num_frames + 1,).
        area: pixels per frame, shape (num_frames,).
    """

    height: int
    width: int
    start: Ints
    stop: Ints
    first: Ints
    area: Ints

    @property
    def num_frames(self) -> int:
        return len(self.area)


def parse(rles: Sequence[str], height: int, width: int) -> Runs:
    """Parse COCO compressed RLE strings, one per frame.

    Raises:
        ValueError: a string is not an RLE of this size; names the frame.
    """
    n, size = len(rles), height * width
    text = "".join(rles).encode("utf-8", "replace")
    lengths = np.array([len(r) for r in rles], np.int64)
    if n == 0:
        none = np.zeros(0, np.int64)
        return Runs(height, width, none, none, np.zeros(1, np.int64), none)
    code = np.frombuffer(text, np.uint8).astype(np.int64) - 48
    ends_text = np.cumsum(lengths)
    if len(code) != ends_text[-1] or lengths.min() == 0 or code.min() < 0 or code.max() > 63:
        raise ValueError(_first_bad(rles, height, width))
    is_last = (code & 32) == 0
    if not is_last[ends_text - 1].all():
        raise ValueError(_first_bad(rles, height, width))

    # Numbers: groups of 5 bits, lowest first; bit 5 says "more", bit 4 of the last group is the sign.
    number_end = np.flatnonzero(is_last)
    number_start = np.concatenate([[0], number_end[:-1] + 1])
    group = number_end - number_start
    if group.max() > 11:
        raise ValueError(_first_bad(rles, height, width))
    position = np.arange(len(code)) - np.repeat(number_start, group + 1)
    values = np.add.reduceat((code & 31) << (5 * position), number_start)
    values -= ((code[number_end] >> 4) & 1) << (5 * (group + 1))

    # Deltas: from the fourth number of a string on, each is relative to the one two before it.
    string_of = np.searchsorted(ends_text, number_end, side="right")
    first_number = np.searchsorted(string_of, np.arange(n))
    index = np.arange(len(values)) - first_number[string_of]
    counts = values.copy()
    for chain in (index % 2 == 1, (index % 2 == 0) & (index >= 2)):
        where = np.flatnonzero(chain)
        if len(where):
            total = np.cumsum(values[where])
            owner = string_of[where]
            head = np.concatenate([[True], owner[1:] != owner[:-1]])
            before = np.where(head, total - values[where], 0)
            counts[where] = total - before[np.maximum.accumulate(np.where(head, np.arange(len(where)), 0))]
    if counts.min() < 0 or (np.add.reduceat(counts, first_number) != size).any():
        raise ValueError(_first_bad(rles, height, width))

    stop = np.cumsum(counts)
    keep = (index % 2 == 1) & (counts > 0)
    stop, length, owner = stop[keep], counts[keep], string_of[keep]
    first = np.searchsorted(owner, np.arange(n + 1))
    area = np.bincount(owner, weights=length, minlength=n).astype(np.int64)
    return Runs(height, width, stop - length, stop, first, area)


def intersections(a: Runs, b: Runs) -> Ints:
    """Common pixels per frame, shape (num_frames,)."""
    if len(a.start) == 0 or len(b.start) == 0:
        return np.zeros(a.num_frames, np.int64)
    covered = _covered(b, a.stop) - _covered(b, a.start)
    frame = a.start // (a.height * a.width)
    return np.bincount(frame, weights=covered, minlength=a.num_frames).astype(np.int64)


def _covered(runs: Runs, points: Ints) -> Ints:
    """How many foreground pixels lie before each point of the flat space."""
    before = np.concatenate([[0], np.cumsum(runs.stop - runs.start)])
    index = np.searchsorted(runs.start, points, side="right")
    inside = np.where(index > 0, np.maximum(runs.stop[index - 1] - points, 0), 0)
    return np.asarray(before[index] - inside, np.int64)


def boxes(runs: Runs) -> Ints:
    """Per frame xmin, ymin, xmax, ymax (inclusive), shape (num_frames, 4); of an empty mask the inverted box
    (width, height, -1, -1), neutral under union."""
    h, w = runs.height, runs.width
    result = np.tile(np.array([w, h, -1, -1], np.int64), (runs.num_frames, 1))
    full = np.flatnonzero(runs.first[1:] > runs.first[:-1])
    if len(full) == 0:
        return result
    last = runs.stop - 1
    left, right = runs.start // h, last // h
    wraps = left != right  # a run over a column's end touches the top and the bottom row
    top = np.where(wraps, 0, runs.start % h)
    bottom = np.where(wraps, h - 1, last % h)
    heads = runs.first[:-1][full]
    result[full, 0] = np.minimum.reduceat(left, heads) - full * w
    result[full, 1] = np.minimum.reduceat(top, heads)
    result[full, 2] = np.maximum.reduceat(right, heads) - full * w
    result[full, 3] = np.maximum.reduceat(bottom, heads)
    return result


def columns(runs: Runs, frames: slice) -> tuple[Ints, Ints, Ints, Ints]:
    """The runs of some frames cut at column ends: frame, x, ymin, ymax (exclusive) of each piece."""
    h, w = runs.height, runs.width
    a, b = int(runs.first[frames.start]), int(runs.first[frames.stop])
    start, stop = runs.start[a:b], runs.stop[a:b]
    first, last = start // h, (stop - 1) // h
    pieces = last - first + 1
    if len(pieces) and pieces.max() > 1:
        head = np.repeat(np.cumsum(pieces) - pieces, pieces)
        column = np.repeat(first, pieces) + np.arange(int(pieces.sum())) - head
        start = np.maximum(np.repeat(start, pieces), column * h)
        stop = np.minimum(np.repeat(stop, pieces), (column + 1) * h)
    else:
        column = first
    frame = column // w
    return frame, column - frame * w, start - column * h, stop - column * h


def _first_bad(rles: Sequence[str], height: int, width: int) -> str:
    from rvt_ray.masks import rle

    for frame, text in enumerate(rles):
        try:
            rle.check(text, height, width)
        except ValueError as error:
            return f"mask of frame {frame}: {error}"
    return f"a mask is not a COCO compressed RLE of height {height} x width {width}"
