"""One small local Ray for the tests of this room, and output roots that are filled by fake stages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rvt_ray.config import Config, load_config
from rvt_ray.pipeline import run as job
from rvt_ray.pipeline.catalogue import Ledgers, read_index, read_sources
from rvt_ray.pipeline.finalise import finalise_corpus
from rvt_ray.pipeline.ledger import Done
from rvt_ray.pipeline.stages import AsyncStage, Job, SyncStage
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import ROW_SCHEMA, Row
from rvt_ray.pipeline.workers import clip_row, index_row
from rvt_ray.records import Stage
from tests.pipeline.fakes import FAKE_WORKERS

SMALL = (
    "run.index.num_cpus=0.5",
    "run.perceive.num_cpus=0.5",
    "run.generate.num_cpus=0.5",
    "perceive.segment.backend=tests.pipeline.fakes:NoBackend",
    "perceive.depth.backend=tests.pipeline.fakes:NoBackend",
    "perceive.caption.backend=tests.pipeline.fakes:NoBackend",
    "generate.gates.form=false",  # fake queries are all alike
)


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    """A Ray that all tests of a module share."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    config = load_config(None, ["run.num_cpus=2"])
    with job.ray_session(config.run):
        yield


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """Five files with different content."""
    return make_videos(tmp_path / "videos", 5)


def make_videos(folder: Path, count: int) -> Path:
    """Files that the fake index takes for videos."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        path = folder / f"v{i:02d}.mp4"
        if not path.exists():  # a file that is written again counts as changed
            path.write_bytes(f"video {i}".encode())
    return folder


def config_for(folder: Path, overrides: Sequence[str] = ()) -> Config:
    """Settings for a folder of fake videos."""
    return load_config(None, [f"sources=[{{path: {folder}, license: CC0-1.0}}]", *SMALL, *overrides])


def run_fakes(config: Config, out: Path, what: str = "build", **options: Any) -> job.Result:
    """A run with fake stages."""
    with job.open_run(config, out, list(Stage), bar=False, **options) as run:
        run.workers = {Stage(stage): path for stage, path in FAKE_WORKERS.items()}
        catalogue = run.index()
        if what in ("build", "perceive"):
            run.perceive(catalogue)
        if what == "build":
            run.generate(catalogue)
            run.finalise(catalogue)
    return run.result


def run_inline(config: Config, out: Path) -> None:
    """Fill the ledgers with fake stages in this process, without Ray, and finalise."""
    from rvt_ray.sources import open_sources

    storage = Storage(out)
    catalogue = read_sources(open_sources(config.sources))
    catalogue.save(storage)
    ledgers = Ledgers.of(storage, config)

    def open_job(stage: Stage) -> Job:
        return Job(storage.root, config.model_dump_json(), stage, "inline", FAKE_WORKERS[stage.value])

    index = SyncStage(open_job(Stage.INDEX))
    index(rows_table([index_row(video) for video in catalogue.videos]))
    indexed = read_index(catalogue, ledgers.index)
    kept = indexed.kept
    rows = [clip_row(c, c.perceive, kept[c.clip_id.partition("-")[0]]) for c in indexed.clips]
    SyncStage(open_job(Stage.PERCEIVE))(rows_table(rows))
    twins = ledgers.perceive.scan()
    rows = [
        clip_row(c, c.generate, kept[c.clip_id.partition("-")[0]])
        for c in indexed.clips
        if twins[c.perceive] is Done.OK
    ]

    async def generate() -> None:
        stage = AsyncStage(open_job(Stage.GENERATE))
        async for _ in stage(rows_table(rows)):
            pass
        await stage.aclose()

    asyncio.run(generate())
    finalise_corpus(storage, config, catalogue)


def rows_table(rows: Sequence[Row]) -> pa.Table:
    """Rows as a stage gets them."""
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=ROW_SCHEMA)


def shard_bytes(out: Path) -> dict[str, bytes]:
    """All shards by name."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.glob("*/part-*.parquet"))}
