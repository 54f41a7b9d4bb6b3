"""DAVIS (and YouTube-VOS, MOSE): a folder with one label map per frame, pixel value = object id."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.files import (
    bad_annotation,
    child,
    files_in,
    is_folder,
    read_bytes,
    same_aspect,
    video_names,
)
from rvt_ray.perception.segment.annotations.common import TrackCollector
from rvt_ray.perception.segment.annotations.options import AnnotationOptions
from rvt_ray.records import ClipRecord


def read(clip: ClipRecord, uri: str, options: AnnotationOptions) -> list[TrackDraft]:
    """Tracks of a clip from `<uri>/*.png` or `<uri>/<video name>/*.png`. Ids are the pixel values.

    A label map cannot hold overlaps: where objects overlapped, the annotator chose one.

    Raises:
        ClipError: no folder, no PNG, a PNG that is no label map, or one of another aspect.
    """
    inner = [child(uri, name) for name in video_names(clip)]
    folder = next((path for path in inner if is_folder(path)), uri)
    files = files_in(folder, ".png")
    if not files:
        raise bad_annotation(folder, f"holds no PNG label maps for the video {clip.name!r}")
    collector = TrackCollector(clip)
    for order, file in enumerate(files):
        number = order if options.png_frames == "order" else _number(file)
        frame = collector.clip_frame(number)
        if frame is None:
            continue
        labels = _labels(file, clip)
        collector.annotated(frame)
        ids = [int(i) for i in np.unique(labels) if i != 0 and i != options.void_id]
        stack = labels[None] == np.array(ids, labels.dtype)[:, None, None]
        for instance_id, text in zip(ids, rle.encode_batch(stack), strict=True):
            collector.add(instance_id, frame, text)
    return collector.tracks()


def _number(file: str) -> int:
    stem = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    digits = stem[len(stem.rstrip("0123456789")) :]
    if not digits:
        raise bad_annotation(file, "png_frames is 'names', but this name does not end in a frame number")
    return int(digits)


def _labels(file: str, clip: ClipRecord) -> npt.NDArray[np.integer]:
    """Pixel values, shape (clip.height, clip.width)."""
    image: Image.Image
    try:
        image = Image.open(io.BytesIO(read_bytes(file)))
        image.load()
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise bad_annotation(file, f"not a readable PNG: {error}") from error
    # Palette images keep the ids as indices; decoding them to colours would lose the ids.
    if image.mode not in ("P", "L", "1", "I", "I;16"):
        raise bad_annotation(
            file,
            f"a label map has one channel (palette or grey), this one is {image.mode}; save a palette PNG",
        )
    if image.size != (clip.width, clip.height):
        same_aspect(image.height, image.width, clip, file, "size")
        image = image.resize((clip.width, clip.height), Image.Resampling.NEAREST)
    labels = np.asarray(image)
    return labels.astype(np.uint8) if labels.dtype == np.bool_ else labels
