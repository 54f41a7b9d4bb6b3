"""Captions from measurement alone: colour, size and motion words. It names nothing that it cannot measure.

What a thing *is* comes from the segmenter's label, if there is one; otherwise it stays "object".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from pydantic import Field

from rvt_ray.backends import Options
from rvt_ray.masks import geometry, rle
from rvt_ray.perception.base import Captions, InstanceCaption, Segmentation, TrackDraft
from rvt_ray.perception.caption import colour
from rvt_ray.perception.caption.looks import spread
from rvt_ray.perception.caption.motion_words import motion_word
from rvt_ray.perception.caption.phrases import describe_instance, describe_scene, scene_tags
from rvt_ray.perception.operators import classify_camera
from rvt_ray.records import Attribute, CameraStep, ClipRecord
from rvt_ray.video.frames import FrameStream

SOURCE = "measured"
_WORTH_SHARE = 0.15  # a colour below this share of the pixels is not worth a word
_LISTED_SHARE = 0.05  # but is listed from here on: what is not listed is surely not there
_FULL_VOTE = 3  # frames; with fewer every score is scaled down


class AppearanceCaptioner:
    """Words for colour (share of pixels, voted over frames), size (share of the frame) and motion."""

    name = "appearance"

    class Options(Options):
        """Attributes:
        frames_per_instance: frames on which an instance's pixels are looked at.
        small_below, large_above: bounds of the size words, share of the frame's pixels.
        """

        frames_per_instance: int = Field(default=7, ge=3)
        small_below: float = Field(default=0.01, gt=0, lt=1)
        large_above: float = Field(default=0.08, gt=0, lt=1)

    def __init__(self, options: AppearanceCaptioner.Options) -> None:
        self.options = options

    def caption(
        self,
        clip: ClipRecord,
        frames: FrameStream,
        segmentation: Segmentation,
        camera: Sequence[CameraStep],
    ) -> Captions:
        """See `rvt_ray.perception.base.Captioner`; deterministic, looks at a few frames only."""
        areas = {t.instance_id: rle.areas(t.rle) for t in segmentation.tracks}
        wanted = {
            t.instance_id: spread(t.frame_idx, areas[t.instance_id], self.options.frames_per_instance)
            for t in segmentation.tracks
        }
        shares, light = self._look(clip, frames, segmentation.tracks, wanted)
        captions, motions = [], []
        for track in segmentation.tracks:
            attributes = _colours(shares[track.instance_id])
            size = self._size(clip, areas[track.instance_id])
            motion = motion_word(track, clip, camera, SOURCE)
            attributes += [a for a in (size, motion) if a is not None]
            motions.append(motion)
            captions.append(
                InstanceCaption(
                    instance_id=track.instance_id,
                    category=track.category,
                    alternatives=[],
                    attributes=attributes,
                    caption=describe_instance(track.category, attributes),
                )
            )
        motion_of_camera = classify_camera(camera, clip.height, clip.width)
        return Captions(
            scene=describe_scene(light, motion_of_camera, segmentation.tracks, motions),
            tags=scene_tags(light, motion_of_camera, segmentation.tracks),
            instances=captions,
        )

    def _look(
        self,
        clip: ClipRecord,
        frames: FrameStream,
        tracks: Sequence[TrackDraft],
        wanted: dict[int, list[int]],
    ) -> tuple[dict[int, list[npt.NDArray[np.float64]]], float]:
        """Colour shares per instance and looked-at frame; mean lightness of the scene, 0..1."""
        scene_frames = {clip.num_frames * k // 4 for k in range(4)}
        needed = sorted(scene_frames | {f for chosen in wanted.values() for f in chosen})
        position = {t.instance_id: {f: i for i, f in enumerate(t.frame_idx)} for t in tracks}
        shares: dict[int, list[npt.NDArray[np.float64]]] = {t.instance_id: [] for t in tracks}
        light: list[float] = []
        for index, frame in frames.frames_at(needed):
            if index in scene_frames:
                # Lightness of OKLab over a coarse grid of pixels.
                light.append(float(colour.to_oklab(frame[::8, ::8] / 255.0)[..., 0].mean()))
            for track in tracks:
                if index not in wanted[track.instance_id]:
                    continue
                mask = rle.decode(track.rle[position[track.instance_id][index]], clip.height, clip.width)
                # The outline mixes with the background; a thin object keeps its whole mask.
                inner = geometry.erode(mask, 2)
                chosen = inner if inner.sum() >= 20 else mask
                shares[track.instance_id].append(colour.name_shares(frame[chosen]))
        return shares, float(np.mean(light)) if light else 0.0

    def _size(self, clip: ClipRecord, areas: npt.NDArray[np.int64]) -> Attribute | None:
        seen = areas[areas > 0]
        if seen.size == 0:
            return None
        share = seen / (clip.width * clip.height)
        small, large = self.options.small_below, self.options.large_above
        words = {
            "small": float(np.mean(share < small)),
            "medium-sized": float(np.mean((share >= small) & (share <= large))),
            "large": float(np.mean(share > large)),
        }
        word = max(words, key=lambda w: words[w])
        return Attribute(name="size", value=word, score=words[word], source=SOURCE)


def _colours(shares: Sequence[npt.NDArray[np.float64]]) -> list[Attribute]:
    """Colour words, best first. The score is the mean share of the pixels over the looked-at frames, for a
    colour worth a word times how many of the frames agree that it is; with fewer than three frames it is
    scaled down, so that a colour seen once stays doubtful."""
    if not shares:
        return []
    table = np.stack(shares)
    mean = table.mean(axis=0)
    agreed = np.where(mean >= _WORTH_SHARE, (table >= _WORTH_SHARE).mean(axis=0), 1.0)
    score = mean * agreed * min(1.0, len(shares) / _FULL_VOTE)
    order = sorted(range(len(colour.NAMES)), key=lambda i: (-score[i], colour.NAMES[i]))
    listed = [i for i in order if mean[i] >= _LISTED_SHARE]
    return [
        Attribute(name="colour", value=colour.NAMES[i], score=float(score[i]), source=SOURCE) for i in listed
    ]
