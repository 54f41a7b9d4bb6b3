"""Things followed through the frames: one-to-one, ids never reused, kept through occlusion and rest."""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks.matching import match
from rvt_ray.perception.segment.motion.assign import (
    Expected,
    Mask,
    assign,
    fill_holes,
    histogram,
    overlap,
)

_LOST_SHARE = 0.12  # of its usual area; below, the thing is not seen
_ABSORB_SHARE = 0.4  # of the neighbour's area; a bigger unclaimed piece may be a thing of its own
_SPLIT_SHARE = 0.25
_SPLIT_FRAMES = 5
_BRIDGE_PX = 3  # a connection thinner than twice this does not hold two pieces together
_NEAR_PX = 6  # a small piece this near to a thing is a part of it that looks like the scene in between
_REIDENTIFY = 0.45
_LEARN = 0.08
_TOUCHING_SCORE = 0.75  # at most, where a thing touches another: its outline there is a guess


@dataclass
class Sight:
    """A thing on one frame. `found_alone`: a foreground blob of its own matched it."""

    mask: Mask
    score: float
    found_alone: bool


@dataclass
class Thing:
    """A followed thing. `position` is the last centroid in the shot's common coordinates."""

    thing_id: int
    mask: Mask
    colours: npt.NDArray[np.float64]
    usual_area: float
    position: npt.NDArray[np.float64]
    born: int
    last_seen: int
    speed: float = 0.0
    apart: int = 0  # consecutive frames on which it was in two pieces
    path: list[npt.NDArray[np.float64]] = field(default_factory=list)


@dataclass
class FrameView:
    """What the tracker gets of a frame, all (h, w).

    Attributes:
        bins: colour bins; strength: difference to the plate; foreground: cleaned.
        to_common: 3x3, pixels of this frame to the shot's common coordinates.
    """

    index: int
    bins: npt.NDArray[np.int32]
    strength: npt.NDArray[np.float32]
    foreground: Mask
    to_common: npt.NDArray[np.float64]


