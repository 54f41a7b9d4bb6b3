"""Puts what perception found together into one `DigitalTwin`. Plain arithmetic: no model, no pixels."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rvt_ray.config.settings import TwinSettings
from rvt_ray.errors import ClipError
from rvt_ray.perception.base import Captions, InstanceCaption, Segmentation, TrackDraft
from rvt_ray.perception.depth.statistics import DEPTH_STATISTICS, depth_statistics
from rvt_ray.perception.operators import classify_camera
from rvt_ray.records import (
    Absence,
    CameraStep,
    ClipRecord,
    DepthKind,
    DigitalTwin,
    FailureCode,
    Instance,
    Provenance,
    Quality,
    Scene,
    Track,
    TrackStatus,
)
from rvt_ray.twin import claims
from rvt_ray.twin.kinematics import Geometry, measure, velocity, visible_runs

log = logging.getLogger(__name__)

DepthMaps = Iterable[tuple[int, npt.NDArray[np.float32]]]


def assemble(
    clip: ClipRecord,
    segmentation: Segmentation,
    depth_maps: DepthMaps,
    depth_kind: DepthKind,
    captions: Captions,
    camera: Sequence[CameraStep],
    settings: TwinSettings,
    provenance: Provenance,
) -> DigitalTwin:
    """The digital twin of a clip.

    Tracks that are not visible on a single frame of the clip are not part of it and are left out.

    Args:
        depth_maps: (clip frame index, map of shape (height, width)), consumed one map at a time.
        camera: one step per frame of the clip.

    Raises:
        ClipError: a draft or a depth map does not fit the clip (BACKEND_ERROR); the message says which.
    """
    height, width = clip.height, clip.width
    if len(camera) != clip.num_frames:
        raise _misfit(clip, f"{len(camera)} camera steps for {clip.num_frames} frames")
    drafts: list[tuple[TrackDraft, Geometry]] = []
    seen: set[int] = set()
    for draft in sorted(segmentation.tracks, key=lambda d: d.instance_id):
        if draft.instance_id in seen:
            raise _misfit(clip, f"instance id {draft.instance_id} is used by two tracks")
        seen.add(draft.instance_id)
        _check(clip, draft)
        try:
            shape = measure(draft.rle, height, width)
        except ValueError as error:
            raise _misfit(clip, f"instance {draft.instance_id}: {error}") from error
        if shape.visible.any():
            drafts.append((draft, shape))
        else:
            log.debug("clip %s: instance %d is never visible; left out", clip.clip_id, draft.instance_id)
    depth = _depth_tables(clip, drafts, depth_maps, settings.erode_px)
    kept = {draft.instance_id for draft, _ in drafts}
    words = {caption.instance_id: caption for caption in captions.instances}
    pts = np.asarray(clip.pts_s, dtype=np.float64)
    instances = [
        Instance(
            instance_id=draft.instance_id,
            **_naming(draft, words.get(draft.instance_id)),
            parent_id=draft.parent_id if draft.parent_id in kept else None,
            quality=_quality(draft, shape, segmentation.key_frames, clip, settings),
            track=_track(draft, shape, pts, table),
        )
        for (draft, shape), table in zip(drafts, depth, strict=True)
    ]
    return DigitalTwin(
        clip_id=clip.clip_id,
        width=width,
        height=height,
        num_frames=clip.num_frames,
        pts_s=list(clip.pts_s),
        depth_kind=depth_kind,
        scene=Scene(
            caption=captions.scene,
            tags=list(captions.tags),
            camera_motion=classify_camera(camera, height, width),
            camera=list(camera),
        ),
        key_frames=list(segmentation.key_frames),
        instances=instances,
        provenance=provenance,
        coverage=segmentation.coverage,
    )


def _check(clip: ClipRecord, draft: TrackDraft) -> None:
    n = len(draft.frame_idx)
    lengths = {len(draft.rle), len(draft.absence), len(draft.score)}
    if lengths != {n}:
        raise _misfit(clip, f"instance {draft.instance_id}: the track's lists differ in length")
    if any(b <= a for a, b in zip(draft.frame_idx, draft.frame_idx[1:], strict=False)):
        raise _misfit(clip, f"instance {draft.instance_id}: frame_idx does not ascend")
    if n and not 0 <= draft.frame_idx[0] <= draft.frame_idx[-1] < clip.num_frames:
        raise _misfit(clip, f"instance {draft.instance_id}: frames outside 0..{clip.num_frames - 1}")
    if any(s is not None and not 0.0 <= s <= 1.0 for s in draft.score):
        raise _misfit(clip, f"instance {draft.instance_id}: a score outside 0..1")


def _misfit(clip: ClipRecord, what: str) -> ClipError:
    return ClipError(
        FailureCode.BACKEND_ERROR, f"{clip.uri} (clip {clip.clip_id}): perception does not fit: {what}"
    )


def _depth_tables(
    clip: ClipRecord,
    drafts: Sequence[tuple[TrackDraft, Geometry]],
    depth_maps: DepthMaps,
    erode_px: int,
) -> list[list[dict[str, float] | None]]:
    tables: list[list[dict[str, float] | None]] = [[None] * len(d.frame_idx) for d, _ in drafts]
    position = [{frame: i for i, frame in enumerate(d.frame_idx)} for d, _ in drafts]
    for frame, depth in depth_maps:
        if depth.shape != (clip.height, clip.width):
            raise _misfit(
                clip, f"depth map of frame {frame} is {depth.shape}, not {(clip.height, clip.width)}"
            )
        for (draft, shape), where, table in zip(drafts, position, tables, strict=True):
            i = where.get(frame)
            if i is not None and shape.visible[i]:
                table[i] = depth_statistics(draft.rle[i], shape.box[i].tolist(), depth, erode_px)
    return tables


def _naming(draft: TrackDraft, words: InstanceCaption | None) -> dict[str, Any]:
    category, alternatives = claims.merge_category(
        draft.category,
        draft.category_score,
        words.category if words else None,
        words.alternatives if words else [],
    )
    return {
        "category": category,
        "alternatives": alternatives,
        "attributes": claims.merge_attributes([*draft.attributes, *(words.attributes if words else [])]),
        "caption": words.caption if words else "",
    }


def _quality(
    draft: TrackDraft,
    shape: Geometry,
    key_frames: Sequence[int],
    clip: ClipRecord,
    settings: TwinSettings,
) -> Quality:
    visible = shape.visible
    scores = [s for s, v in zip(draft.score, visible, strict=True) if v and s is not None]
    # No score at all: every mask was given (annotated or prompted), not guessed.
    mean_score = float(np.mean(scores)) if scores else 1.0
    redetection = draft.redetection_rate
    if redetection is None:
        redetection = _seen_on_key_frames(draft.frame_idx, visible, key_frames)
    # A clip shorter than the bound cannot hold a longer track: a still is a valid clip.
    long_enough = int(visible.sum()) >= min(settings.min_track_frames, len(draft.frame_idx))
    fraction = float(np.median(shape.area[visible])) / (clip.width * clip.height)
    trusted = (
        draft.status is not TrackStatus.UNCERTAIN
        and long_enough
        and mean_score >= settings.min_mean_score
        and fraction >= settings.min_area_fraction
    )
    return Quality(
        mean_score=mean_score,
        redetection_rate=redetection,
        fragments=visible_runs(visible),
        status=TrackStatus.CONFIRMED if trusted else TrackStatus.UNCERTAIN,
    )


def _seen_on_key_frames(
    frame_idx: Sequence[int], visible: npt.NDArray[np.bool_], key_frames: Sequence[int]
) -> float:
    """Share of the annotated key frames between first and last sight on which it is visible; 1 when there
    is none (nothing contradicts the track)."""
    first, last = (int(i) for i in np.flatnonzero(visible)[[0, -1]])
    wanted = set(key_frames)
    looked = [bool(visible[i]) for i in range(first, last + 1) if frame_idx[i] in wanted]
    return float(np.mean(looked)) if looked else 1.0


def _track(
    draft: TrackDraft,
    shape: Geometry,
    pts: npt.NDArray[np.float64],
    depth: Sequence[dict[str, float] | None],
) -> Track:
    visible = shape.visible
    absence = [
        None if seen else (reason or Absence.UNKNOWN)
        for seen, reason in zip(visible, draft.absence, strict=True)
    ]
    speed = velocity(shape.centroid, visible, pts[np.asarray(draft.frame_idx, dtype=np.int64)])
    return Track(
        frame_idx=list(draft.frame_idx),
        visible=visible.tolist(),
        absence=absence,
        rle=list(draft.rle),
        **{f"box_{name}": _nullable(shape.box[:, i]) for i, name in enumerate("xywh")},
        area=shape.area.tolist(),
        **{f"centroid_{name}": _nullable(shape.centroid[:, i]) for i, name in enumerate("xy")},
        **{f"velocity_{name}": _nullable(speed[:, i]) for i, name in enumerate("xy")},
        score=[s if v else None for s, v in zip(draft.score, visible, strict=True)],
        **{f"depth_{name}": [None if d is None else d[name] for d in depth] for name in DEPTH_STATISTICS},
    )


def _nullable(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(v) else float(v) for v in values]
