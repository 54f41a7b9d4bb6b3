"""The end of a clip: which candidates were things, which tracks were one, and what is said of each frame."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.linking.bridge import bridge_gaps
from rvt_ray.perception.linking.ending import Ending
from rvt_ray.perception.linking.memory import TrackMemory
from rvt_ray.perception.linking.settings import LinkSettings
from rvt_ray.perception.proposals import Sight
from rvt_ray.records import TrackStatus

_ONE = 0.7  # mean IoU from which two tracks are one
_STAYED = 0.5  # share of the frames since its birth on which a candidate must be present


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

    def drafts(self, tracks: Mapping[int, Mapping[int, Sight]]) -> list[TrackDraft]:
        """The tracks that are things, by id."""
        things = {i: sights for i, sights in tracks.items() if self._survived(i, sights)}
        ending = Ending(things, self._height, self._width, self._num_frames)
        into = ending.merge(_ONE, 0.0, self._absorb)
        if self._settings.bridge:
            bridge_gaps(ending.tracks, self._settings.bridge, self._height, self._width)
        return [self._draft(i, ending, into) for i in sorted(ending.tracks)]

    def _survived(self, i: int, sights: Mapping[int, Sight]) -> bool:
        memory = self._memories[i]
        if memory.dissolved:
            return False
        after = [t for t in sights if t > memory.born]
        stayed = [t for t in after if rle.area(sights[t].rle) > 0]
        if memory.found or not memory.looked:
            # Where there was no second look it must at least have been there on another frame.
            return bool(memory.found) or not after or bool(stayed)
        return len(stayed) >= _STAYED * max(len(after), 1) and bool(after)

    def _absorb(self, old: int, young: int) -> None:
        mine, theirs = self._memories[old], self._memories[young]
        mine.found += theirs.found
        mine.looked += theirs.looked
        if mine.label is None:
            mine.label, mine.label_score = theirs.label, theirs.label_score

    def _draft(self, i: int, ending: Ending, into: Mapping[int, int]) -> TrackDraft:
        memory, sights = self._memories[i], ending.tracks[i]
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
            absence=ending.absence(i),
            score=[sights[t].score if t in sights else None for t in frames],
            category=memory.label,
            category_score=memory.label_score if memory.label is not None else 0.0,
            parent_id=parent if parent in ending.tracks and parent != i else None,
            status=TrackStatus.UNCERTAIN if unsure else None,
            redetection_rate=memory.found / memory.looked if memory.looked else None,
        )
