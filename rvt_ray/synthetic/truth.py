"""The renderer's own truth: what is where, in front of what, when. Taken from dense instance maps, depth maps
and world positions, never from run-length masks, tracks or a twin, so that it can check those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from rvt_ray.records import Absence
from rvt_ray.synthetic.render import Frame, render
from rvt_ray.synthetic.spec import ObjectSpec, SceneSpec

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_HIDDEN_SHARE = 0.5  # an object of which less than this is visible is occluded
_APPROACH_SPEED = 0.1  # metres per second towards the camera


class Event(BaseModel):
    """Something that happens; frames are inclusive.

    Attributes:
        event: `enters` (first frame in view), `leaves` (last frame in view), `approaches`, `recedes` (towards
            or away from the camera, in the world), `moves`, `occluded_by` (less than half of it can be seen,
            `object` covers most of the rest), `passes_in_front_of`, `passes_behind` (the faster of the two;
            first frame on which the centroids have changed sides).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    event: str
    subject: int
    object: int | None = None
    start: int
    stop: int


@dataclass
class ObjectTruth:
    """One object over the clip, arrays of length num_frames.

    Attributes:
        area, amodal: pixels that are visible; that would be if it were alone.
        box: x, y, w, h of the visible pixels, shape (n, 4); NaN where none.
        centroid: of the visible pixels, shape (n, 2); NaN where none.
        depth: median metres over the visible pixels; NaN where none.
        position: base centre, metres, shape (n, 3).
        occluder: id of the object that covers most of its hidden pixels; 0 where nothing does.
    """

    spec: ObjectSpec
    area: Ints
    amodal: Ints
    box: Array
    centroid: Array
    depth: Array
    position: Array
    occluder: Ints

    @property
    def visible(self) -> npt.NDArray[np.bool_]:
        return self.area > 0

    @property
    def in_view(self) -> npt.NDArray[np.bool_]:
        """Inside the picture, hidden or not."""
        return self.amodal > 0

    def absence(self) -> list[Absence | None]:
        """Per frame why it cannot be seen; null where it is visible."""
        return [
            None if a > 0 else (Absence.OCCLUDED if full > 0 else Absence.OUT)
            for a, full in zip(self.area, self.amodal, strict=True)
        ]

    def visible_fraction(self) -> Array:
        """Visible share of what would be seen if it were alone; 0 where it is out."""
        return np.asarray(self.area / np.maximum(self.amodal, 1), np.float64)


