"""Which masks of a key frame are known tracks, and which are new: one-to-one, with two thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.masks.matching import match
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.proposals import KeyFrameDecision, Proposal, Sight
from rvt_ray.records import Absence, TrackStatus

_SAME = 0.5  # IoU from which a proposal is the track
_KNOWN = 0.2  # IoU from which it is not new either
_COVERED = 0.5  # ... and neither is what lies in a known track by this share
_DRIFTED = (0.7, 0.9)  # IoU of a track and its proposal between which a correction is worth it
_SCENERY = 0.5  # share of the frame from which a mask is the scene rather than a thing in it
_HIDDEN = 0.3  # share of where an object last was that another one covers


@dataclass
class _Life:
    """What is known of a track besides its masks."""

    born: int
    label: str | None
    label_score: float
    parent: int | None
    looked: int = 0
    found: int = 0


@dataclass
class KeyFrameLinker:
    """The linker of one clip; see `rvt_ray.perception.proposals.Linker`.

    A new mask becomes a track of its own at once, so that it can be followed, but counts as one only when it
    was found again or stayed present; else it is dropped at the end. Two tracks of the same thing (the same
    masks over the frames that both are on) become the older one.

    Attributes:
        height, width, num_frames: of the clip.
        max_objects: tracks at a time.
        correct: whether drifted tracks get their new mask.
    """

    height: int
    width: int
    num_frames: int
    max_objects: int = 64
    correct: bool = False
    _lives: dict[int, _Life] = field(default_factory=dict)
    _boxes: dict[str, rle.Box] = field(default_factory=dict)

    def key_frame(
        self, frame: int, proposals: Sequence[Proposal], seen: Mapping[int, Sight]
    ) -> KeyFrameDecision:
        """See `Linker`."""
        size = (self.height, self.width)
        decision = KeyFrameDecision()
        ids = [i for i, sight in seen.items() if rle.area(sight.rle) > 0]
        for i in ids:
            self._lives[i].looked += 1
        texts = [p.rle for p in proposals]
        iou = rle.iou_matrix([seen[i].rle for i in ids], texts, *size)
        owner: dict[int, int] = {}
        for row, column in match(iou, _SAME):
            track = self._lives[ids[row]]
            track.found += 1
            owner[column] = ids[row]
            proposal = proposals[column]
            if proposal.label is not None and proposal.score > track.label_score:
                track.label, track.label_score = proposal.label, proposal.score
            if self.correct and _DRIFTED[0] <= iou[row, column] < _DRIFTED[1]:
                decision.corrected[ids[row]] = proposal
        areas = rle.areas(texts).astype(np.float64)
        track_areas = rle.areas([seen[i].rle for i in ids]).astype(np.float64)
        room = self.max_objects - len(seen)
        for column in sorted(range(len(proposals)), key=lambda c: -proposals[c].score):
            if column in owner or room <= 0:
                continue
            overlap = iou[:, column]
            shared = overlap / (1 + overlap) * (areas[column] + track_areas)
            if bool((overlap >= _KNOWN).any()) or bool((shared >= _COVERED * areas[column]).any()):
                continue
            number = len(self._lives) + 1
            proposal = proposals[column]
            self._lives[number] = _Life(frame, proposal.label, proposal.score, None)
            owner[column] = number
            decision.born[number] = proposal
            room -= 1
        for number, proposal in decision.born.items():
            if proposal.parent is not None:
                self._lives[number].parent = owner.get(proposal.parent)
        return decision

    def finish(self, tracks: Mapping[int, Mapping[int, Sight]]) -> list[TrackDraft]:
        """See `Linker`."""
        kept = {
            i: {t: s for t, s in sights.items() if rle.area(s.rle) > 0}
            for i, sights in tracks.items()
            if self._survived(i, sights)
        }
        into = self._merge(kept)
        return [self._draft(i, kept[i], kept, into) for i in sorted(kept)]

    def _survived(self, i: int, sights: Mapping[int, Sight]) -> bool:
        life = self._lives[i]
        if life.found or not life.looked:
            # Found again, or there was no second look: then it must at least have stayed.
            after = [s for t, s in sights.items() if t > life.born]
            return bool(life.found) or not after or any(rle.area(s.rle) > 0 for s in after)
        present = [rle.area(s.rle) > 0 for t, s in sights.items() if t > life.born]
        return bool(present) and float(np.mean(present)) >= 0.5

    def _merge(self, tracks: dict[int, dict[int, Sight]]) -> dict[int, int]:
        """Unite duplicates; the younger's frames fill the older's gaps. Returns gone -> what it became."""
        into: dict[int, int] = {}
        for young in sorted(tracks, reverse=True):
            for old in sorted(i for i in tracks if i < young):
                common = sorted(tracks[old].keys() & tracks[young].keys())
                if len(common) < min(3, self.num_frames):
                    continue
                sample = common[:: max(1, len(common) // 8)]
                alike = [
                    rle.iou(tracks[old][t].rle, tracks[young][t].rle, self.height, self.width) for t in sample
                ]
                if float(np.mean(alike)) >= 0.7:
                    for t, sight in tracks.pop(young).items():
                        tracks[old].setdefault(t, sight)
                    self._lives[old].found += self._lives[young].found
                    self._lives[old].looked += self._lives[young].looked
                    into[young] = old
                    break
        return into

    def _draft(
        self,
        i: int,
        sights: Mapping[int, Sight],
        tracks: Mapping[int, Mapping[int, Sight]],
        into: Mapping[int, int],
    ) -> TrackDraft:
        nothing = rle.empty(self.height, self.width)
        texts, absence, score = [], [], []
        for t in range(self.num_frames):
            sight = sights.get(t)
            texts.append(nothing if sight is None else sight.rle)
            score.append(None if sight is None else sight.score)
            absence.append(None if sight is not None else self._why_absent(i, t, sights, tracks))
        life = self._lives[i]
        parent = life.parent
        while parent is not None and parent in into:
            parent = into[parent]
        share = float(np.median(rle.areas([s.rle for s in sights.values()]))) / (self.height * self.width)
        unsure = (life.looked > 0 and not life.found) or share >= _SCENERY
        return TrackDraft(
            instance_id=i,
            frame_idx=list(range(self.num_frames)),
            rle=texts,
            absence=absence,
            score=score,
            category=life.label,
            category_score=life.label_score if life.label is not None else 0.0,
            parent_id=parent if parent in tracks and parent != i else None,
            status=TrackStatus.UNCERTAIN if unsure else None,
            redetection_rate=life.found / life.looked if life.looked else None,
        )

    def _why_absent(
        self, i: int, frame: int, sights: Mapping[int, Sight], tracks: Mapping[int, Mapping[int, Sight]]
    ) -> Absence:
        nearest = min(sights, key=lambda t: (abs(t - frame), t))
        last = sights[nearest].rle
        x, y, w, h = self._box(last)
        if x <= 1 or y <= 1 or x + w >= self.width - 1 or y + h >= self.height - 1:
            return Absence.OUT
        area = rle.area(last)
        for k, other in tracks.items():
            if k != i and frame in other and _meet((x, y, w, h), self._box(other[frame].rle)):
                shared = rle.area(rle.intersection([last, other[frame].rle], self.height, self.width))
                if shared >= _HIDDEN * area:
                    return Absence.OCCLUDED
        return Absence.UNKNOWN

    def _box(self, text: str) -> rle.Box:
        if text not in self._boxes:
            box = rle.bbox(text, self.height, self.width)
            assert box is not None, "sights of nothing are left out before"
            self._boxes[text] = box
        return self._boxes[text]


def _meet(a: rle.Box, b: rle.Box) -> bool:
    across = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    down = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return across > 0 and down > 0
