"""Colour names measured from pixels: the eleven basic colour terms, in a perceptual space.

A pixel gets the name of the nearest exemplar in OKLab (Ottosson 2020), a space in which Euclidean distance
follows perceived difference. Where two names are almost equally near, the pixel is shared between them, so
that a colour on the border of two names scores low for both.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

Floats = npt.NDArray[np.float64]

# sRGB examples that people call by these names without hesitation, over the lightness range of each name.
_EXEMPLARS: dict[str, tuple[str, ...]] = {
    "black": ("000000", "141414", "1a1518", "10141c", "0c120c", "201a16"),
    "grey": ("484848", "606060", "808080", "989898", "b0b0b0", "c4c4c4", "6a707a", "7d766c", "98a0a8"),
    "white": ("ffffff", "f0f0f0", "e6e6e6", "f2ece0", "e4e9f2", "f6f2ee"),
    "red": ("ff0000", "dc1c24", "b01018", "8c1014", "6e0a0e", "dc3c3c", "c82840", "a02828"),
    "orange": ("ff8000", "f08c28", "e66414", "ffa53c", "d87818", "ff9a5a"),
    "yellow": ("ffff00", "ffd700", "e6c83c", "faeb78", "c8b41e", "fff5a0", "d8c814"),
    "green": (
        *("008000", "00c800", "00ff00", "3ca03c", "1e5a28", "78b450", "82c81e", "556b2f", "96dc96"),
        *("0f3c14", "2e8b57", "6e8c32", "00a068"),
    ),
    "blue": (
        *("0000ff", "1e3cc8", "142878", "3c78dc", "78b4f0", "0096dc", "5a6eaa", "0a1446", "a0c8f0"),
        *("2850a0", "4682b4", "00b4e6"),
    ),
    "purple": ("800080", "6428a0", "9650c8", "4b0082", "b48cdc", "5a326e", "9932cc", "7d3c8c", "c864dc"),
    "pink": ("ff69b4", "ffb6c1", "f082a0", "e6508c", "facad4", "ff8cc8", "e89aac", "ff50a0"),
    "brown": ("8b4513", "654321", "a06e3c", "502d19", "78553c", "b58c64", "3c2314", "8c5a32", "6e4628"),
}
NAMES = tuple(_EXEMPLARS)
_BITS = 5  # the table's resolution per channel
_SHARED_BELOW = 1.25  # ratio of the second name's distance to the first's


def to_oklab(rgb: npt.NDArray[np.floating]) -> Floats:
    """OKLab of sRGB values in 0..1, shape (..., 3)."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lms = linear @ np.array(
        [
            [0.4122214708, 0.2119034982, 0.0883024619],
            [0.5363325363, 0.6806995451, 0.2817188376],
            [0.0514459929, 0.1073969566, 0.6299787005],
        ]
    )
    out: Floats = np.cbrt(lms) @ np.array(
        [
            [0.2104542553, 1.9779984951, 0.0259040371],
            [0.7936177850, -2.4285922050, 0.7827717662],
            [-0.0040720468, 0.4505937099, -0.8086757660],
        ]
    )
    return out


@lru_cache(maxsize=1)
def _table() -> npt.NDArray[np.float32]:
    """Share of each name for each quantised colour, shape (2 ** 15, 11), rows sum to 1."""
    steps = (np.arange(2**_BITS) + 0.5) / 2**_BITS
    grid = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    colours = to_oklab(grid)
    # Hue differs more than lightness between names: a shaded side keeps its name.
    weight = np.array([0.6, 1.0, 1.0])
    distance = np.empty((len(grid), len(NAMES)))
    for i, name in enumerate(NAMES):
        rgb = np.array([[int(h[j : j + 2], 16) / 255 for j in (0, 2, 4)] for h in _EXEMPLARS[name]])
        distance[:, i] = cdist(colours * weight, to_oklab(rgb) * weight).min(axis=1)
    order = np.argsort(distance, axis=1)
    rows = np.arange(len(grid))
    first, second = distance[rows, order[:, 0]], distance[rows, order[:, 1]]
    shared = second < _SHARED_BELOW * np.maximum(first, 0.02)
    table = np.zeros((len(grid), len(NAMES)), dtype=np.float32)
    table[rows, order[:, 0]] = np.where(shared, 0.5, 1.0)
    table[rows, order[:, 1]] += np.where(shared, 0.5, 0.0).astype(np.float32)
    return table


def name_shares(pixels: npt.NDArray[np.uint8]) -> Floats:
    """Share of each of `NAMES` among RGB pixels of shape (n, 3); zeros for no pixel."""
    if len(pixels) == 0:
        return np.zeros(len(NAMES))
    q = (pixels >> (8 - _BITS)).astype(np.int64)
    code = (q[:, 0] << (2 * _BITS)) | (q[:, 1] << _BITS) | q[:, 2]
    codes, count = np.unique(code, return_counts=True)
    out: Floats = (count @ _table()[codes].astype(np.float64)) / len(pixels)
    return out
