"""Perception of one clip, end to end: frames in, `DigitalTwin` out. No Ray; lives in one worker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import numpy.typing as npt

from rvt_ray import backends
from rvt_ray.config import Config, fingerprint
from rvt_ray.config.settings import PerceiveSettings
from rvt_ray.errors import ClipError, RvtError
from rvt_ray.masks import rle
from rvt_ray.perception import caption as caption_room
from rvt_ray.perception import depth as depth_room
from rvt_ray.perception import segment as segment_room
from rvt_ray.perception.base import Captioner, DepthEstimator, Segmentation, Segmenter
from rvt_ray.perception.depth.align import DepthAligner
from rvt_ray.perception.operators import flags_of, look_through
from rvt_ray.records import (
    ClipRecord,
    DepthKind,
    DigitalTwin,
    FailureCode,
    ModelWeights,
    Provenance,
    Stage,
)
from rvt_ray.twin.assemble import assemble
from rvt_ray.twin.opinions import with_opinions
from rvt_ray.video.frames import FrameStream

_MAX_EXCLUDED_SHARE = 0.7
"""Where objects cover more than this, what is left is too little to see the camera by: use everything."""


def choose_key_frames(pts_s: Sequence[float] | npt.NDArray[np.float64], interval_s: float) -> list[int]:
    """Frame indices at which objects are looked for: the first, then each first frame that is at least
    `interval_s` later than the key frame before, by presentation time."""
    keys: list[int] = []
    for i, t in enumerate(pts_s):
        # The tolerance keeps 30 frames at 1/30 s a full second in spite of rounding.
        if not keys or t - pts_s[keys[-1]] >= interval_s - 1e-6:
            keys.append(i)
    return keys


@dataclass
class Backends:
    """Who looks at a clip."""

    segmenter: Segmenter
    depth: DepthEstimator
    captioner: Captioner

    def weights(self, *, captioner: bool) -> list[ModelWeights]:
        """What they loaded, as far as they say so; with or without the captioner."""
        found: list[ModelWeights] = []
        for part in (self.segmenter, self.depth, *([self.captioner] if captioner else [])):
            found += getattr(part, "weights", ())
        return found


@dataclass
class Perception:
    """The backends and the settings; built once per worker, used for many clips.

    Attributes:
        plain: for clips without annotations.
        annotated: for clips that come with annotations.
        settings: the `perceive` part of the config.
        settings_id: its fingerprint, for the twin's provenance.
        opinions: ask a captioner that asks a model; off where another worker does that.
    """

    plain: Backends
    annotated: Backends
    settings: PerceiveSettings
    settings_id: str
    opinions: bool = True

    @classmethod
    def from_config(cls, config: Config) -> Perception:
        """Resolve and construct the backends.

        Raises:
            ConfigError: unknown backend or option; MissingDependencyError: packages or weights are absent.
        """
        perceive = config.perceive
        build = backends.build
        plain = Backends(
            segmenter=build(perceive.segment, segment_room.BACKENDS, "perceive.segment"),
            depth=build(perceive.depth, depth_room.BACKENDS, "perceive.depth"),
            captioner=build(perceive.caption, caption_room.BACKENDS, "perceive.caption"),
        )
        annotated = replace(plain)
        if (other := perceive.annotated) is not None:
            where = "perceive.annotated"
            if other.segment is not None:
                annotated.segmenter = build(other.segment, segment_room.BACKENDS, f"{where}.segment")
            if other.depth is not None:
                annotated.depth = build(other.depth, depth_room.BACKENDS, f"{where}.depth")
            if other.caption is not None:
                annotated.captioner = build(other.caption, caption_room.BACKENDS, f"{where}.caption")
        return cls(plain, annotated, perceive, fingerprint(config, Stage.PERCEIVE))

    def twin(
        self, clip: ClipRecord, frames: FrameStream, seconds: dict[str, float] | None = None
    ) -> DigitalTwin:
        """Perceive one clip.

        Args:
            frames: the clip's frames; decoded once per step that looks at pixels.
            seconds: gets the wall seconds of each step added (`segment`, `camera`, `caption`,
                `depth_assemble`, `opinions`), decoding included.

        Raises:
            ClipError: the frames cannot be decoded, or a backend failed (BACKEND_ERROR, its name and the
                cause in the message).
        """
        clock = {} if seconds is None else seconds
        by = self.plain if clip.annotation_uri is None else self.annotated
        key_frames = choose_key_frames(clip.pts_s, self.settings.key_frame_interval_s)
        with _step("segment", by.segmenter.name, clip, clock):
            segmentation = by.segmenter.segment(clip, frames, key_frames)
        with _step("camera", "camera", clip, clock):
            hidden = objects_mask(segmentation, clip.height, clip.width)
            camera, measures = look_through(frames, hidden)
        asks = hasattr(by.captioner, "opinions")
        measured: Captioner = by.captioner.measured if asks else by.captioner  # type: ignore[attr-defined]
        with _step("caption", measured.name, clip, clock):
            captions = measured.caption(clip, frames, segmentation, camera)
        # Depth maps are consumed one by one while the twin is put together: none is kept.
        with _step("depth_assemble", by.depth.name, clip, clock):
            maps = by.depth.depth(clip, frames, key_frames)
            aligner = None
            if by.depth.kind is DepthKind.RELATIVE_INVERSE:
                aligner = DepthAligner(clip.height, clip.width, camera)
                maps = aligner.watch(maps, hidden)
            twin = assemble(
                clip,
                segmentation,
                maps,
                by.depth.kind,
                captions,
                camera,
                self.settings.twin,
                self._provenance(by, measured),
            )
            twin.depth_alignment = aligner.result() if aligner is not None else []
        twin.frame_measures, twin.flags = measures, flags_of(measures)
        twin.weights = by.weights(captioner=not asks)
        if asks and self.opinions:
            with _step("opinions", by.captioner.name, clip, clock):
                said = by.captioner.caption(clip, frames, segmentation, camera)
            twin = with_opinions(twin, said, by.captioner)
        return twin

    def _provenance(self, by: Backends, captioner: Captioner) -> Provenance:
        return Provenance(
            segment=by.segmenter.name,
            depth=by.depth.name,
            caption=captioner.name,
            settings=self.settings_id,
            versions=json.dumps(_versions(), sort_keys=True),
        )


@contextmanager
def _step(name: str, backend: str, clip: ClipRecord, clock: dict[str, float]) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    except RvtError:
        raise
    except Exception as error:
        raise ClipError(
            FailureCode.BACKEND_ERROR,
            f"{clip.uri} (clip {clip.clip_id}): {name} backend {backend!r} failed: "
            f"{type(error).__name__}: {error}",
        ) from error
    finally:
        clock[name] = clock.get(name, 0.0) + time.perf_counter() - start


def objects_mask(
    segmentation: Segmentation, height: int, width: int
) -> Callable[[int], npt.NDArray[np.bool_] | None]:
    """Clip frame index -> the union of all masks on it; None where there is none, or where so much is
    covered that the rest could not show the camera's motion."""
    by_frame: dict[int, list[str]] = {}
    for track in segmentation.tracks:
        for frame, text in zip(track.frame_idx, track.rle, strict=True):
            by_frame.setdefault(frame, []).append(text)

    def union(frame: int) -> npt.NDArray[np.bool_] | None:
        found = by_frame.get(frame)
        if not found:
            return None
        text = rle.union(found, height, width)
        covered = rle.area(text) / (height * width)
        return rle.decode(text, height, width) if 0 < covered <= _MAX_EXCLUDED_SHARE else None

    return union


def _versions() -> dict[str, str]:
    found = {}
    for package in ("rvt-ray", "numpy", "opencv-python-headless"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
