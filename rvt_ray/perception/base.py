"""The protocols of perception: what a segmenter, a depth estimator and a captioner take and give.

All are built by `rvt_ray.backends.build` from their `Options`, live in one worker for many clips, and must
be deterministic for the same clip, options and seed. One that loads weights may name them, with their
licence, in an attribute `weights: Sequence[ModelWeights]`; they stand in every twin that it had a part in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rvt_ray.records import (
    Absence,
    Attribute,
    CameraStep,
    ClipRecord,
    Coverage,
    DepthKind,
    Scored,
    TrackStatus,
)
from rvt_ray.video.frames import FrameStream


@dataclass
class TrackDraft:
    """One instance as a segmenter sees it; geometry is added by the twin's assembly.

    Attributes:
        instance_id: >= 1, never reused in the clip.
        frame_idx: annotated clip frames, ascending.
        rle: per annotated frame the COCO compressed RLE (the empty mask's where absent).
        absence: per annotated frame why it is not visible; null where it is.
        score: per annotated frame the confidence 0..1; null on prompted or given frames.
        category, category_score: what the segmenter knows of it (a detector's label, an annotation); null
            when it knows nothing.
        status: null leaves it to the twin's thresholds; `uncertain` is final.
        redetection_rate: share of key frames on which it was found again; null: not measured.
    """

    instance_id: int
    frame_idx: list[int]
    rle: list[str]
    absence: list[Absence | None]
    score: list[float | None]
    category: str | None = None
    category_score: float = 0.0
    attributes: list[Attribute] = field(default_factory=list)
    parent_id: int | None = None
    status: TrackStatus | None = None
    redetection_rate: float | None = None


@dataclass
class Segmentation:
    """All tracks of a clip.

    Attributes:
        key_frames: the frames on which objects were looked for.
        coverage: whether the tracks are all things of the picture. Claimed by a segmenter that knows so
            (rendered truth, masks that a person vouches for), never by one that looks for things: it cannot
            know what it missed.
    """

    tracks: list[TrackDraft]
    key_frames: list[int]
    coverage: Coverage = Coverage.SOME


@dataclass
class InstanceCaption:
    """What a captioner says about one instance. `category` null: "unclear"."""

    instance_id: int
    category: str | None
    alternatives: list[Scored]
    attributes: list[Attribute]
    caption: str


@dataclass
class Captions:
    """What a captioner says about a clip."""

    scene: str
    tags: list[str]
    instances: list[InstanceCaption]


class Segmenter(Protocol):
    """Clip -> masks and tracks."""

    name: str

    def segment(self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]) -> Segmentation:
        """Find and track every object of the clip.

        Args:
            key_frames: the frames at which to look for objects, ascending, the first included.

        Raises:
            ClipError: the clip cannot be segmented (e.g. BAD_ANNOTATION).
        """
        ...


class DepthEstimator(Protocol):
    """Clip -> depth maps of some frames."""

    name: str
    kind: DepthKind

    def depth(
        self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]
    ) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """Yield (clip frame index, depth map of shape (height, width)) ascending; nothing for kind `none`."""
        ...


class Captioner(Protocol):
    """Clip and tracks -> words."""

    name: str

    def caption(
        self,
        clip: ClipRecord,
        frames: FrameStream,
        segmentation: Segmentation,
        camera: Sequence[CameraStep],
    ) -> Captions: ...


class OpinionatedCaptioner(Captioner, Protocol):
    """A captioner that asks a model about what cannot be measured.

    Its `caption` gives the opinions alone. They are merged into the twin that `measured` made
    (`rvt_ray.twin.opinions`), in the same worker or, in a job, in a pool of their own.
    """

    measured: Captioner

    async def opinions(self, clip: ClipRecord, frames: FrameStream, tracks: Sequence[TrackDraft]) -> Captions:
        """What the model says, as `caption`, for callers with an event loop."""
        ...

    async def close(self) -> None:
        """Let the model go; idempotent."""
        ...