class Tracker:
    """Follows things in one direction of time.

    Args:
        least_area: pixels; smaller pieces are not things.
        first_id: ids are given from here on.
    """

    def __init__(self, least_area: int, first_id: int) -> None:
        self._least = least_area
        self._next_id = first_id
        self.seen: dict[int, Thing] = {}
        self.lost: dict[int, Thing] = {}

    @property
    def next_id(self) -> int:
        """The first id that was never given."""
        return self._next_id

    def step(self, view: FrameView, expected_masks: dict[int, Mask]) -> dict[int, Sight]:
        """Take in the next frame.

        Args:
            expected_masks: per seen thing, where the flow carries its mask.

        Returns:
            The things seen on this frame.
        """
        expected = {
            i: Expected(expected_masks[i], thing.colours, thing.speed) for i, thing in self.seen.items()
        }
        labels = assign(view.foreground, view.bins, expected)
        masks = {i: _connected(labels == i, expected[i].mask, self._least) for i in expected}
        self._absorb(view.foreground, masks, view.bins)
        sights: dict[int, Sight] = {}
        for i in sorted(masks):
            thing = self.seen[i]
            mask = fill_holes(masks[i], 0.2)
            area = int(mask.sum())
            if area < max(self._least / 2, _LOST_SHARE * thing.usual_area):
                self.lost[i] = self.seen.pop(i)
                continue
            sights[i] = self._update(thing, mask, expected[i].mask, view)
        claimed = np.zeros(view.foreground.shape, np.bool_)
        for sight in sights.values():
            claimed |= sight.mask
        pieces = _pieces(view.foreground & ~claimed, self._least)
        split = self._split(sights, view)
        sights.update(self._meet([*self._adopt(pieces, sights), *split], view))
        return sights

    def _update(self, thing: Thing, mask: Mask, expected: Mask, view: FrameView) -> Sight:
        area = int(mask.sum())
        now = histogram(view.bins[mask])
        alike = overlap(thing.colours, now)
        union = int((mask | expected).sum())
        steady = int((mask & expected).sum()) / max(union, 1)
        support = float(np.minimum(view.strength[mask], 2.0).mean()) / 2.0
        score = float(
            np.clip(0.3 * support + 0.4 * min(1.0, steady / 0.8) + 0.3 * min(1.0, alike / 0.7), 0, 1)
        )
        position = _centroid(mask, view.to_common)
        step = float(np.linalg.norm(position - thing.position)) / max(view.index - thing.last_seen, 1)
        thing.speed = 0.7 * thing.speed + 0.3 * step
        thing.colours = (1 - _LEARN) * thing.colours + _LEARN * now
        thing.usual_area = 0.9 * thing.usual_area + 0.1 * area
        thing.mask, thing.position, thing.last_seen = mask, position, view.index
        thing.path.append(position)
        grown = cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        alone = not bool((view.foreground & grown & ~mask).sum() > 0.03 * area)
        if not alone:
            score = min(score, _TOUCHING_SCORE)
        return Sight(mask, score, alone)

    def _absorb(self, foreground: Mask, masks: dict[int, Mask], bins: npt.NDArray[np.int32]) -> None:
        """Give unclaimed pieces to the neighbour they grow out of, unless they look like own things."""
        claimed = np.zeros(foreground.shape, np.int32)
        for i, mask in masks.items():
            claimed[mask] = i
        rest = (foreground & (claimed == 0)).astype(np.uint8)
        n, labels, stats, _ = cv2.connectedComponentsWithStats(rest, connectivity=8)
        for k in range(1, n):
            x, y, w, h, area = (int(v) for v in stats[k])
            box = slice(max(y - 2, 0), y + h + 2), slice(max(x - 2, 0), x + w + 2)
            piece = (labels[box] == k).astype(np.uint8)
            ring = cv2.dilate(piece, np.ones((3, 3), np.uint8)) > 0
            touching = claimed[box][ring]
            touching = touching[touching > 0]
            if touching.size == 0:
                continue
            owner = int(np.bincount(touching).argmax())
            thing = self.seen[owner]
            alike = overlap(thing.colours, histogram(bins[box][piece > 0]))
            if area < self._least or alike > 0.35 or area < _ABSORB_SHARE * thing.usual_area * (0.3 + alike):
                masks[owner][box] |= piece > 0

    def _split(self, sights: dict[int, Sight], view: FrameView) -> list[Mask]:
        """Pieces that have been apart from the rest of their thing for a while."""
        out = []
        for i in sorted(sights):
            thing, sight = self.seen[i], sights[i]
            pieces = _cores(sight.mask, self._least)
            if pieces is None:
                thing.apart = max(thing.apart - 1, 0)
                continue
            thing.apart += 1
            if thing.apart < _SPLIT_FRAMES:
                continue
            thing.apart = 0
            # The piece that looks more like the thing keeps its id.
            alike = [
                overlap(thing.colours, histogram(view.bins[p])) + 0.2 * p.sum() / sight.mask.sum()
                for p in pieces
            ]
            keep, leave = (0, 1) if alike[0] >= alike[1] else (1, 0)
            sight.mask = thing.mask = sight.mask & ~pieces[leave]
            thing.usual_area = float(pieces[keep].sum())
            thing.colours = histogram(view.bins[sight.mask])
            thing.position = _centroid(sight.mask, view.to_common)
            out.append(pieces[leave])
        return out

    def _adopt(self, pieces: list[Mask], sights: dict[int, Sight]) -> list[Mask]:
        """Small pieces close to a thing become part of it; the others are returned."""
        rest = []
        for piece in pieces:
            y, x = np.nonzero(piece)
            r = _NEAR_PX
            box = slice(max(y.min() - r, 0), y.max() + r + 1), slice(max(x.min() - r, 0), x.max() + r + 1)
            near = cv2.dilate(piece[box].astype(np.uint8), np.ones((2 * r + 1, 2 * r + 1), np.uint8)) > 0
            touch = {i: int((s.mask[box] & near).sum()) for i, s in sights.items()}
            owner = max(touch, key=lambda i: (touch[i], -i), default=0)
            if owner and touch[owner] and len(y) < 0.35 * self.seen[owner].usual_area:
                sights[owner].mask = sights[owner].mask | piece
                self.seen[owner].mask = sights[owner].mask
            else:
                rest.append(piece)
        return rest

    def _meet(self, pieces: list[Mask], view: FrameView) -> dict[int, Sight]:
        """Lost things found again (one-to-one, best total likeness), the rest are new."""
        ids = sorted(self.lost)
        looks = [histogram(view.bins[piece]) for piece in pieces]
        alike = np.zeros((len(pieces), len(ids)))
        diagonal = float(np.hypot(*view.foreground.shape))
        for a, piece in enumerate(pieces):
            for b, i in enumerate(ids):
                thing = self.lost[i]
                away = float(np.linalg.norm(_centroid(piece, view.to_common) - thing.position)) / diagonal
                gap = abs(view.index - thing.last_seen)
                ratio = float(piece.sum()) / max(thing.usual_area, 1.0)
                if away > 0.08 + 0.01 * gap + thing.speed * gap / diagonal or not 0.2 < ratio < 3.0:
                    continue
                alike[a, b] = overlap(thing.colours, looks[a]) - 0.2 * min(away, 1.0)
        out: dict[int, Sight] = {}
        pairs = dict(match(alike, _REIDENTIFY)) if pieces and ids else {}
        for a, piece in enumerate(pieces):
            support = float(np.minimum(view.strength[piece], 2.0).mean()) / 2.0
            position = _centroid(piece, view.to_common)
            if a in pairs:
                thing = self.lost.pop(ids[pairs[a]])
                thing.mask, thing.position, thing.last_seen = piece, position, view.index
                thing.path.append(position)
                score = 0.5 * support + 0.5 * float(alike[a, pairs[a]])
            else:
                thing = Thing(
                    self._next_id, piece, looks[a], float(piece.sum()), position, view.index, view.index
                )
                thing.path.append(position)
                self._next_id += 1
                score = support
            self.seen[thing.thing_id] = thing
            out[thing.thing_id] = Sight(piece, float(np.clip(score, 0, 1)), True)
        return out


