"""What a synthetic scene is: plain data from which every frame follows, and the camera's exact geometry.

World: metres; x to the right, y up, z away from the camera; the ground is y = 0. The camera stands at
(0, height, 0) and looks along +z. Panning shifts the image and zooming scales it (a shift lens), so that the
motion of everything static is *exactly* one similarity of the image, at any depth. A ray's parameter is the
metric depth itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rvt_ray.records import CameraStep
from rvt_ray.synthetic.kinds import COLOURS, KINDS

Array = npt.NDArray[np.float64]
Environment = Literal["studio", "playground", "park"]
Material = Literal["rubber", "metal", "wood"]
Size = Literal["small", "medium", "large"]

SCALE: dict[str, float] = {"small": 0.5, "medium": 0.8, "large": 1.25}  # metres per unit of a kind's shape


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Key(_Spec):
    """Where an object stands at a frame: base centre, metres. Between keys it moves on a straight line."""

    frame: float
    x: float
    z: float = Field(gt=0)
    y: float = Field(default=0.0, ge=0)


class CameraKey(_Spec):
    """The camera at a frame. `pan_x`, `pan_y`: shift of the image content in shares of the frame's width
    (positive pan_x moves it to the right); `zoom` scales about the image centre."""

    frame: float
    pan_x: float = 0.0
    pan_y: float = 0.0
    zoom: float = Field(default=1.0, gt=0)


_K = TypeVar("_K", Key, CameraKey)


class CameraSpec(_Spec):
    """`focal` in shares of the frame's width; `horizon` in shares of its height, from the top."""

    height: float = Field(default=1.75, gt=0)
    focal: float = Field(default=1.1, gt=0)
    horizon: float = 0.30
    path: tuple[CameraKey, ...] = (CameraKey(frame=0),)

    @field_validator("path")
    @classmethod
    def _ascending(cls, path: tuple[CameraKey, ...]) -> tuple[CameraKey, ...]:
        return _check_path(path)


class ObjectSpec(_Spec):
    """One object.

    Attributes:
        kind, colour: names of `kinds.KINDS` and `kinds.COLOURS`.
        path: at least one key; before the first and after the last key the object stands still.
        ease: start and stop softly at every key instead of at once.
        heading: direction it faces, radians from +x towards +z; null: where it moves (or has moved) to.
    """

    instance_id: int = Field(ge=1)
    kind: str
    colour: str
    material: Material = "rubber"
    size: Size = "medium"
    path: tuple[Key, ...]
    ease: bool = False
    heading: float | None = None

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, kind: str) -> str:
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}; valid: {', '.join(sorted(KINDS))}")
        return kind

    @field_validator("colour")
    @classmethod
    def _known_colour(cls, colour: str) -> str:
        if colour not in COLOURS:
            raise ValueError(f"unknown colour {colour!r}; valid: {', '.join(sorted(COLOURS))}")
        return colour

    @field_validator("path")
    @classmethod
    def _ascending(cls, path: tuple[Key, ...]) -> tuple[Key, ...]:
        return _check_path(path)

    @property
    def scale(self) -> float:
        """Metres per unit of the kind's shape."""
        return SCALE[self.size]

    @property
    def radius(self) -> float:
        """Metres: the circle on the ground that holds the object in any heading."""
        return KINDS[self.kind].radius * self.scale

    @property
    def tall(self) -> float:
        """Metres: how high the object is."""
        return KINDS[self.kind].height * self.scale

    def positions(self, num_frames: int) -> Array:
        """Base centre x, y, z per frame, metres, shape (num_frames, 3)."""
        return _interpolate(
            [k.frame for k in self.path], [(k.x, k.y, k.z) for k in self.path], num_frames, self.ease
        )

    def headings(self, num_frames: int) -> Array:
        """Radians per frame, shape (num_frames,)."""
        if self.heading is not None:
            return np.full(num_frames, self.heading)
        step = np.diff(self.positions(num_frames + 1)[:, [0, 2]], axis=0)
        moving = np.hypot(step[:, 0], step[:, 1]) > 1e-9
        if not moving.any():
            return np.zeros(num_frames)
        # A standing object keeps the heading of its last step, before the first step that of the first.
        frames = np.arange(num_frames)
        source = np.maximum.accumulate(np.where(moving, frames, -1))
        source = np.where(source < 0, int(np.argmax(moving)), source)
        return np.asarray(np.arctan2(step[source, 1], step[source, 0]), np.float64)


