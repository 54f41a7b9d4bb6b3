"""A detection that nobody claims: is it a thing that was lost, or that flow could not follow? By looks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.masks.matching import match
from rvt_ray.perception.linking.places import at_edge
from rvt_ray.perception.segment.detector.cutout import box_iou
from rvt_ray.perception.segment.detector.life import Found, Lives
from rvt_ray.perception.segment.detector.tangles import TELLS, Tangles

Floats = npt.NDArray[np.float64]

_ALIKE = 0.45  # least histogram intersection of a thing that comes back
_SAME_LOOK = 0.7  # ... under a name that it never had
_LIKELY = 0.55  # ... when it must have been faster than things are
_LEAST_PART = 0.15  # ... and least share of it that must be seen then
_SIZE_RATIO = 3.0  # areas of a thing that comes back differ by at most this factor
_REACH = (0.06, 0.5, 0.8)  # diagonals: how far off at once, how much more per second, at most
_BY_PLACE = 0.3  # what being as far off as can be costs
_BARELY = 0.02  # value of what is allowed and no more


class Recall:
    """Gives what nobody claims to things that are missing.

    Args:
        known_iou: overlap of boxes from which a detection may be the thing that is there already.
    """

    def __init__(self, lives: Lives, tangles: Tangles, height: int, width: int, known_iou: float) -> None:
        self._lives, self._tangles = lives, tangles
        self._height, self._width = height, width
        self._known_iou = known_iou

    def claim(self, found: Found, owner: dict[int, int], there: Collection[int]) -> None:
        """Add to `owner` (proposal index -> id).

        First to those that can have come so far; then, rather than that a look-alike is born in the middle of
        the picture while one like it is missing, to those that must have been faster. A thing for which
        another one was as likely is not trusted from there on.

        Args:
            there: ids that were carried here.
        """
        for anywhere in (False, True):
            waiting = sorted(i for i in self._lives if i not in owner.values())
            left = [c for c in range(len(found.proposals)) if c not in owner]
            if anywhere:
                held = [k for k in there if k not in owner.values()]
                left = [c for c in left if not self._comes_in(found.boxes[c], held)]
                waiting = [i for i in self._lives.things(waiting) if not self._at_edge(self._lives[i].box)]
            value, likeness = self._fit(found, waiting, left, anywhere)
            for row, column in match(value, _BARELY / 2):
                i = owner[left[column]] = waiting[row]
                rivals = {
                    k
                    for other, k in enumerate(waiting)
                    if k != i
                    and self._lives.is_thing(k)
                    and self._lives.namesakes(i, k)
                    and value[other, column] > 0
                    and likeness[row, column] - likeness[other, column] < TELLS
                }
                # What was faster than things are may also be something new.
                if (rivals or anywhere) and self._lives.is_thing(i):
                    ids = {i, *rivals}
                    self._tangles.doubt(ids, min(max(self._lives[k].looks) for k in ids) + 1)

    def _fit(
        self, found: Found, ids: Sequence[int], columns: Sequence[int], anywhere: bool
    ) -> tuple[Floats, Floats]:
        """How well things that are missing fit what nobody claims, 0: not at all; and their colours alone."""
        diagonal = float(np.hypot(self._height, self._width))
        near, per_second, at_most = _REACH
        out, looks = np.zeros((len(ids), len(columns))), np.zeros((len(ids), len(columns)))
        for row, i in enumerate(ids):
            life = self._lives[i]
            far = at_most if anywhere else min(near + per_second * (found.now_s - life.seen_s), at_most)
            for k, column in enumerate(columns):
                proposal, area = found.proposals[column], found.areas[column]
                away = float(np.hypot(*(np.subtract(_centre(found.boxes[column]), _centre(life.box)))))
                ratio = max(area, life.area) / max(min(area, life.area), 1.0)
                likeness = life.likeness(proposal)
                named = proposal.label in life.votes
                if anywhere:
                    fits = named and likeness >= _LIKELY and _LEAST_PART <= area / life.area <= _SIZE_RATIO
                else:
                    fits = likeness >= (_ALIKE if named else _SAME_LOOK) and ratio <= _SIZE_RATIO
                if fits and away <= far * diagonal:
                    out[row, k] = max(likeness - _BY_PLACE * away / (far * diagonal), _BARELY)
                    looks[row, k] = likeness
        return out, looks

    def _comes_in(self, box: rle.Box, held: Collection[int]) -> bool:
        """Whether it may come over the border, or from among things that are there but not found."""
        return self._at_edge(box) or any(box_iou(self._lives[i].box, box) >= self._known_iou for i in held)

    def _at_edge(self, box: rle.Box) -> bool:
        return at_edge(box, self._height, self._width)


def _centre(box: rle.Box) -> tuple[float, float]:
    return box[0] + box[2] / 2, box[1] + box[3] / 2
