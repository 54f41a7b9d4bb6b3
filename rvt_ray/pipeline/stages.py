"""The callables that Ray Data runs: thin. A batch of row references in, a batch of receipts out."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import os
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import IO, Any

import pyarrow as pa

from rvt_ray import backends
from rvt_ray.config import Config, fingerprint
from rvt_ray.config.settings import PoolSettings
from rvt_ray.pipeline.attempts import Attempts, WorkerStarts
from rvt_ray.pipeline.ledger import Ledger
from rvt_ray.pipeline.resources import rows_in_flight
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import RECEIPT_SCHEMA, Guard, Receipt, Row, Work, failure_of, timeout_failure
from rvt_ray.records import Failure, Stage

logger = logging.getLogger(__name__)

WORKERS = {
    Stage.INDEX: "rvt_ray.pipeline.workers:IndexWorker",
    Stage.PERCEIVE: "rvt_ray.pipeline.workers:PerceiveWorker",
    Stage.CAPTION: "rvt_ray.pipeline.workers:CaptionWorker",
    Stage.GENERATE: "rvt_ray.pipeline.workers:GenerateWorker",
    Stage.SOLVE: "rvt_ray.pipeline.solve_corpus:SolveWorker",
}
ASYNC_STAGES = (Stage.CAPTION, Stage.GENERATE, Stage.SOLVE)
"""Stages that talk to a language model and keep many rows in flight."""
_CLOSE_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Job:
    """All that a worker process is told: plain data.

    Attributes:
        root: the output root.
        config: the resolved config, as JSON.
        stage: which stage.
        run: id of this run of the driver.
        worker: the stage's function, `package.module:Class`.
    """

    root: str
    config: str
    stage: Stage
    run: str
    worker: str

    def open(self) -> tuple[Guard, Any]:
        """The guard and the stage's function, built in this process."""
        config = Config.model_validate_json(self.config)
        storage = Storage(self.root)
        ledger = Ledger(storage, self.stage, fingerprint(config, self.stage))
        attempts = Attempts(ledger, self.run, config.run.max_attempts, config.run.clip_timeout_s)
        pool: PoolSettings = getattr(config.run, self.stage.value)
        _limit_threads(pool.num_cpus)
        with WorkerStarts(ledger, self.run, pool.actors).counted():
            cls = backends.resolve(self.worker, {}, f"{self.stage.value} worker")
            return Guard(ledger, attempts), cls(config, storage)


class SyncStage:
    """Index and perceive: one row at a time in this process."""

    def __init__(self, job: Job) -> None:
        self._guard, self._worker = job.open()

    def __call__(self, batch: pa.Table) -> pa.Table:
        return receipts_table([self._guard.run(row, self._worker) for row in rows_of(batch)])


