"""One set of random weights, and one network, for the whole room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the sam2 segmenter needs torch")
pytest.importorskip("sam2", reason="the sam2 segmenter needs sam2")

from benchmarks.sam2_common import quiet, random_checkpoint  # noqa: E402
from rvt_ray.perception.segment.sam2 import checkpoints  # noqa: E402
from rvt_ray.perception.segment.sam2.network import Network  # noqa: E402

IMAGE_SIZE = 128


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "sam2.1_hiera_tiny.pt"
    return random_checkpoint(path, seed=1, image_size=IMAGE_SIZE)


@pytest.fixture(scope="session")
def network(checkpoint: Path) -> Network:
    model, _ = checkpoints.load(checkpoint, "tiny", IMAGE_SIZE, 4)
    return Network(model)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with quiet():
        yield
