"""Twins as they might also have been measured: masks off by up to 3 px, noisy depth, one key frame less."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rvt_ray.records import DepthKind, DigitalTwin, Instance, Track
from rvt_ray.twin.facts.contact import segments_of

MASK_PX = 3.0
"""No mask border moves by more than this."""
DEPTH_NOISE = 0.02
"""Standard deviation of an object's depth error, of the spread of depth over the clip's objects."""

_DEPTHS = ("depth_median", "depth_mean", "depth_p10", "depth_p90", "depth_min", "depth_max")
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Jittered:
    """A twin as it might also have been measured.

    Attributes:
        twin: its numbers moved; the masks in it are those of the twin that it was made from.
        moves: per instance and track entry by how much its mask is moved: dx, dy, growth, whole pixels.
        source: per instance and track entry, the entry whose mask is shown there.
    """

    twin: DigitalTwin
    moves: list[list[list[int]]]
    source: list[list[int]]

    def segments(self, row: int, entry: int) -> Floats:
        """The moved mask of an entry as vertical segments, made when asked for: few programs read masks."""
        entry = self.source[row][entry]
        text = self.twin.instances[row].track.rle[entry]
        if not text:
            return np.empty((0, 3))
        return moved_segments(text, self.twin.height, self.twin.width, *self.moves[row][entry])


def jittered(twin: DigitalTwin, rng: np.random.Generator) -> Jittered:
    """The twin with measurement errors.

    Each object gets a constant offset and growth (a segmenter errs the same way on neighbouring frames) and
    a smaller independent one per frame; together at most `MASK_PX`. One inner key frame was never looked at:
    there the tracks repeat the frame before, and have no depth.

    A border that the frame's edge cuts stays cut: what leaves the picture still leaves it.
    """
    inner = [k for k in twin.key_frames if 0 < k < twin.num_frames - 1]
    dropped = int(rng.choice(inner)) if inner else None
    spread = _depth_spread(twin)
    moved = [_instance(i, twin, rng, dropped, spread) for i in twin.instances]
    instances = [instance for instance, _, _ in moved]
    return Jittered(
        twin.model_copy(update={"instances": instances}), [m for _, m, _ in moved], [s for _, _, s in moved]
    )


def _instance(
    instance: Instance, twin: DigitalTwin, rng: np.random.Generator, dropped: int | None, spread: float
) -> tuple[Instance, list[list[int]], list[int]]:
    track = instance.track
    n = len(track.frame_idx)
    source = list(range(n))
    if n == 0:
        return instance, [], source
    fixed, loose = MASK_PX / 3, MASK_PX / 6
    # Shift and growth add up at a border, so each has half of the allowance.
    dx = rng.uniform(-fixed, fixed) + rng.uniform(-loose, loose, n)
    dy = rng.uniform(-fixed, fixed) + rng.uniform(-loose, loose, n)
    grow = rng.uniform(-fixed, fixed) + rng.uniform(-loose, loose, n)
    w, h, area = _floats(track.box_w), _floats(track.box_h), _floats(track.area)
    grow = np.maximum(grow, -np.nan_to_num(np.minimum(w, h), nan=4.0) / 4)
    x0, x1 = _borders(_floats(track.box_x), w, dx, grow, twin.width)
    y0, y1 = _borders(_floats(track.box_y), h, dy, grow, twin.height)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.where(w * h > 0, (w + 2 * grow) * (h + 2 * grow) / (w * h), 1.0)
    update: dict[str, Any] = {
        "box_x": _optional(x0),
        "box_y": _optional(y0),
        "box_w": _optional(np.maximum(x1 - x0, 1.0)),
        "box_h": _optional(np.maximum(y1 - y0, 1.0)),
        "area": _optional(area * scale),
        "centroid_x": _optional(np.clip(_floats(track.centroid_x) + dx, 0, twin.width - 1)),
        "centroid_y": _optional(np.clip(_floats(track.centroid_y) + dy, 0, twin.height - 1)),
    }
    if twin.depth_kind is not DepthKind.NONE and spread > 0:
        error = DEPTH_NOISE * spread * (rng.normal() + 0.5 * rng.normal(size=n))
        for name in _DEPTHS:
            update[name] = _optional(_floats(getattr(track, name)) + error)
    moved = track.model_copy(update=update)
    if dropped in track.frame_idx and dropped - 1 in track.frame_idx:
        k = track.frame_idx.index(dropped)
        source[k] = k - 1
        moved = _without(moved, k)
    moves = np.rint(np.stack([dx, dy, grow], axis=1)).astype(int).tolist()
    return instance.model_copy(update={"track": moved}), moves, source


def _without(track: Track, k: int) -> Track:
    """The track with entry `k` not measured: entry `k - 1` again, without depth."""
    update: dict[str, Any] = {}
    for name in Track.model_fields:
        if name != "frame_idx":
            values = list(getattr(track, name))
            values[k] = None if name.startswith("depth") else values[k - 1]
            update[name] = values
    return track.model_copy(update=update)


def _borders(low: Floats, size: Floats, shift: Floats, grow: Floats, limit: int) -> tuple[Floats, Floats]:
    """Both borders along one axis, moved."""
    first = np.where(low <= 1, low, np.clip(low + shift - grow, 0, limit - 1))
    high = low + size
    last = np.where(high >= limit - 1, high, np.clip(high + shift + grow, 1, limit))
    return first, last


def moved_segments(rle: str, height: int, width: int, dx: int, dy: int, grow: int) -> Floats:
    """A mask shifted by (dx, dy) and grown (or, if negative, shrunk) by `grow` pixels, as vertical segments
    (x, first y, last y), ascending in x; they may overlap.

    Growth is exact along columns and reaches one run further along rows; a mask that would vanish keeps its
    shape.
    """
    base = _segments(rle, height)
    if not len(base):
        return base
    parts = [base]
    if grow > 0:
        column = np.array([1.0, 0.0, 0.0])
        left, right = base[base[:, 0] == base[0, 0]], base[base[:, 0] == base[-1, 0]]
        parts = [left - g * column for g in range(grow, 0, -1)] + parts
        parts += [right + g * column for g in range(1, grow + 1)]
    moved = np.concatenate(parts) + np.array([dx, dy - grow, dy + grow])
    moved[:, 1:] = np.clip(moved[:, 1:], (0, -np.inf), (np.inf, height - 1))
    good = (moved[:, 0] >= 0) & (moved[:, 0] < width) & (moved[:, 1] <= moved[:, 2])
    return moved[good] if good.any() else base


@lru_cache(maxsize=4096)
def _segments(rle: str, height: int) -> Floats:
    """Every draw moves the same masks: cached."""
    return segments_of(rle, height)


def _depth_spread(twin: DigitalTwin) -> float:
    values = [v for i in twin.instances for v in i.track.depth_median if v is not None]
    return float(np.ptp(values)) if values else 0.0


def _floats(values: list[float | None]) -> Floats:
    return np.array(values, np.float64)


def _optional(values: Floats) -> list[float | None]:
    return [None if v != v else v for v in values.tolist()]
