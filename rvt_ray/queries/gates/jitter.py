"""Twins as they might also have been measured: masks off by up to 3 px, noisy depth, one key frame less."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle as rle_codec
from rvt_ray.records import DepthKind, DigitalTwin, Instance, Track

MASK_PX = 3.0
"""No mask border moves by more than this."""
DEPTH_NOISE = 0.02
"""Standard deviation of an object's depth error, of the spread of depth over the clip's objects."""

Floats = npt.NDArray[np.float64]


def jittered(
    twin: DigitalTwin, rng: np.random.Generator, mask_frames: npt.NDArray[np.bool_] | None = None
) -> DigitalTwin:
    """A copy of the twin with measurement errors.

    Each object gets a constant offset and growth (a segmenter errs the same way on neighbouring frames) and
    a smaller independent one per frame; together at most `MASK_PX`. One inner key frame was never looked at:
    there the tracks repeat the frame before, and have no depth.

    A border that the frame's edge cuts stays cut: what leaves the picture still leaves it.

    Args:
        mask_frames: (frames,) on which the masks themselves are moved too, not only the numbers read off
            them. That costs more, and matters only to predicates that read masks (near, touching).
    """
    inner = [k for k in twin.key_frames if 0 < k < twin.num_frames - 1]
    dropped = int(rng.choice(inner)) if inner else None
    spread = _depth_spread(twin)
    instances = [_instance(i, twin, rng, dropped, spread, mask_frames) for i in twin.instances]
    return twin.model_copy(update={"instances": instances})


def _instance(
    instance: Instance,
    twin: DigitalTwin,
    rng: np.random.Generator,
    dropped: int | None,
    spread: float,
    mask_frames: npt.NDArray[np.bool_] | None,
) -> Instance:
    track = instance.track
    n = len(track.frame_idx)
    if n == 0:
        return instance
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
        for name in ("depth_median", "depth_mean", "depth_p10", "depth_p90", "depth_min", "depth_max"):
            update[name] = _optional(_floats(getattr(track, name)) + error)
    rles = list(track.rle)
    if mask_frames is not None:
        moves = np.rint(np.stack([dx, dy, grow], axis=1)).astype(int).tolist()
        for k, (frame, text) in enumerate(zip(track.frame_idx, rles, strict=True)):
            if text is not None and mask_frames[frame]:
                rles[k] = moved_rle(text, twin.height, twin.width, *moves[k])
    update["rle"] = rles
    moved = track.model_copy(update=update)
    if dropped in track.frame_idx and dropped - 1 in track.frame_idx:
        moved = _without(moved, track.frame_idx.index(dropped))
    return instance.model_copy(update={"track": moved})


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


def moved_rle(rle: str, height: int, width: int, dx: int, dy: int, grow: int) -> str:
    """A mask shifted by (dx, dy) and grown (or, if negative, shrunk) by `grow` pixels.

    Growth is exact along columns and reaches one run further along rows; a mask that would vanish keeps its
    shape.
    """
    x, top, bottom = _segments(rle, height)
    if not len(x):
        return rle
    if grow > 0:
        left, right = x == x.min(), x == x.max()
        sides = [(x[left] - g, top[left], bottom[left]) for g in range(1, grow + 1)]
        sides += [(x[right] + g, top[right], bottom[right]) for g in range(1, grow + 1)]
        x = np.concatenate([x, *(s[0] for s in sides)])
        top = np.concatenate([top, *(s[1] for s in sides)])
        bottom = np.concatenate([bottom, *(s[2] for s in sides)])
    x, top, bottom = x + dx, top + dy - grow, bottom + dy + grow
    top, bottom = np.maximum(top, 0), np.minimum(bottom, height - 1)
    good = (x >= 0) & (x < width) & (top <= bottom)
    if not good.any():
        return rle
    start, end = x[good] * height + top[good], x[good] * height + bottom[good] + 1
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    fresh = np.concatenate([[True], start[1:] > end[:-1]])
    start, end = start[fresh], end[np.concatenate([fresh[1:], [True]])]
    bounds = np.stack([start, end], axis=1).ravel()
    lengths = np.diff(np.concatenate([[0], bounds, [height * width]]))
    return rle_codec.from_counts([int(v) for v in lengths], height, width)


@lru_cache(maxsize=2048)
def _segments(rle: str, height: int) -> tuple[Any, Any, Any]:
    """A mask as vertical segments: column, first and last row. Every draw moves the same masks: cached."""
    edges = np.cumsum(rle_codec.counts(rle))
    first, stop = edges[0 : len(edges) - 1 : 2], edges[1::2]
    keep = stop > first
    first, stop = _by_column(first[keep], stop[keep], height)
    return first // height, first % height, (stop - 1) % height


def _by_column(first: Any, stop: Any, height: int) -> tuple[Any, Any]:
    """Runs cut at the column ends."""
    x0, x1 = first // height, (stop - 1) // height
    if (x0 == x1).all():
        return first, stop
    repeat = x1 - x0 + 1
    index = np.repeat(np.arange(len(first)), repeat)
    column = x0[index] + np.arange(len(index)) - np.repeat(np.cumsum(repeat) - repeat, repeat)
    return np.maximum(first[index], column * height), np.minimum(stop[index], (column + 1) * height)


def _depth_spread(twin: DigitalTwin) -> float:
    values = [v for i in twin.instances for v in i.track.depth_median if v is not None]
    return float(np.ptp(values)) if values else 0.0


def _floats(values: list[float | None]) -> Floats:
    return np.array(values, np.float64)


def _optional(values: Floats) -> list[float | None]:
    return [None if v != v else v for v in values.tolist()]
