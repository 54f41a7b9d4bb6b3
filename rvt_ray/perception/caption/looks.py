"""Which frames of an instance are worth looking at, and the pictures that show it to a model."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.llm.base import Image
from rvt_ray.masks.rle import Mask
from rvt_ray.video.frames import FrameArray

_OUTLINE = (255, 0, 255)
"""Magenta: rare in what cameras see."""
_RIM = (0, 0, 0)
_JPEG_QUALITY = 90
_CROP_MARGIN = 0.15  # of the box's longer side
_MIN_CROP = 32  # pixels; a smaller part of the frame shows nothing


def spread(frame_idx: Sequence[int], areas: npt.NDArray[np.int64], count: int) -> list[int]:
    """`count` frames spread evenly over those where the instance shows at least half its median area: a
    sliver at the frame's border says little."""
    seen = np.flatnonzero(areas > 0)
    if seen.size == 0:
        return []
    full = seen[areas[seen] >= 0.5 * np.median(areas[seen])]
    picks = full[np.linspace(0, len(full) - 1, min(count, len(full))).round().astype(int)]
    return sorted({int(frame_idx[i]) for i in picks})


def outlined(frame: FrameArray, mask: Mask, side: int) -> Image:
    """The whole frame, its longer side at most `side` pixels, with the mask's outline drawn on it."""
    scaled, factor = _fit(frame, side, enlarge=False)
    height, width = scaled.shape[:2]
    small = mask.astype(np.uint8)
    if factor != 1.0:
        # AREA, then any coverage: a thing of a few pixels keeps an outline.
        small = (cv2.resize(small * 255, (width, height), interpolation=cv2.INTER_AREA) > 0).astype(np.uint8)
    # Far enough outside for the line to cover nothing of the thing itself.
    contours, _ = cv2.findContours(
        cv2.dilate(small, np.ones((9, 9), np.uint8)), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
    )
    canvas = scaled.copy()
    cv2.drawContours(canvas, contours, -1, _RIM, 4)
    cv2.drawContours(canvas, contours, -1, _OUTLINE, 2)
    return encode(canvas)


def close_up(frame: FrameArray, mask: Mask, side: int) -> Image:
    """The part of the frame around the mask, scaled so that its longer side is `side` pixels; nothing is
    drawn on it."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    margin = max(
        round(_CROP_MARGIN * max(bottom - top, right - left)),
        (_MIN_CROP - max(bottom - top, right - left)) // 2,
        2,
    )
    part = frame[max(top - margin, 0) : bottom + margin, max(left - margin, 0) : right + margin]
    return encode(_fit(part, side, enlarge=True)[0])


def whole(frame: FrameArray, side: int) -> Image:
    """The frame, its longer side at most `side` pixels."""
    return encode(_fit(frame, side, enlarge=False)[0])


def encode(picture: FrameArray) -> Image:
    """RGB uint8 (h, w, 3) as JPEG."""
    ok, data = cv2.imencode(
        ".jpg",
        cv2.cvtColor(picture, cv2.COLOR_RGB2BGR),
        # Full colour resolution: a thin outline must not tint what it surrounds.
        [
            *(cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY),
            *(cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444),
        ],
    )
    if not ok:
        raise ValueError(f"OpenCV cannot encode a picture of shape {picture.shape}")
    return Image(data.tobytes(), "image/jpeg")


def _fit(picture: FrameArray, side: int, *, enlarge: bool) -> tuple[FrameArray, float]:
    factor = side / max(picture.shape[:2])
    if factor == 1.0 or (factor > 1.0 and not enlarge):
        return picture, 1.0
    size = (max(1, round(picture.shape[1] * factor)), max(1, round(picture.shape[0] * factor)))
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(picture, size, interpolation=how), np.uint8), factor
