"""The end of a clip: which candidates were things, which tracks were one, and what is said of each frame."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.linking.bridge import bridge_gaps
from rvt_ray.perception.linking.memory import TrackMemory
from rvt_ray.perception.linking.settings import LinkSettings
from rvt_ray.perception.proposals import Sight
from rvt_ray.records import Absence, TrackStatus

_ONE = 0.7  # mean IoU from which two tracks are one
_SAMPLES = 8  # frames on which two tracks are compared
_HIDDEN = 0.3  # share of where an object last was that another one covers
_STAYED = 0.5  # share of the frames since its birth on which a candidate must be present

Sights = dict[int, Sight]


class Judge:
    """Makes tracks of everything that was followed in a clip.

    Args:
        memories: of every track that was ever born.
    """

    def __init__(
        self,
        memories: Mapping[int, TrackMemory],
        settings: LinkSettings,
        height: int,
        width: int,
        num_frames: int,
    ) -> None:
        self._memories = memories
        self._settings = settings
        self._height, self._width, self._num_frames = height, width, num_frames
        self._boxes: dict[str, rle.Box] = {}

    def drafts(self, tracks: Mapping[int, Mapping[int, Sight]]) -> list[TrackDraft]:
        """The tracks that are things, by id."""
        kept: dict[int, Sights] = {}
        for i, sights in tracks.items():
            present = {t: s for t, s in sights.items() if rle.area(s.rle) > 0}
            if present and self._survived(i, sights, present):
                kept[i] = present
        into = self._merge(kept)
        if self._settings.bridge:
            bridge_gaps(kept, self._settings.bridge, self._height, self._width)
        return [self._draft(i, kept, into) for i in sorted(kept)]

    def _survived(self, i: int, sights: Mapping[int, Sight], present: Sights) -> bool:
        memory = self._memories[i]
        if memory.dissolved:
            return False
        after = [t for t in sights if t > memory.born]
        stayed = [t for t in present if t > memory.born]
        if memory.found or not memory.looked:
            # Where there was no second look it must at least have been there on another frame.
            return bool(memory.found) or not after or bool(stayed)
        return len(stayed) >= _STAYED * max(len(after), 1) and bool(after)

    def _merge(self, tracks: dict[int, Sights]) -> dict[int, int]:
        """Unite duplicates; the younger's frames fill the older's gaps. Returns gone -> what it became."""
        into: dict[int, int] = {}
        for young in sorted(tracks, reverse=True):
            for old in sorted(i for i in tracks if i < young):
                if not self._one(tracks[old], tracks[young]):
                    continue
                for t, sight in tracks.pop(young).items():
                    tracks[old].setdefault(t, sight)
                mine, theirs = self._memories[old], self._memories[young]
                mine.found += theirs.found
                mine.looked += theirs.looked
                if mine.label is None:
                    mine.label, mine.label_score = theirs.label, theirs.label_score
                into[young] = old
                break
        return into

    def _one(self, a: Sights, b: Sights) -> bool:
        common = sorted(a.keys() & b.keys())
        if len(common) < min(3, self._num_frames):
            return False
        sample = common[:: max(1, len(common) // _SAMPLES)]
        total = 0.0
        for n, t in enumerate(sample):
            if self._meet(self._box(a[t].rle), self._box(b[t].rle)):
                total += rle.iou(a[t].rle, b[t].rle, self._height, self._width)
            if total + len(sample) - n - 1 < _ONE * len(sample):
                return False
        return True

    def _draft(self, i: int, tracks: Mapping[int, Sights], into: Mapping[int, int]) -> TrackDraft:
        memory, sights = self._memories[i], tracks[i]
        nothing = rle.empty(self._height, self._width)
        frames = range(self._num_frames)
        parent = memory.parent
        while parent is not None and parent in into:
            parent = into[parent]
        share = float(np.median(rle.areas([s.rle for s in sights.values()]))) / (self._height * self._width)
        unsure = (memory.looked > 0 and memory.is_candidate) or share >= self._settings.scenery
        return TrackDraft(
            instance_id=i,
            frame_idx=list(frames),
            rle=[sights[t].rle if t in sights else nothing for t in frames],
            absence=self._absence(i, tracks),
            score=[sights[t].score if t in sights else None for t in frames],
            category=memory.label,
            category_score=memory.label_score if memory.label is not None else 0.0,
            parent_id=parent if parent in tracks and parent != i else None,
            status=TrackStatus.UNCERTAIN if unsure else None,
            redetection_rate=memory.found / memory.looked if memory.looked else None,
        )

    def _absence(self, i: int, tracks: Mapping[int, Sights]) -> list[Absence | None]:
        """Per frame null where the track is present, else why it is not."""
        sights = tracks[i]
        present = sorted(sights)
        out: list[Absence | None] = []
        place = 0  # of the sight that is nearest in time
        for t in range(self._num_frames):
            while place + 1 < len(present) and abs(present[place + 1] - t) < abs(present[place] - t):
                place += 1
            out.append(None if t in sights else self._why(i, t, sights[present[place]].rle, tracks))
        return out

    def _why(self, i: int, frame: int, last: str, tracks: Mapping[int, Sights]) -> Absence:
        x, y, w, h = self._box(last)
        if x <= 1 or y <= 1 or x + w >= self._width - 1 or y + h >= self._height - 1:
            return Absence.OUT
        area = rle.area(last)
        for k, other in tracks.items():
            if k != i and frame in other and self._meet((x, y, w, h), self._box(other[frame].rle)):
                both = rle.intersection([last, other[frame].rle], self._height, self._width)
                if rle.area(both) >= _HIDDEN * area:
                    return Absence.OCCLUDED
        return Absence.UNKNOWN

    def _box(self, text: str) -> rle.Box:
        if text not in self._boxes:
            box = rle.bbox(text, self._height, self._width)
            assert box is not None, "sights of nothing are left out before"
            self._boxes[text] = box
        return self._boxes[text]

    @staticmethod
    def _meet(a: rle.Box, b: rle.Box) -> bool:
        across = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
        down = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
        return across > 0 and down > 0
