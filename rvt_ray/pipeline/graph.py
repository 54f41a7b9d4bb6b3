"""One stage as one Ray Data graph: rows -> actor pool -> receipts."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import ray

from rvt_ray.config.settings import PoolSettings
from rvt_ray.errors import ConfigError, RvtError
from rvt_ray.pipeline.ledger import Ledger
from rvt_ray.pipeline.resources import pool_options
from rvt_ray.pipeline.stages import ASYNC_STAGES, AsyncStage, Job, SyncStage
from rvt_ray.pipeline.work import Receipt, Row
from rvt_ray.records import FailureCode, Stage

logger = logging.getLogger(__name__)

_MAX_BLOCKS = 20_000
_MAX_STALLS = 2
_MAX_DEATHS_IN_A_ROW = 10


class StageError(RvtError):
    """A stage cannot go on: its workers do not start, or Ray gave up without any row having ended."""


def run_graph(
    job: Job,
    ledger: Ledger,
    rows: Sequence[Row],
    pool: PoolSettings,
    *,
    max_attempts: int,
    in_flight: int,
    on_receipt: Callable[[Receipt], None],
) -> None:
    """Run the rows of one stage until each has ended in the ledger.

    If Ray gives the graph up (a node went away with the object store, an actor used up its restarts), what is
    left is started again: the ledger makes that safe. Given up twice in a row without a single row having
    ended in between is an error.

    Raises:
        ConfigError: a worker could not be built (missing weights, package, ...).
        StageError: no progress.
    """
    todo = list(rows)
    stalls = 0
    deaths = _Deaths(job.stage)
    while todo:
        try:
            for receipt in _execute(job, todo, pool, max_attempts, in_flight):
                on_receipt(receipt)
                deaths.see(receipt)
            problem = "the graph ended without them"
        except ray.exceptions.RayError as error:
            own = _own_error_in(error)
            if own is not None:
                raise own from error
            problem = f"{type(error).__name__}: {error}"
            logger.debug("Ray gave up the %s graph", job.stage, exc_info=True)
        ended = ledger.scan()
        left = [row for row in todo if row.key not in ended]
        if not left:
            return
        stalls = 0 if len(left) < len(todo) else stalls + 1
        if stalls >= _MAX_STALLS:
            raise StageError(
                f"{job.stage}: {len(left)} of {len(rows)} left and no progress; Ray says: {problem}. "
                "What is done is kept: the same command goes on from here"
            )
        logger.warning("%s: %d of %d left (%s); going on", job.stage, len(left), len(rows), problem)
        todo = left


def _execute(
    job: Job, rows: Sequence[Row], pool: PoolSettings, max_attempts: int, in_flight: int
) -> Iterator[Receipt]:
    options = pool_options(pool, len(rows), max_attempts, in_flight)
    # A callable per stage: Ray Data tells asynchronous ones apart by their `__call__`.
    stage = AsyncStage if job.stage in ASYNC_STAGES else SyncStage
    blocks = -(-len(rows) // _rows_per_block(len(rows)))
    source = ray.data.from_items([asdict(row) for row in rows], override_num_blocks=blocks)
    with warnings.catch_warnings():
        # See `pool_options`.
        warnings.filterwarnings("ignore", message="`ray_remote_args` is deprecated")
        receipts = source.map_batches(
            stage, fn_constructor_args=(job,), batch_size=1, batch_format="pyarrow", **options
        )
    for batch in receipts.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pyarrow"):
        for row in batch.to_pylist():
            yield Receipt(**row)


def _rows_per_block(rows: int) -> int:
    """One row per block, so that load is even and a dead worker takes one row along; for very large corpora a
    few rows, so that the driver's book-keeping stays small."""
    return -(-rows // _MAX_BLOCKS)


class _Deaths:
    """Ends a stage in which every row kills its worker: that is the backend's fault, not the rows'."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._in_a_row = 0

    def see(self, receipt: Receipt) -> None:
        self._in_a_row = self._in_a_row + 1 if receipt.code == FailureCode.WORKER_DIED else 0
        if self._in_a_row >= _MAX_DEATHS_IN_A_ROW:
            raise StageError(
                f"{self._stage}: the last {self._in_a_row} rows all killed their workers, so it is not "
                "the rows. Ray's logs of the workers say more; once it is mended, add --retry-failed"
            )


def _own_error_in(error: BaseException) -> RvtError | None:
    """Our own word on what is wrong, inside Ray's wrapping, if there is one. Ray may keep only its text."""
    kinds: dict[str, type[RvtError]] = {
        "ConfigError": ConfigError,
        "MissingDependencyError": ConfigError,
        "WorkerStartError": StageError,
    }
    current: BaseException | None = error
    for _ in range(10):
        if isinstance(current, ConfigError):
            return ConfigError(str(current))
        if current is None:
            break
        cause = getattr(current, "cause", None)
        current = cause if isinstance(cause, BaseException) else current.__cause__
    for line in reversed(str(error).splitlines()):
        for name, kind in kinds.items():
            if f"{name}: " in line:
                return kind(line.partition(f"{name}: ")[2])
    return None
