"""Stage functions with the real interface and a fixed cost, whose misbehaviour a test chooses per row.

Acts: `segfault`, `exit`, `hang` (a native call that holds the GIL), `sleep` (Python), `raise`, `clip_error`,
`sysexit`, `init_segfault` (the process dies while the worker is built).
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from rvt_ray.config import Config
from rvt_ray.errors import ClipError, MissingDependencyError
from rvt_ray.masks import rle
from rvt_ray.pipeline.catalogue import Clip, Ledgers, index_meta
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Row, Work
from rvt_ray.pipeline.workers import read_clip, staged_table
from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.records import (
    CameraMotion,
    ClipRecord,
    DepthKind,
    DigitalTwin,
    FailureCode,
    Instance,
    Provenance,
    Quality,
    Sample,
    SampleProvenance,
    Scene,
    Scored,
    Task,
    Track,
    TrackStatus,
    Tree,
    Wording,
    clip_id,
)
from rvt_ray.records import Reject as RejectRecord
from rvt_ray.video.item import SourceItem

PROGRAM = Program(
    target="x",
    variables=("x",),
    constraints=(Constraint(predicate="category", args=("x",), value="square"),),
).to_json()
HEIGHT, WIDTH, FRAMES = 24, 32, 4
CLIPS_PER_VIDEO = 2
FAKE_WORKERS = {
    "index": "tests.pipeline.fakes:FakeIndex",
    "perceive": "tests.pipeline.fakes:FakePerceive",
    "generate": "tests.pipeline.fakes:FakeGenerate",
}


class Plan:
    """What the fakes of one output root shall do, and the log of what they did. Lies beside the root, so that
    tests which share a Ray have each their own.

    Args:
        root: the output root.
    """

    def __init__(self, root: str | Path) -> None:
        self.path = Path(f"{root}.plan.json")
        self.log = Path(f"{root}.calls.log")
        self.content: dict[str, Any] = {}
        if self.path.exists():
            self.content = json.loads(self.path.read_text())

    def write(self, cost: float = 0.0, async_cost: float = 0.0, **acts: dict[str, str]) -> Plan:
        """`acts`: per stage {part of the row's name: act}."""
        self.content = {"cost": cost, "async_cost": async_cost, "acts": acts}
        self.path.write_text(json.dumps(self.content))
        return self

    def calls(self, stage: str) -> list[str]:
        """Keys of the real calls of a stage, in order."""
        if not self.log.exists():
            return []
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [key for where, key, _ in lines if where == stage]

    def act(self, stage: str, row: Row) -> None:
        """Write the call down, take the time it costs, then do what the plan says of this row."""
        self.note(stage, row.key)
        time.sleep(self.content.get("cost", 0.0))
        for part, what in self.content.get("acts", {}).get(stage, {}).items():
            if part in row.name:
                _misbehave(what, row)

    def note(self, stage: str, key: str) -> None:
        """Append one line; short appends are atomic."""
        with open(self.log, "a") as file:
            file.write(f"{stage} {key} {os.getpid()}\n")


def _misbehave(what: str, row: Row) -> None:
    if what == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(60)
    elif what == "exit":
        os._exit(13)
    elif what == "hang":
        hold_the_gil(600)
    elif what == "sleep":
        time.sleep(600)
    elif what == "raise":
        raise ZeroDivisionError(f"no luck with {row.name}")
    elif what == "sysexit":
        sys.exit(4)
    elif what == "clip_error":
        raise ClipError(FailureCode.CORRUPT, f"{row.uri}: broken")
    else:
        raise AssertionError(what)


def hold_the_gil(seconds: int) -> None:
    """A native call that no Python thread of this process survives."""
    ctypes.PyDLL(None).sleep(seconds)  # PyDLL, unlike CDLL, keeps the GIL


class NoBackend:
    """Stands where the config wants a backend and the fake worker needs none."""


class FakeIndex:
    """Every file is a video of two clips; the content is the file's bytes."""

    def __init__(self, config: Config, storage: Storage) -> None:
        self.plan = Plan(storage.root)
        if "init_segfault" in self.plan.content.get("acts", {}).get("index", {}):
            os.kill(os.getpid(), signal.SIGSEGV)

    def __call__(self, row: Row) -> Work:
        self.plan.act("index", row)
        clips = fake_clips(SourceItem(**json.loads(row.payload)))
        return Work(ClipRecord.to_table(clips), {**index_meta(clips), "counts": {"clips": len(clips)}})


def fake_clips(item: SourceItem) -> list[ClipRecord]:
    """Two clips of a file; its bytes are its content."""
    sha = hashlib.sha256(Path(item.uri).read_bytes()).hexdigest()
    return [
        ClipRecord(
            clip_id=clip_id(sha[:16], i * FRAMES, FRAMES),
            video_id=sha[:16],
            source=item.source,
            name=item.name,
            uri=item.uri,
            sha256=sha,
            license=item.license,
            start_frame=i * FRAMES,
            num_frames=FRAMES,
            pts_s=[j / 10 for j in range(FRAMES)],
            fps_nominal=10.0,
            width=WIDTH,
            height=HEIGHT,
            rotation=0,
            decoder="fake",
            decoder_version="1",
            num_frames_header=None,
            flags=[],
            annotation_uri=item.annotation_uri,
            annotation_format=item.annotation_format,
            annotation_sha256=item.annotation_sha256,
        )
        for i in range(CLIPS_PER_VIDEO)
    ]


class Unbuildable:
    """A backend whose weights are absent."""

    def __init__(self, config: Config, storage: Storage) -> None:
        raise MissingDependencyError("the weights are not here: rvt-ray models pull them")


class FakePerceive:
    """A twin with one still square whose place follows from the clip's id."""

    def __init__(self, config: Config, storage: Storage) -> None:
        self.plan = Plan(storage.root)
        self._index = Ledgers.of(storage, config).index

    def __call__(self, row: Row) -> Work:
        self.plan.act("perceive", row)
        clip = read_clip(self._index, Clip(**json.loads(row.payload)))
        return Work(DigitalTwin.to_table([fake_twin(clip)]), {"counts": {"instances": 1}})


class FakeGenerate:
    """Two samples and a reject per twin."""

    def __init__(self, config: Config, storage: Storage) -> None:
        self.plan = Plan(storage.root)
        ledgers = Ledgers.of(storage, config)
        self._index, self._perceive = ledgers.index, ledgers.perceive

    async def work(self, row: Row) -> Work:
        await asyncio.sleep(self.plan.content.get("async_cost", 0.0))
        self.plan.act("generate", row)
        ref = Clip(**json.loads(row.payload))
        clip = read_clip(self._index, ref)
        twin = DigitalTwin.from_table(self._perceive.read(ref.perceive))[0]
        samples = [fake_sample(clip, twin, i) for i in range(3)]
        reject = RejectRecord(**samples.pop().model_dump(), gate="leak", reason="names the kind")
        counts = {"samples": len(samples), "rejects": 1}
        return Work(staged_table(samples, [reject]), {"counts": counts})

    async def close(self) -> None:
        self.plan.note("close", "-")


def fake_twin(clip: ClipRecord) -> DigitalTwin:
    """A twin that `validate` accepts."""
    seed = int(clip.clip_id[:4], 16) + clip.start_frame
    x, y, side = seed % (WIDTH - 8), seed % (HEIGHT - 8), 6
    mask = np.zeros((HEIGHT, WIDTH), dtype=bool)
    mask[y : y + side, x : x + side] = True
    n = clip.num_frames
    nothing: list[float | None] = [None] * n
    track = Track(
        frame_idx=list(range(n)),
        visible=[True] * n,
        absence=[None] * n,
        rle=[rle.encode(mask)] * n,
        box_x=[float(x)] * n,
        box_y=[float(y)] * n,
        box_w=[float(side)] * n,
        box_h=[float(side)] * n,
        area=[float(side * side)] * n,
        centroid_x=[x + (side - 1) / 2] * n,
        centroid_y=[y + (side - 1) / 2] * n,
        velocity_x=[0.0] * n,
        velocity_y=[0.0] * n,
        score=nothing,
        **{f"depth_{k}": nothing for k in ("median", "mean", "std", "p10", "p90", "min", "max")},
    )
    return DigitalTwin(
        clip_id=clip.clip_id,
        width=clip.width,
        height=clip.height,
        num_frames=n,
        pts_s=clip.pts_s,
        depth_kind=DepthKind.NONE,
        scene=Scene(caption="", tags=[], camera_motion=CameraMotion.STILL, camera=[]),
        key_frames=[0],
        instances=[
            Instance(
                instance_id=1,
                category="square",
                alternatives=[Scored(value="square", score=0.9)],
                attributes=[],
                caption="",
                parent_id=None,
                quality=Quality(
                    mean_score=1.0, redetection_rate=1.0, fragments=1, status=TrackStatus.CONFIRMED
                ),
                track=track,
            )
        ],
        provenance=Provenance(segment="fake", depth="none", caption="fake", settings="", versions="{}"),
    )


def fake_sample(clip: ClipRecord, twin: DigitalTwin, i: int) -> Sample:
    """A segmentation sample of the twin's only instance."""
    masks = [m for m in twin.instances[0].track.rle if m is not None]
    return Sample(
        sample_id=hashlib.sha256(f"{clip.clip_id}/{i}".encode()).hexdigest()[:16],
        clip_id=clip.clip_id,
        task=Task.SEGMENTATION,
        query=f"What never moves? ({i})",
        paraphrases=[],
        categories=[],
        level=1,
        target_ids=[1],
        answer=None,
        choices=[],
        masks=masks,
        boxes=None,
        program=PROGRAM,
        tree=Tree(tree_id="t", nodes=[], edges=[]),
        evidence=[],
        gates=[],
        wording=Wording.TEMPLATE,
        provenance=SampleProvenance(model="fake", prompt_version="1", seed=0, settings=""),
        source_license=clip.license,
    )
