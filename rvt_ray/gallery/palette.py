"""One colour per instance, the same in every picture, time line and graph of a page.

The first eight are Okabe and Ito's colour-blind-safe set (black replaced); further ids step round the hue
circle by the golden angle. Colour is never the only carrier: the id is always printed beside it.
"""

from __future__ import annotations

import colorsys

_FIRST = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#3b82f6", "#d55e00", "#cc79a7", "#8b5cf6")
_GOLDEN = 0.6180339887498949


def hex_colour(instance_id: int) -> str:
    """CSS colour of an instance."""
    index = max(instance_id - 1, 0)
    if index < len(_FIRST):
        return _FIRST[index]
    r, g, b = colorsys.hls_to_rgb((0.08 + index * _GOLDEN) % 1.0, 0.58, 0.75)
    return f"#{round(r * 255):02x}{round(g * 255):02x}{round(b * 255):02x}"


def rgb_colour(instance_id: int) -> tuple[int, int, int]:
    """The same colour as 0..255 red, green, blue."""
    text = hex_colour(instance_id)
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
