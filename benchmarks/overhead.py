"""What does the pipeline cost beyond the work itself?

The same 64 clips with a stage of fixed cost, (a) through the pipeline's `perceive` graph (Ray Data,
ledger, markers, deadline, progress), (b) through a bare multiprocessing pool over the same callable. Same
number of workers, one run, start-up of both left out: the clock runs from the first clip's start to the
last clip's end. Target: <= 1.15.

    python -m benchmarks.overhead [--clips 64] [--seconds 0.5] [--workers 2] [--repeat 3]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import tempfile
import time
from pathlib import Path

from rvt_ray.config import Config, load_config
from rvt_ray.pipeline import run as job
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Row, Work
from rvt_ray.records import DigitalTwin, Stage


class FixedCost:
    """A stage function that only costs time: sleeps, so that two workers on two busy cores do not disturb
    each other, and writes down when it started and ended."""

    def __init__(self, config: Config, storage: Storage) -> None:
        self.seconds = float(config.perceive.segment.options["seconds"])  # the benchmark's own setting
        self.log = Path(f"{storage.root}.log")

    def __call__(self, row: Row) -> Work:
        start = time.time()
        time.sleep(self.seconds)
        with open(self.log, "a") as file:
            file.write(json.dumps([start, time.time()]) + "\n")
        return Work(DigitalTwin.to_table([]))


class NoBackend:
    """Stands where the config wants a backend."""

    class Options:
        @staticmethod
        def model_validate(options: dict[str, object]) -> dict[str, object]:
            return options


def rows(count: int) -> list[Row]:
    return [Row(f"{i:04d}", f"clip {i}", f"{i:04d}", "v", "bench", f"{i}", "{}") for i in range(count)]


_worker: FixedCost | None = None


def _start(config: Config, root: str) -> None:
    global _worker
    _worker = FixedCost(config, Storage(root))


def _call(row: Row) -> int:
    assert _worker is not None
    return _worker(row).table.num_rows


def wall(log: Path) -> float:
    """Seconds from the first start to the last end."""
    spans = [json.loads(line) for line in log.read_text().splitlines()]
    return float(max(end for _, end in spans) - min(start for start, _ in spans))


def bare(config: Config, root: Path, count: int, workers: int) -> float:
    with multiprocessing.get_context("spawn").Pool(workers, _start, (config, str(root))) as pool:
        list(pool.imap_unordered(_call, rows(count), chunksize=1))
    return wall(Path(f"{root}.log"))


def pipeline(config: Config, root: Path, count: int) -> float:
    with job.open_run(config, root, [Stage.PERCEIVE], bar=False) as run:
        run.workers[Stage.PERCEIVE] = "benchmarks.overhead:FixedCost"
        run.run_stage(run.ledgers.perceive, rows(count))
    return wall(Path(f"{root}.log"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clips", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    backend = f"{{backend: 'benchmarks.overhead:NoBackend', options: {{seconds: {args.seconds}}}}}"
    config = load_config(
        None,
        [
            f"perceive.segment={backend}",
            "perceive.depth.backend=benchmarks.overhead:NoBackend",
            "perceive.caption.backend=benchmarks.overhead:NoBackend",
            f"run.perceive.actors={args.workers}",
            "run.perceive.num_cpus=0.5",
            f"run.num_cpus={max(2, args.workers)}",
        ],
    )
    ideal = args.clips * args.seconds / args.workers
    folder = Path(tempfile.mkdtemp(prefix="rvt-bench"))
    ratios = []
    try:
        with job.ray_session(config.run):
            for i in range(args.repeat):
                ray_s = pipeline(config, folder / f"ray{i}", args.clips)
                bare_s = bare(config, folder / f"bare{i}", args.clips, args.workers)
                ratios.append(ray_s / bare_s)
                print(
                    f"{args.clips} clips x {args.seconds:g} s, {args.workers} workers (ideal {ideal:.2f} s): "
                    f"pipeline {ray_s:.2f} s, bare pool {bare_s:.2f} s, ratio {ratios[-1]:.3f}"
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"median ratio {sorted(ratios)[len(ratios) // 2]:.3f} (target <= 1.15)")


if __name__ == "__main__":
    main()
