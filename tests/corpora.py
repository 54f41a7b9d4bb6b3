"""Small finished corpora for tests, written through the records themselves. No pipeline, no Ray."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from rvt_ray.masks import rle
from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.records import (
    Absence,
    Box,
    CameraMotion,
    CameraStep,
    Category,
    ClipRecord,
    Coverage,
    DepthKind,
    DigitalTwin,
    Evidence,
    Failure,
    GateVerdict,
    Instance,
    Provenance,
    Quality,
    Record,
    Reject,
    Sample,
    SampleProvenance,
    Scene,
    Task,
    Track,
    TrackStatus,
    Tree,
    TreeEdge,
    TreeNode,
    Verdict,
    Wording,
    clip_id,
)

Mask = npt.NDArray[np.bool_]
FPS = 12
UNMEASURED = [
    *("velocity_x", "velocity_y", "score"),
    *(f"depth_{k}" for k in ("median", "mean", "std", "p10", "p90", "min", "max")),
]


def make_clip(video_id: str, num_frames: int, height: int, width: int, **changes: Any) -> ClipRecord:
    """A clip's row; `changes` replaces any field."""
    fields: dict[str, Any] = {
        "clip_id": clip_id(video_id, 0, num_frames),
        "video_id": video_id,
        "source": "test",
        "name": f"video-{video_id}",
        "uri": f"missing/{video_id}.mp4",
        "sha256": video_id.ljust(64, "0"),
        "license": "CC0-1.0",
        "start_frame": 0,
        "num_frames": num_frames,
        "pts_s": [i / FPS for i in range(num_frames)],
        "fps_nominal": float(FPS),
        "width": width,
        "height": height,
        "rotation": 0,
        "decoder": "pyav",
        "decoder_version": av.__version__,
        "num_frames_header": num_frames,
        "flags": [],
    }
    return ClipRecord(**(fields | changes))


def make_instance(
    instance_id: int,
    category: str,
    masks: Sequence[Mask | None],
    absence: Mapping[int, Absence] | None = None,
    **changes: Any,
) -> Instance:
    """An instance from its dense masks; None: not annotated; `absence` says why a mask is empty."""
    boxes, areas, centroids, visible = [], [], [], []
    for mask in masks:
        ys, xs = np.nonzero(mask) if mask is not None else (np.zeros(0), np.zeros(0))
        visible.append(len(xs) > 0)
        areas.append(None if mask is None else float(len(xs)))
        if len(xs):
            x, y = float(xs.min()), float(ys.min())
            boxes.append((x, y, float(xs.max() - x + 1), float(ys.max() - y + 1)))
            centroids.append((float(xs.mean()), float(ys.mean())))
        else:
            boxes.append((None, None, None, None))
            centroids.append((None, None))
    n = len(masks)
    why = absence or {}
    track = Track(
        frame_idx=list(range(n)),
        visible=visible,
        absence=[None if v else why.get(i, Absence.OUT) for i, v in enumerate(visible)],
        rle=[None if m is None else rle.encode(m) for m in masks],
        **{f"box_{k}": [b[j] for b in boxes] for j, k in enumerate("xywh")},
        area=areas,
        centroid_x=[c[0] for c in centroids],
        centroid_y=[c[1] for c in centroids],
        **{name: [None] * n for name in UNMEASURED},
    )
    fields: dict[str, Any] = {
        "instance_id": instance_id,
        "category": category,
        "alternatives": [],
        "attributes": [],
        "caption": f"a {category}",
        "parent_id": None,
        "quality": Quality(mean_score=1.0, redetection_rate=1.0, fragments=1, status=TrackStatus.CONFIRMED),
        "track": track,
    }
    return Instance(**(fields | changes))


def make_twin(clip: ClipRecord, instances: Sequence[Instance], **changes: Any) -> DigitalTwin:
    """A twin of a still camera."""
    step = CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=True)
    fields: dict[str, Any] = {
        "clip_id": clip.clip_id,
        "width": clip.width,
        "height": clip.height,
        "num_frames": clip.num_frames,
        "pts_s": clip.pts_s,
        "depth_kind": DepthKind.NONE,
        "scene": Scene(
            caption="a test scene", tags=[], camera_motion=CameraMotion.STILL, camera=[step] * clip.num_frames
        ),
        "key_frames": list(range(0, clip.num_frames, 8)),
        "instances": list(instances),
        "provenance": Provenance(
            segment="annotations", depth="none", caption="annotations", settings="0" * 16, versions="{}"
        ),
        "coverage": Coverage.EVERYTHING,
    }
    return DigitalTwin(**(fields | changes))


