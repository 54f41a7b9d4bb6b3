"""The `detector` segmenter: boxes of a detector, cut out by GrabCut, carried by optical flow.

The clip is read once into small frames on disk, from which camera path and clean plates are made (as the
`motion` segmenter does), and once more for the detector. Memory does not grow with the clip but by run-length
masks. Needs neither a GPU nor torch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import geometry, rle
from rvt_ray.perception import detect
from rvt_ray.perception.base import Segmentation, TrackDraft
from rvt_ray.perception.segment.detector.follow import Follow
from rvt_ray.perception.segment.detector.life import LinkRules
from rvt_ray.perception.segment.detector.link import DetectionLinker
from rvt_ray.perception.segment.detector.options import DetectorOptions
from rvt_ray.perception.segment.motion.shot import Shot
from rvt_ray.perception.segment.motion.spool import Spool
from rvt_ray.records import ClipRecord, Coverage, ModelWeights
from rvt_ray.video.frames import FrameStream

log = logging.getLogger(__name__)


class DetectorSegmenter:
    """See docs/cpu_tier.md. Deterministic.

    Args:
        detector: another detector than the configured one; needs no weights then.

    Raises:
        MissingDependencyError: the detector's weights are not on this machine.
        ConfigError: they are corrupt, or there is no such detector.
    """

    Options = DetectorOptions

    def __init__(
        self, options: DetectorOptions | None = None, detector: detect.Detector | None = None
    ) -> None:
        self._options = options or DetectorOptions()
        self._detector = detector or detect.build(self._options.detector)
        self.name = f"detector:{self._detector.name}"
        names = LinkRules.__dataclass_fields__
        self._rules = LinkRules(**{name: getattr(self._options, name) for name in names})
        self.weights: tuple[ModelWeights, ...] = tuple(getattr(self._detector, "weights", ()))

    @classmethod
    def preflight(cls, options: DetectorOptions) -> None:
        """Whether there is a detector, and its weights are there and run.

        Raises:
            MissingDependencyError, ConfigError: as the constructor.
        """
        detect.preflight(options.detector)

    def segment(self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]) -> Segmentation:
        """See `rvt_ray.perception.base.Segmenter`."""
        o = self._options
        looks = choose_looks(frames.pts_s, key_frames, o.look_interval_s)
        with Spool() as spool:
            shot = Shot(frames, spool, o.working_side, o.plate_samples)
            linker = DetectionLinker(frames.pts_s, shot.height, shot.width, looks, self._rules)
            follow = Follow(shot, spool, self._detector, linker, frames.pts_s, o.lost_s)
            for index, frame in frames.frames_at(looks):
                follow.look(index, frame)
            tracks = linker.finish(follow.tracks)
            size = (shot.height, shot.width)
        log.debug(
            "clip %s: %d looks, %d followed, %d tracks",
            clip.clip_id,
            len(looks),
            len(follow.tracks),
            len(tracks),
        )
        return Segmentation(
            [enlarge(track, size, (clip.height, clip.width)) for track in tracks],
            list(key_frames),
            Coverage.SOME,
        )


def choose_looks(pts_s: npt.NDArray[np.float64], key_frames: Sequence[int], interval_s: float) -> list[int]:
    """The frames to look at: the key frames, the last frame, and between them no gap of more than
    `interval_s` (or one frame)."""
    fixed = sorted({0, *key_frames, len(pts_s) - 1})
    looks = [fixed[0]]
    for stop in fixed[1:]:
        for t in range(looks[-1] + 1, stop):
            if pts_s[t + 1] - pts_s[looks[-1]] > interval_s + 1e-6:
                looks.append(t)
        looks.append(stop)
    return looks


def enlarge(track: TrackDraft, small: tuple[int, int], large: tuple[int, int]) -> TrackDraft:
    """The track with its masks at another size (height, width), outlines smoothed rather than blocky."""
    if small == large:
        return track
    nothing = rle.empty(*large)
    texts = []
    for text in track.rle:
        if rle.area(text) == 0:
            texts.append(nothing)
            continue
        texts.append(rle.encode(geometry.smooth_resize(rle.decode(text, *small), *large)))
    return replace(track, rle=texts)
