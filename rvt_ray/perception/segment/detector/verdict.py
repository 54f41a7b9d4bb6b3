"""The end of a clip: which candidates were things, and how far their masks are to be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.linking.ending import Ending
from rvt_ray.perception.proposals import Sight
from rvt_ray.perception.segment.detector.life import LinkRules, Lives
from rvt_ray.perception.segment.detector.tangles import Tangles
from rvt_ray.records import Absence, TrackStatus

_TWICE = 0.6  # mean IoU from which two tracks are one thing
_TOGETHER = 0.5  # ... where both are, on so many of the shorter one's frames
_AGREE = 0.5  # share of the votes that the name of a sure thing has
_SURE = 0.5  # `label_score` of a sure thing
_FOUND = 0.4  # share of the looks at which a sure thing is found, where it is not hidden or out
_RARE = 0.3  # ... and below which it is nothing
_FADED = 0.5  # score of a mask that nobody should rely on
_DOUBTED = 0.45  # most that a mask is worth whose identity is not sure: less than facts trust


class Verdict:
    """Makes tracks of everything that was followed in a clip.

    Args:
        looks: frames on which there were detections.
        num_frames: of the clip.
    """

    def __init__(
        self,
        lives: Lives,
        tangles: Tangles,
        rules: LinkRules,
        looks: Sequence[int],
        size: tuple[int, int],
        num_frames: int,
    ) -> None:
        self._lives, self._tangles, self._rules = lives, tangles, rules
        self._looks, self._size, self._num_frames = looks, size, num_frames

    def drafts(self, tracks: Mapping[int, Mapping[int, Sight]]) -> list[TrackDraft]:
        """The tracks that are things, numbered by their first sight."""
        things = {i: sights for i, sights in tracks.items() if self._survives(i)}
        ending = Ending(things, *self._size, self._num_frames)
        ending.merge(_TWICE, _TOGETHER, lambda old, young: self._lives[old].absorb(self._lives[young]))
        order = sorted(ending.tracks, key=lambda i: (min(ending.tracks[i]), i))
        drafts = [self._draft(i, ending) for i in order]
        firm = [d for d in drafts if (d.redetection_rate or 0.0) >= _RARE]
        return [replace(d, instance_id=number) for number, d in enumerate(firm, start=1)]

    def _survives(self, i: int) -> bool:
        return self._lives.is_thing(i) and self._lives[i].best >= self._rules.confirm_score

    def _draft(self, i: int, ending: Ending) -> TrackDraft:
        life, sights = self._lives[i], ending.tracks[i]
        self._end_where_hidden(i, ending)
        frames = range(self._num_frames)
        nothing = rle.empty(*self._size)
        unsure_at, unclear_at = self._doubted(i, ending)
        gone = ending.gone(i)
        absence = [
            None if g is None else Absence.UNKNOWN if t in unclear_at else g.why for t, g in enumerate(gone)
        ]
        scores = {t: _doubted(sight.score) if t in unsure_at else sight.score for t, sight in sights.items()}
        span = [t for t in self._looks if min(sights) <= t <= max(sights)]
        there = [t for t in span if (g := gone[t]) is None or g.overlooked or t in unclear_at]
        found = len(set(life.looks) & set(there)) / max(len(there), 1)
        unsure = found < _FOUND or life.agreement < _AGREE or life.label_score < _SURE
        return TrackDraft(
            instance_id=i,
            frame_idx=list(frames),
            rle=[sights[t].rle if t in sights else nothing for t in frames],
            absence=absence,
            score=[scores.get(t) for t in frames],
            category=life.label or None,
            category_score=min(life.label_score, 1.0) if life.label else 0.0,
            status=TrackStatus.UNCERTAIN if unsure else None,
            redetection_rate=found,
        )

    def _doubted(self, i: int, ending: Ending) -> tuple[set[int], set[int]]:
        """Frames on which its masks may be another's, and on which why it is absent is not known either.

        Doubts about what turned out to be no thing, or the same one, do not count.
        """
        spans = [
            s
            for s in self._tangles.doubts.get(i, ())
            if s.among == {i} or any(k in ending.tracks for k in s.among - {i})
        ]
        unsure = {t for s in spans for t in s.frames(self._num_frames)}
        return unsure, {t for s in spans if s.absent for t in s.frames(self._num_frames)}

    def _end_where_hidden(self, i: int, ending: Ending) -> None:
        """Drop what was only carried on, faded, into the time in which another thing hides it: it went behind
        that thing after the last look that found it."""
        sights, looks = ending.tracks[i], self._lives[i].looks
        absence = ending.absence(i)
        for gap in [t + 1 for t in sights if t + 1 < self._num_frames and t + 1 not in sights]:
            if absence[gap] is not Absence.OCCLUDED:
                continue
            found = max((t for t in looks if t < gap), default=gap)
            for t in range(found + 1, gap):
                score = sights[t].score if t in sights else None
                if score is not None and score < _FADED:
                    del sights[t]


def _doubted(score: float | None) -> float:
    return _DOUBTED if score is None else min(score, _DOUBTED)
