"""From look to look: find, cut out, link, and fill the frames between by optical flow from both sides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks import geometry, rle
from rvt_ray.masks.matching import match
from rvt_ray.masks.rle import Box, Mask
from rvt_ray.perception.detect import Detector
from rvt_ray.perception.linking.looks import Colours, alike, colours
from rvt_ray.perception.proposals import Linker, Proposal, Sight
from rvt_ray.perception.segment.detector.carry import Carrier, Masks, agreement, blend
from rvt_ray.perception.segment.detector.cutout import CROSS, Cut, box_iou, cut_out, tidy
from rvt_ray.perception.segment.detector.life import BoxedProposal
from rvt_ray.perception.segment.detector.tangles import covered_share
from rvt_ray.perception.segment.motion.shot import Shot
from rvt_ray.perception.segment.motion.spool import Spool
from rvt_ray.video.frames import FrameArray

_EXPECTED = 0.3  # box IoU from which a carried mask tells where to cut
_SUPPORT = 0.5  # histogram intersection below which what was carried is not the thing any more
_WITNESS = 0.5  # overlap of carried and new mask from which the one speaks for the other
_FIT = 0.75  # of mask and box, from which a mask is not doubted
_CHANGED = 1.1  # strength of the difference to the empty scene, see `FrameView`
_STANDS_OUT = 0.85  # share of a mask that differs from the empty scene, from which all of the thing does
_MOVER = 0.35  # ... and least share that must be left of a mask that is trimmed to what differs
_HALO_PX = 2
_SURER = 0.3  # detector's score by which one box is surer than another
_NESTED = 0.8  # share of the smaller of two boxes of one name, from which it may be a part
_RIVAL_PX = 2  # how far a carried outline may be off
_TRUST = 0.95  # a mask that was cut out is never surer than this


@dataclass
class Follow:
    """What is known of a clip up to the last look.

    Attributes:
        shot, spool: the clip at working size; all masks here have that size.
        pts_s: presentation times.
        lost_s: time in which the score of a thing that the detector overlooks falls to a third.
        tracks: id -> clip frame -> sight.
    """

    shot: Shot
    spool: Spool
    detector: Detector
    linker: Linker
    pts_s: npt.NDArray[np.float64]
    lost_s: float
    tracks: dict[int, dict[int, Sight]] = field(default_factory=dict)
    _carrier: Carrier = field(init=False)
    _difference: tuple[int, Mask | None] | None = None
    _last: int | None = None
    _masks: Masks = field(default_factory=dict)
    _scores: dict[int, float] = field(default_factory=dict)
    _colours: dict[int, Colours] = field(default_factory=dict)
    _found_s: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._carrier = Carrier(self.spool)

    def look(self, index: int, frame: FrameArray) -> None:
        """Take in the next look.

        Args:
            index: clip frame index, ascending from call to call.
            frame: RGB at the clip's size.
        """
        last = index if self._last is None else self._last
        small = self.spool[index]
        forward = self._carrier.carry(self._masks, last, index)
        here = self._supported(forward.get(index, {}), small)
        proposals, fits = self._find(index, frame, small, here)
        seen = {i: Sight(rle.encode(mask), self._faded(i, index)) for i, mask in here.items()}
        self.linker.observe(index, seen)
        decision = self.linker.key_frame(index, proposals, seen)
        given = {**decision.corrected, **decision.found, **decision.born}
        height, width = small.shape[:2]
        masks = {i: rle.decode(proposal.rle, height, width) for i, proposal in given.items()}
        scores = {
            i: sight_score(proposal.score, fits.get(proposal.rle, 1.0), here.get(i), masks[i])
            for i, proposal in given.items()
        }
        backward = self._carrier.carry(masks, index, last + 1) if last + 1 < index else {}
        self._fill(last, index, forward, backward, masks, scores, here)
        self._go_on(index, given, masks, scores, here, decision.ended)

    def _supported(self, carried: Masks, small: FrameArray) -> Masks:
        """Empty what does not look like its thing any more."""
        present = {i: mask for i, mask in carried.items() if mask.any()}
        looks = dict(zip(present, colours(small, list(present.values())), strict=True)) if present else {}
        out = dict(carried)
        for i, look in looks.items():
            likeness = alike(self._colours.get(i), look)
            if likeness is not None and likeness < _SUPPORT:
                out[i] = np.zeros_like(carried[i])
        return out

    def _find(
        self, index: int, frame: FrameArray, small: FrameArray, carried: Masks
    ) -> tuple[list[Proposal], dict[str, float]]:
        """Proposals, best first, and how well each fits its box."""
        height, width = small.shape[:2]
        sx, sy = width / frame.shape[1], height / frame.shape[0]
        detections = self.detector.detect(frame)
        boxes: list[Box] = [(d.x * sx, d.y * sy, d.w * sx, d.h * sy) for d in detections]
        priors = expected(boxes, carried)
        changed = self._changed(index)
        cuts: list[tuple[int, Cut]] = []
        # What stands before something else is the smaller of the two, mostly: it is cut out first.
        taken = np.zeros((height, width), np.bool_)
        unclaimed = {i: m for i, m in carried.items() if i not in priors.values()}
        for k in sorted(range(len(boxes)), key=lambda k: (detections[k].area, k)):
            prior = carried[priors[k]] if k in priors else None
            before = [m for m in unclaimed.values() if m.sum() < 0.5 * boxes[k][2] * boxes[k][3]]
            # Size does not tell which of two things of one name is in front, and colours hardly tell them
            # apart: an unsure box must not swallow what a surer one shows, unless it may be a part of it.
            rivals = [
                geometry.erode(carried[i], _RIVAL_PX)
                for other, i in priors.items()
                if detections[other].label == detections[k].label
                and detections[other].score >= detections[k].score + _SURER
                and covered_share(boxes[k], boxes[other]) < _NESTED
            ]
            if prior is not None:
                rivals = [m & ~prior for m in rivals]
            others = np.logical_or.reduce([taken, *before, *rivals])
            cut = cut_out(small, boxes[k], prior, changed, others)
            if cut is not None:
                taken |= cut.mask
                cuts.append((k, cut))
        looks = colours(small, [cut.mask for _, cut in cuts]) if cuts else []
        proposals: list[Proposal] = [
            BoxedProposal(
                frame=index,
                rle=rle.encode(cut.mask),
                score=detections[k].score,
                label=detections[k].label,
                colours=look,
                box=boxes[k],
            )
            for (k, cut), look in zip(cuts, looks, strict=True)
        ]
        fits = {p.rle: cut.fit for p, (_, cut) in zip(proposals, cuts, strict=True)}
        return sorted(proposals, key=lambda p: (-p.score, p.rle)), fits

    def _fill(
        self,
        last: int,
        index: int,
        forward: Mapping[int, Masks],
        backward: Mapping[int, Masks],
        masks: Masks,
        scores: Mapping[int, float],
        here: Masks,
    ) -> None:
        """Sights of the frames after the last look, up to and with this one."""
        movers = self._movers(index, masks)
        for t in range(last + 1, index):
            share = (t - last) / (index - last)
            changed = self._changed(t) if movers else None
            near = None if changed is None else geometry.dilate(changed, _HALO_PX)
            for i in sorted({*forward.get(t, {}), *backward.get(t, {})}):
                ahead, back = forward.get(t, {}).get(i), backward.get(t, {}).get(i)
                if ahead is not None and back is not None:
                    mask = blend(ahead, back, share)
                    score = min(self._scores[i], scores[i]) * (0.5 + 0.5 * agreement(ahead, back))
                elif ahead is not None:
                    # Nobody says that it is still there, unless what arrives looks like it.
                    mask, score = ahead, self._faded(i, t)
                    if share > 0.5 and not here[i].any():
                        continue
                else:
                    assert back is not None
                    if share < 0.5:
                        continue
                    mask, score = back, 0.8 * scores[i]
                if i in movers and near is not None and agreement(mask & near, mask) >= _MOVER:
                    mask = tidy(mask & near)
                self._note(i, t, mask, score)
        for i, mask in masks.items():
            self._note(i, index, mask, scores[i])
        for i, mask in here.items():
            if i not in masks and mask.any():
                self._note(i, index, _without(mask, masks), self._faded(i, index))

    def _movers(self, index: int, masks: Masks) -> set[int]:
        """Things that stand out of the empty scene: what does not, between looks, is not them. Flow drags
        along what is next to a fast thing."""
        changed = self._changed(index)
        if changed is None:
            return set()
        near = geometry.dilate(changed, _HALO_PX)
        return {i for i, mask in masks.items() if agreement(mask & near, mask) >= _STANDS_OUT}

    def _changed(self, index: int) -> Mask | None:
        if self._difference is None or self._difference[0] != index:
            view = self.shot.view(index, 1)
            self._difference = index, None if view is None else changed_pixels(view.strength)
        return self._difference[1]

    def _note(self, i: int, t: int, mask: Mask, score: float) -> None:
        if mask.any():
            self.tracks.setdefault(i, {})[t] = Sight(rle.encode(mask), float(np.clip(score, 0, 1)))

    def _go_on(
        self,
        index: int,
        given: Mapping[int, Proposal],
        masks: Masks,
        scores: Mapping[int, float],
        here: Masks,
        ended: Sequence[int],
    ) -> None:
        gone = set(ended)
        kept = {i: _without(m, masks) for i, m in here.items() if i not in gone and i not in masks}
        self._masks = {**{i: m for i, m in kept.items() if m.any()}, **masks}
        for i, proposal in given.items():
            self._scores[i] = scores[i]
            self._found_s[i] = float(self.pts_s[index])
            if proposal.colours is not None:
                known = self._colours.get(i)
                mixed = proposal.colours if known is None else 0.7 * known + 0.3 * proposal.colours
                self._colours[i] = np.asarray(mixed, np.float32)
        self._last = index

    def _faded(self, i: int, t: int) -> float:
        since = float(self.pts_s[t]) - self._found_s[i]
        return self._scores[i] * math.exp(-max(since, 0.0) / max(self.lost_s, 1e-6))


def expected(boxes: Sequence[Box], carried: Mapping[int, Mask]) -> dict[int, int]:
    """Box index -> id of the carried mask that lies where the box is, one-to-one."""
    ids = [i for i, mask in carried.items() if mask.any()]
    table = np.zeros((len(boxes), len(ids)))
    for column, i in enumerate(ids):
        box = geometry.box(carried[i])
        assert box is not None
        table[:, column] = [box_iou(b, box) for b in boxes]
    return {k: ids[column] for k, column in match(table, _EXPECTED)}


def changed_pixels(strength: npt.NDArray[np.float32]) -> Mask:
    """What differs from the empty scene, without specks and cracks."""
    changed = (strength > _CHANGED).astype(np.uint8)
    changed = cv2.morphologyEx(changed, cv2.MORPH_OPEN, CROSS)
    return np.asarray(cv2.morphologyEx(changed, cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))) > 0


def sight_score(detected: float, fit: float, carried: Mask | None, found: Mask) -> float:
    """How sure it is that a mask is the thing: the detector's word; where what was carried here from the last
    look agrees, two witnesses; less where mask and box do not fit."""
    score = detected
    if carried is not None and (same := agreement(carried, found)) >= _WITNESS:
        score = 1 - (1 - detected) * (1 - same)
    return min(score, _TRUST) * min(1.0, fit / _FIT)


def _without(mask: Mask, others: Masks) -> Mask:
    return np.asarray(mask & ~np.logical_or.reduce(list(others.values()))) if others else mask
