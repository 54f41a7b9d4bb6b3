"""Rays against unit solids, vectorised. A ray is o + t * d with one origin o and arrays of directions d."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from rvt_ray.synthetic.kinds import Shape

Array = npt.NDArray[np.float64]
Triple = tuple[Array, Array, Array]

_TORUS_STEPS = 256  # few rays need many: those that graze the near side on their way to the far one
_TORUS_EPS = 1e-4


def intersect(shape: Shape, ratio: float, o: Array, d: Triple) -> Array:
    """Least positive ray parameter at which the ray meets the solid; inf where it misses.

    Args:
        shape, ratio: see `kinds.Part`.
        o: origin in the solid's space, shape (3,), outside of the solid.
        d: x, y, z of the directions in the solid's space, any equal shapes.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if shape == "sphere":
            return _sphere(o, d)
        if shape == "box":
            return _box(o, d)
        if shape == "torus":
            return _torus(o, d, ratio)
        return _frustum(o, d, ratio, open_top=shape == "tube")


def normal(shape: Shape, ratio: float, p: Triple) -> Triple:
    """Outward normal (not normalised) of the solid at surface points p of its space."""
    x, y, z = p
    if shape == "sphere":
        return p
    if shape == "box":
        a = np.abs(np.stack(p))
        axis = a.argmax(axis=0)
        return cast(Triple, tuple(np.where(axis == i, np.sign(p[i]), 0.0) for i in range(3)))
    if shape == "torus":
        ring = np.maximum(np.hypot(x, z), 1e-12)
        shrink = 1 - 1 / ring
        return x * shrink, y, z * shrink
    on_cap = np.abs(y) > 1 - 1e-6
    slope = (ratio - 1) / 2
    radius = 1 + slope * (y + 1)
    side = np.where(on_cap, 0.0, 1.0)
    return x * side, np.where(on_cap, np.sign(y), -slope * radius), z * side


def _sphere(o: Array, d: Triple) -> Array:
    a = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    b = o[0] * d[0] + o[1] * d[1] + o[2] * d[2]
    c = float(o @ o) - 1.0
    root = b * b - a * c
    t = (-b - np.sqrt(root)) / a
    return np.where((root >= 0) & (t > 0), t, np.inf)


def _box(o: Array, d: Triple) -> Array:
    near, far = None, None
    for i in range(3):
        inverse = 1.0 / np.where(d[i] == 0, 1e-300, d[i])
        a, b = (-1 - o[i]) * inverse, (1 - o[i]) * inverse
        low, high = np.minimum(a, b), np.maximum(a, b)
        near = low if near is None else np.maximum(near, low)
        far = high if far is None else np.minimum(far, high)
    assert near is not None
    assert far is not None
    return np.where((near <= far) & (near > 0), near, np.inf)


def _frustum(o: Array, d: Triple, ratio: float, open_top: bool) -> Array:
    # Radius along the axis: q + slope * y, 1 at y = -1 and `ratio` at y = 1.
    slope = (ratio - 1) / 2
    r0, rd = 1 + slope * (o[1] + 1), slope * d[1]
    a = d[0] * d[0] + d[2] * d[2] - rd * rd
    b = o[0] * d[0] + o[2] * d[2] - r0 * rd
    c = o[0] * o[0] + o[2] * o[2] - r0 * r0
    root = b * b - a * c
    spread = np.sqrt(np.maximum(root, 0.0))
    best = np.full(a.shape, np.inf)
    for t in ((-b - spread) / a, (-b + spread) / a):
        y = o[1] + t * d[1]
        hit = (root >= 0) & (t > 0) & (np.abs(y) <= 1) & (r0 + t * rd >= 0)
        best = np.minimum(best, np.where(hit, t, np.inf))
    for level, radius in ((-1.0, 1.0), (1.0, ratio)):
        if open_top and level > 0:
            continue
        t = (level - o[1]) / d[1]
        x, z = o[0] + t * d[0], o[2] + t * d[2]
        hit = (t > 0) & (x * x + z * z <= radius * radius)
        best = np.minimum(best, np.where(hit, t, np.inf))
    return best


def _torus(o: Array, d: Triple, ratio: float) -> Array:
    """Sphere tracing from the entry into the flat cylinder that holds the torus."""
    grow = 1 + ratio
    entry = _frustum(o / np.array([grow, ratio, grow]), (d[0] / grow, d[1] / ratio, d[2] / grow), 1.0, False)
    found = np.full(entry.shape, np.inf)
    index = np.flatnonzero(np.isfinite(entry))
    if index.size == 0:
        return found
    dx, dy, dz = (part.ravel()[index] for part in d)
    t = entry.ravel()[index]
    length = np.sqrt(dx * dx + dy * dy + dz * dz)
    limit = t + 2 * (grow + ratio) / length
    for _ in range(_TORUS_STEPS):
        x, y, z = o[0] + t * dx, o[1] + t * dy, o[2] + t * dz
        gap = np.hypot(np.hypot(x, z) - 1, y) - ratio
        done = gap < _TORUS_EPS
        found.ravel()[index[done]] = t[done]
        keep = ~done & (t < limit)
        if not keep.any():
            break
        index, dx, dy, dz = index[keep], dx[keep], dy[keep], dz[keep]
        limit, length = limit[keep], length[keep]
        t = t[keep] + gap[keep] / length
    return found