class AsyncStage:
    """Caption, generate and solve: `rows_in_flight` rows at once in this process, each a coroutine.

    A row that was in flight when a process died is run alone the next time (see `attempts`).
    """

    def __init__(self, job: Job) -> None:
        self._guard, self._worker = job.open()
        config = Config.model_validate_json(job.config)
        self._timeout_s = config.run.clip_timeout_s
        self._slots = asyncio.Semaphore(rows_in_flight(config, job.stage))
        self._gate = SharedGate()
        self._watch = StallWatch(self._timeout_s)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def __call__(self, batch: pa.Table) -> AsyncIterator[pa.Table]:
        self._loop = asyncio.get_running_loop()
        for row in rows_of(batch):
            async with self._slots:
                receipt = await self.run(row)
            yield receipts_table([receipt])

    async def run(self, row: Row) -> Receipt:
        """Work on one row; the asynchronous twin of `Guard.run`."""
        guard = self._guard
        start, earlier = await asyncio.to_thread(guard.admit, row)
        if earlier is not None:
            return earlier
        solo = start > 1
        async with self._gate.alone() if solo else self._gate.together():
            await asyncio.to_thread(guard.attempts.begin, row.key, start, solo=solo)
            clock = time.perf_counter()
            with self._watch.over(guard.attempts.open_trace(row.key, start) if solo else None):
                result = await self._work(row)
            receipt = await asyncio.to_thread(guard.settle, row, result, time.perf_counter() - clock, start)
            await asyncio.to_thread(guard.attempts.end, row.key, start)
        return receipt

    async def _work(self, row: Row) -> Work | Failure:
        timeout = asyncio.timeout(self._timeout_s)
        try:
            async with timeout:
                work: Work = await self._worker.work(row)
                return work
        except (Exception, SystemExit) as error:  # noqa: BLE001  (one row's trouble, whatever it is)
            if timeout.expired():
                return timeout_failure(row, self._guard.ledger.stage, self._timeout_s)
            return failure_of(row, self._guard.ledger.stage, error)

    async def aclose(self) -> None:
        """Let the engine go; idempotent."""
        if not self._closed:
            self._closed = True
            await self._worker.close()

    def __del__(self) -> None:
        # Ray Data drops the callable, from another thread than the loop's, when the pool winds down: the
        # engine must go before the process does.
        loop = getattr(self, "_loop", None)
        if loop is None or self._closed or not loop.is_running() or asyncio._get_running_loop() is loop:
            return
        try:
            asyncio.run_coroutine_threadsafe(self.aclose(), loop).result(_CLOSE_TIMEOUT_S)
        except Exception:
            logger.warning("the engine did not close within %g s", _CLOSE_TIMEOUT_S, exc_info=True)


class SharedGate:
    """Many together, or one alone; who wants to be alone goes first."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._inside = 0
        self._waiting_alone = 0
        self._alone = False

    @contextlib.asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Enter beside others."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._alone and not self._waiting_alone)
            self._inside += 1
        try:
            yield
        finally:
            async with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Enter when nobody else is inside, and keep everybody else out."""
        async with self._changed:
            self._waiting_alone += 1
            try:
                await self._changed.wait_for(lambda: not self._alone and not self._inside)
            finally:
                self._waiting_alone -= 1
            self._alone = True
        try:
            yield
        finally:
            async with self._changed:
                self._alone = False
                self._changed.notify_all()


class StallWatch:
    """Ends the process when its event loop stands still for longer than the deadline, as a native call or
    a busy loop in one coroutine makes it. A heartbeat on the loop re-arms `faulthandler`'s timer while
    work is in flight."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._inside = 0
        self._trace: IO[str] | None = None
        self._heart: asyncio.Task[None] | None = None
        # Ray may replace sys.stderr by an object without a file descriptor.
        self._default = open(os.devnull, "w")  # noqa: SIM115  (as long as the process)

    @contextlib.contextmanager
    def over(self, trace: IO[str] | None) -> Any:
        """Watch while the block runs. `trace` gets the stack if the loop stands still; closed at the end."""
        self._inside += 1
        if trace is not None:
            self._trace = trace
        self._arm()
        if self._heart is None:
            self._heart = asyncio.get_running_loop().create_task(self._beat())
        try:
            yield
        finally:
            self._inside -= 1
            if trace is not None:
                self._trace = None
            if self._inside == 0:
                faulthandler.cancel_dump_traceback_later()
                self._heart.cancel()
                self._heart = None
            else:
                self._arm()
            if trace is not None:
                trace.close()

    def _arm(self) -> None:
        faulthandler.dump_traceback_later(self._timeout_s, exit=True, file=self._trace or self._default)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(min(5.0, self._timeout_s / 4))
            self._arm()


def rows_of(batch: pa.Table) -> list[Row]:
    """The rows of a batch."""
    return [Row(**row) for row in batch.to_pylist()]


def receipts_table(receipts: list[Receipt]) -> pa.Table:
    """Receipts under their explicit schema."""
    return pa.Table.from_pylist([asdict(receipt) for receipt in receipts], schema=RECEIPT_SCHEMA)


def _limit_threads(num_cpus: float) -> None:
    """Keep OpenCV and BLAS of this process to the CPUs that the pool asked for. Effective before their
    import."""
    threads = str(max(1, round(num_cpus)))
    for name in ("OPENCV_FOR_THREADS_NUM", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, threads)
