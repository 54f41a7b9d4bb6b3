"""What is remembered of a track: last mask, motion, size, colours. Constant size, however long the clip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.linking.looks import Colours, learned
from rvt_ray.perception.linking.places import at_edge, box_of, cut_sides
from rvt_ray.perception.proposals import Proposal

_LEARN_SPEED = 0.4
_DAMPING = 0.95  # of the speed, per frame: what cannot be seen may stop
_STEADY = 1.3  # a mask whose area changed by more is being covered or uncovered: its centre says little


@dataclass(frozen=True)
class Expectation:
    """Where a track should be on a frame.

    Attributes:
        rle: its mask; the empty mask's when it should be outside of the picture.
        seen: it was propagated to, rather than guessed from its motion.
        reach: pixels by which its centre may be elsewhere, all the same.
        centre: x, y.
    """

    rle: str
    seen: bool
    reach: float
    centre: tuple[float, float]


@dataclass
class TrackMemory:
    """One track.

    Attributes:
        born: frame of its first mask.
        label, label_score: the surest word of a detector for it.
        parent: the track that it is a part of.
        last_seen: frame of `mask`, the last one with a pixel.
        box: of `mask`.
        centre, speed: x, y in pixels, and pixels per frame.
        usual_area: pixels, slow to forget: a half-hidden thing is still as large.
        whole: it was seen clear of the frame's border; else `usual_area` is only the least that it can be.
        colours: slow to forget; null: never measured.
        looked, found: key frames on which it should have been found, and was.
        missed: looks in a row on which it was neither found nor propagated.
        pieces: looks in a row on which it was found in pieces only.
        grouped: looks in a row on which it was found together with another one only.
        ended: it is not looked for any more. dissolved: and it never was a thing.
    """

    born: int
    label: str | None
    label_score: float
    mask: str
    last_seen: int
    centre: tuple[float, float]
    usual_area: float
    area: float
    box: rle.Box
    whole: bool
    parent: int | None = None
    speed: tuple[float, float] = (0.0, 0.0)
    colours: Colours | None = None
    looked: int = 0
    found: int = 0
    missed: int = 0
    pieces: int = 0
    grouped: int = 0
    ended: bool = False
    dissolved: bool = False
    _steps: int = field(default=0, repr=False)

    @classmethod
    def of(cls, proposal: Proposal, height: int, width: int) -> TrackMemory:
        """A track that begins with a proposal."""
        centre = rle.centroid(proposal.rle, height, width)
        if centre is None:
            raise ValueError(f"frame {proposal.frame}: a proposal has no pixel; leave empty masks out")
        area = float(rle.area(proposal.rle))
        box = box_of(proposal.rle, height, width)
        return cls(
            born=proposal.frame,
            label=proposal.label,
            label_score=proposal.score,
            mask=proposal.rle,
            last_seen=proposal.frame,
            centre=centre,
            usual_area=area,
            area=area,
            box=box,
            whole=not at_edge(box, height, width),
            colours=proposal.colours,
        )

    @property
    def is_candidate(self) -> bool:
        """It was never found again."""
        return self.found == 0

    def see(self, frame: int, text: str, height: int, width: int) -> None:
        """Take in where it is now. Masks without a pixel are no news."""
        centre = rle.centroid(text, height, width)
        if centre is None:
            return
        area = float(rle.area(text))
        gap = frame - self.last_seen
        box = box_of(text, height, width)
        if gap > 0:
            share = _LEARN_SPEED if self._steps else 1.0
            steady = max(area, self.area) <= _STEADY**gap * min(area, self.area)
            ways = [
                _moved(
                    (self.box[k], self.box[k + 2]),
                    (box[k], box[k + 2]),
                    centre[k] - self.centre[k],
                    steady,
                    (width, height)[k],
                )
                for k in (0, 1)
            ]
            if steady or not self._steps or at_edge(box, height, width) or at_edge(self.box, height, width):
                self.speed = (
                    (1 - share) * self.speed[0] + share * ways[0] / gap,
                    (1 - share) * self.speed[1] + share * ways[1] / gap,
                )
                self._steps += 1
        learn = 0.3 if area > self.usual_area else 0.05
        if not self.whole:
            learn = 1.0 if area > self.usual_area else 0.0
        self.usual_area += learn * (area - self.usual_area)
        self.whole |= not at_edge(box, height, width)
        self.mask, self.area, self.centre, self.box = text, area, centre, box
        self.last_seen = frame

    def recognise(self, proposal: Proposal) -> None:
        """Take in what a proposal that is this track says of it."""
        if proposal.label is not None and (self.label is None or proposal.score > self.label_score):
            self.label, self.label_score = proposal.label, proposal.score
        self.colours = learned(self.colours, proposal.colours)

    def expect(self, frame: int, height: int, width: int) -> Expectation:
        """Where it should be after moving on as it did."""
        gap = frame - self.last_seen
        frames = (1 - _DAMPING**gap) / (1 - _DAMPING)
        dx, dy = (v * frames for v in self.speed)
        pace = math.hypot(*self.speed)
        size = math.sqrt(self.usual_area)
        reach = 0.75 * size + (0.5 * pace + 0.002 * math.hypot(height, width)) * gap
        # Out of the picture it may turn; where it would come in again is near the border that it left by.
        centre = (
            min(max(self.centre[0] + dx, 0.0), width - 1.0),
            min(max(self.centre[1] + dy, 0.0), height - 1.0),
        )
        return Expectation(shifted(self.mask, round(dx), round(dy), height, width), False, reach, centre)


def shifted(text: str, dx: int, dy: int, height: int, width: int) -> str:
    """A mask moved right by dx and down by dy; what leaves the picture is cut off."""
    if dx == 0 and dy == 0:
        return text
    mask = rle.decode(text, height, width)
    moved = np.zeros_like(mask)
    if abs(dx) < width and abs(dy) < height:
        moved[max(dy, 0) : height + min(dy, 0), max(dx, 0) : width + min(dx, 0)] = mask[
            max(-dy, 0) : height - max(dy, 0), max(-dx, 0) : width - max(dx, 0)
        ]
    return rle.encode(moved)


def _moved(before: Sequence[float], now: Sequence[float], centre: float, steady: bool, size: int) -> float:
    """Pixels along one axis, from starts and lengths of two boxes and the way of the centre.

    A thing that slides out of the picture, or behind another, moves its centre at another pace: the side that
    the border or the other does not cut off tells.
    """
    low, high = now[0] - before[0], sum(now) - sum(before)
    cut_low, cut_high = cut_sides(before, now, size)
    if cut_low and cut_high:
        return 0.0
    if cut_low or cut_high:
        return high if cut_low else low
    if steady or low * high < 0:
        return centre
    return max(low, high, key=abs)
