"""What the readers of all annotation formats share: the clip's span, sizes, and collecting tracks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rvt_ray.masks import geometry, rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.files import same_aspect
from rvt_ray.perception.segment.annotations.options import AnnotationOptions
from rvt_ray.records import Absence, Attribute, ClipRecord, TrackStatus


class Reader(Protocol):
    """Reads one format: the tracks of one clip."""

    def __call__(self, clip: ClipRecord, uri: str, options: AnnotationOptions) -> list[TrackDraft]: ...


@dataclass
class Label:
    """What a format knows about an object beside its masks."""

    category: str | None = None
    attributes: list[Attribute] = field(default_factory=list)
    status: TrackStatus | None = None


class TrackCollector:
    """Gathers masks per object and frame and makes tracks of them.

    Every object has an entry on every annotated frame: where no mask was given it is absent. Objects of
    which the clip shows no pixel are left out.
    """

    def __init__(self, clip: ClipRecord) -> None:
        self._clip = clip
        self._masks: dict[int, dict[int, str]] = {}
        self._absence: dict[int, dict[int, Absence]] = {}
        self._frames: list[int] = []

    def clip_frame(self, video_frame: int) -> int | None:
        """The clip's index of a frame of the video; None outside of the clip."""
        index = video_frame - self._clip.start_frame
        return index if 0 <= index < self._clip.num_frames else None

    def annotated(self, frame: int) -> None:
        """Say that a clip frame was looked at, whatever is on it. Frames come in ascending order."""
        self._frames.append(frame)

    def add(self, instance_id: int, frame: int, text: str) -> None:
        """The mask of an object on an annotated clip frame, in the clip's size."""
        self._masks.setdefault(instance_id, {})[frame] = text

    def absent(self, instance_id: int, frame: int, why: Absence) -> None:
        """Say why an object is not visible on a frame, where the format knows."""
        self._absence.setdefault(instance_id, {})[frame] = why

    def tracks(self, labels: Mapping[int, Label] | None = None) -> list[TrackDraft]:
        """One track per object that is visible at least once, by id."""
        nothing = rle.empty(self._clip.height, self._clip.width)
        out = []
        for instance_id, masks in sorted(self._masks.items()):
            texts = [masks.get(frame, nothing) for frame in self._frames]
            if all(text == nothing for text in texts):
                continue
            reasons = self._absence.get(instance_id, {})
            label = (labels or {}).get(instance_id, Label())
            out.append(
                TrackDraft(
                    instance_id=instance_id,
                    frame_idx=list(self._frames),
                    rle=texts,
                    absence=[
                        None if text != nothing else reasons.get(frame, Absence.UNKNOWN)
                        for frame, text in zip(self._frames, texts, strict=True)
                    ],
                    score=[None] * len(texts),
                    category=label.category,
                    category_score=1.0 if label.category is not None else 0.0,
                    attributes=list(label.attributes),
                    status=label.status,
                )
            )
        return out


def fit(text: str, height: int, width: int, clip: ClipRecord, uri: str, field_name: str) -> str:
    """A mask of the annotation's size in the clip's size (nearest neighbour).

    Raises:
        ClipError: another aspect than the clip's.
    """
    if (height, width) == (clip.height, clip.width):
        return text
    same_aspect(height, width, clip, uri, field_name)
    return rle.encode(geometry.resize(rle.decode(text, height, width), clip.height, clip.width))
