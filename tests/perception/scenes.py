"""Small rendered scenes whose truth is known: a textured background, a camera path, moving discs."""

from __future__ import annotations

import cv2
import numpy as np

from rvt_ray.video.frames import ArrayFrames

RED, BLUE, GREEN = (200, 30, 40), (40, 70, 200), (40, 160, 60)


def texture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """An uneven greyish-brown surface with corners to hold on to, uint8 RGB."""
    rng = np.random.default_rng(seed)
    out = np.zeros((height, width, 3), np.float32)
    for cell, weight in ((4, 50.0), (16, 60.0)):
        noise = rng.random((height // cell + 2, width // cell + 2, 1)).astype(np.float32)
        big = cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)
        out += weight * big[..., None] * np.array([1.0, 0.95, 0.85], np.float32)
    return np.clip(out + 60, 0, 255).astype(np.uint8)


def camera_clip(matrices: list[np.ndarray], height: int = 120, width: int = 160) -> ArrayFrames:
    """Frames of a background seen through 2x3 matrices, each mapping pixels of frame 0 to its own."""
    margin = 80
    world = texture(height + 2 * margin, width + 2 * margin)
    frames = []
    for m in matrices:
        # world pixel = frame-0 pixel + margin
        shift = np.array([[1.0, 0, -margin], [0, 1.0, -margin], [0, 0, 1.0]])
        full = np.vstack([m, [0, 0, 1]]) @ shift
        frames.append(cv2.warpAffine(world, full[:2], (width, height), flags=cv2.INTER_LINEAR))
    return ArrayFrames(np.stack(frames), np.arange(len(frames)) / 25)


def similarity(dx: float, dy: float, zoom: float, roll: float, height: int, width: int) -> np.ndarray:
    """p' = c + zoom R(roll) (p - c) + (dx, dy), as 3x3."""
    c = np.array([(width - 1) / 2, (height - 1) / 2])
    a = zoom * np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
    return np.vstack([np.column_stack([a, c + np.array([dx, dy]) - a @ c]), [0, 0, 1]])


def disc_clip(
    paths: list[np.ndarray],
    colours: list[tuple[int, int, int]],
    radius: float = 12,
    height: int = 120,
    width: int = 160,
    pan: float = 0.0,
    noise: float = 1.5,
    seed: int = 3,
) -> tuple[ArrayFrames, np.ndarray]:
    """Discs over a textured background; later ones in front.

    Args:
        paths: per disc its centre x, y on every frame, (n, 2); NaN: not there.
        pan: pixels per frame that the whole picture shifts to the left.

    Returns:
        The frames, and the visible masks, bool (discs, n, height, width).
    """
    n = len(paths[0])
    rng = np.random.default_rng(seed)
    world = texture(height, width + int(abs(pan) * n) + 1, seed)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    frames = np.empty((n, height, width, 3), np.uint8)
    masks = np.zeros((len(paths), n, height, width), bool)
    for t in range(n):
        m = np.float32([[1, 0, -pan * t], [0, 1, 0]])
        frame = cv2.warpAffine(world, m, (width, height)).astype(np.float32)
        for k, (path, colour) in enumerate(zip(paths, colours, strict=True)):
            if np.isnan(path[t]).any():
                continue
            u, v = x - path[t, 0], y - path[t, 1]
            inside = u**2 + v**2 <= radius**2
            masks[:, t] &= ~inside
            masks[k, t] = inside
            stripes = 1 + 0.15 * np.sin(u / 2) * np.sin(v / 3)
            frame[inside] = (np.array(colour) * stripes[..., None])[inside]
        frames[t] = np.clip(frame + rng.normal(0, noise, frame.shape), 0, 255)
    return ArrayFrames(frames, np.arange(n) / 25), masks


def line(start: tuple[float, float], stop: tuple[float, float], n: int) -> np.ndarray:
    """A straight path at constant speed, (n, 2)."""
    return np.linspace(start, stop, n)
