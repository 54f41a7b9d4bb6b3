"""A driver process for the kill test: `python -m tests.pipeline.solve_driver CORPUS OUT`. Every call is
noted."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from rvt_ray.config import Config, load_config
from rvt_ray.evaluation import EvaluationOptions
from rvt_ray.pipeline import stages
from rvt_ray.pipeline.solve_corpus import SolveWorker, solve_corpus
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Row, Work
from rvt_ray.records import Stage


class NotedSolveWorker(SolveWorker):
    """Writes down the key of every clip that it takes up, and takes its time."""

    def __init__(self, config: Config, storage: Storage) -> None:
        super().__init__(config, storage)
        self._calls = Path(storage.root, "calls.txt")

    async def work(self, row: Row) -> Work:
        with open(self._calls, "a") as file:
            file.write(row.key + "\n")
        work = await super().work(row)
        await asyncio.sleep(0.5)
        return work


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    stages.WORKERS[Stage.SOLVE] = "tests.pipeline.solve_driver:NotedSolveWorker"
    solve_corpus(
        load_config(None, ["run.num_cpus=1", "run.solve.num_cpus=0.5", "run.in_flight=1"]),
        sys.argv[1],
        sys.argv[2],
        options=EvaluationOptions(plots=False, draws=50, baselines=()),
        bar=False,
    )
