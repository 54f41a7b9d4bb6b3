"""What a detector gives: boxes with names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rvt_ray.masks.rle import Box
from rvt_ray.video.frames import FrameArray

WHAT = "perceive.segment.options.detector"
"""The config field that names a detector, for error texts."""


@dataclass(frozen=True)
class Detection:
    """What a detector says of a frame, one object each.

    Attributes:
        x, y, w, h: the box, pixels of the frame; inside the frame.
        label: the detector's word for it.
        score: 0..1.
    """

    x: float
    y: float
    w: float
    h: float
    label: str
    score: float

    @property
    def area(self) -> float:
        """Pixels."""
        return self.w * self.h

    @property
    def box(self) -> Box:
        """x, y, w, h."""
        return self.x, self.y, self.w, self.h


class Detector(Protocol):
    """Frame -> boxes.

    Built like every backend (`rvt_ray.backends`); may have a classmethod `preflight(options)`, and an
    attribute `weights` as every part of perception (`rvt_ray.perception.base`).

    Attributes:
        name: with what identifies its weights; stands in the rows.
    """

    name: str

    def detect(self, frame: FrameArray) -> list[Detection]:
        """The boxes of one frame, best first, each thing once.

        Args:
            frame: uint8 RGB, shape (height, width, 3).
        """
        ...
