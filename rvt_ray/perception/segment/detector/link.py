"""Which detections are which track: one-to-one, by place first, then by looks; names are voted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.masks.matching import match
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.linking.places import box_of
from rvt_ray.perception.proposals import KeyFrameDecision, Proposal, Sight
from rvt_ray.perception.segment.detector.cutout import box_iou
from rvt_ray.perception.segment.detector.life import BoxedProposal, Found, Life, LinkRules, Lives
from rvt_ray.perception.segment.detector.recall import Recall
from rvt_ray.perception.segment.detector.tangles import Look, Tangles
from rvt_ray.perception.segment.detector.verdict import Verdict

Floats = npt.NDArray[np.float64]

_OTHER_LABEL = 0.75  # what a likeness is worth between things of different names
_BOXES = 0.9  # what the overlap of boxes is worth, to that of masks
_STALE = 0.6  # what the overlap with where a thing was found last is worth, to where it was carried
_BY_COLOURS = 0.3  # of a likeness, that hangs on the colours
_COVERED = 0.6  # share of a proposal inside a known thing of the same name from which it is a part of it
_TWICE = 0.6  # IoU from which things of different names are one


class DetectionLinker:
    """The linker of one clip; see `rvt_ray.perception.proposals.Linker`.

    A detection becomes a candidate at once, so that it can be carried, but is reported only when it was found
    often and surely enough. A thing that the detector overlooks is carried for `lost_s`; then it is
    remembered by place, size, name and colours, and takes up its id when it is back.

    Why it is not `TrackLinker`: docs/design.md, "Two linkers, one seam".

    Args:
        pts_s: presentation times of the clip's frames.
        height, width: of the masks.
        looks: frames on which there are detections.
    """

    def __init__(
        self, pts_s: Floats, height: int, width: int, looks: Sequence[int], rules: LinkRules
    ) -> None:
        self._pts, self._height, self._width, self._looks = pts_s, height, width, list(looks)
        self._rules = rules
        self._lives = Lives(min(rules.confirm_looks, len(self._looks)))
        self._tangles = Tangles(height, width)
        self._recall = Recall(self._lives, self._tangles, height, width, rules.known_iou)

    def observe(self, frame: int, seen: Mapping[int, Sight]) -> None:
        """See `Linker`; places between looks are of no use here."""

    def key_frame(
        self, frame: int, proposals: Sequence[Proposal], seen: Mapping[int, Sight]
    ) -> KeyFrameDecision:
        """See `Linker`."""
        decision = KeyFrameDecision()
        areas = [float(a) for a in rle.areas([p.rle for p in proposals])]
        found = Found(frame, float(self._pts[frame]), proposals, [self._box_of(p) for p in proposals], areas)
        there = [i for i in seen if rle.area(seen[i].rle) > 0]
        place = self._by_place(there, seen, found)
        owner = {column: there[row] for row, column in match(place, self._rules.same_iou)}
        self._recall.claim(found, owner, there)
        owner = self._untangle(found, owner, there, seen, place)
        for column, i in owner.items():
            learn = not self._tangles.holds(i)
            self._lives[i].find(proposals[column], found.boxes[column], areas[column], found.now_s, learn)
            decision.found[i] = decision.corrected[i] = proposals[column]
        for i in seen:
            overlooked_s = found.now_s - self._lives[i].seen_s
            if i not in decision.found and (i not in there or overlooked_s > self._rules.lost_s):
                decision.ended.append(i)
        self._bear(found, owner, {i: seen[i].rle for i in there}, len({*seen, *decision.found}), decision)
        return decision

    def finish(self, tracks: Mapping[int, Mapping[int, Sight]]) -> list[TrackDraft]:
        """See `Linker`. Tracks are numbered by their first sight."""
        size = (self._height, self._width)
        verdict = Verdict(self._lives, self._tangles, self._rules, self._looks, size, len(self._pts))
        return verdict.drafts(tracks)

    def _box_of(self, proposal: Proposal) -> rle.Box:
        if isinstance(proposal, BoxedProposal) and proposal.box is not None:
            return proposal.box
        return box_of(proposal.rle, self._height, self._width)

    def _by_place(self, ids: Sequence[int], seen: Mapping[int, Sight], found: Found) -> Floats:
        """Likeness of what was carried here and what was found here, (ids, proposals)."""
        masks = [p.rle for p in found.proposals]
        out = rle.iou_matrix([seen[i].rle for i in ids], masks, self._height, self._width)
        for row, i in enumerate(ids):
            life, carried = self._lives[i], box_of(seen[i].rle, self._height, self._width)
            for column, (proposal, box) in enumerate(zip(found.proposals, found.boxes, strict=True)):
                # Flow frays masks, and a cut may miss a limb: their boxes tell the same story more calmly.
                # The detector's own boxes are steadier still, but the last one may be where a thing was.
                place = max(out[row, column], _BOXES * box_iou(carried, box), _STALE * box_iou(life.box, box))
                worth = 1.0 if proposal.label in life.votes else _OTHER_LABEL
                out[row, column] = place * worth * (1 - _BY_COLOURS + _BY_COLOURS * life.likeness(proposal))
        return out

    def _untangle(
        self,
        found: Found,
        owner: Mapping[int, int],
        there: Sequence[int],
        seen: Mapping[int, Sight],
        place: Floats,
    ) -> dict[int, int]:
        row_of = {i: row for row, i in enumerate(there)}
        look = Look(
            found.frame,
            max((t for t in self._looks if t < found.frame), default=-1),
            min((t for t in self._looks if t > found.frame), default=len(self._pts)),
            {i: seen[i].rle for i in there},
            found.proposals,
            found.boxes,
            lambda i, column: float(place[row_of[i], column]),
        )
        lives = self._lives
        return self._tangles.settle(
            look, owner, lives.things(there), lives.namesakes, lambda i: lives[i].colours
        )

    def _bear(
        self,
        found: Found,
        owner: dict[int, int],
        carried: Mapping[int, str],
        following: int,
        decision: KeyFrameDecision,
    ) -> None:
        """Candidates from what nobody claims, the surest first, as long as there is room."""
        room = self._rules.max_objects - following + len(decision.ended)
        for column in sorted(range(len(found.proposals)), key=lambda c: -found.proposals[c].score):
            if column in owner or room <= 0 or not self._is_new(found, column, owner, carried):
                continue
            proposal, number = found.proposals[column], len(self._lives) + 1
            life = Life(found.boxes[column], found.areas[column], found.now_s, proposal.colours)
            life.vote(proposal)
            life.looks.append(found.frame)
            self._lives[number] = life
            owner[column] = number
            decision.born[number] = proposal
            room -= 1

    def _is_new(
        self, found: Found, column: int, owner: Mapping[int, int], carried: Mapping[int, str]
    ) -> bool:
        proposal = found.proposals[column]
        if proposal.score < self._rules.birth_score:
            return False
        known = [(self._lives[i].label, text) for i, text in carried.items()]
        known += [(self._lives[i].label, found.proposals[c].rle) for c, i in owner.items()]
        for label, text in known:
            # One thing under two names overlaps nearly fully; a thing before another does not.
            most = self._rules.known_iou if label == proposal.label else _TWICE
            if rle.iou(text, proposal.rle, self._height, self._width) >= most:
                return False
            shared = rle.area(rle.intersection([text, proposal.rle], self._height, self._width))
            if label == proposal.label and shared >= _COVERED * found.areas[column]:
                return False
        return True
