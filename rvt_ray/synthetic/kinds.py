"""The kinds of objects, built from simple solids; and the colours they come in.

A kind's own space: base centre at the origin, y up, +x is where it faces, about one unit large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Vec = tuple[float, float, float]
Shape = Literal["sphere", "box", "frustum", "tube", "torus"]
Role = Literal["main", "light", "dark", "glass", "orange", "dough", "brass"]

# sRGB 0..1. Far enough apart to be told apart under shading, at any of the materials.
COLOURS: dict[str, Vec] = {
    "red": (0.80, 0.10, 0.10),
    "orange": (0.95, 0.50, 0.05),
    "yellow": (0.95, 0.83, 0.12),
    "green": (0.13, 0.58, 0.20),
    "cyan": (0.15, 0.72, 0.76),
    "blue": (0.12, 0.27, 0.78),
    "purple": (0.48, 0.17, 0.66),
    "pink": (0.95, 0.48, 0.68),
    "brown": (0.42, 0.24, 0.11),
    "white": (0.92, 0.92, 0.90),
    "black": (0.07, 0.07, 0.08),
    "gray": (0.47, 0.48, 0.50),
}

ROLES: dict[str, Vec] = {
    "light": (0.90, 0.89, 0.86),
    "dark": (0.10, 0.10, 0.11),
    "glass": (0.16, 0.21, 0.26),
    "orange": (0.95, 0.55, 0.08),
    "dough": (0.80, 0.56, 0.30),
    "brass": (0.62, 0.50, 0.28),
}


@dataclass(frozen=True)
class Part:
    """One solid of a kind.

    Attributes:
        shape: unit solid: sphere, box [-1, 1]^3, frustum (axis y, |y| <= 1, radius 1 below and `ratio`
            above), tube (a frustum open at the top), torus (axis y, ring radius 1, tube radius `ratio`).
        centre, half: position and half size (for a torus all equal: the ring's radius).
        role: whose colour it has; `main` is the object's own.
        turn: radians about x, y, z, applied in this order.
        band: paints |y| < band of the solid's own space in `light`.
        flap: amplitude, radians: swings about x (wings) as the object moves.
        stride: amplitude, radians: swings about z (legs) as the object moves.
    """

    shape: Shape
    centre: Vec
    half: Vec
    role: Role = "main"
    turn: Vec = (0.0, 0.0, 0.0)
    ratio: float = 1.0
    band: float = 0.0
    flap: float = 0.0
    stride: float = 0.0

    def reach(self) -> float:
        """Radius of the sphere about `centre` that holds the solid in any turn."""
        if self.shape == "sphere":
            return max(self.half)
        if self.shape == "torus":
            return self.half[0] * (1 + self.ratio)
        widest = max(1.0, self.ratio) if self.shape in ("frustum", "tube") else 1.0
        if self.shape == "box":
            return math.hypot(*self.half)
        return math.hypot(max(self.half[0], self.half[2]) * widest, self.half[1])


@dataclass(frozen=True)
class Kind:
    """A named kind: its solids, whether it flies, the height of the axle it rolls about (0: none), whether it
    can be expected to move by itself."""

    parts: tuple[Part, ...]
    flies: bool = False
    axle: float = 0.0
    mobile: bool = False
    radius: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        side = max(math.hypot(p.centre[0], p.centre[2]) + _flat(p) for p in self.parts)
        top = max(p.centre[1] + _up(p) for p in self.parts)
        object.__setattr__(self, "radius", side)
        object.__setattr__(self, "height", top)


def turn_matrix(turn: Vec) -> npt.NDArray[np.float64]:
    """The rotation by `turn` (about x, then y, then z), shape (3, 3)."""
    (cx, cy, cz), (sx, sy, sz) = (tuple(map(f, turn)) for f in (math.cos, math.sin))
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x, np.float64)


def _extent(part: Part) -> npt.NDArray[np.float64]:
    half = np.array(part.half)
    if part.shape == "torus":
        half = half * np.array([1 + part.ratio, part.ratio, 1 + part.ratio])
    return np.asarray(np.abs(turn_matrix(part.turn)) @ half, np.float64)


def _flat(part: Part) -> float:
    x, _, z = _extent(part)
    return math.hypot(x, z) if part.shape == "box" else float(max(x, z))


def _up(part: Part) -> float:
    return float(_extent(part)[1])


def _wheels(xs: tuple[float, ...], radius: float, side: float) -> tuple[Part, ...]:
    tyres = [
        Part("frustum", (x, radius, z), (radius, 0.07, radius), "dark", (math.pi / 2, 0, 0))
        for x in xs
        for z in (-side, side)
    ]
    hubs = [
        Part("frustum", (x, radius, z), (radius * 0.5, 0.08, radius * 0.5), "light", (math.pi / 2, 0, 0))
        for x in xs
        for z in (-side, side)
    ]
    return tuple(tyres + hubs)


def _legs(xs: tuple[float, ...], z: float, half: Vec, role: Role, stride: float = 0.0) -> tuple[Part, ...]:
    return tuple(
        Part("frustum", (x, half[1], s * z), half, role, stride=stride * (1 if (i + (s > 0)) % 2 else -1))
        for i, x in enumerate(xs)
        for s in (-1, 1)
    )


_X = (0.0, 0.0, -math.pi / 2)  # lays a solid's axis along +x

KINDS: dict[str, Kind] = {
    "ball": Kind(
        (Part("sphere", (0, 0.5, 0), (0.5, 0.5, 0.5), band=0.16, turn=(0.4, 0, 0)),), axle=0.5, mobile=True
    ),
    "box": Kind(
        (
            Part("box", (0, 0.42, 0), (0.42, 0.42, 0.42)),
            Part("box", (0, 0.425, 0), (0.43, 0.425, 0.07), "light"),
        )
    ),
    "cone": Kind(
        (
            Part("box", (0, 0.04, 0), (0.46, 0.04, 0.46)),
            Part("frustum", (0, 0.56, 0), (0.36, 0.48, 0.36), ratio=0.12, band=0.22),
        )
    ),
    "cylinder": Kind((Part("frustum", (0, 0.5, 0), (0.36, 0.5, 0.36)),)),
    "cup": Kind(
        (
            Part("tube", (0, 0.42, 0), (0.32, 0.42, 0.32), ratio=1.2),
            Part("torus", (0.42, 0.42, 0), (0.21, 0.21, 0.21), ratio=0.27, turn=(math.pi / 2, 0, 0)),
        )
    ),
    "bottle": Kind(
        (
            Part("frustum", (0, 0.38, 0), (0.25, 0.38, 0.25)),
            Part("frustum", (0, 0.36, 0), (0.255, 0.17, 0.255), "light"),
            Part("frustum", (0, 0.85, 0), (0.25, 0.09, 0.25), ratio=0.4),
            Part("frustum", (0, 1.02, 0), (0.1, 0.1, 0.1)),
            Part("frustum", (0, 1.15, 0), (0.12, 0.05, 0.12), "dark"),
        )
    ),
    "car": Kind(
        (
            Part("box", (0, 0.29, 0), (0.72, 0.15, 0.31)),
            Part("box", (-0.1, 0.53, 0), (0.37, 0.12, 0.27), "glass"),
            Part("box", (-0.1, 0.66, 0), (0.35, 0.03, 0.275)),
            Part("box", (-0.1, 0.53, 0), (0.035, 0.12, 0.275)),
            Part("sphere", (0.71, 0.32, 0.2), (0.04, 0.06, 0.06), "light"),
            Part("sphere", (0.71, 0.32, -0.2), (0.04, 0.06, 0.06), "light"),
            *_wheels((-0.42, 0.42), 0.16, 0.28),
        ),
        mobile=True,
    ),
    "truck": Kind(
        (
            Part("box", (-0.2, 0.62, 0), (0.52, 0.38, 0.32)),
            Part("box", (-0.2, 0.62, 0), (0.525, 0.05, 0.325), "light"),
            Part("box", (0.55, 0.48, 0), (0.2, 0.28, 0.3)),
            Part("box", (0.6, 0.6, 0), (0.16, 0.1, 0.305), "glass"),
            Part("box", (0, 0.2, 0), (0.76, 0.05, 0.28)),
            *_wheels((-0.5, -0.1, 0.5), 0.15, 0.27),
        ),
        mobile=True,
    ),
    "bird": Kind(
        (
            Part("sphere", (0, 0.4, 0), (0.36, 0.18, 0.19), turn=(0, 0, 0.15)),
            Part("sphere", (0.36, 0.55, 0), (0.15, 0.15, 0.15)),
            Part("frustum", (0.55, 0.55, 0), (0.06, 0.09, 0.06), "orange", _X, ratio=0.05),
            Part("sphere", (-0.42, 0.36, 0), (0.2, 0.03, 0.13), turn=(0, 0, -0.25)),
            Part("sphere", (0, 0.47, 0.36), (0.2, 0.035, 0.34), flap=0.6),
            Part("sphere", (0, 0.47, -0.36), (0.2, 0.035, 0.34), flap=-0.6),
            Part("sphere", (0.45, 0.59, 0.1), (0.03, 0.03, 0.03), "dark"),
            Part("sphere", (0.45, 0.59, -0.1), (0.03, 0.03, 0.03), "dark"),
        ),
        flies=True,
        mobile=True,
    ),
    "duck": Kind(
        (
            Part("sphere", (0, 0.28, 0), (0.44, 0.28, 0.3)),
            Part("sphere", (-0.4, 0.42, 0), (0.16, 0.12, 0.14), turn=(0, 0, -0.6)),
            Part("sphere", (0.28, 0.66, 0), (0.21, 0.21, 0.21)),
            Part("sphere", (0.5, 0.62, 0), (0.14, 0.045, 0.1), "orange"),
            Part("sphere", (0.4, 0.74, 0.13), (0.04, 0.04, 0.04), "dark"),
            Part("sphere", (0.4, 0.74, -0.13), (0.04, 0.04, 0.04), "dark"),
            Part("sphere", (-0.05, 0.34, 0.26), (0.24, 0.15, 0.08)),
            Part("sphere", (-0.05, 0.34, -0.26), (0.24, 0.15, 0.08)),
        ),
        mobile=True,
    ),
    "dog": Kind(
        (
            Part("sphere", (0, 0.52, 0), (0.46, 0.19, 0.19)),
            Part("sphere", (0.46, 0.76, 0), (0.19, 0.18, 0.17)),
            Part("sphere", (0.64, 0.71, 0), (0.13, 0.08, 0.09)),
            Part("sphere", (0.76, 0.74, 0), (0.04, 0.035, 0.04), "dark"),
            Part("sphere", (0.4, 0.78, 0.16), (0.07, 0.15, 0.04), "dark", turn=(0.25, 0, 0.1)),
            Part("sphere", (0.4, 0.78, -0.16), (0.07, 0.15, 0.04), "dark", turn=(-0.25, 0, 0.1)),
            Part("sphere", (0.6, 0.82, 0.09), (0.03, 0.03, 0.03), "dark"),
            Part("sphere", (0.6, 0.82, -0.09), (0.03, 0.03, 0.03), "dark"),
            Part("frustum", (-0.5, 0.68, 0), (0.05, 0.2, 0.05), turn=(0, 0, 0.6), ratio=0.4, flap=0.25),
            *_legs((-0.28, 0.28), 0.1, (0.065, 0.24, 0.065), "main", stride=0.45),
        ),
        mobile=True,
    ),
    "chair": Kind(
        (
            Part("box", (0, 0.47, 0), (0.32, 0.035, 0.32)),
            Part("box", (-0.29, 0.95, 0), (0.03, 0.13, 0.32)),
            Part("box", (-0.29, 0.68, 0), (0.03, 0.06, 0.32)),
            Part("box", (-0.29, 0.75, 0.28), (0.03, 0.28, 0.035)),
            Part("box", (-0.29, 0.75, -0.28), (0.03, 0.28, 0.035)),
            *(Part("box", (x, 0.22, z), (0.035, 0.22, 0.035)) for x in (-0.28, 0.28) for z in (-0.28, 0.28)),
        )
    ),
    "donut": Kind(
        (Part("torus", (0, 0.52, 0), (0.35, 0.35, 0.35), ratio=0.48, turn=(math.pi / 2, math.pi / 4, 0)),),
        mobile=True,
    ),
    "lamp": Kind(
        (
            Part("frustum", (0, 0.035, 0), (0.28, 0.035, 0.28), "brass"),
            Part("frustum", (0, 0.45, 0), (0.035, 0.4, 0.035), "brass"),
            Part("frustum", (0, 0.95, 0), (0.4, 0.24, 0.4), ratio=0.55),
        )
    ),
}
