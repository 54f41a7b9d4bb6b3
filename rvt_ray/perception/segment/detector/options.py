"""What can be set on the `detector` segmenter."""

from __future__ import annotations

from pydantic import Field

from rvt_ray.backends import BackendSpec, Options


class DetectorOptions(Options):
    """Attributes:
    detector: what finds the boxes: `backend` (`yolox`, or a class like `rvt_ray.perception.detect.Detector`),
        `options`.
    look_interval_s: time between two looks of the detector; key frames are looked at in any case.
    working_side: longer side, pixels, that masks are cut out and carried at.
    plate_samples: frames that the clean plate is made of, which tells what moves from what is behind it.
    birth_score: least score of a box that can become a new candidate.
    confirm_score: a candidate becomes a track when its best box has this score ...
    confirm_looks: ... and it was found on so many looks (or on all, where the clip has fewer).
    same_iou: overlap of a carried mask and a new one from which they are the same thing.
    known_iou: overlap with a known thing from which a box is nothing new either.
    lost_s: for how long a thing that the detector overlooks is carried on by optical flow alone.
    max_objects: candidates that are followed at a time.
    """

    detector: BackendSpec = BackendSpec(backend="yolox")
    look_interval_s: float = Field(default=0.2, gt=0)
    working_side: int = Field(default=384, ge=96)
    plate_samples: int = Field(default=25, ge=5)
    birth_score: float = Field(default=0.3, gt=0, lt=1)
    confirm_score: float = Field(default=0.5, gt=0, lt=1)
    confirm_looks: int = Field(default=3, ge=1)
    same_iou: float = Field(default=0.35, gt=0, le=1)
    known_iou: float = Field(default=0.2, gt=0, le=1)
    lost_s: float = Field(default=0.7, ge=0)
    max_objects: int = Field(default=24, ge=1)