class SceneTruth:
    """Everything about a rendered scene that a query can ask for.

    Frames and ids are the spec's. Relations take the *visible* pixels and are None where an object is not
    visible.
    """

    def __init__(self, spec: SceneSpec) -> None:
        self.spec = spec
        n = spec.num_frames
        self.objects: dict[int, ObjectTruth] = {
            o.instance_id: ObjectTruth(
                o,
                np.zeros(n, np.int64),
                np.zeros(n, np.int64),
                np.full((n, 4), np.nan),
                np.full((n, 2), np.nan),
                np.full(n, np.nan),
                o.positions(n),
                np.zeros(n, np.int64),
            )
            for o in spec.objects
        }

    @classmethod
    def of(cls, spec: SceneSpec, frames: Iterable[Frame] | None = None) -> Self:
        """The truth of a scene; renders it when its frames are not given."""
        truth = cls(spec)
        for frame in frames if frames is not None else render(spec):
            truth.add(frame)
        return truth

    def add(self, frame: Frame) -> None:
        """Take one rendered frame into account."""
        for instance_id, item in self.objects.items():
            t, own = frame.index, frame.instances == instance_id
            full = frame.amodal[instance_id]
            item.area[t], item.amodal[t] = own.sum(), full.sum()
            covering = frame.instances[full & ~own]
            covering = covering[covering > 0]
            if covering.size:
                item.occluder[t] = np.bincount(covering).argmax()
            ys, xs = np.nonzero(own)
            if xs.size:
                left, top = xs.min(), ys.min()
                item.box[t] = left, top, xs.max() - left + 1, ys.max() - top + 1
                item.centroid[t] = xs.mean(), ys.mean()
                item.depth[t] = np.median(frame.depth[own])

    def visible_ids(self, frame: int) -> list[int]:
        """Ids of which at least one pixel is visible, ascending."""
        return sorted(i for i, o in self.objects.items() if o.area[frame] > 0)

    def count(self, frame: int, kind: str | None = None, colour: str | None = None) -> int:
        """How many objects (of this kind, of this colour) are visible."""
        return sum(
            (kind is None or self.objects[i].spec.kind == kind)
            and (colour is None or self.objects[i].spec.colour == colour)
            for i in self.visible_ids(frame)
        )

    def left_of(self, a: int, b: int, frame: int) -> bool | None:
        """The centroid of `a` lies further left."""
        gap = self.objects[a].centroid[frame, 0] - self.objects[b].centroid[frame, 0]
        return None if np.isnan(gap) else bool(gap < 0)

    def above(self, a: int, b: int, frame: int) -> bool | None:
        """The centroid of `a` lies higher in the picture."""
        gap = self.objects[a].centroid[frame, 1] - self.objects[b].centroid[frame, 1]
        return None if np.isnan(gap) else bool(gap < 0)

    def in_front_of(self, a: int, b: int, frame: int) -> bool | None:
        """`a` is nearer to the camera (median visible depth)."""
        gap = self.objects[a].depth[frame] - self.objects[b].depth[frame]
        return None if np.isnan(gap) else bool(gap < 0)

    def larger(self, a: int, b: int, frame: int) -> bool | None:
        """`a` covers more visible pixels."""
        first, second = int(self.objects[a].area[frame]), int(self.objects[b].area[frame])
        return None if not first or not second else first > second

    def left_to_right(self, frame: int) -> list[int]:
        """Visible ids by the x of their centroids."""
        return sorted(self.visible_ids(frame), key=lambda i: float(self.objects[i].centroid[frame, 0]))

    def near_to_far(self, frame: int) -> list[int]:
        """Visible ids by median depth."""
        return sorted(self.visible_ids(frame), key=lambda i: float(self.objects[i].depth[frame]))

    def first_visible(self, instance_id: int) -> int | None:
        """First frame on which it can be seen; None: never."""
        frames = np.flatnonzero(self.objects[instance_id].visible)
        return int(frames[0]) if frames.size else None

    def last_visible(self, instance_id: int) -> int | None:
        """Last frame on which it can be seen; None: never."""
        frames = np.flatnonzero(self.objects[instance_id].visible)
        return int(frames[-1]) if frames.size else None

    def speed(self, instance_id: int) -> Array:
        """Metres per second in the world, per frame (backward difference; frame 0 as frame 1)."""
        position = self.objects[instance_id].position
        step = np.linalg.norm(np.diff(position, axis=0), axis=1) * self.spec.fps
        return np.concatenate((step[:1], step)) if step.size else np.zeros(len(position))

    def image_velocity(self, instance_id: int) -> Array:
        """Pixels per second of the visible centroid, camera motion included, shape (n, 2); NaN: unknown."""
        step = np.diff(self.objects[instance_id].centroid, axis=0) * self.spec.fps
        return np.concatenate((np.full((1, 2), np.nan), step))

    def approach_speed(self, instance_id: int) -> Array:
        """Metres per second towards the camera, per frame (backward difference; frame 0 as frame 1)."""
        step = -np.diff(self.objects[instance_id].position[:, 2]) * self.spec.fps
        return np.concatenate((step[:1], step)) if step.size else np.zeros(self.spec.num_frames)

    def is_still(self, instance_id: int) -> bool:
        """It stands still in the world throughout."""
        return bool((self.speed(instance_id) < 1e-9).all())

    def events(self) -> list[Event]:
        """All events, by start frame."""
        found: list[Event] = []
        for instance_id, item in self.objects.items():
            inside = item.in_view
            found += [
                Event(event="enters", subject=instance_id, start=t, stop=t)
                for t in (np.flatnonzero(inside[1:] & ~inside[:-1]) + 1).tolist()
            ]
            found += [
                Event(event="leaves", subject=instance_id, start=t, stop=t)
                for t in np.flatnonzero(inside[:-1] & ~inside[1:]).tolist()
            ]
            towards = self.approach_speed(instance_id)
            for name, frames in (
                ("moves", self.speed(instance_id) > 1e-9),
                ("approaches", towards > _APPROACH_SPEED),
                ("recedes", towards < -_APPROACH_SPEED),
            ):
                found += [
                    Event(event=name, subject=instance_id, start=a, stop=b)
                    for a, b in _spans(frames & inside)
                ]
            hidden = inside & (item.visible_fraction() < _HIDDEN_SHARE)
            for other in np.unique(item.occluder[hidden & (item.occluder > 0)]).tolist():
                found += [
                    Event(event="occluded_by", subject=instance_id, object=other, start=a, stop=b)
                    for a, b in _spans(hidden & (item.occluder == other))
                ]
        found += self._passes()
        return sorted(found, key=lambda e: (e.start, e.event, e.subject, e.object or 0))

    def _passes(self) -> Iterator[Event]:
        ids = sorted(self.objects)
        for n, a in enumerate(ids):
            for b in ids[n + 1 :]:
                # Centroids of the bodies, not of their visible pixels: passing goes on behind an occluder.
                side = np.sign(self._body_x(a) - self._body_x(b))
                both = self.objects[a].in_view & self.objects[b].in_view
                change = both[1:] & both[:-1] & (side[1:] != side[:-1]) & (side[1:] != 0)
                for t in (np.flatnonzero(change) + 1).tolist():
                    mover, other = (a, b) if self.speed(a)[t] >= self.speed(b)[t] else (b, a)
                    nearer = self.objects[mover].position[t, 2] < self.objects[other].position[t, 2]
                    name = "passes_in_front_of" if nearer else "passes_behind"
                    yield Event(event=name, subject=mover, object=other, start=t, stop=t)

    def _body_x(self, instance_id: int) -> Array:
        position = self.objects[instance_id].position
        return np.asarray(position[:, 0] / position[:, 2], np.float64)


def _spans(frames: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last index of every run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], frames, [False])).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]
