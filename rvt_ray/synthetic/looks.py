"""What is drawn by lot for a random scene: how things look, what they do, how the camera moves."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from rvt_ray.synthetic.kinds import COLOURS, KINDS
from rvt_ray.synthetic.spec import CameraKey, Material, Size

CameraMode = Literal["any", "still", "pan", "zoom"]

# Of the first few objects each does something else; every scene has still objects to relate the others to.
BEHAVIOURS = (
    "still",
    "cross",
    "still",
    "enter",
    "approach",
    "hide",
    "still",
    "leave",
    "recede",
    "stop_and_go",
)


def camera_path(rng: np.random.Generator, mode: CameraMode, num_frames: int) -> tuple[CameraKey, ...]:
    """Keys of a camera that stands, pans once or zooms once."""
    drawn = str(rng.choice(["still", "pan", "zoom"], p=[0.5, 0.35, 0.15]))
    mode = drawn if mode == "any" else mode  # type: ignore[assignment]
    side = float(rng.choice([-1, 1]))
    begin, end = sorted(rng.uniform([0.0, 0.75], [0.25, 1.0]) * max(num_frames - 1, 1))
    reach, zoom = float(rng.uniform(0.10, 0.25)), float(rng.uniform(1.25, 1.55))
    if mode == "pan":
        return (
            CameraKey(frame=float(begin), pan_x=-side * reach),
            CameraKey(frame=float(end), pan_x=side * reach, pan_y=0.02 * side),
        )
    if mode == "zoom":
        first, last = (1.0, zoom) if side > 0 else (zoom, 1.0)
        return CameraKey(frame=float(begin), zoom=first), CameraKey(frame=float(end), zoom=last)
    return (CameraKey(frame=0),)


def draw_looks(rng: np.random.Generator, count: int) -> list[tuple[str, str, str, str]]:
    """(kind, colour, material, size) of each object; kinds that can move for those that do."""
    movers = [name for name, kind in KINDS.items() if kind.mobile]
    still = [name for name, kind in KINDS.items() if not kind.mobile]
    pool = {
        # A few kinds and colours only, so that one word is seldom enough to single an object out.
        True: list(rng.permutation(movers))[: max(3, math.ceil(count * 0.6))],
        False: list(rng.permutation(still))[: max(2, math.ceil(count * 0.4))],
    }
    colours = list(rng.permutation(list(COLOURS)))[: max(3, math.ceil(count * 0.7))]
    looks: list[tuple[str, str, str, str]] = []
    taken: set[tuple[str, str]] = set()
    for i in range(count):
        kinds = pool[BEHAVIOURS[i % len(BEHAVIOURS)] != "still"]
        for _ in range(30):
            kind, colour = str(rng.choice(kinds)), str(rng.choice(colours))
            if (kind, colour) not in taken:
                break
        taken.add((kind, colour))
        material = str(rng.choice(get_args(Material), p=[0.5, 0.3, 0.2]))
        if colour in ("black", "gray", "brown", "white") and material == "metal":
            material = "rubber"  # a mirror in these colours looks like any of them
        looks.append((kind, colour, material, str(rng.choice(get_args(Size), p=[0.3, 0.45, 0.25]))))
    return looks
