"""Masks and boxes of a target set, from the twin's tracks."""

from __future__ import annotations

from collections.abc import Sequence

from rvt_ray.masks import rle as rle_codec
from rvt_ray.records import Box, DigitalTwin


def target_masks(twin: DigitalTwin, ids: Sequence[int]) -> list[str | None]:
    """Per frame of the clip the union of the targets' masks as COCO RLE.

    An absent target adds nothing; where all are absent the mask is empty. A frame on which a target is not
    annotated has no truth: null. For no targets at all every mask is empty.
    """
    empty = rle_codec.empty(twin.height, twin.width)
    per_frame: list[list[str] | None] = [[] for _ in range(twin.num_frames)]
    for track in (twin.instance(i).track for i in ids):
        given = dict(zip(track.frame_idx, track.rle, strict=True))
        for frame in range(twin.num_frames):
            mask = given.get(frame)
            known = per_frame[frame]
            if mask is None:
                per_frame[frame] = None
            elif known is not None:
                known.append(mask)
    return [None if masks is None else _union(masks, empty, twin) for masks in per_frame]


def _union(masks: list[str], empty: str, twin: DigitalTwin) -> str:
    filled = [m for m in masks if m != empty]
    if not filled:
        return empty
    if len(filled) == 1:
        return filled[0]
    return rle_codec.union(filled, twin.height, twin.width)


def target_boxes(twin: DigitalTwin, ids: Sequence[int]) -> list[list[Box] | None]:
    """Per frame of the clip one box per visible target, in the order of `ids`; null where a target is not
    annotated."""
    boxes: list[list[Box] | None] = [[] for _ in range(twin.num_frames)]
    for track in (twin.instance(i).track for i in ids):
        at = {frame: k for k, frame in enumerate(track.frame_idx)}
        for frame in range(twin.num_frames):
            k = at.get(frame)
            if k is None or track.rle[k] is None:
                boxes[frame] = None
                continue
            known = boxes[frame]
            x, y, w, h = track.box_x[k], track.box_y[k], track.box_w[k], track.box_h[k]
            if known is None or x is None or y is None or w is None or h is None:
                continue
            known.append(Box(x=x, y=y, w=w, h=h))
    return boxes
