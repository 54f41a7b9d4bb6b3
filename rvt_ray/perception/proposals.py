"""What a segmenter found on one key frame, before anything is a track: the seam between finding and linking."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proposal:
    """A mask that may be an object.

    Attributes:
        frame: clip frame index.
        rle: COCO compressed RLE at the clip's size; never empty.
        score: 0..1, how good the mask is believed to be (predicted IoU, or a detector's score).
        label: the detector's word for it; null when nobody named it.
        parent: index, in the same frame's list, of the smallest proposal that this one is a part of.
    """

    frame: int
    rle: str
    score: float
    label: str | None = None
    parent: int | None = None