def _cores(mask: Mask, least: int) -> list[Mask] | None:
    """The two pieces that a mask falls into when thin bridges are cut; None when it is one."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * _BRIDGE_PX + 1, 2 * _BRIDGE_PX + 1))
    core = cv2.erode(mask.astype(np.uint8), kernel)
    n, labels, stats, _ = cv2.connectedComponentsWithStats(core, connectivity=8)
    if n < 3:
        return None
    order = 1 + np.argsort(-stats[1:, cv2.CC_STAT_AREA], kind="stable")
    areas = stats[order, cv2.CC_STAT_AREA]
    if areas[1] < max(least / 2, _SPLIT_SHARE * areas[0]):
        return None
    away = [cv2.distanceTransform((labels != k).astype(np.uint8), cv2.DIST_L2, 3) for k in order[:2]]
    first = mask & (away[0] <= away[1])
    return [first, mask & ~first]


def _connected(mask: Mask, expected: Mask, least: int) -> Mask:
    """The components of a labelled mask that touch where the thing was expected, or are its largest."""
    n, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    if n == 1:
        return mask
    area = stats[:, cv2.CC_STAT_AREA].copy()
    area[0] = 0
    hits = np.bincount(labels[expected], minlength=n)
    keep = (hits > 0) & ((area >= 0.05 * area.max()) | (area >= least))
    keep[0] = False
    if not keep.any():
        keep[int(area.argmax())] = True
    return np.asarray(keep[labels])


def _pieces(mask: Mask, least: int) -> list[Mask]:
    n, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    depth = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 3)
    out = []
    for k in range(1, n):
        piece = labels == k
        if stats[k, cv2.CC_STAT_AREA] >= least and depth[piece].max() >= 2.5:
            out.append(piece)
    return out


def _centroid(mask: Mask, to_common: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    y, x = np.nonzero(mask)
    point = to_common @ np.array([x.mean(), y.mean(), 1.0])
    return np.asarray(point[:2] / point[2])
