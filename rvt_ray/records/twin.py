"""The twins table: one digital twin (DT) per clip (paper, section 2.2, the structured JSON J)."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeVar

import pyarrow as pa
from pydantic import BeforeValidator, Field

from rvt_ray.records.base import Part, Record
from rvt_ray.records.enums import Absence, CameraMotion, Coverage, DepthKind, FrameFlag, TrackStatus
from rvt_ray.records.twin_schema import TWIN_SCHEMA

_T = TypeVar("_T")
# A column that older corpora lack reads as null there.
_Added = Annotated[list[_T], BeforeValidator(lambda found: [] if found is None else found)]
# Nobody claimed anything: then nothing can be concluded from what is missing.
_Claimed = Annotated[Coverage, BeforeValidator(lambda found: Coverage.SOME if found is None else found)]


class Scored(Part):
    """A category with the score that its source gave it, 0..1.

    `source` says who claims it: the segmenter's name, `vlm`, or several joined by `+`; null: the segmenter
    (nobody else was asked).
    """

    value: str
    score: float
    source: str | None = None


class Attribute(Part):
    """One named property of an instance, e.g. name="colour" value="red".

    `source` says who claims it (`measured`, `annotation`, `detector`, `vlm`).
    """

    name: str
    value: str
    score: float
    source: str


class Quality(Part):
    """How far a track can be trusted."""

    mean_score: float
    redetection_rate: float
    fragments: int
    status: TrackStatus


class Track(Part):
    """One instance over the clip: parallel lists, one entry per annotated frame, ascending.

    Attributes:
        frame_idx: index inside the clip (0-based).
        visible: whether at least one pixel of it can be seen.
        absence: why not, where `visible` is false; null where it is visible.
        rle: COCO compressed RLE, column-major, of the clip's upright height x width. Null: not annotated
            on this frame. RLE of an empty mask: annotated and absent.
        box_x, box_y, box_w, box_h: pixels; width = xmax - xmin + 1. Null where not visible.
        area: pixels, 0 where not visible; null where not annotated.
        centroid_x, centroid_y: pixels, mean of pixel indices; null where not visible.
        velocity_x, velocity_y: pixels per second of the centroid, from presentation times, as seen on
            the screen (camera motion not removed); null where it cannot be known.
        score: the segmenter's confidence 0..1 (SAM2's beta); null on prompted or annotated frames.
        depth_*: statistics over the eroded mask in the unit of the twin's `depth_kind`; null without depth.
    """

    frame_idx: list[int]
    visible: list[bool]
    absence: list[Absence | None]
    rle: list[str | None]
    box_x: list[float | None]
    box_y: list[float | None]
    box_w: list[float | None]
    box_h: list[float | None]
    area: list[float | None]
    centroid_x: list[float | None]
    centroid_y: list[float | None]
    velocity_x: list[float | None]
    velocity_y: list[float | None]
    score: list[float | None]
    depth_median: list[float | None]
    depth_mean: list[float | None]
    depth_std: list[float | None]
    depth_p10: list[float | None]
    depth_p90: list[float | None]
    depth_min: list[float | None]
    depth_max: list[float | None]


class Instance(Part):
    """One object of the clip; its id is never reused in the clip."""

    instance_id: int
    category: str
    alternatives: list[Scored]
    attributes: list[Attribute]
    caption: str
    parent_id: int | None
    quality: Quality
    track: Track


class CameraStep(Part):
    """Motion of the image content from the previous frame to this one, caused by the camera.

    A similarity about the image centre c: p' = c + zoom * R(roll) * (p - c) + (dx, dy), pixels, radians.
    `known` is false where it could not be estimated; the numbers are then the identity. The first frame
    of a clip has the identity.
    """

    dx: float
    dy: float
    zoom: float
    roll: float
    known: bool


class FrameMeasure(Part):
    """What plain image processing says of one frame (docs/operators.md).

    Attributes:
        brightness: mean luma, 0..1.
        sharpness: mean squared gradient over the variance of the luma, at a fixed working size; comparable
            between frames of one clip.
        change: mean absolute difference of the luma from the frame before, 0..1; null on the first.
        flags: what is odd about the frame.
    """

    brightness: float
    sharpness: float
    change: float | None
    flags: list[FrameFlag]


class DepthStep(Part):
    """How one frame's relative depth is to be read beside the others': `scale * depth + shift` is in units
    of the static background's depth range, 0 at its far end and 1 at its near end, in every frame.

    Attributes:
        frame_idx: index inside the clip.
        scale, shift: null where no such map fits: the frame's depth is comparable inside the frame only.
        residual: median absolute error of the background under the map, in the same units; null where there
            was too little background to tell.
    """

    frame_idx: int
    scale: float | None
    shift: float | None
    residual: float | None


class ModelWeights(Part):
    """Weights that had a part in a twin. `part`: segment, depth, caption. `license`: SPDX id or `unknown`."""

    part: str
    model: str
    license: str


class Scene(Part):
    """The clip as a whole."""

    caption: str
    tags: list[str]
    camera_motion: CameraMotion
    camera: list[CameraStep]


class Provenance(Part):
    """Who made the twin. `settings` is the fingerprint of the settings that could change it."""

    segment: str
    depth: str
    caption: str
    settings: str
    versions: str  # JSON: package -> version


class DigitalTwin(Record):
    """Everything that reasoning may know about a clip; no pixels.

    Attributes:
        depth_alignment: per frame with depth of the kind `relative_inverse`, how it compares over time.
        frame_measures: one per frame of the clip; empty where nobody measured.
        flags: the flags of any of its frames.
        weights: models that had a part in it, with their licences.
        coverage: whether its instances are all things of the picture, as its segmenter claims; `some` where
            nobody claimed it (corpora from before the column).
    """

    TABLE: ClassVar[str] = "twins"
    SCHEMA: ClassVar[pa.Schema] = TWIN_SCHEMA
    ADDED: ClassVar[frozenset[str]] = frozenset(
        {"depth_alignment", "frame_measures", "flags", "weights", "coverage"}
    )

    clip_id: str
    width: int
    height: int
    num_frames: int
    pts_s: list[float]
    depth_kind: DepthKind
    scene: Scene
    key_frames: list[int]
    instances: list[Instance]
    provenance: Provenance
    depth_alignment: _Added[DepthStep] = Field(default_factory=list)
    frame_measures: _Added[FrameMeasure] = Field(default_factory=list)
    flags: _Added[FrameFlag] = Field(default_factory=list)
    weights: _Added[ModelWeights] = Field(default_factory=list)
    coverage: _Claimed = Coverage.SOME

    @property
    def holds_everything(self) -> bool:
        """Whether what is not in the twin is not in the picture."""
        return self.coverage is Coverage.EVERYTHING

    def instance(self, instance_id: int) -> Instance:
        """The instance with this id.

        Raises:
            KeyError: the twin has no such instance.
        """
        for instance in self.instances:
            if instance.instance_id == instance_id:
                return instance
        raise KeyError(f"twin of clip {self.clip_id} has no instance {instance_id}")
