"""Rendering: a ray per pixel against every solid, nearest wins. Masks and depth are those of pixel centres.

Only the colours of edge pixels are averaged over sub-samples; an instance map is never blended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rvt_ray.masks.rle import Mask
from rvt_ray.synthetic.background import Background
from rvt_ray.synthetic.kinds import KINDS, Part, turn_matrix
from rvt_ray.synthetic.shading import albedo, finish, light, to_srgb
from rvt_ray.synthetic.shapes import Triple, intersect, normal
from rvt_ray.synthetic.spec import Array, Camera, ObjectSpec, SceneSpec

_NEAR = 0.15  # metres; solids that come nearer are not drawn
_CORNERS = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_SUBSAMPLES = ((-0.375, -0.125), (-0.125, 0.375), (0.125, -0.375), (0.375, 0.125))


@dataclass(frozen=True)
class Frame:
    """One rendered frame.

    Attributes:
        rgb: uint8 (height, width, 3).
        instances: int32 (height, width): id of the object that each pixel centre sees; 0 is background.
        depth: float32 (height, width): metres along the optical axis.
        amodal: per object the pixels it would cover if it were alone, bool (height, width).
    """

    index: int
    rgb: npt.NDArray[np.uint8]
    instances: npt.NDArray[np.int32]
    depth: npt.NDArray[np.float32]
    amodal: dict[int, Mask]


@dataclass
class _Solid:
    """One part of one object at one frame, ready to be hit."""

    owner: int
    part: Part
    spec: ObjectSpec
    to_local: Array  # (3, 3): world offsets to the solid's unit space
    origin: Array  # (3,): the camera in that space
    world: Array = field(repr=False)  # (3,): the solid's centre
    reach: float

    def directions(self, dx: Array, dy: Array) -> Triple:
        m = self.to_local
        x, y, z = (m[i, 0] * dx + m[i, 1] * dy + m[i, 2] for i in range(3))
        return x, y, z

    def hit(self, dx: Array, dy: Array) -> Array:
        """Depth of the solid along the rays (dx, dy, 1), metres; inf where they miss."""
        t = intersect(self.part.shape, self.part.ratio, self.origin, self.directions(dx, dy))
        return np.where(t > _NEAR, t, np.inf)


def render(spec: SceneSpec) -> Iterator[Frame]:
    """All frames of a scene, in order. Deterministic; memory does not grow with the clip."""
    renderer = _Renderer(spec)
    for index in range(spec.num_frames):
        yield renderer.frame(index)


def render_frame(spec: SceneSpec, index: int) -> Frame:
    """One frame of a scene (the scene's background is drawn anew: use `render` for many)."""
    if not 0 <= index < spec.num_frames:
        raise IndexError(f"frame {index} of a scene of {spec.num_frames} frames")
    return _Renderer(spec).frame(index)


class _Renderer:
    def __init__(self, spec: SceneSpec) -> None:
        self.spec = spec
        self.camera = Camera(spec)
        self.background = Background(spec, self.camera)
        self.positions = [o.positions(spec.num_frames) for o in spec.objects]
        self.headings = [o.headings(spec.num_frames) for o in spec.objects]
        self.travelled = [_travelled(p) for p in self.positions]

    def frame(self, index: int) -> Frame:
        spec = self.spec
        v, u = np.mgrid[0 : spec.height, 0 : spec.width].astype(np.float64)
        dx, dy = self.camera.rays(u, v, index)
        ground = self.background.depth(dy)
        depth = ground.copy()
        solids = self._solids(index)
        winner = np.full(depth.shape, -1, np.int32)
        amodal = {o.instance_id: np.zeros(depth.shape, np.bool_) for o in spec.objects}
        rects = self._rects(solids, index)
        for number, (solid, rect) in enumerate(zip(solids, rects, strict=True)):
            if rect is None:
                continue
            t = solid.hit(dx[rect], dy[rect])
            # What lies beyond the ground or the backdrop is not part of the object's picture.
            amodal[solid.spec.instance_id][rect] |= t < ground[rect]
            nearer = t < depth[rect]
            depth[rect][nearer] = t[nearer]
            winner[rect][nearer] = number
        picture = self.background.colour(index).astype(np.float64)
        picture *= self._shadows(index, dx, dy)[..., None]
        backdrop = picture.copy()
        edge = _edges(winner)
        seen = (winner >= 0) & ~edge
        picture[seen] = self._colours(solids, winner[seen], dx[seen], dy[seen], depth[seen])
        self._smooth(picture, backdrop, edge, solids, rects, index)
        ids = np.array([s.spec.instance_id for s in solids] + [0], np.int32)
        return Frame(index, to_srgb(picture), ids[winner], depth.astype(np.float32), amodal)

    def _solids(self, index: int) -> list[_Solid]:
        solids = []
        eye = np.array([0.0, self.camera.height, 0.0])
        for owner, spec in enumerate(self.spec.objects):
            kind = KINDS[spec.kind]
            position, heading = self.positions[owner][index], float(self.headings[owner][index])
            travelled = float(self.travelled[owner][index])
            pose = turn_matrix((0.0, -heading, 0.0))
            pivot = np.zeros(3)
            if kind.axle:
                pivot = np.array([0.0, kind.axle, 0.0])
                spin = turn_matrix((0.0, 0.0, -travelled / (kind.axle * spec.scale)))
            else:
                spin = np.eye(3)
            # Wings beat also on the spot; legs only as far as the animal walks.
            beat = math.sin(index * 2 * math.pi * 3.2 / self.spec.fps + owner)
            stride = math.sin(travelled * 7 / spec.scale)
            for part in kind.parts:
                centre = np.array(part.centre)
                turn = turn_matrix(part.turn)
                if part.flap:
                    swing = turn_matrix((part.flap * beat, 0.0, 0.0))
                    hinge = np.array([centre[0], centre[1], math.copysign(0.1, centre[2])])
                    centre, turn = hinge + swing @ (centre - hinge), swing @ turn
                if part.stride:
                    swing = turn_matrix((0.0, 0.0, part.stride * stride))
                    hinge = centre + np.array([0.0, part.half[1], 0.0])
                    centre, turn = hinge + swing @ (centre - hinge), swing @ turn
                centre = pivot + spin @ (centre - pivot)
                rotation = pose @ spin @ turn
                world = position + pose @ centre * spec.scale
                to_local = (rotation / (np.array(part.half) * spec.scale)).T
                reach = part.reach() * spec.scale
                solids.append(_Solid(owner, part, spec, to_local, to_local @ (eye - world), world, reach))
        return solids

    def _rects(self, solids: list[_Solid], index: int) -> list[tuple[slice, slice] | None]:
        """Per solid the pixels that can see its bounding sphere; None when none can."""
        if not solids:
            return []
        height, width = self.spec.height, self.spec.width
        world = np.array([s.world for s in solids])
        reach = np.array([s.reach for s in solids])
        far = world[:, 2] + reach
        # The box around the sphere, projected at its nearest and farthest depth, holds the projected sphere.
        corners = world[:, None] + _CORNERS * reach[:, None, None]
        corners[..., 2] = np.maximum(corners[..., 2], _NEAR)
        pixels = self.camera.project(corners, index)
        low = np.clip(np.floor(pixels.min(axis=1)) - 1, 0, (width, height)).astype(int).tolist()
        high = np.clip(np.ceil(pixels.max(axis=1)) + 2, 0, (width, height)).astype(int).tolist()
        return [
            (slice(top, bottom), slice(left, right)) if z > _NEAR and right > left and bottom > top else None
            for (left, top), (right, bottom), z in zip(low, high, far, strict=True)
        ]

    def _colours(
        self, solids: list[_Solid], winner: npt.NDArray[np.int32], dx: Array, dy: Array, depth: Array
    ) -> Array:
        """Colour of rays (flat arrays) that end on solids, shape (k, 3)."""
        count = len(winner)
        ray = np.stack([dx, dy, np.ones(count)], axis=1)
        world = ray * depth[:, None] + np.array([0.0, self.camera.height, 0.0])
        ray /= np.linalg.norm(ray, axis=1, keepdims=True)
        surface, n, finishes = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3))
        order = np.argsort(winner, kind="stable")
        bounds = np.searchsorted(winner[order], np.arange(len(solids) + 1))
        for number, solid in enumerate(solids):
            chosen = order[bounds[number] : bounds[number + 1]]
            if chosen.size == 0:
                continue
            part, spec = solid.part, solid.spec
            local = (world[chosen] - solid.world) @ solid.to_local.T
            outward = normal(part.shape, part.ratio, (local[:, 0], local[:, 1], local[:, 2]))
            n[chosen] = np.stack(outward, axis=1) @ solid.to_local
            surface[chosen] = albedo(part, spec.colour, spec.material, local)
            finishes[chosen] = finish(part, spec.material)
        n /= np.maximum(np.linalg.norm(n, axis=1, keepdims=True), 1e-12)
        n[np.einsum("ij,ij->i", n, ray) > 0] *= -1  # the inside of a cup
        return light(surface, finishes, world[:, 1], n, ray)

    def _smooth(
        self,
        picture: Array,
        backdrop: Array,
        edge: Mask,
        solids: list[_Solid],
        rects: list[tuple[slice, slice] | None],
        index: int,
    ) -> None:
        """Set the colour of edge pixels to the mean over sub-samples, in place."""
        rows, columns = np.nonzero(edge)
        if rows.size == 0:
            return
        offsets = np.array(_SUBSAMPLES)
        u = (columns[:, None] + offsets[:, 0]).ravel()
        v = (rows[:, None] + offsets[:, 1]).ravel()
        dx, dy = self.camera.rays(u, v, index)
        depth = self.background.depth(dy)
        found = np.full(u.shape, -1, np.int32)
        for number, (solid, rect) in enumerate(zip(solids, rects, strict=True)):
            if rect is None:
                continue
            y, x = rect
            near = (u >= x.start - 1) & (u <= x.stop) & (v >= y.start - 1) & (v <= y.stop)
            inside = np.flatnonzero(near)
            if inside.size == 0:
                continue
            t = solid.hit(dx[inside], dy[inside])
            nearer = t < depth[inside]
            depth[inside[nearer]] = t[nearer]
            found[inside[nearer]] = number
        samples = np.repeat(backdrop[rows, columns], len(offsets), axis=0)
        seen = found >= 0
        samples[seen] = self._colours(solids, found[seen], dx[seen], dy[seen], depth[seen])
        # Highlights are clipped before the mean, else one bright sub-sample eats the edge.
        picture[rows, columns] = np.clip(samples, 0, 1).reshape(len(rows), len(offsets), 3).mean(axis=1)

    def _shadows(self, index: int, dx: Array, dy: Array) -> Array:
        """Soft shadows on the ground: the factor on its light, shape (height, width)."""
        factor = np.ones(dx.shape)
        height = self.camera.height
        for owner, spec in enumerate(self.spec.objects):
            x, y, z = (float(value) for value in self.positions[owner][index])
            radius = 0.85 * spec.radius
            # The light comes from the upper left, a little from the front.
            x, z = x + 0.45 * radius + 0.5 * y, z + 0.10 * radius + 0.3 * y
            wide = radius + 0.35 * y
            span = 2.2 * wide
            near = z - span
            if z + span <= _NEAR or z >= self.background.backdrop_z:
                continue
            corners = np.array(
                [
                    (x + s * span, 0.0, d)
                    for s in (-1, 1)
                    for d in (max(near, _NEAR), min(z + span, self.background.backdrop_z))
                ]
            )
            pixels = self.camera.project(corners, index)
            left, top = np.clip(np.floor(pixels.min(axis=0)), 0, (dx.shape[1], dx.shape[0])).astype(int)
            right, bottom = np.clip(np.ceil(pixels.max(axis=0)) + 1, 0, (dx.shape[1], dx.shape[0])).astype(
                int
            )
            if right <= left or bottom <= top:
                continue
            rect = slice(top, bottom), slice(left, right)
            down = dy[rect]
            ground = down < -height / self.background.backdrop_z
            depth = height / np.maximum(-down, 1e-6)
            away = ((dx[rect] * depth - x) / wide) ** 2 + ((depth - z) / (0.8 * wide)) ** 2
            dark = 0.75 / (1 + 1.0 * y) * np.exp(-(away**1.3))
            factor[rect] *= np.where(ground, 1 - dark, 1.0)
        return factor


def _edges(winner: npt.NDArray[np.int32]) -> Mask:
    """Pixels of which a 4-neighbour sees another solid."""
    edge = np.zeros(winner.shape, np.bool_)
    across, down = winner[:, 1:] != winner[:, :-1], winner[1:] != winner[:-1]
    edge[:, 1:] |= across
    edge[:, :-1] |= across
    edge[1:] |= down
    edge[:-1] |= down
    return edge


def _travelled(positions: Array) -> Array:
    """Metres along the ground since frame 0."""
    step = np.hypot(*np.diff(positions[:, [0, 2]], axis=0).T)
    return np.concatenate(([0.0], np.cumsum(step)))
