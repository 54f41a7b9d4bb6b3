"""Perception of one clip, end to end: frames in, `DigitalTwin` out. No Ray; lives in one worker."""

from __future__ import annotations

import json
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
from rvt_ray.twin.clock import Clock, ClockedFrames
from rvt_ray.twin.opinions import drafts_of, with_opinions
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


def captioners(config: Config) -> tuple[Captioner, Captioner]:
    """The captioners alone: of clips without and with annotations (often the same object).

    Raises:
        ConfigError: as `Perception.from_config`.
    """
    perceive, names = config.perceive, caption_room.BACKENDS
    plain: Captioner = backends.build(perceive.caption, names, "perceive.caption")
    if perceive.annotated is None or perceive.annotated.caption is None:
        return plain, plain
    return plain, backends.build(perceive.annotated.caption, names, "perceive.annotated.caption")


def asks_a_model(config: Config) -> bool:
    """Whether some captioner of these settings has opinions, which a job collects in a stage of their own.
    Loads nothing.

    Raises:
        ConfigError: unknown backend.
    """
    specs = {"perceive.caption": config.perceive.caption}
    if config.perceive.annotated is not None and config.perceive.annotated.caption is not None:
        specs["perceive.annotated.caption"] = config.perceive.annotated.caption
    found = [backends.resolve(spec.backend, caption_room.BACKENDS, what) for what, spec in specs.items()]
    return any(hasattr(cls, "opinions") for cls in found)


@dataclass
class Perception:
    """The backends and the settings; built once per worker, used for many clips.

    Attributes:
        plain: for clips without annotations.
        annotated: for clips that come with annotations.
        settings: the `perceive` part of the config.
        settings_id: its fingerprint, for the twin's provenance.
        opinions: ask a captioner that asks a model; off where another worker does that.
        opinions_id: the fingerprint that a twin has after that.
    """

    plain: Backends
    annotated: Backends
    settings: PerceiveSettings
    settings_id: str
    opinions: bool = True
    opinions_id: str = ""

    @classmethod
    def from_config(cls, config: Config) -> Perception:
        """Resolve and construct the backends.

        Raises:
            ConfigError: unknown backend or option; MissingDependencyError: packages or weights are absent.
        """
        perceive = config.perceive
        build, spoken = backends.build, captioners(config)
        plain = Backends(
            segmenter=build(perceive.segment, segment_room.BACKENDS, "perceive.segment"),
            depth=build(perceive.depth, depth_room.BACKENDS, "perceive.depth"),
            captioner=spoken[0],
        )
        annotated = replace(plain)
        if (other := perceive.annotated) is not None:
            where = "perceive.annotated"
            if other.segment is not None:
                annotated.segmenter = build(other.segment, segment_room.BACKENDS, f"{where}.segment")
            if other.depth is not None:
                annotated.depth = build(other.depth, depth_room.BACKENDS, f"{where}.depth")
            annotated.captioner = spoken[1]
        return cls(
            plain,
            annotated,
            perceive,
            fingerprint(config, Stage.PERCEIVE),
            opinions_id=fingerprint(config, Stage.CAPTION),
        )

    def twin(
        self, clip: ClipRecord, frames: FrameStream, seconds: dict[str, float] | None = None
    ) -> DigitalTwin:
        """Perceive one clip.

        Args:
            frames: the clip's frames; decoded once per step that looks at pixels.
            seconds: gets the wall seconds of each step added (`segment`, `camera`, `caption`, `depth`,
                `assemble`, `opinions`, and `decode`: waits for frames, which are in no other step).

        Raises:
            ClipError: the frames cannot be decoded, or a backend failed (BACKEND_ERROR, its name and the
                cause in the message).
        """
        clock = Clock({} if seconds is None else seconds)
        undisturbed, frames = frames, ClockedFrames(frames, clock)
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
        with _step("assemble", by.depth.name, clip, clock):
            maps = clock.over("depth", by.depth.depth(clip, frames, key_frames))
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
                seen = Segmentation(drafts_of(twin), twin.key_frames)
                said = by.captioner.caption(clip, undisturbed, seen, camera)
            twin = with_opinions(twin, said, by.captioner, self.opinions_id)
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
def _step(name: str, backend: str, clip: ClipRecord, clock: Clock) -> Iterator[None]:
    try:
        with clock.step(name):
            yield
    except RvtError:
        raise
    except Exception as error:
        raise ClipError(
            FailureCode.BACKEND_ERROR,
            f"{clip.uri} (clip {clip.clip_id}): {name} backend {backend!r} failed: "
            f"{type(error).__name__}: {error}",
        ) from error


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
