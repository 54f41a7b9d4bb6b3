"""What every linker asks at the end of a clip: which tracks are one, and why is a track not on a frame?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rvt_ray.masks import rle
from rvt_ray.perception.linking.places import at_edge, box_of, meet
from rvt_ray.perception.proposals import Sight
from rvt_ray.records import Absence

_SAMPLES = 8  # frames on which two tracks are compared
_LEAST = 3  # frames on which both must be
_HIDDEN = 0.3  # share of where a thing last was that another one covers

Sights = dict[int, Sight]


@dataclass(frozen=True)
class Gone:
    """Why a track may be absent: the place that it was at is the frame's border, or another one covers it."""

    at_border: bool
    hidden: bool

    @property
    def why(self) -> Absence:
        """The one reason that there is."""
        if self.at_border == self.hidden:
            return Absence.UNKNOWN
        return Absence.OUT if self.at_border else Absence.OCCLUDED

    @property
    def overlooked(self) -> bool:
        """Nothing speaks for its not being there."""
        return not self.at_border and not self.hidden


class Ending:
    """The tracks of a clip at its end.

    Args:
        tracks: track id -> clip frame -> sight; empty ones are left out, and what has no other.
        num_frames: of the clip.
    """

    def __init__(
        self, tracks: Mapping[int, Mapping[int, Sight]], height: int, width: int, num_frames: int
    ) -> None:
        present = {i: {t: s for t, s in v.items() if rle.area(s.rle) > 0} for i, v in tracks.items()}
        self.tracks: dict[int, Sights] = {i: sights for i, sights in present.items() if sights}
        self._height, self._width, self._num_frames = height, width, num_frames
        self._boxes: dict[str, rle.Box] = {}

    def merge(self, same_iou: float, together: float, absorb: Callable[[int, int], None]) -> dict[int, int]:
        """Make duplicates one: the younger's frames fill the older's gaps.

        Args:
            same_iou: mean IoU, on frames on which both are, from which two tracks are one.
            together: share of the shorter one's frames on which both must be.
            absorb: called with (old, young), to join what is known of them.

        Returns:
            gone id -> what it became.
        """
        into: dict[int, int] = {}
        for young in sorted(self.tracks, reverse=True):
            for old in sorted(i for i in self.tracks if i < young):
                if self._are_one(self.tracks[old], self.tracks[young], same_iou, together):
                    for t, sight in self.tracks.pop(young).items():
                        self.tracks[old].setdefault(t, sight)
                    absorb(old, young)
                    into[young] = old
                    break
        return into

    def _are_one(self, a: Sights, b: Sights, same_iou: float, together: float) -> bool:
        common = sorted(a.keys() & b.keys())
        if len(common) < max(min(_LEAST, self._num_frames), together * min(len(a), len(b))):
            return False
        sample = common[:: max(1, len(common) // _SAMPLES)]
        total = 0.0
        for n, t in enumerate(sample):
            if meet(self._box(a[t].rle), self._box(b[t].rle)):
                total += rle.iou(a[t].rle, b[t].rle, self._height, self._width)
            if total + len(sample) - n - 1 < same_iou * len(sample):
                return False
        return True

    def absence(self, i: int) -> list[Absence | None]:
        """Per frame of the clip null where a track is present, else why it is not.

        Out where the place that it was at last (or will first be at) is the frame's border, hidden where
        another one covers that place; where both may be, nobody knows.
        """
        return [None if gone is None else gone.why for gone in self.gone(i)]

    def gone(self, i: int) -> list[Gone | None]:
        """Per frame of the clip null where a track is present, else what speaks for either reason."""
        sights = self.tracks[i]
        present = sorted(sights)
        out: list[Gone | None] = []
        place = 0  # of the sight that is nearest in time
        for t in range(self._num_frames):
            while place + 1 < len(present) and abs(present[place + 1] - t) < abs(present[place] - t):
                place += 1
            out.append(None if t in sights else self._gone(i, t, sights[present[place]].rle))
        return out

    def _gone(self, i: int, frame: int, last: str) -> Gone:
        box = self._box(last)
        covering = [
            other[frame].rle
            for k, other in self.tracks.items()
            if k != i and frame in other and meet(box, self._box(other[frame].rle))
        ]
        cover = rle.union(covering, self._height, self._width)
        hidden = rle.area(rle.intersection([last, cover], self._height, self._width))
        return Gone(at_edge(box, self._height, self._width), hidden >= _HIDDEN * rle.area(last))

    def _box(self, text: str) -> rle.Box:
        if text not in self._boxes:
            self._boxes[text] = box_of(text, self._height, self._width)
        return self._boxes[text]
