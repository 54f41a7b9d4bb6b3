"""Is a thing that turns up the one that was lost? By place, size and colours together."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rvt_ray.masks import rle
from rvt_ray.perception.linking.looks import alike
from rvt_ray.perception.linking.memory import Expectation, TrackMemory
from rvt_ray.perception.linking.settings import LinkSettings
from rvt_ray.perception.proposals import Proposal

_LEAST_PART = 0.03  # of a thing's area that can be seen when it comes out from behind something
_FASTEST = 3.5  # factor by which what is seen of a thing grows or shrinks from frame to frame
_SLACK = 4.0  # see `alike`
_HALF = 0.5  # how alike sizes are that cannot be compared, as only a part is seen


@dataclass(frozen=True)
class Arrival:
    """A proposal that is nobody's.

    Attributes:
        cut: it may be a part of something that the border or another thing hides.
        area, centre: of its mask, pixels.
    """

    proposal: Proposal
    cut: bool
    area: float
    centre: tuple[float, float]

    @classmethod
    def of(cls, proposal: Proposal, cut: bool, height: int, width: int) -> Arrival:
        centre = rle.centroid(proposal.rle, height, width)
        if centre is None:
            raise ValueError(f"frame {proposal.frame}: a proposal has no pixel; leave empty masks out")
        return cls(proposal, cut, float(rle.area(proposal.rle)), centre)


def likely_back(
    memory: TrackMemory, expected: Expectation, arrival: Arrival, iou: float, settings: LinkSettings
) -> float:
    """How well an arrival fits a lost track, 0..1; 0 where place, size or colours forbid it.

    Args:
        memory, expected: of the track.
        iou: of the arrival with where the track should be.
    """
    proposal, area = arrival.proposal, arrival.area
    ratio = area / memory.usual_area
    # What is seen of a thing may be a part of it, now or before ...
    least = _LEAST_PART if arrival.cut else 1 / settings.size_ratio
    most = settings.size_ratio if memory.whole else 1 / _LEAST_PART
    if not least <= ratio <= most:
        return 0.0
    # ... but it takes time to go behind something, and to come out.
    pace = _FASTEST ** (proposal.frame - memory.last_seen)
    if not memory.area / pace <= area <= memory.area * pace:
        return 0.0
    whole, part = (memory.colours, proposal.colours) if ratio <= 1 else (proposal.colours, memory.colours)
    likeness = alike(whole, part, slack=min(max(ratio, 1 / ratio), _SLACK))
    if likeness is None:  # place and size alone: only where it should be
        return _HALF + iou / 2 if iou >= settings.guess_iou else 0.0
    # The centre of what is seen is not the centre of the thing, now or before.
    side, before, now = (math.sqrt(a) for a in (memory.usual_area, memory.area, area))
    reach = expected.reach + abs(side - before) / 2 + abs(side - now) / 2
    away = math.dist(arrival.centre, expected.centre) / reach
    if away > 1 or likeness < settings.alike:
        return 0.0
    alike_size = min(ratio, 1 / ratio)
    if ratio < 1 or not memory.whole:
        alike_size = max(alike_size, _HALF)
    return float(0.55 * likeness + 0.25 * (1 - away) + 0.2 * alike_size)
