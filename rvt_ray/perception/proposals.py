"""The seam between finding and linking: masks of a key frame, before anything is a track."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rvt_ray.perception.base import TrackDraft


@dataclass(frozen=True)
class Proposal:
    """A mask that may be an object.

    Attributes:
        frame: clip frame index.
        rle: COCO compressed RLE at the clip's size; never empty.
        score: 0..1, how good the mask is believed to be (predicted IoU, or a detector's score).
        label: the detector's word for it; null when nobody named it.
        parent: index, in the same frame's list, of the smallest proposal that this one is a part of.
        colours: histogram of its pixels (`rvt_ray.perception.linking.looks`); null: not measured.
    """

    frame: int
    rle: str
    score: float
    label: str | None = None
    parent: int | None = None
    colours: npt.NDArray[np.float32] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Sight:
    """A track on one frame.

    Attributes:
        rle: at the clip's size; the empty mask's where the object is not on the frame.
        score: confidence 0..1 (SAM2's beta); null where the mask was given, not predicted.
    """

    rle: str
    score: float | None


@dataclass(frozen=True)
class KeyFrameDecision:
    """What a linker makes of a key frame.

    Attributes:
        born: new track id -> its first mask. Ids are never reused.
        found: known track -> the proposal that it is on this frame; several joined where it was found in
            pieces, its share where it was found together with others.
        corrected: known track -> the mask that it is given anew: it drifted, or was lost and is back.
        ended: tracks that need not be followed any further.
    """

    born: dict[int, Proposal] = field(default_factory=dict)
    found: dict[int, Proposal] = field(default_factory=dict)
    corrected: dict[int, Proposal] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)


class Linker(Protocol):
    """Decides which proposals are which tracks. One per clip; plain code, no pixels, no torch."""

    def observe(self, frame: int, seen: Mapping[int, Sight]) -> None:
        """Take in where the followed tracks are. On every frame, ascending, before `key_frame`."""
        ...

    def key_frame(
        self, frame: int, proposals: Sequence[Proposal], seen: Mapping[int, Sight]
    ) -> KeyFrameDecision:
        """Link one key frame.

        Args:
            frame: clip frame index; key frames come in ascending order.
            proposals: what was found on it, best first.
            seen: every followed track on this frame, as propagated; empty for a segmenter that does not
                propagate but proposes on every frame.
        """
        ...

    def finish(self, tracks: Mapping[int, Mapping[int, Sight]]) -> list[TrackDraft]:
        """The clip's tracks: survivors, merged, judged.

        Args:
            tracks: track id -> clip frame -> sight, of the forward and the reverse pass.
        """
        ...
