"""SA-V masklet files: `masklet[annotated frame][object]` is a COCO RLE; every fourth frame is annotated."""

from __future__ import annotations

import math
from typing import Any

from rvt_ray.masks.coco import from_segmentation
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.files import bad_annotation, find, read_json
from rvt_ray.perception.segment.annotations.common import TrackCollector, fit
from rvt_ray.perception.segment.annotations.options import AnnotationOptions
from rvt_ray.records import ClipRecord

_STRIDE = 4


def read(clip: ClipRecord, uri: str, options: AnnotationOptions) -> list[TrackDraft]:
    """Tracks of a clip. SA-V counts objects from 0, tracks from 1: instance id = masklet id + 1.

    Raises:
        ClipError: no such file, a field is missing or wrong, or masks of another aspect.
    """
    other = "auto" if options.sav_masklets == "manual" else "manual"
    endings = [f"_{options.sav_masklets}.json", f"_{other}.json", ".json"]
    file = find(clip, uri, endings, "SA-V masklets")
    data = read_json(file)
    rows, ids = _rows(file, data)
    stride = options.sav_stride or _stride(data, len(rows))
    collector = TrackCollector(clip)
    for number, row in enumerate(rows):
        frame = collector.clip_frame(number * stride)
        if frame is None:
            continue
        collector.annotated(frame)
        for column, (masklet_id, segmentation) in enumerate(zip(ids, row, strict=True)):
            where = f"masklet[{number}][{column}]"
            try:
                text, height, width = from_segmentation(segmentation)
            except (ValueError, TypeError) as error:
                raise bad_annotation(file, f"{where}: {error}") from error
            collector.add(masklet_id + 1, frame, fit(text, height, width, clip, file, where))
    return collector.tracks()


def _rows(file: str, data: Any) -> tuple[list[list[Any]], list[int]]:
    if not isinstance(data, dict):
        raise bad_annotation(file, "the top of a SA-V file is an object with 'masklet' and 'masklet_id'")
    rows, ids = data.get("masklet"), data.get("masklet_id")
    if not isinstance(rows, list) or not isinstance(ids, list):
        raise bad_annotation(file, "'masklet' and 'masklet_id' must be lists: is this a SA-V masklet file?")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(ids):
            found = len(row) if isinstance(row, list) else type(row).__name__
            raise bad_annotation(file, f"masklet[{number}]: {found} entries for {len(ids)} masklet ids")
    if len(set(ids)) != len(ids) or not all(isinstance(i, int) and i >= 0 for i in ids):
        raise bad_annotation(file, f"masklet_id: must be distinct integers >= 0, not {ids}")
    return rows, ids


def _stride(data: dict[str, Any], annotated: int) -> int:
    """The spacing that gives this many annotated frames; 4 where the file does not settle it."""
    total = data.get("video_frame_count")
    if not isinstance(total, (int, float)) or annotated == 0:
        return _STRIDE
    fitting = [s for s in range(1, 65) if math.ceil(total / s) == annotated]
    return _STRIDE if not fitting or _STRIDE in fitting else fitting[0]
