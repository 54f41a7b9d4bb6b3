"""The `motion` segmenter: finds and follows what moves on its own. OpenCV only, no weights.

Forward in time things are followed from where they first stand out of the clean plate; then each that came
up in the middle of the picture is followed backwards from there. Results are as certain as the evidence:
what was seen briefly, faintly or never moved is `uncertain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt
from pydantic import Field

from rvt_ray.backends import Options
from rvt_ray.masks import rle
from rvt_ray.perception.base import Segmentation, TrackDraft
from rvt_ray.perception.segment.motion.assign import Expected, assign, fill_holes, histogram, overlap
from rvt_ray.perception.segment.motion.shot import Shot
from rvt_ray.perception.segment.motion.spool import Spool
from rvt_ray.perception.segment.motion.tracker import FrameView, Thing, Tracker
from rvt_ray.records import Absence, ClipRecord, TrackStatus
from rvt_ray.video.frames import FrameStream

Mask = npt.NDArray[np.bool_]

_FLOODED = 0.6  # of the frame is foreground: the plate or the camera model does not hold on this frame
_ALONE_SHARE = 0.3  # of its sights; a thing that never stands apart may be a part of something
_TOGETHER_SHARE = 0.7  # of common frames; a piece that touches what it came out of this often is a part of it
_THICK_SHARE = 0.012  # of the diagonal: radius of the largest disc inside; parallax leaves slivers at edges
_MOVED_SIZES = 0.35  # of its own size; a surface whose light changes wobbles by less
_RESTLESS = 0.08  # median relative change of the area between frames; noise flickers more
_BLIND_SCORE = 0.2  # of a mask that only the flow carried on


@dataclass
class StoredSight:
    """A thing on one frame; the mask at working size as RLE: frames and masks are never kept."""

    rle: str
    score: float
    found_alone: bool


Tracks = dict[int, dict[int, StoredSight]]  # id -> frame -> sight


class MotionSegmenter:
    """See the module's text. Deterministic."""

    name = "motion"

    class Options(Options):
        """Attributes:
        working_side: longer side, pixels, that everything is computed at.
        plate_samples: frames that the clean plate is made of.
        min_area_share: smaller pieces are noise (share of the frame).
        min_frames: shorter tracks are dropped.
        min_motion: how far a confirmed thing must have moved on its own (share of the diagonal).
        confirm_score: mean score of a confirmed track.
        confirm_frames: on how many a confirmed thing is seen.
        max_things: of the biggest and longest-seen are kept.
        """

        working_side: int = Field(default=320, ge=64)
        plate_samples: int = Field(default=25, ge=5)
        min_area_share: float = Field(default=0.0012, gt=0, lt=1)
        min_frames: int = Field(default=6, ge=1)
        min_motion: float = Field(default=0.02, ge=0)
        confirm_score: float = Field(default=0.6, ge=0, le=1)
        confirm_frames: int = Field(default=15, ge=1)
        max_things: int = Field(default=12, ge=1)

    def __init__(self, options: MotionSegmenter.Options) -> None:
        self.options = options

    def segment(self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]) -> Segmentation:
        """See `rvt_ray.perception.base.Segmenter`. Clips shorter than 8 frames show no motion to go by."""
        with Spool() as spool:
            shot = Shot(frames, spool, self.options.working_side, self.options.plate_samples)
            least = max(20, round(self.options.min_area_share * shot.width * shot.height))
            tracks: Tracks = {}
            things: dict[int, Thing] = {}
            next_id = 1
            for first, last in shot.runs:
                tracker = Tracker(least, next_id)
                forward(shot, tracker, first, last, least, tracks)
                things.update(tracker.seen)
                things.update(tracker.lost)
                backward(shot, tracks, things, first, last, least, range(next_id, tracker.next_id))
                next_id = tracker.next_id
            join_inseparable(shot, tracks, things)
            return self._report(clip, shot, tracks, things, list(key_frames))

    def _report(
        self, clip: ClipRecord, shot: Shot, tracks: Tracks, things: dict[int, Thing], key_frames: list[int]
    ) -> Segmentation:
        """Drop noise, number by first sight, bring masks to the clip's size."""
        kept = {i: s for i, s in tracks.items() if len(s) >= min(self.options.min_frames, clip.num_frames)}
        weight = {i: sum(rle.area(s.rle) * s.score for s in sights.values()) for i, sights in kept.items()}
        best = sorted(kept, key=lambda i: (-weight[i], i))[: self.options.max_things]
        order = sorted(best, key=lambda i: (min(kept[i]), -weight[i], i))
        drafts = [
            self._draft(
                clip, shot, number, kept[i], things[i], {k: kept[k] for k in best if k != i}, key_frames
            )
            for number, i in enumerate(order, start=1)
        ]
        return Segmentation(tracks=drafts, key_frames=key_frames)

    def _draft(
        self,
        clip: ClipRecord,
        shot: Shot,
        number: int,
        sights: dict[int, StoredSight],
        thing: Thing,
        others: Tracks,
        key_frames: Sequence[int],
    ) -> TrackDraft:
        nothing = rle.empty(clip.height, clip.width)
        first, last = min(sights), max(sights)
        texts: list[str] = []
        absence: list[Absence | None] = []
        score: list[float | None] = []
        nearest, reason = first, None
        for frame in range(clip.num_frames):
            sight = sights.get(frame)
            text = nothing if sight is None else _enlarge(sight.rle, shot, clip)
            seen = sight is not None and rle.area(text) > 0
            texts.append(text)
            score.append(sight.score if seen and sight is not None else None)
            if seen:
                nearest, reason = frame, None
            elif reason is None:  # one reason for a whole absence: what was seen as it began
                reason = _why_absent(frame, sights[nearest].rle, others, shot)
            absence.append(reason)
        looked = [k for k in key_frames if first <= k <= last]
        again = [k in sights and sights[k].score >= 0.5 for k in looked]
        path = np.array(thing.path)
        low, high = np.percentile(path, [5, 95], axis=0)  # a flicker of the mask is not motion
        extent = float(np.linalg.norm(high - low))
        diagonal = float(np.hypot(shot.width, shot.height))
        mean = float(np.mean([s.score for s in sights.values()]))
        alone = float(np.mean([s.found_alone for s in sights.values()]))
        area = np.array([rle.area(sights[f].rle) for f in sorted(sights)], np.float64)
        restless = float(np.median(np.abs(np.diff(np.log(area))))) if len(area) > 1 else 0.0
        thick = [_thickness(s.rle, shot) for s in list(sights.values())[:: max(len(sights) // 8, 1)]]
        sure = (
            extent >= max(self.options.min_motion * diagonal, _MOVED_SIZES * float(np.sqrt(np.median(area))))
            and mean >= self.options.confirm_score
            and len(sights) >= min(self.options.confirm_frames, clip.num_frames)
            and alone >= _ALONE_SHARE
            and restless <= _RESTLESS
            and float(np.median(thick)) >= _THICK_SHARE * diagonal
        )
        return TrackDraft(
            instance_id=number,
            frame_idx=list(range(clip.num_frames)),
            rle=texts,
            absence=absence,
            score=score,
            status=None if sure else TrackStatus.UNCERTAIN,
            redetection_rate=float(np.mean(again)) if looked else None,
        )


def forward(shot: Shot, tracker: Tracker, first: int, last: int, least: int, tracks: Tracks) -> None:
    """Follow things from frame `first` to `last`; sights are added to `tracks`."""
    for index in range(first, last + 1):
        view = shot.view(index, least)
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


def _enlarge(text: str, shot: Shot, clip: ClipRecord) -> str:
    """A working-size mask at the clip's size, its outline smoothed rather than blocky."""
    small = rle.decode(text, shot.height, shot.width)
    if small.shape == (clip.height, clip.width):
        return text
    soft = cv2.GaussianBlur(small.astype(np.float32), (3, 3), 0)
    large = cv2.resize(soft, (clip.width, clip.height), interpolation=cv2.INTER_LINEAR)
    return rle.encode(large > 0.5)


def _why_absent(frame: int, last_mask: str, others: Tracks, shot: Shot) -> Absence:
    """Out when it was last (or will first be) seen at the frame's border, occluded when something else is
    now where it was."""
    mask = rle.decode(last_mask, shot.height, shot.width)
    if mask[:2].any() or mask[-2:].any() or mask[:, :2].any() or mask[:, -2:].any():
        return Absence.OUT
    grown = cv2.dilate(mask.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    for other in others.values():
        if frame in other and bool((rle.decode(other[frame].rle, shot.height, shot.width) & grown).any()):
            return Absence.OCCLUDED
    return Absence.UNKNOWN


def _thickness(text: str, shot: Shot) -> float:
    """Radius of the largest disc inside the mask, working pixels."""
    mask = rle.decode(text, shot.height, shot.width).astype(np.uint8)
    return float(cv2.distanceTransform(mask, cv2.DIST_L2, 3).max())
