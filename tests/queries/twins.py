"""Exact twins of synthetic scenes, rendered in memory: no video, no decoder."""

from __future__ import annotations

from functools import cache

import numpy as np

from rvt_ray.config.settings import TwinSettings
from rvt_ray.masks import rle
from rvt_ray.perception.base import Segmentation, TrackDraft
from rvt_ray.perception.caption.annotations import AnnotationsCaptioner
from rvt_ray.records import (
    Attribute,
    CameraStep,
    ClipRecord,
    Coverage,
    DepthKind,
    DigitalTwin,
    Provenance,
    clip_id,
)
from rvt_ray.synthetic import SceneTruth, random_scene, render
from rvt_ray.twin.assemble import assemble

_PROVENANCE = Provenance(segment="truth", depth="truth", caption="truth", settings="0" * 16, versions="{}")
_STILL = CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=True)


def make_clip(num_frames: int, width: int, height: int, fps: float = 10.0, number: int = 0) -> ClipRecord:
    video = f"{number:016x}"
    return ClipRecord(
        clip_id=clip_id(video, 0, num_frames),
        video_id=video,
        source="test",
        name=f"scene{number}",
        uri=f"scene{number}.mp4",
        sha256=f"{number:064x}",
        license="CC0-1.0",
        start_frame=0,
        num_frames=num_frames,
        pts_s=[i / fps for i in range(num_frames)],
        fps_nominal=fps,
        width=width,
        height=height,
        rotation=0,
        decoder="test",
        decoder_version="0",
        num_frames_header=num_frames,
        flags=[],
    )


@cache
def scene_twin(seed: int, num_objects: int = 6, num_frames: int = 48) -> tuple[DigitalTwin, ClipRecord]:
    """The exact twin of a random scene under a still camera, with depth."""
    spec = random_scene(
        seed, num_objects=num_objects, num_frames=num_frames, width=192, height=144, fps=12.0, camera="still"
    )
    clip = make_clip(num_frames, spec.width, spec.height, spec.fps, number=seed + 1)
    truth = SceneTruth(spec)
    ids = [o.instance_id for o in spec.objects]
    masks: dict[int, list[str]] = {i: [] for i in ids}
    depth: list[tuple[int, np.ndarray]] = []
    for frame in render(spec):
        truth.add(frame)
        stack = frame.instances[None] == np.array(ids)[:, None, None]
        for i, text in zip(ids, rle.encode_batch(stack), strict=True):
            masks[i].append(text)
        if frame.index % 3 == 0:
            depth.append((frame.index, np.asarray(frame.depth, np.float32)))
    drafts = [
        TrackDraft(
            instance_id=o.instance_id,
            frame_idx=list(range(num_frames)),
            rle=masks[o.instance_id],
            absence=truth.objects[o.instance_id].absence(),
            score=[None] * num_frames,
            category=o.kind,
            category_score=1.0,
            attributes=[
                Attribute(name=name, value=value, score=1.0, source="annotation")
                for name, value in (("colour", o.colour), ("material", o.material), ("size", o.size))
            ],
        )
        for o in spec.objects
    ]
    segmentation = Segmentation(drafts, list(range(0, num_frames, 12)), Coverage.EVERYTHING)
    camera = [_STILL] * num_frames
    captions = AnnotationsCaptioner().caption(clip, None, segmentation, camera)  # type: ignore[arg-type]
    twin = assemble(
        clip,
        segmentation,
        iter(depth),
        DepthKind.METRIC,
        captions,
        camera,
        TwinSettings(),
        _PROVENANCE,
    )
    return twin, clip
