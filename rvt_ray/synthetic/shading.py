"""Light: from a surface point to a colour. Linear RGB inside, gamma at the very end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rvt_ray.synthetic.kinds import COLOURS, ROLES, Part
from rvt_ray.synthetic.spec import Array

_LIGHT = np.array([-0.50, 0.76, -0.34]) / np.linalg.norm([-0.50, 0.76, -0.34])
_SUN = np.array([1.0, 0.97, 0.90])
_SKY = np.array([0.48, 0.53, 0.60])
_BOUNCE = np.array([0.26, 0.23, 0.20])


def linear(srgb: tuple[float, float, float]) -> Array:
    """sRGB 0..1 to linear light."""
    return np.asarray(np.array(srgb) ** 2.2, np.float64)


def to_srgb(picture: npt.NDArray[np.floating]) -> npt.NDArray[np.uint8]:
    """Linear light to 8-bit sRGB."""
    clipped = np.clip(picture, 0.0, 1.0).astype(np.float32)
    return np.asarray(np.power(clipped, np.float32(1 / 2.2)) * 255 + 0.5, np.uint8)


def albedo(part: Part, colour: str, material: str, local: Array) -> Array:
    """What the surface itself reflects at points of a solid's unit space (k, 3): linear RGB, shape (k, 3)."""
    own = part.role == "main"
    base = linear(COLOURS[colour] if own else ROLES[part.role])
    surface = np.broadcast_to(base, local.shape).copy()
    if own and material == "wood":
        surface *= _grain(local)[:, None]
    if part.band:
        light = ROLES["dark"] if colour == "white" else ROLES["light"]
        surface[np.abs(local[:, 1]) < part.band] = linear(light)
    return np.asarray(surface, np.float64)


def finish(part: Part, material: str) -> tuple[float, float, float]:
    """How metallic (0..1) the solid is, and exponent and strength of its highlight."""
    if part.role in ("glass", "brass"):
        return 0.35, 50.0, 0.5
    if part.role != "main":
        return 0.0, 20.0, 0.15
    return {"metal": (0.75, 60.0, 0.9), "rubber": (0.0, 10.0, 0.06), "wood": (0.0, 25.0, 0.12)}[material]


def light(surface: Array, finishes: Array, up: Array, n: Array, ray: Array) -> Array:
    """Colour of surface points.

    Args:
        surface: see `albedo`, shape (k, 3).
        finishes: see `finish`, shape (k, 3).
        up: metres above the ground, shape (k,).
        n: unit normals that face the camera, shape (k, 3).
        ray: unit directions from the camera, shape (k, 3).

    Returns:
        Linear RGB, shape (k, 3).
    """
    metallic, gloss, shine = finishes.T
    # Wrapped light: the dark side of a matte thing is never a flat silhouette.
    diffuse = np.clip((n @ _LIGHT + 0.25) / 1.25, 0, 1)[:, None]
    sky = (0.5 + 0.5 * n[:, 1])[:, None]
    contact = np.clip(0.45 + up / 0.35, 0.45, 1.0)[:, None]  # darker where it nears the ground
    ambient = (_SKY * sky + _BOUNCE * (1 - sky)) * contact
    lit = surface * (ambient + _SUN * diffuse * 0.85)

    along = np.einsum("ij,ij->i", ray, n)
    mirror = ray - 2 * along[:, None] * n
    fresnel = (1 - np.clip(-along, 0, 1)) ** 3
    shiny = metallic > 0
    if shiny.any():
        own, share = surface[shiny], metallic[shiny, None]
        tint = 0.25 + 0.75 * own / np.maximum(own.max(axis=1, keepdims=True), 0.25)
        reflected = _surroundings(mirror[shiny]) * tint * (0.35 + 0.65 * own + 0.4 * fresnel[shiny, None])
        lit[shiny] = lit[shiny] * (1 - share) + reflected * share * contact[shiny]
    highlight = np.clip(mirror @ _LIGHT, 0, 1) ** gloss * shine
    rim = 0.10 * fresnel * np.clip(n[:, 1] + 0.5, 0, 1) * (1 - metallic)
    return np.asarray(lit + _SUN * highlight[:, None] + _SKY * rim[:, None], np.float64)


def _surroundings(direction: Array) -> Array:
    """What a mirror sees: a soft box above, a bright sky, a dark horizon, the floor."""
    y = direction[:, 1]
    sky = np.clip(y * 1.6, 0, 1)[:, None] * np.array([0.95, 1.0, 1.08]) + 0.25
    floor = np.clip(-y * 1.5, 0, 1)[:, None] * np.array([0.55, 0.48, 0.40]) + 0.12
    picture = np.where((y > 0)[:, None], sky, floor)
    box = np.clip((direction @ _LIGHT - 0.80) * 9, 0, 1)[:, None]
    return np.asarray(picture + 1.1 * box, np.float64)


def _grain(local: Array) -> Array:
    """Year rings of a trunk that runs along a slanted axis through the solid."""
    x, y, z = local.T
    ring = np.hypot(x + 0.35 * y + 0.6, z * 1.2 + 0.25 * np.sin(3 * y) + 0.4)
    rings = 0.5 + 0.5 * np.sin(ring * 13 + 1.2 * np.sin(2.3 * y + x))
    return np.asarray(0.62 + 0.36 * rings + 0.05 * np.sin(37 * ring + 5 * y), np.float64)
