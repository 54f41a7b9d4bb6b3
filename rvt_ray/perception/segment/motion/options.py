"""What can be set on the `motion` segmenter."""

from __future__ import annotations

from pydantic import Field

from rvt_ray.backends import Options


class MotionOptions(Options):
    """Attributes:
    working_side: longer side, pixels, that everything is computed at.
    plate_samples: frames that the clean plate is made of.
    min_area_share: smaller pieces are noise (share of the frame).
    min_frames: shorter tracks are dropped.
    min_motion: how far a confirmed thing must have moved on its own (share of the diagonal).
    confirm_score: mean score of a confirmed track.
    confirm_frames: on how many a confirmed thing is seen.
    max_things: of the biggest and longest-seen are kept.
    """

    working_side: int = Field(default=320, ge=64)
    plate_samples: int = Field(default=25, ge=5)
    min_area_share: float = Field(default=0.0012, gt=0, lt=1)
    min_frames: int = Field(default=6, ge=1)
    min_motion: float = Field(default=0.02, ge=0)
    confirm_score: float = Field(default=0.6, ge=0, le=1)
    confirm_frames: int = Field(default=15, ge=1)
    max_things: int = Field(default=12, ge=1)
