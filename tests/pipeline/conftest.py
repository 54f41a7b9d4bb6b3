"""One small local Ray for the tests of this room, and output roots that are filled by fake stages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rvt_ray.config import Config, load_config
from rvt_ray.pipeline import run as job
from rvt_ray.records import Stage
from tests.pipeline.fakes import FAKE_WORKERS, Plan

SMALL = (
    "run.index.num_cpus=0.5",
    "run.perceive.num_cpus=0.5",
    "run.generate.num_cpus=0.5",
    "perceive.segment.backend=tests.pipeline.fakes:NoBackend",
    "perceive.depth.backend=tests.pipeline.fakes:NoBackend",
    "perceive.caption.backend=tests.pipeline.fakes:NoBackend",
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
        (folder / f"v{i:02d}.mp4").write_bytes(f"video {i}".encode())
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


def shard_bytes(out: Path) -> dict[str, bytes]:
    """All shards by name."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.glob("*/part-*.parquet"))
    }


Runner = Callable[..., job.Result]
__all__ = ["Plan", "config_for", "local_ray", "make_videos", "run_fakes", "shard_bytes", "videos"]
