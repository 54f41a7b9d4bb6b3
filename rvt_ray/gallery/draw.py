"""Pictures: outlines, ids and highlights on decoded frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.gallery.palette import rgb_colour
from rvt_ray.records import Box

Image = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

JPEG_QUALITY = 86


@dataclass(frozen=True)
class Shape:
    """What is drawn of one instance on one frame: its id and its mask, shape (height, width)."""

    instance_id: int
    mask: Mask


def grey_canvas(height: int, width: int) -> Image:
    """Stands in for a frame whose video is gone."""
    return np.full((height, width, 3), 118, np.uint8)


def outlined(frame: Image, shapes: Sequence[Shape], max_side: int) -> Image:
    """The frame with every instance's outline, a light tint and its id; longer side at most `max_side`."""
    image, _ = _fit(frame, max_side)
    scaled = [Shape(s.instance_id, _fit_mask(s.mask, image)) for s in shapes]
    for shape in scaled:
        _tint(image, shape.mask, rgb_colour(shape.instance_id), 0.22)
    for shape in scaled:
        _outline(image, shape.mask, rgb_colour(shape.instance_id), _stroke(image))
    for shape in scaled:
        _label(image, shape)
    return image


def highlighted(
    frame: Image, targets: Sequence[Shape], truth: Mask | None, boxes: Sequence[Box], max_side: int
) -> Image:
    """The frame dimmed, except for the targets.

    Args:
        targets: the target instances as the twin has them.
        truth: the sample's own mask (segmentation); drawn instead of the union of `targets` when given,
            since it is what the row claims.
        boxes: the sample's own boxes on this frame (grounding).
    """
    image, scale = _fit(frame, max_side)
    scaled = [Shape(s.instance_id, _fit_mask(s.mask, image)) for s in targets]
    lit = np.zeros(image.shape[:2], np.bool_)
    if truth is not None:
        lit |= _fit_mask(truth, image)
    else:
        for shape in scaled:
            lit |= shape.mask
    grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    dimmed = (grey * 0.5 + image * 0.18).astype(np.uint8)
    image = np.where(lit[..., None], image, dimmed)
    stroke = _stroke(image)
    _outline(image, lit, (255, 255, 255), stroke + 2)
    for shape in scaled:
        _outline(image, shape.mask & lit, rgb_colour(shape.instance_id), stroke)
    for box in boxes:
        corner = (round(box.x * scale), round(box.y * scale))
        opposite = (round((box.x + box.w) * scale) - 1, round((box.y + box.h) * scale) - 1)
        cv2.rectangle(image, corner, opposite, (255, 255, 255), stroke + 2)
        cv2.rectangle(image, corner, opposite, (214, 39, 40), stroke)
    for shape in scaled:
        _label(image, shape)
    return image


def save_jpeg(path: Path, image: Image) -> None:
    """Write an RGB image as JPEG.

    Raises:
        OSError: the file cannot be written.
    """
    ok, data = cv2.imencode(
        ".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    )
    if not ok:
        raise OSError(f"{path}: OpenCV could not encode a JPEG of {image.shape}")
    path.write_bytes(data.tobytes())


def _fit(frame: Image, max_side: int) -> tuple[Image, float]:
    height, width = frame.shape[:2]
    # Tiny clips are enlarged, or their labels would cover everything.
    scale = min(max_side / max(height, width), 3.0)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return np.array(cv2.resize(frame, size, interpolation=how), np.uint8), scale


def _fit_mask(mask: Mask, image: Image) -> Mask:
    size = (image.shape[1], image.shape[0])
    return np.asarray(cv2.resize(mask.view(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0)


def _stroke(image: Image) -> int:
    return int(max(2, round(max(image.shape[:2]) / 320)))


def _tint(image: Image, mask: Mask, colour: tuple[int, int, int], strength: float) -> None:
    image[mask] = (image[mask] * (1 - strength) + np.array(colour) * strength).astype(np.uint8)


def _outline(image: Image, mask: Mask, colour: tuple[int, int, int], stroke: int) -> None:
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(image, contours, -1, colour, stroke, cv2.LINE_AA)


def _label(image: Image, shape: Shape) -> None:
    """The id in a box of the instance's colour, at the innermost point of the mask."""
    if not shape.mask.any():
        return
    padded = np.pad(shape.mask.astype(np.uint8), 1)
    distance = cv2.distanceTransform(padded, cv2.DIST_L2, 3)[1:-1, 1:-1]
    cy, cx = np.unravel_index(int(distance.argmax()), distance.shape)
    text = str(shape.instance_id)
    size = max(0.5, max(image.shape[:2]) / 640)
    weight = 1 if size < 0.7 else 2
    (w, h), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, size, weight)
    x = int(np.clip(cx - w // 2, 3, max(3, image.shape[1] - w - 3)))
    y = int(np.clip(cy + h // 2, h + 3, max(h + 3, image.shape[0] - 4)))
    colour = rgb_colour(shape.instance_id)
    cv2.rectangle(image, (x - 4, y - h - 4), (x + w + 3, y + 4), colour, -1)
    luminance = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
    ink = (0, 0, 0) if luminance > 110 else (255, 255, 255)
    cv2.putText(image, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, size, ink, weight, cv2.LINE_AA)