class SceneSpec(_Spec):
    """A whole clip. The same spec gives the same pixels, masks and depth on any machine."""

    seed: int = 0
    width: int = Field(default=320, ge=16)
    height: int = Field(default=240, ge=16)
    num_frames: int = Field(default=60, ge=1)
    fps: float = Field(default=24.0, gt=0)
    environment: Environment = "studio"
    camera: CameraSpec = CameraSpec()
    objects: tuple[ObjectSpec, ...] = ()

    @model_validator(mode="after")
    def _unique_ids(self) -> Self:
        ids = [o.instance_id for o in self.objects]
        if len(set(ids)) != len(ids):
            raise ValueError(f"objects: instance ids must be unique, not {sorted(ids)}")
        return self


class Camera:
    """The projection of a spec, per frame.

    Image and reference picture (no pan, no zoom): p = c + zoom * (r - c) + shift, pixels.
    """

    def __init__(self, spec: SceneSpec) -> None:
        keys = spec.camera.path
        values = [(k.pan_x, k.pan_y, k.zoom) for k in keys]
        path = _interpolate([k.frame for k in keys], values, spec.num_frames, ease=False)
        self.shift = path[:, :2] * spec.width
        self.zoom = path[:, 2]
        self.focal = spec.camera.focal * spec.width
        self.height = spec.camera.height
        self.centre = np.array([(spec.width - 1) / 2, (spec.height - 1) / 2])
        self.horizon = (spec.camera.horizon - 0.5) * spec.height

    def project(self, points: Array, frame: int) -> Array:
        """World points (..., 3) in front of the camera to pixels (..., 2)."""
        x, y, z = points[..., 0], points[..., 1], points[..., 2]
        reference = np.stack([self.focal * x / z, self.focal * (self.height - y) / z + self.horizon], axis=-1)
        return np.asarray(self.centre + self.zoom[frame] * reference + self.shift[frame], np.float64)

    def project_each(self, points: Array) -> Array:
        """One world point per frame (num_frames, 3) to its pixel on that frame (num_frames, 2)."""
        x, y, z = points.T
        reference = np.stack([self.focal * x / z, self.focal * (self.height - y) / z + self.horizon], axis=1)
        return np.asarray(self.centre + self.zoom[:, None] * reference + self.shift, np.float64)

    def rays(self, u: Array, v: Array, frame: int) -> tuple[Array, Array]:
        """x and y of the direction (x, y, 1) through pixels; the ray's parameter is the depth in metres."""
        scale = self.focal * self.zoom[frame]
        dx = (u - self.centre[0] - self.shift[frame, 0]) / scale
        dy = self.horizon / self.focal - (v - self.centre[1] - self.shift[frame, 1]) / scale
        return dx, dy

    def steps(self) -> list[CameraStep]:
        """The exact motion of the image content between frames."""
        steps = [CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=True)]
        for before, now in itertools.pairwise(range(len(self.zoom))):
            zoom = float(self.zoom[now] / self.zoom[before])
            move = self.shift[now] - zoom * self.shift[before]
            steps.append(CameraStep(dx=float(move[0]), dy=float(move[1]), zoom=zoom, roll=0.0, known=True))
        return steps


def _check_path(path: tuple[_K, ...]) -> tuple[_K, ...]:
    frames = [key.frame for key in path]
    if not frames:
        raise ValueError("a path needs at least one key")
    if any(b <= a for a, b in itertools.pairwise(frames)):
        raise ValueError(f"the frames of a path must ascend, not {frames}")
    return path


def _interpolate(
    frames: list[float], values: Sequence[tuple[float, ...]], num_frames: int, ease: bool
) -> Array:
    at = np.arange(num_frames, dtype=np.float64)
    table = np.asarray(values, np.float64)
    if len(frames) == 1:
        return np.repeat(table, num_frames, axis=0)
    times = np.asarray(frames, np.float64)
    segment = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    share = np.clip((at - times[segment]) / (times[segment + 1] - times[segment]), 0.0, 1.0)
    if ease:
        share = share * share * (3 - 2 * share)
    return table[segment] + share[:, None] * (table[segment + 1] - table[segment])
