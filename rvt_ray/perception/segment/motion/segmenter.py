"""The `motion` segmenter: finds and follows what moves on its own. OpenCV only, no weights.

Forward in time things are followed from where they first stand out of the clean plate; then each that came
up in the middle of the picture is followed backwards from there. Results are as certain as the evidence
(`evidence.py`): what is not surely one whole object is `uncertain`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rvt_ray.masks import rle
from rvt_ray.perception.base import Segmentation
from rvt_ray.perception.segment.motion.drafts import draft
from rvt_ray.perception.segment.motion.evidence import Scene, is_confirmed, measure
from rvt_ray.perception.segment.motion.looks import Looks
from rvt_ray.perception.segment.motion.options import MotionOptions
from rvt_ray.perception.segment.motion.passes import Tracks, backward, forward, join_inseparable
from rvt_ray.perception.segment.motion.shot import Shot
from rvt_ray.perception.segment.motion.spool import Spool
from rvt_ray.perception.segment.motion.tracker import Thing, Tracker
from rvt_ray.records import ClipRecord, Coverage
from rvt_ray.video.frames import FrameStream


class MotionSegmenter:
    """See the module's text. Deterministic."""

    name = "motion"
    Options = MotionOptions

    def __init__(self, options: MotionOptions) -> None:
        self.options = options

    def segment(self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]) -> Segmentation:
        """See `rvt_ray.perception.base.Segmenter`. Clips shorter than 8 frames show no motion to go by."""
        with Spool() as spool:
            shot = Shot(frames, spool, self.options.working_side, self.options.plate_samples)
            least = max(20, round(self.options.min_area_share * shot.width * shot.height))
            tracks: Tracks = {}
            things: dict[int, Thing] = {}
            unexplained: list[list[float]] = []
            next_id = 1
            for first, last in shot.runs:
                tracker = Tracker(least, next_id)
                unexplained.append(forward(shot, tracker, first, last, least, tracks))
                things.update(tracker.seen)
                things.update(tracker.lost)
                backward(shot, tracks, things, first, last, least, range(next_id, tracker.next_id))
                next_id = tracker.next_id
            join_inseparable(shot, tracks, things)
            return self._report(clip, shot, tracks, things, unexplained, list(key_frames))

    def _report(
        self,
        clip: ClipRecord,
        shot: Shot,
        tracks: Tracks,
        things: dict[int, Thing],
        unexplained: list[list[float]],
        key_frames: list[int],
    ) -> Segmentation:
        """Drop noise, judge, number by first sight, bring masks to the clip's size."""
        kept = {i: s for i, s in tracks.items() if len(s) >= min(self.options.min_frames, clip.num_frames)}
        weight = {i: sum(rle.area(s.rle) * s.score for s in sights.values()) for i, sights in kept.items()}
        best = sorted(kept, key=lambda i: (-weight[i], i))[: self.options.max_things]
        order = sorted(best, key=lambda i: (min(kept[i]), -weight[i], i))
        reported = {i: kept[i] for i in order}
        looks = Looks(shot, reported, tracks)
        scenes = [
            Scene.of(shares, looks.stirred(first, last))
            for (first, last), shares in zip(shot.runs, unexplained, strict=True)
        ]
        drafts = []
        for number, i in enumerate(order, start=1):
            run = next(k for k, (first, last) in enumerate(shot.runs) if first <= min(kept[i]) <= last)
            evidence = measure(kept[i], things[i].path, looks.of(i), scenes[run], shot.width, shot.height)
            confirmed = is_confirmed(evidence, self.options, clip.num_frames)
            others = {k: s for k, s in reported.items() if k != i}
            drafts.append(draft(clip, shot, number, kept[i], others, key_frames, confirmed))
        return Segmentation(tracks=drafts, key_frames=key_frames, coverage=Coverage.SOME)
