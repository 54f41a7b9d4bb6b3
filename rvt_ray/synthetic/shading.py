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


def shade(part: Part, colour: str, material: str, local: Array, world: Array, n: Array, ray: Array) -> Array:
    """Colour of surface points.

    Args:
        part: the solid, for its role and band.
        colour, material: of the object; other roles than `main` have their own.
        local: points in the solid's unit space, shape (k, 3).
        world: points in metres, y up from the ground, shape (k, 3).
        n: unit normals that face the camera, shape (k, 3).
        ray: unit directions from the camera, shape (k, 3).

    Returns:
        Linear RGB, shape (k, 3).
    """
    own = part.role == "main"
    albedo = np.broadcast_to(linear(COLOURS[colour] if own else ROLES[part.role]), local.shape).copy()
    if own and material == "wood":
        albedo *= _grain(local)[:, None]
    if part.band:
        light = ROLES["dark"] if colour == "white" else ROLES["light"]
        albedo[np.abs(local[:, 1]) < part.band] = linear(light)
    if own:
        metallic, gloss, shine = {
            "metal": (0.75, 60.0, 0.9),
            "rubber": (0.0, 10.0, 0.06),
            "wood": (0.0, 25.0, 0.12),
        }[material]
    else:
        metallic, gloss, shine = (0.35, 50.0, 0.5) if part.role in ("glass", "brass") else (0.0, 20.0, 0.15)

    facing = n @ _LIGHT
    # Wrapped light: the dark side of a matte thing is never a flat silhouette.
    diffuse = np.clip((facing + 0.25) / 1.25, 0, 1)[:, None]
    up = (0.5 + 0.5 * n[:, 1])[:, None]
    contact = np.clip(0.45 + world[:, 1] / 0.35, 0.45, 1.0)[:, None]  # darker where it nears the ground
    ambient = (_SKY * up + _BOUNCE * (1 - up)) * contact
    lit = albedo * (ambient + _SUN * diffuse * 0.85)

    mirror = ray - 2 * np.sum(ray * n, axis=1, keepdims=True) * n
    fresnel = (1 - np.clip(-np.sum(ray * n, axis=1), 0, 1)) ** 3
    if metallic:
        tint = 0.25 + 0.75 * albedo / max(float(albedo.max()), 0.25)
        reflected = _surroundings(mirror) * tint * (0.35 + 0.65 * albedo + 0.4 * fresnel[:, None])
        lit = lit * (1 - metallic) + reflected * metallic * contact
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
    rings = 0.5 + 0.5 * np.sin(ring * 22 + 1.5 * np.sin(2.3 * y + x))
    return np.asarray(0.55 + 0.55 * rings + 0.10 * np.sin(41 * ring + 5 * y), np.float64)
