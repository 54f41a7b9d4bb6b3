"""Random scenes: varied, seeded, and such that every object is seen some time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt

from rvt_ray.synthetic.background import BACKDROP_Z, nearest_ground
from rvt_ray.synthetic.kinds import KINDS
from rvt_ray.synthetic.looks import BEHAVIOURS, CameraMode, camera_path, draw_looks
from rvt_ray.synthetic.spec import (
    Array,
    Camera,
    CameraSpec,
    Environment,
    Key,
    ObjectSpec,
    SceneSpec,
)

_TRIES = 60
_MIN_SEEN_SHARE = 0.15
_DEEPEST = 15.0  # metres; beyond it objects are specks


def random_scene(
    seed: int,
    num_objects: int = 6,
    num_frames: int = 60,
    width: int = 320,
    height: int = 240,
    fps: float = 24.0,
    camera: CameraMode = "any",
) -> SceneSpec:
    """A scene that follows from the arguments alone.

    Kinds and colours repeat across objects but a (kind, colour) pair does so only when there are more objects
    than pairs, so that an object can be told by a combination.

    Args:
        seed: any integer >= 0.
        num_objects, num_frames: any number >= 0 and >= 1.
        camera: `any` draws one of the others.

    Returns:
        A spec whose objects do not run through each other where there is room, and of which each is in
        view, not hidden, on some frames (estimated from bounding discs).
    """
    rng = np.random.default_rng([seed, 1])
    environment = str(rng.choice(get_args(Environment)))
    spec = SceneSpec(
        seed=seed,
        width=width,
        height=height,
        num_frames=num_frames,
        fps=fps,
        environment=environment,  # type: ignore[arg-type]
        camera=CameraSpec(path=camera_path(rng, camera, num_frames)),
    )
    stage = _Stage(spec, rng)
    looks = draw_looks(rng, num_objects)
    # Still objects first: the others find their way around and behind them.
    order = sorted(range(num_objects), key=lambda i: BEHAVIOURS[i % len(BEHAVIOURS)] != "still")
    for i in order:
        stage.place(*looks[i], behaviour=BEHAVIOURS[i % len(BEHAVIOURS)])
    # Ids must not tell the behaviour.
    shuffled = [stage.placed[int(i)].spec for i in rng.permutation(num_objects)]
    objects = tuple(o.model_copy(update={"instance_id": n + 1}) for n, o in enumerate(shuffled))
    return spec.model_copy(update={"objects": objects})


@dataclass(frozen=True)
class _Placed:
    """A placed object with what the checks need, per frame."""

    spec: ObjectSpec
    positions: Array  # (n, 3) metres
    centres: Array  # (n, 2) pixels
    radii: Array  # (n,) pixels


class _Stage:
    """Places objects one after the other, by trial."""

    def __init__(self, spec: SceneSpec, rng: np.random.Generator) -> None:
        self.spec, self.rng = spec, rng
        self.camera = Camera(spec)
        self.near = nearest_ground(spec) * 1.08
        self.far = max(min(BACKDROP_Z[spec.environment] - 1.2, _DEEPEST), self.near * 1.5)
        self.last = max(spec.num_frames - 1, 1)
        self.placed: list[_Placed] = []

    def place(self, kind: str, colour: str, material: str, size: str, behaviour: str) -> None:
        best: tuple[float, _Placed] | None = None
        for _ in range(_TRIES):
            draft = ObjectSpec(
                instance_id=len(self.placed) + 1,
                kind=kind,
                colour=colour,
                material=material,  # type: ignore[arg-type]
                size=size,  # type: ignore[arg-type]
                path=(Key(frame=0, x=0, z=1),),
                ease=bool(self.rng.random() < 0.3) and behaviour != "still",
                # Still things face the viewer, more or less.
                heading=float(self.rng.uniform(-2.6, -0.5)) if behaviour == "still" else None,
            )
            moved = draft.model_copy(update={"path": getattr(self, f"_{behaviour}")(draft)})
            candidate = self._measure(moved)
            fault = self._fault(candidate)
            if best is None or fault < best[0]:
                best = (fault, candidate)
            if fault == 0:
                break
        assert best is not None
        self._accept(best[1])

    def _measure(self, spec: ObjectSpec) -> _Placed:
        positions = spec.positions(self.spec.num_frames)
        middle = positions + np.array([0.0, spec.tall / 2, 0.0])
        centres = self.camera.project_each(middle)
        radii = self.camera.focal * self.camera.zoom * 0.5 * (spec.radius + spec.tall / 2) / positions[:, 2]
        return _Placed(spec, positions, centres, radii)

    def _fault(self, candidate: _Placed) -> float:
        """How far the scene with this object falls short: 0 is good."""
        own = self._in_view(candidate)
        fault, seen = 0.0, own[None]
        if self.placed:
            others = self.positions - candidate.positions
            gap = np.hypot(others[..., 0], others[..., 2])
            short = 0.9 * (candidate.spec.radius + self.reach[:, None]) - gap
            apart = np.abs(others[..., 1]) > 1.2 * candidate.spec.tall
            fault = float(np.clip(np.where(apart, 0, short), 0, None).max(axis=1).sum())
            away = self.centres - candidate.centres
            distance, nearer = np.hypot(away[..., 0], away[..., 1]), others[..., 2] < 0
            own = own & ~((distance < self.radii) & nearer).any(axis=0)
            seen = np.concatenate([self.seen & ~((distance < candidate.radii) & ~nearer), own[None]])
        missing = np.clip(_MIN_SEEN_SHARE - seen.mean(axis=1), 0, None).sum()
        # Being seen weighs more than not touching.
        return fault + 100 * float(missing)

    def _in_view(self, item: _Placed) -> npt.NDArray[np.bool_]:
        """Per frame: the object's middle lies inside the picture."""
        x, y = item.centres.T
        inside: npt.NDArray[np.bool_] = (
            (x > 0) & (x < self.spec.width - 1) & (y > 0) & (y < self.spec.height - 1)
        )
        return inside

    def _accept(self, item: _Placed) -> None:
        """Add an object; what the checks of the next one need is kept stacked."""
        self.placed.append(item)
        self.positions = np.stack([p.positions for p in self.placed])
        self.centres = np.stack([p.centres for p in self.placed])
        self.radii = np.stack([p.radii for p in self.placed])
        self.reach = np.array([p.spec.radius for p in self.placed])
        # An object's middle is seen where it is in view and no nearer disc covers it.
        away = self.centres[:, None] - self.centres
        cover = np.hypot(away[..., 0], away[..., 1]) < self.radii
        nearer = self.positions[None, :, :, 2] < self.positions[:, None, :, 2]
        view = np.stack([self._in_view(p) for p in self.placed])
        self.seen: npt.NDArray[np.bool_] = view & ~(cover & nearer).any(axis=1)

    def _key(self, spec: ObjectSpec, frame: float, share: float, z: float, y: float = 0.0) -> Key:
        """The place at depth z that is seen at this share of the frame's width, at this frame."""
        index = int(np.clip(round(frame), 0, self.spec.num_frames - 1))
        dx, _ = self.camera.rays(np.array(share * self.spec.width), np.array(0.0), index)
        return Key(frame=frame, x=float(dx) * z, z=z, y=y)

    def _outside(self, spec: ObjectSpec, side: float, z: float, frame: float) -> float:
        """The share of the width at which the object is just out of view on a side (-1 left, 1 right)."""
        index = int(np.clip(round(frame), 0, self.spec.num_frames - 1))
        pixels = 1.1 * spec.radius * self.camera.focal * self.camera.zoom[index] / z + 3
        margin = float(pixels) / self.spec.width
        return -margin if side < 0 else 1 + margin

    def _draw(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def _side(self) -> float:
        return float(self.rng.choice([-1, 1]))

    def _depth(self) -> float:
        # Even in 1/z, so that as many are near as far in the picture; the farthest stay for those who travel.
        return 1 / self._draw(1 / (0.75 * self.far), 1 / self.near)

    def _height(self, spec: ObjectSpec) -> float:
        return self._draw(0.7, 1.5) if KINDS[spec.kind].flies else 0.0

    def _still(self, spec: ObjectSpec) -> tuple[Key, ...]:
        return (self._key(spec, self.last * 0.5, self._draw(0.1, 0.9), self._depth()),)

    def _cross(self, spec: ObjectSpec) -> tuple[Key, ...]:
        side, z, y = self._side(), self._depth(), self._height(spec)
        span = self._draw(0.5, 0.85) * self.last
        begin = self._draw(0.03, 0.97 - span / self.last) * self.last
        return (
            self._key(spec, begin, self._outside(spec, side, z, begin), z, y),
            self._key(spec, begin + span, self._outside(spec, -side, z, begin + span), z, y),
        )

    def _enter(self, spec: ObjectSpec) -> tuple[Key, ...]:
        side, z, y = self._side(), self._depth(), self._height(spec)
        begin = self._draw(0.05, 0.4) * self.last
        end = begin + self._draw(0.3, 0.55) * self.last
        stop = self._draw(0.2, 0.8)
        return (
            self._key(spec, begin, self._outside(spec, side, z, begin), z, y),
            self._key(spec, end, stop, self._nudge(z), y),
        )

    def _leave(self, spec: ObjectSpec) -> tuple[Key, ...]:
        side, z, y = self._side(), self._depth(), self._height(spec)
        begin = self._draw(0.1, 0.4) * self.last
        end = begin + self._draw(0.3, 0.5) * self.last
        return (
            self._key(spec, begin, self._draw(0.2, 0.8), self._nudge(z), y),
            self._key(spec, end, self._outside(spec, side, z, end), z, y),
        )

    def _approach(self, spec: ObjectSpec) -> tuple[Key, ...]:
        y = self._height(spec)
        far, near = self._draw(0.75, 1.0) * self.far, self._draw(1.0, 1.3) * self.near
        begin, end = self._draw(0.0, 0.2) * self.last, self._draw(0.75, 1.0) * self.last
        start = self._draw(0.2, 0.8)
        stop = float(np.clip(start + self._draw(-0.25, 0.25), 0.15, 0.85))
        return self._key(spec, begin, start, far, y), self._key(spec, end, stop, near, y)

    def _recede(self, spec: ObjectSpec) -> tuple[Key, ...]:
        first, last = self._approach(spec)
        return (
            first.model_copy(update={"x": last.x, "z": last.z}),
            last.model_copy(update={"x": first.x, "z": first.z}),
        )

    def _stop_and_go(self, spec: ObjectSpec) -> tuple[Key, ...]:
        z, y = self._depth(), self._height(spec)
        begin, halt = self._draw(0.0, 0.1) * self.last, self._draw(0.3, 0.4) * self.last
        go, end = self._draw(0.55, 0.7) * self.last, self._draw(0.9, 1.0) * self.last
        shares = sorted((self._draw(0.1, 0.35), self._draw(0.4, 0.6), self._draw(0.65, 0.9)))
        shares = shares if self._side() > 0 else shares[::-1]
        middle = self._key(spec, halt, shares[1], z, y)
        return (
            self._key(spec, begin, shares[0], z, y),
            middle,
            middle.model_copy(update={"frame": go}),
            self._key(spec, end, shares[2], z, y),
        )

    def _hide(self, spec: ObjectSpec) -> tuple[Key, ...]:
        """Runs behind something still, waits there, and comes out on the other side."""
        covers = [p for p in self.placed if p.spec.heading is not None and p.spec.tall > 0.6 * spec.tall]
        if not covers:
            return self._cross(spec)
        cover = covers[int(self.rng.integers(len(covers)))]
        halt, go = self._draw(0.35, 0.45) * self.last, self._draw(0.55, 0.65) * self.last
        index = min(round(halt), self.spec.num_frames - 1)
        z = float(cover.positions[0, 2]) + 1.15 * (cover.spec.radius + spec.radius)
        if z > self.far:
            return self._cross(spec)
        share, side = float(cover.centres[index, 0]) / self.spec.width, self._side()
        y = 0.0 if not KINDS[spec.kind].flies else 0.05
        middle = self._key(spec, halt, share, z, y)
        return (
            self._key(spec, self._draw(0.0, 0.1) * self.last, share - side * self._draw(0.3, 0.5), z, y),
            middle,
            middle.model_copy(update={"frame": go}),
            self._key(spec, self._draw(0.9, 1.0) * self.last, share + side * self._draw(0.3, 0.5), z, y),
        )

    def _nudge(self, z: float) -> float:
        return float(np.clip(z * self._draw(0.9, 1.1), self.near, self.far))
