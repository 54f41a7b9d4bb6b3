"""The stage functions: one row in, one table out. No Ray; each lives in one process for many rows."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rvt_ray.config import Config, fingerprint
from rvt_ray.pipeline.catalogue import Clip, Ledgers, Video, index_meta
from rvt_ray.pipeline.ledger import Done, Ledger
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Row, Work
from rvt_ray.records import ClipRecord, DigitalTwin, Reject, Sample, Stage
from rvt_ray.twin.opinions import drafts_of, with_opinions
from rvt_ray.video.item import SourceItem


class Worker(Protocol):
    """A stage's function with what it keeps between rows (models, engines).

    Built as `cls(config, storage)` in the worker process. Heavy imports belong into `__init__`.
    """

    def __call__(self, row: Row) -> Work: ...


class AsyncWorker(Protocol):
    """The same for a stage that keeps many rows in flight."""

    async def work(self, row: Row) -> Work: ...

    async def close(self) -> None: ...


class IndexWorker:
    """Video -> clips."""

    def __init__(self, config: Config, storage: Storage) -> None:
        from rvt_ray.video import index_video

        self._index_video = index_video
        self._settings = config.index

    def __call__(self, row: Row) -> Work:
        clips: list[ClipRecord] = self._index_video(SourceItem(**json.loads(row.payload)), self._settings)
        counts = {"clips": len(clips), "frames": sum(clip.num_frames for clip in clips)}
        return Work(ClipRecord.to_table(clips), {**index_meta(clips), "counts": counts})


class PerceiveWorker:
    """Clip -> twin. Frames are decoded here and go nowhere else."""

    def __init__(self, config: Config, storage: Storage) -> None:
        from rvt_ray.twin.build import Perception
        from rvt_ray.video import open_clip

        self._open_clip = open_clip
        self._settings = config.index
        self._index = Ledgers.of(storage, config).index
        self._perception = Perception.from_config(config)
        self._perception.opinions = False  # the caption stage's

    def __call__(self, row: Row) -> Work:
        clip = read_clip(self._index, Clip(**json.loads(row.payload)))
        start = time.perf_counter()
        frames = self._open_clip(clip, self._settings)
        seconds = {"open": time.perf_counter() - start}
        try:
            twin = self._perception.twin(clip, frames, seconds)
        finally:
            frames.close()
        counts = {"frames": clip.num_frames, "instances": len(twin.instances)}
        parts = {name: round(value, 4) for name, value in seconds.items()}
        return Work(DigitalTwin.to_table([twin]), {"counts": counts, "parts": parts})


class CaptionWorker:
    """Twin -> twin with a model's opinions, many twins at once on one engine. The few frames that the model
    looks at are decoded here."""

    def __init__(self, config: Config, storage: Storage) -> None:
        from rvt_ray.twin.build import captioners
        from rvt_ray.video import open_clip

        self._open_clip = open_clip
        self._settings = config.index
        ledgers = Ledgers.of(storage, config)
        self._index, self._perceive = ledgers.index, ledgers.perceive
        self._settings_id = fingerprint(config, Stage.CAPTION)
        self._plain, self._annotated = captioners(config)

    async def work(self, row: Row) -> Work:
        clip_ref = Clip(**json.loads(row.payload))
        clip = read_clip(self._index, clip_ref)
        twin = DigitalTwin.from_table(self._perceive.read(clip_ref.perceive))[0]
        captioner: Any = self._plain if clip.annotation_uri is None else self._annotated
        seconds = 0.0
        if hasattr(captioner, "opinions"):
            frames = await asyncio.to_thread(self._open_clip, clip, self._settings)
            start = time.perf_counter()
            try:
                said = await captioner.opinions(clip, frames, drafts_of(twin))
            finally:
                frames.close()
            seconds = time.perf_counter() - start
            twin = with_opinions(twin, said, captioner, self._settings_id)
        counts = {"instances": len(twin.instances)}
        parts = {"opinions": round(seconds, 4)}
        return Work(DigitalTwin.to_table([twin]), {"counts": counts, "parts": parts})

    async def close(self) -> None:
        for captioner in {id(c): c for c in (self._plain, self._annotated)}.values():
            if hasattr(captioner, "close"):
                await captioner.close()


class GenerateWorker:
    """Twin -> samples and rejects, many twins at once on one engine."""

    def __init__(self, config: Config, storage: Storage) -> None:
        from rvt_ray.llm import build_llm
        from rvt_ray.queries import generate

        self._generate = generate
        self._settings = config.generate
        self._seed = config.seed
        self._fingerprint = fingerprint(config, Stage.GENERATE)
        ledgers = Ledgers.of(storage, config)
        self._index, self._twins = ledgers.index, ledgers.twins
        self._llm = build_llm(config.generate.llm)

    async def work(self, row: Row) -> Work:
        clip_ref = Clip(**json.loads(row.payload))
        clip = read_clip(self._index, clip_ref)
        twin = DigitalTwin.from_table(self._twins.read(clip_ref.perceive))[0]
        outcome = await self._generate(twin, clip, self._settings, self._llm, self._seed, self._fingerprint)
        kept, refused = len(outcome.samples), len(outcome.rejects)
        if outcome.candidates != kept + refused:
            raise AssertionError(
                f"{outcome.candidates} candidates, but {kept} samples + {refused} rejects: "
                "a candidate was lost"
            )
        counts = {"samples": kept, "rejects": refused}
        return Work(staged_table(outcome.samples, outcome.rejects), {"counts": counts})

    async def close(self) -> None:
        if self._llm is not None:
            await self._llm.close()


def staged_table(samples: list[Sample], rejects: list[Reject]) -> pa.Table:
    """Samples and rejects of one clip as one table: a sample is a row whose `gate` is null. Sorted by id."""
    rows: list[dict[str, Any]] = [{**s.to_row(), "gate": None, "reason": None} for s in samples]
    rows += [reject.to_row() for reject in rejects]
    rows.sort(key=lambda row: (row["sample_id"], row["gate"] or ""))
    return pa.Table.from_pylist(rows, schema=Reject.SCHEMA)


def read_clip(index: Ledger, clip: Clip) -> ClipRecord:
    """The record of a clip, from the index ledger.

    Raises:
        LookupError: the index was changed under a running job.
    """
    table = index.read(clip.video)
    found = ClipRecord.from_table(table.filter(pc.equal(table["clip_id"], clip.clip_id)))
    if not found:
        raise LookupError(f"{index.name(clip.video, Done.OK)} no longer holds clip {clip.clip_id}: run again")
    return found[0]


def index_row(video: Video) -> Row:
    """The row of a video for the index stage."""
    item = video.item
    return Row(
        video.key, f"{item.source}/{item.name}", None, None, item.source, item.uri, json.dumps(asdict(item))
    )


def clip_row(clip: Clip, key: str, video: Video) -> Row:
    """The row of a clip for the perceive or generate stage; `key` is the clip's key in that stage's
    ledger."""
    item = video.item
    return Row(
        key,
        f"{item.source}/{item.name} {clip.clip_id}",
        clip.clip_id,
        clip.clip_id.partition("-")[0],
        item.source,
        item.uri,
        json.dumps(asdict(clip)),
    )
