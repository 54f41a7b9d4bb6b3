"""The passes over a shot: forward from where things stand out, backward from their first sight, and the
joining of pieces that never part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.perception.segment.motion.assign import Expected, assign, fill_holes, histogram, overlap
from rvt_ray.perception.segment.motion.shot import Shot
from rvt_ray.perception.segment.motion.tracker import FrameView, Thing, Tracker

Mask = npt.NDArray[np.bool_]

_FLOODED = 0.6  # of the frame is foreground: the plate or the camera model does not hold on this frame
_TOGETHER_SHARE = 0.7  # of common frames; a piece that touches what it came out of this often is a part of it
_BLIND_SCORE = 0.2  # of a mask that only the flow carried on


@dataclass
class StoredSight:
    """A thing on one frame; the mask at working size as RLE: frames and masks are never kept."""

    rle: str
    score: float
    found_alone: bool


Tracks = dict[int, dict[int, StoredSight]]  # id -> frame -> sight


def forward(shot: Shot, tracker: Tracker, first: int, last: int, least: int, tracks: Tracks) -> list[float]:
    """Follow things from frame `first` to `last`; sights are added to `tracks`.

    Returns:
        Per frame the share of the picture that the plate does not explain; 1 where there is no plate.
    """
    shares = []
    for index in range(first, last + 1):
        view = shot.view(index, least)
        shares.append(1.0 if view is None else float(view.foreground.mean()))
        if view is None:
            continue
        expected = shot.carry({i: t.mask for i, t in tracker.seen.items()}, max(index - 1, first), index)
        if view.foreground.mean() > _FLOODED:
            for i, mask in expected.items():
                if mask.any():
                    tracker.seen[i].mask = mask
                    tracks[i][index] = StoredSight(rle.encode(mask), _BLIND_SCORE, False)
            continue
        for i, sight in tracker.step(view, expected).items():
            stored = StoredSight(rle.encode(sight.mask), sight.score, sight.found_alone)
            tracks.setdefault(i, {})[index] = stored
    return shares


def backward(
    shot: Shot,
    tracks: Tracks,
    things: dict[int, Thing],
    first: int,
    last: int,
    least: int,
    ids: Sequence[int],
) -> None:
    """Follow each thing that came up after `first` back in time from its first sight."""
    born = {i: min(tracks[i]) for i in ids if i in tracks and min(tracks[i]) > first}
    active: dict[int, Mask] = {}
    size = (shot.height, shot.width)
    for index in range(max(born.values(), default=first) - 1, first - 1, -1):
        for i in sorted(born):
            if born[i] == index + 1:
                active[i] = rle.decode(tracks[i][index + 1].rle, *size)
        if not active:
            continue
        view = shot.view(index, least)
        if view is None or view.foreground.mean() > _FLOODED:
            active.clear()
            continue
        carried = shot.carry(active, index + 1, index)
        present = {i: rle.decode(s[index].rle, *size) for i, s in tracks.items() if index in s}
        # Before they parted, one thing's mask covers both: what counts is where each leads back to.
        later = {
            k: rle.decode(tracks[k][index + 1].rle, *size)
            for k in present
            if index + 1 in tracks[k] and k not in active
        }
        places = {**present, **shot.carry(later, index + 1, index), **carried}
        expected = {i: Expected(m, things[i].colours, things[i].speed) for i, m in places.items()}
        labels = assign(view.foreground, view.bins, expected)
        for i in sorted(active):
            same = _same_thing(i, carried[i], present, tracks, born[i])
            if same is not None:
                _merge(tracks, things, same, i)
                del active[i], born[i]
                continue
            sight = _look_back(labels == i, carried[i], things[i], view, least)
            if sight is None:
                del active[i]
                continue
            active[i], tracks[i][index] = sight[0], sight[1]
            for k, mask in present.items():
                left = mask & ~sight[0]
                if left.sum() < mask.sum() and left.any():
                    tracks[k][index].rle = rle.encode(left)


def join_inseparable(shot: Shot, tracks: Tracks, things: dict[int, Thing]) -> None:
    """Make one of a thing and the neighbour that it came out of and hardly ever stands apart from.

    Halves of one object (a shirt that looks like the wall cuts it in two) stay together; two objects that
    meet, or part for good, do not.
    """
    size = (shot.height, shot.width)
    kernel = np.ones((13, 13), np.uint8)
    both: dict[tuple[int, int], int] = {}  # frames on which both are seen
    touching: dict[tuple[int, int], set[int]] = {}
    for index in sorted({f for sights in tracks.values() for f in sights}):
        masks = {i: rle.decode(s[index].rle, *size) for i, s in sorted(tracks.items()) if index in s}
        grown = {i: cv2.dilate(m.astype(np.uint8), kernel) > 0 for i, m in masks.items()}
        for i in masks:
            for k in masks:
                if i < k:
                    both[i, k] = both.get((i, k), 0) + 1
                    if bool((grown[i] & masks[k]).any()):
                        touching.setdefault((i, k), set()).add(index)
    # Ids ascend with birth: k came up later. Latest first, so that pieces of pieces end up together.
    for k in sorted(tracks, reverse=True):
        candidates = [
            (len(frames) / both[i, k], i)
            for (i, later), frames in touching.items()
            if later == k and things[k].born in frames and len(frames) >= _TOGETHER_SHARE * both[i, k]
        ]
        if not candidates:
            continue
        into = max(candidates)[1]
        for frame, sight in tracks.pop(k).items():
            known = tracks[into].setdefault(frame, sight)
            if known is not sight:
                known.rle = rle.union([known.rle, sight.rle], *size)
                known.score = min(known.score, sight.score)
                known.found_alone = known.found_alone or sight.found_alone
        gone = things.pop(k)
        if gone.last_seen > things[into].last_seen:
            things[into].path += gone.path


def _look_back(
    labelled: Mask, expected: Mask, thing: Thing, view: FrameView, least: int
) -> tuple[Mask, StoredSight] | None:
    near = cv2.dilate(expected.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    mask = fill_holes(labelled & near, 0.2)
    area = int(mask.sum())
    if area < max(least, 0.3 * int(expected.sum())):
        return None
    steady = float((mask & expected).sum()) / max(int((mask | expected).sum()), 1)
    alike = overlap(thing.colours, histogram(view.bins[mask]))
    if steady < 0.4 or alike < 0.35:
        return None
    score = float(np.clip(0.5 * min(1.0, steady / 0.8) + 0.5 * min(1.0, alike / 0.7), 0, 1))
    thing.path.insert(0, thing.path[0])
    return mask, StoredSight(rle.encode(mask), score, False)


def _same_thing(i: int, carried: Mask, present: dict[int, Mask], tracks: Tracks, born: int) -> int | None:
    """A thing that was lost before `i` was born and lies where `i` leads back to."""
    for k in sorted(present):
        if k == i or max(tracks[k]) >= born:
            continue
        shared = float((present[k] & carried).sum())
        if shared > 0.5 * max(int((present[k] | carried).sum()), 1):
            return k
    return None


def _merge(tracks: Tracks, things: dict[int, Thing], into: int, gone: int) -> None:
    tracks[into].update(tracks.pop(gone))
    things[into].path += things.pop(gone).path
