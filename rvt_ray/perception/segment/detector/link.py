"""Which detections are which track: one-to-one, by place first, then by looks; labels are voted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.masks.matching import match
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.proposals import KeyFrameDecision, Proposal, Sight
from rvt_ray.perception.segment.detector.cutout import box_iou
from rvt_ray.perception.segment.detector.life import BoxedProposal, Life
from rvt_ray.perception.segment.detector.tangles import TELLS, Look, Tangles
from rvt_ray.records import Absence, TrackStatus

Floats = npt.NDArray[np.float64]

_OTHER_LABEL = 0.75  # what a likeness is worth between things of different names
_STALE = 0.6  # what the overlap with where a thing was found last is worth, to where it was carried
_COVERED = 0.6  # share of a proposal inside a known thing of the same name from which it is a part of it
_ALIKE = 0.45  # least histogram intersection of a thing that comes back
_SAME_LOOK = 0.7  # ... under a name that it never had
_LIKELY = 0.55  # ... when it must have been faster than things are
_LEAST_PART = 0.15  # ... and least share of it that must be seen then
_SIZE_RATIO = 3.0  # areas of a thing that comes back differ by at most this factor
_REACH = (0.06, 0.5, 0.8)  # diagonals: how far off at once, how much more per second, at most
_LEARN = 0.2  # weight of the newest look in a thing's colours
_TWICE = 0.6  # IoU from which two tracks are one thing
_AGREE = 0.5  # share of the votes that the name of a sure thing has
_SURE = 0.5  # `label_score` of a sure thing
_FOUND = 0.4  # share of the looks at which a sure thing is found, where it is not hidden or out
_RARE = 0.3  # ... and below which it is nothing
_FADED = 0.5  # score of a mask that nobody should rely on
_DOUBTED = 0.45  # most that a mask is worth whose identity is not sure: less than facts trust
_HIDDEN = 0.3  # share of where a thing last was that another one covers


class DetectionLinker:
    """The linker of one clip; see `rvt_ray.perception.proposals.Linker`.

    A detection becomes a candidate at once, so that it can be carried, but is reported only when it was found
    often and surely enough. A thing that the detector overlooks is carried for `lost_s`; then it is
    remembered by place, size, name and colours, and takes up its id when it is back.

    Args:
        pts_s: presentation times of the clip's frames.
        height, width: of the masks.
        looks: frames on which there are detections.
    """

    def __init__(
        self,
        pts_s: Floats,
        height: int,
        width: int,
        looks: Sequence[int],
        *,
        birth_score: float,
        confirm_score: float,
        confirm_looks: int,
        same_iou: float,
        known_iou: float,
        lost_s: float,
        max_objects: int,
    ) -> None:
        self._pts, self._height, self._width, self._looks = pts_s, height, width, list(looks)
        self._birth_score, self._confirm_score, self._confirm_looks = (
            birth_score,
            confirm_score,
            confirm_looks,
        )
        self._same, self._known, self._lost_s, self._max = same_iou, known_iou, lost_s, max_objects
        self._lives: dict[int, Life] = {}
        self._tangles = Tangles(height, width)

    def observe(self, frame: int, seen: Mapping[int, Sight]) -> None:
        """See `Linker`; places between looks are of no use here."""

    def key_frame(
        self, frame: int, proposals: Sequence[Proposal], seen: Mapping[int, Sight]
    ) -> KeyFrameDecision:
        """See `Linker`."""
        decision = KeyFrameDecision()
        boxes = [self._box_of(p) for p in proposals]
        areas = rle.areas([p.rle for p in proposals]).astype(np.float64)
        there = [i for i in seen if rle.area(seen[i].rle) > 0]
        owner: dict[int, int] = {}
        place = self._by_place(there, seen, proposals, boxes)
        for row, column in match(place, self._same):
            owner[column] = there[row]
        self._recall(frame, owner, proposals, boxes, areas, there)
        row_of = {i: row for row, i in enumerate(there)}
        look = Look(
            frame,
            max((t for t in self._looks if t < frame), default=-1),
            min((t for t in self._looks if t > frame), default=len(self._pts)),
            {i: seen[i].rle for i in there},
            proposals,
            boxes,
            lambda i, column: float(place[row_of[i], column]),
        )
        known = [i for i in there if self._is_thing(i)]
        owner = self._tangles.settle(look, owner, known, self._namesakes, lambda i: self._lives[i].colours)
        for column, i in owner.items():
            learn = not self._tangles.holds(i)
            self._update(self._lives[i], frame, proposals[column], boxes[column], areas[column], learn)
            decision.found[i] = decision.corrected[i] = proposals[column]
        for i in seen:
            life = self._lives[i]
            if i not in decision.found and (i not in there or self._pts[frame] - life.seen_s > self._lost_s):
                life.gone = True
                decision.ended.append(i)
        room = self._max - len(set(seen) | set(decision.found)) + len(decision.ended)
        for column in sorted(range(len(proposals)), key=lambda c: -proposals[c].score):
            if column in owner or room <= 0 or not self._is_new(column, proposals, owner, seen, there, areas):
                continue
            number = len(self._lives) + 1
            life = Life(boxes[column], areas[column], float(self._pts[frame]), proposals[column].colours)
            life.vote(proposals[column])
            life.looks.append(frame)
            self._lives[number] = life
            owner[column] = number
            decision.born[number] = proposals[column]
            room -= 1
        return decision

    def _box_of(self, proposal: Proposal) -> rle.Box:
        if isinstance(proposal, BoxedProposal) and proposal.box is not None:
            return proposal.box
        return _box(proposal.rle, self._height, self._width)

    def _by_place(
        self,
        ids: Sequence[int],
        seen: Mapping[int, Sight],
        proposals: Sequence[Proposal],
        boxes: list[rle.Box],
    ) -> Floats:
        """Likeness of what was carried here and what was found here, (ids, proposals)."""
        iou = rle.iou_matrix(
            [seen[i].rle for i in ids], [p.rle for p in proposals], self._height, self._width
        )
        for row, i in enumerate(ids):
            carried = _box(seen[i].rle, self._height, self._width)
            for column, proposal in enumerate(proposals):
                # Flow frays masks, and a cut may miss a limb: their boxes tell the same story more calmly.
                # The detector's own boxes are steadier still, but the last one may be where a thing was.
                place = max(
                    iou[row, column],
                    0.9 * box_iou(carried, boxes[column]),
                    _STALE * box_iou(self._lives[i].box, boxes[column]),
                )
                likeness = _alike(self._lives[i].colours, proposal.colours)
                worth = 1.0 if proposal.label in self._lives[i].votes else _OTHER_LABEL
                iou[row, column] = place * worth * (0.7 + 0.3 * likeness)
        return iou

    def _recall(
        self,
        frame: int,
        owner: dict[int, int],
        proposals: Sequence[Proposal],
        boxes: list[rle.Box],
        areas: Floats,
        there: Sequence[int],
    ) -> None:
        """Give what nobody claims to things that were lost, or that flow could not follow.

        First to those that can have come so far; then, rather than that a look-alike is born in the middle of
        the picture while one like it is missing, to those that must have been faster. A thing for which
        another one was as likely is not trusted from there on.
        """
        for anywhere in (False, True):
            waiting = sorted(i for i in self._lives if i not in owner.values())
            left = [c for c in range(len(proposals)) if c not in owner]
            if anywhere:
                held = [k for k in there if k not in owner.values()]
                left = [
                    c
                    for c in left
                    if not self._at_border(boxes[c]) and not self._overlaps(proposals[c], held)
                ]
                waiting = [
                    i for i in waiting if self._is_thing(i) and not self._at_border(self._lives[i].box)
                ]
            found = [(proposals[c], boxes[c], areas[c]) for c in left]
            value, likeness = self._by_looks(frame, waiting, found, anywhere)
            for row, column in match(value, 0.01):
                i = owner[left[column]] = waiting[row]
                rivals = {
                    k
                    for other, k in enumerate(waiting)
                    if k != i
                    and self._is_thing(k)
                    and self._namesakes(i, k)
                    and value[other, column] > 0
                    and likeness[row, column] - likeness[other, column] < TELLS
                }
                # What was faster than things are may also be something new.
                if (rivals or anywhere) and self._is_thing(i):
                    ids = {i, *rivals}
                    self._tangles.doubt(ids, min(max(self._lives[k].looks) for k in ids) + 1)

    def _by_looks(
        self,
        frame: int,
        ids: Sequence[int],
        found: Sequence[tuple[Proposal, rle.Box, float]],
        anywhere: bool = False,
    ) -> tuple[Floats, Floats]:
        """How well things that were lost fit what nobody claims, 0: not at all; and their colours alone."""
        diagonal = float(np.hypot(self._height, self._width))
        near, per_second, at_most = _REACH
        out, looks = np.zeros((len(ids), len(found))), np.zeros((len(ids), len(found)))
        for row, i in enumerate(ids):
            life = self._lives[i]
            reach = min(near + per_second * (self._pts[frame] - life.seen_s), at_most) * diagonal
            if anywhere:
                reach = at_most * diagonal
            for column, (proposal, box, area) in enumerate(found):
                away = float(np.hypot(*(np.subtract(_centre(box), _centre(life.box)))))
                ratio = max(area, life.area) / max(min(area, life.area), 1.0)
                likeness = _alike(life.colours, proposal.colours)
                named = proposal.label in life.votes
                if anywhere:
                    fits = named and likeness >= _LIKELY and _LEAST_PART <= area / life.area <= _SIZE_RATIO
                else:
                    fits = likeness >= (_ALIKE if named else _SAME_LOOK) and ratio <= _SIZE_RATIO
                if not fits or away > reach:
                    continue
                out[row, column] = max(likeness - 0.3 * away / reach, 0.02)
                looks[row, column] = likeness
        return out, looks

    def _is_thing(self, i: int) -> bool:
        """Whether a candidate was found as often as a thing must be."""
        return len(self._lives[i].looks) >= min(self._confirm_looks, len(self._looks))

    def _namesakes(self, a: int, b: int) -> bool:
        """Whether two things were ever called the same."""
        return bool(self._lives[a].votes.keys() & self._lives[b].votes.keys())

    def _overlaps(self, proposal: Proposal, ids: Sequence[int]) -> bool:
        return any(box_iou(self._lives[i].box, self._box_of(proposal)) >= self._known for i in ids)

    def _at_border(self, box: rle.Box) -> bool:
        x, y, w, h = box
        return x <= 1 or y <= 1 or x + w >= self._width - 1 or y + h >= self._height - 1

    def _update(
        self, life: Life, frame: int, proposal: Proposal, box: rle.Box, area: float, learn: bool
    ) -> None:
        life.vote(proposal)
        life.looks.append(frame)
        life.box, life.seen_s, life.gone = box, float(self._pts[frame]), False
        if not learn:
            return
        life.area = 0.7 * life.area + 0.3 * area
        if life.colours is None or proposal.colours is None:
            life.colours = proposal.colours if life.colours is None else life.colours
        else:
            life.colours = np.asarray((1 - _LEARN) * life.colours + _LEARN * proposal.colours, np.float32)

    def _is_new(
        self,
        column: int,
        proposals: Sequence[Proposal],
        owner: Mapping[int, int],
        seen: Mapping[int, Sight],
        there: Sequence[int],
        areas: Floats,
    ) -> bool:
        proposal = proposals[column]
        if proposal.score < self._birth_score:
            return False
        known = [(self._lives[i].label, seen[i].rle) for i in there]
        known += [(self._lives[i].label, proposals[c].rle) for c, i in owner.items()]
        for label, text in known:
            # One thing under two names overlaps nearly fully; a thing before another does not.
            most = self._known if label == proposal.label else _TWICE
            if rle.iou(text, proposal.rle, self._height, self._width) >= most:
                return False
            shared = rle.area(rle.intersection([text, proposal.rle], self._height, self._width))
            if label == proposal.label and shared >= _COVERED * areas[column]:
                return False
        return True

    def finish(self, tracks: Mapping[int, Mapping[int, Sight]]) -> list[TrackDraft]:
        """See `Linker`. Tracks are numbered by their first sight."""
        kept = {
            i: {t: s for t, s in sights.items() if rle.area(s.rle) > 0}
            for i, sights in tracks.items()
            if self._survives(self._lives[i])
        }
        kept = {i: sights for i, sights in kept.items() if sights}
        self._merge(kept)
        order = sorted(kept, key=lambda i: (min(kept[i]), i))
        drafts = [self._draft(i, kept) for i in order]
        firm = [d for d in drafts if (d.redetection_rate or 0.0) >= _RARE]
        return [replace(d, instance_id=number) for number, d in enumerate(firm, start=1)]

    def _survives(self, life: Life) -> bool:
        needed = min(self._confirm_looks, len(self._looks))
        return len(life.looks) >= needed and life.best >= self._confirm_score

    def _merge(self, tracks: dict[int, dict[int, Sight]]) -> None:
        """The younger of two tracks of one thing fills the older's gaps."""
        for young in sorted(tracks, reverse=True):
            for old in sorted(i for i in tracks if i < young):
                common = sorted(tracks[old].keys() & tracks[young].keys())
                if 2 * len(common) < min(len(tracks[old]), len(tracks[young])):
                    continue
                alike = [
                    rle.iou(tracks[old][t].rle, tracks[young][t].rle, self._height, self._width)
                    for t in common[:: max(1, len(common) // 8)]
                ]
                if alike and float(np.mean(alike)) >= _TWICE:
                    for t, sight in tracks.pop(young).items():
                        tracks[old].setdefault(t, sight)
                    mine, other = self._lives[old], self._lives[young]
                    for label, scores in other.votes.items():
                        mine.votes.setdefault(label, []).extend(scores)
                    mine.looks = sorted({*mine.looks, *other.looks})
                    break

    def _draft(self, i: int, tracks: Mapping[int, dict[int, Sight]]) -> TrackDraft:
        life, sights = self._lives[i], tracks[i]
        self._end_where_hidden(i, tracks)
        frames = range(len(self._pts))
        nothing = rle.empty(self._height, self._width)
        absence = [None if t in sights else self._why_absent(i, t, tracks) for t in frames]
        unsure_at, unclear_at = self._doubted(i, tracks)
        absence = [Absence.UNKNOWN if t in unclear_at and a is not None else a for t, a in enumerate(absence)]
        scores = {t: _doubted(sight.score) if t in unsure_at else sight.score for t, sight in sights.items()}
        span = [t for t in self._looks if min(sights) <= t <= max(sights)]
        there = [t for t in span if absence[t] in (None, Absence.UNKNOWN)]
        found = len(set(life.looks) & set(there)) / max(len(there), 1)
        unsure = found < _FOUND or life.agreement < _AGREE or life.label_score < _SURE
        return TrackDraft(
            instance_id=i,
            frame_idx=list(frames),
            rle=[sights[t].rle if t in sights else nothing for t in frames],
            absence=absence,
            score=[scores.get(t) for t in frames],
            category=life.label or None,
            category_score=min(life.label_score, 1.0) if life.label else 0.0,
            status=TrackStatus.UNCERTAIN if unsure else None,
            redetection_rate=found,
        )

    def _doubted(self, i: int, tracks: Mapping[int, dict[int, Sight]]) -> tuple[set[int], set[int]]:
        """Frames on which its masks may be another's, and on which why it is absent is not known either.

        Doubts about what turned out to be no thing, or the same one, do not count.
        """
        spans = [
            s
            for s in self._tangles.doubts.get(i, ())
            if s.among == {i} or any(k in tracks for k in s.among - {i})
        ]
        unsure = {t for s in spans for t in s.frames(len(self._pts))}
        return unsure, {t for s in spans if s.absent for t in s.frames(len(self._pts))}

    def _end_where_hidden(self, i: int, tracks: Mapping[int, dict[int, Sight]]) -> None:
        """Drop what was only carried on, faded, into the time in which another thing hides it: it went behind
        that thing after the last look that found it."""
        sights, looks = tracks[i], self._lives[i].looks
        for gap in [t + 1 for t in sights if t + 1 not in sights and t + 1 < len(self._pts)]:
            if self._why_absent(i, gap, tracks) is not Absence.OCCLUDED:
                continue
            found = max((t for t in looks if t < gap), default=gap)
            for t in range(found + 1, gap):
                score = sights[t].score if t in sights else None
                if score is not None and score < _FADED:
                    del sights[t]

    def _why_absent(self, i: int, frame: int, tracks: Mapping[int, dict[int, Sight]]) -> Absence:
        """Hidden where another thing covers the place it was last (or will first be) at, out where that place
        is the frame's border."""
        sights = tracks[i]
        last = sights[min(sights, key=lambda t: (abs(t - frame), t))].rle
        covering = [s[frame].rle for k, s in tracks.items() if k != i and frame in s]
        cover = rle.union(covering, self._height, self._width)
        shared = rle.area(rle.intersection([last, cover], self._height, self._width))
        at_border = self._at_border(_box(last, self._height, self._width))
        if shared >= _HIDDEN * rle.area(last):
            return Absence.OCCLUDED
        return Absence.OUT if at_border else Absence.UNKNOWN


def _box(text: str, height: int, width: int) -> rle.Box:
    box = rle.bbox(text, height, width)
    assert box is not None, "masks without pixels are neither proposed nor asked about"
    return box


def _centre(box: rle.Box) -> tuple[float, float]:
    return box[0] + box[2] / 2, box[1] + box[3] / 2


def _doubted(score: float | None) -> float:
    return _DOUBTED if score is None else min(score, _DOUBTED)


def _alike(a: npt.NDArray[np.float32] | None, b: npt.NDArray[np.float32] | None) -> float:
    return 1.0 if a is None or b is None else float(np.minimum(a, b).sum())
