"""Clips per second per core through `generate`, template wording, against the bare function in a loop.

    OMP_NUM_THREADS=1 python -m benchmarks.generate_overhead [--twins 64] [--part 32]

(a) The pipeline's generate graph with one actor: Ray Data, ledger, markers, deadline, twins read from and
rows written to staged Parquet. (b) `rvt_ray.queries.generate` in a loop over the same twins in memory,
nothing written. Start-up of both is left out: the clock runs from the first twin's start to the last
one's end. A machine's speed drifts within half an hour by more than what is looked for, so the two take
turns, `--part` twins at a time, in changing order; the ratio is that of the sums.
Target: <= 1.15. For 1,000 twins: --twins 1000 --part 100.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rvt_ray.config import Config, load_config
from rvt_ray.pipeline import run as job
from rvt_ray.pipeline.catalogue import Clip, Ledgers
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Row, Work
from rvt_ray.pipeline.workers import GenerateWorker
from rvt_ray.queries import generate
from rvt_ray.records import ClipRecord, DigitalTwin, Stage
from tests.corpora import make_clip
from tests.twin.facts.worlds import random_twin

FRAMES, WIDTH, HEIGHT = 48, 320, 240
Pair = tuple[ClipRecord, DigitalTwin]


class TimedWorker(GenerateWorker):
    """The real worker; writes down when each twin started and ended."""

    def __init__(self, config: Config, storage: Storage) -> None:
        super().__init__(config, storage)
        self._log = Path(f"{storage.root}.log")

    async def work(self, row: Row) -> Work:
        start = time.time()
        made = await super().work(row)
        with open(self._log, "a") as file:
            file.write(json.dumps([start, time.time(), made.meta["counts"]["samples"]]) + "\n")
        return made


def pairs(first: int, count: int) -> list[Pair]:
    """Clips with twins of 5 to 8 things; the seeds from `first` on."""
    made = []
    for seed in range(first, first + count):
        clip = make_clip(f"{seed + 1:016x}", FRAMES, HEIGHT, WIDTH)
        twin = random_twin(seed, count=5 + seed % 4, frames=FRAMES, width=WIDTH, height=HEIGHT)
        made.append((clip, twin.model_copy(update={"clip_id": clip.clip_id, "pts_s": clip.pts_s})))
    return made


def wall(log: Path) -> tuple[float, int]:
    """Seconds from the first start to the last end, and samples."""
    spans = [json.loads(line) for line in log.read_text().splitlines()]
    seconds = max(end for _, end, _ in spans) - min(start for start, _, _ in spans)
    return float(seconds), sum(samples for *_, samples in spans)


def graph(config: Config, root: Path, twins: Sequence[Pair]) -> tuple[float, int]:
    """Through the pipeline; index and twins are staged before the clock runs."""
    storage = Storage(root)
    ledgers = Ledgers.of(storage, config)
    rows = []
    for clip, twin in twins:
        ref = Clip(clip.clip_id, clip.video_id, f"p{clip.video_id}", f"g{clip.video_id}")
        ledgers.index.write_ok(ref.video, ClipRecord.to_table([clip]), {})
        ledgers.perceive.write_ok(ref.perceive, DigitalTwin.to_table([twin]), {})
        payload = json.dumps(asdict(ref))
        rows.append(Row(ref.generate, clip.name, clip.clip_id, clip.video_id, "bench", clip.uri, payload))
    with job.open_run(config, root, [Stage.GENERATE], bar=False) as run:
        run.workers[Stage.GENERATE] = "benchmarks.generate_overhead:TimedWorker"
        run.run_stage(run.ledgers.generate, rows)
    return wall(Path(f"{root}.log"))


def _loop(config: Config, first: int, count: int, log: str) -> None:
    for clip, twin in pairs(first, count):
        start = time.time()
        made = asyncio.run(generate(twin, clip, config.generate, None, config.seed, "0" * 16))
        with open(log, "a") as file:
            file.write(json.dumps([start, time.time(), len(made.samples)]) + "\n")


def bare(config: Config, root: Path, first: int, count: int) -> tuple[float, int]:
    """In a fresh process, one twin after the other."""
    process = multiprocessing.get_context("spawn").Process(
        target=_loop, args=(config, first, count, f"{root}.log")
    )
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"the loop ended with exit code {process.exitcode}")
    return wall(Path(f"{root}.log"))


def main() -> None:
    """Print seconds, rates and the ratio, for each part and for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--twins", type=int, default=64)
    parser.add_argument("--part", type=int, default=32)
    args = parser.parse_args()
    config = load_config(None, ["run.generate.actors=1", "run.generate.num_cpus=1", "run.num_cpus=2"])
    folder = Path(tempfile.mkdtemp(prefix="rvt-bench"))
    graph_s = bare_s = 0.0
    try:
        with job.ray_session(config.run):
            for i, first in enumerate(range(0, args.twins, args.part)):
                count = min(args.part, args.twins - first)
                found = {}
                for side in ("loop", "graph") if i % 2 == 0 else ("graph", "loop"):
                    root = folder / f"{side}{i}"
                    found[side] = (
                        graph(config, root, pairs(first, count))
                        if side == "graph"
                        else bare(config, root, first, count)
                    )
                (here, kept), (plain, wanted) = found["graph"], found["loop"]
                if kept != wanted:
                    raise AssertionError(f"the graph kept {kept} samples, the loop {wanted}")
                graph_s, bare_s = graph_s + here, bare_s + plain
                print(
                    f"twins {first} to {first + count - 1}, {kept} samples: graph {here:.1f} s, "
                    f"loop {plain:.1f} s, ratio {here / plain:.3f}",
                    flush=True,
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{args.twins} twins: graph {graph_s:.1f} s ({args.twins / graph_s:.2f} clips/s), "
        f"loop {bare_s:.1f} s ({args.twins / bare_s:.2f} clips/s), "
        f"ratio {graph_s / bare_s:.3f} (target <= 1.15)"
    )


if __name__ == "__main__":
    main()