def union_masks(twin: DigitalTwin, ids: Sequence[int]) -> list[str]:
    """Per frame the RLE of the union of the instances."""
    masks = []
    for frame in range(twin.num_frames):
        parts = [r for i in ids if (r := twin.instance(i).track.rle[frame]) is not None]
        masks.append(rle.union(parts, twin.height, twin.width))
    return masks


def frame_boxes(twin: DigitalTwin, ids: Sequence[int]) -> list[list[Box]]:
    """Per frame one box per visible instance."""
    rows = []
    for frame in range(twin.num_frames):
        tracks = [twin.instance(i).track for i in ids]
        rows.append(
            [
                Box(x=t.box_x[frame], y=t.box_y[frame], w=t.box_w[frame], h=t.box_h[frame])
                for t in tracks
                if t.visible[frame]
            ]
        )
    return rows


def make_sample(
    sample_id: str, twin: DigitalTwin, task: Task, target_ids: Sequence[int], **changes: Any
) -> Sample:
    """A sample whose masks or boxes are the targets' own."""
    program = Program(
        target="x",
        variables=("x", "a"),
        constraints=(
            Constraint(predicate="colour", args=("x",), value="red"),
            Constraint(predicate="left_of", args=("x", "a"), scope="start"),
            Constraint(predicate="category", args=("a",), value="pillar"),
        ),
    )
    fields: dict[str, Any] = {
        "sample_id": sample_id,
        "clip_id": twin.clip_id,
        "task": task,
        "query": "Which thing starts out on the left of the tall support?",
        "paraphrases": ["What is left of the tall support at first?"],
        "categories": [Category.SEMANTIC, Category.SPATIAL],
        "level": 2,
        "target_ids": list(target_ids),
        "answer": {Task.VQA: "red", Task.SUMMARY: "It moves to the right behind the support."}.get(task),
        "choices": ["blue", "red"] if task is Task.VQA else [],
        "masks": union_masks(twin, target_ids) if task is Task.SEGMENTATION else None,
        "boxes": frame_boxes(twin, target_ids) if task is Task.GROUNDING else None,
        "program": program.to_json(),
        "tree": Tree(
            tree_id="t1",
            nodes=[
                TreeNode(node="x", instance_ids=list(target_ids), role="target", level=1),
                TreeNode(node="a", instance_ids=[2], role="anchor", level=2),
            ],
            edges=[TreeEdge(subject="x", predicate="left_of", object="a", level=2, fact_ids=["f1"])],
        ),
        "evidence": [Evidence(fact_id="f1", statement="x is left of a", margin=0.12, frames=[0, 1, 2])],
        "gates": [
            GateVerdict(gate="program", verdict=Verdict.PASS, detail="certain = possible"),
            GateVerdict(gate="faithful", verdict=Verdict.NOT_RUN, detail="no model"),
        ],
        "wording": Wording.TEMPLATE,
        "provenance": SampleProvenance(model="template", prompt_version="1", seed=0, settings="0" * 16),
        "source_license": "CC0-1.0",
    }
    return Sample(**(fields | changes))


def make_reject(sample: Sample, gate: str, reason: str) -> Reject:
    """A sample as a refused candidate."""
    return Reject(**sample.model_dump(), gate=gate, reason=reason)


def write_corpus(
    root: Path,
    clips: Sequence[ClipRecord],
    twins: Sequence[DigitalTwin] = (),
    samples: Sequence[Sample] = (),
    rejects: Sequence[Reject] = (),
    failures: Sequence[Failure] = (),
    row_group_size: int = 2,
) -> Path:
    """Write a finished corpus: one part file per table, small row groups so that readers meet several."""
    rows: dict[type[Record], Sequence[Record]] = {
        ClipRecord: clips,
        DigitalTwin: twins,
        Sample: samples,
        Reject: rejects,
        Failure: failures,
    }
    for record, items in rows.items():
        folder = root / record.TABLE
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            record.to_table(items), folder / "part-00000-of-00001.parquet", row_group_size=row_group_size
        )
    (root / "manifest.json").write_text(json.dumps({"config": {}, "counts": {}}), encoding="utf-8")
    return root


def write_video(path: Path, frames: npt.NDArray[np.uint8]) -> None:
    """An H.264 mp4 of RGB frames, shape (n, height, width, 3), even sizes."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        stream.time_base = Fraction(1, FPS)
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
