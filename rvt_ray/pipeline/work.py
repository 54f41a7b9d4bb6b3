"""What one worker does with one row, without Ray: a pure function per stage, and the guard around it.

The guard turns whatever happens to a row into one staged file: a result, or a failure with its code. It is
the only place where a broad `except` is right.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rvt_ray.errors import ClipError
from rvt_ray.llm.base import EngineDeadError
from rvt_ray.pipeline.attempts import Attempts, Verdict, timeout_message
from rvt_ray.pipeline.ledger import Done, Ledger
from rvt_ray.records import Failure, FailureCode, Stage

logger = logging.getLogger(__name__)

_TRACEBACK_TAIL = 6
_BROKEN_EXIT = 70


@dataclass(frozen=True)
class Row:
    """One piece of work as it travels to a worker: small.

    Attributes:
        key: its key in the stage's ledger.
        name: for people (log lines).
        clip_id, video_id, source, uri: what a failure row says of it.
        payload: JSON that the stage's function understands (references, never data).
    """

    key: str
    name: str
    clip_id: str | None
    video_id: str | None
    source: str
    uri: str
    payload: str


@dataclass
class Work:
    """What a stage's function made of a row."""

    table: pa.Table
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """What comes back to the driver: that the row ended, and how. The data itself is in the ledger.

    `reused`: the ledger already had it (Ray ran the task again after a worker died). `parts`: JSON, seconds
    per step.
    """

    key: str
    name: str
    ok: bool
    code: str
    message: str
    seconds: float
    counts: str
    reused: bool
    pid: int
    parts: str = "{}"


RECEIPT_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("name", pa.string()),
        ("ok", pa.bool_()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("seconds", pa.float64()),
        ("counts", pa.string()),
        ("reused", pa.bool_()),
        ("pid", pa.int64()),
        ("parts", pa.string()),
    ]
)

ROW_SCHEMA = pa.schema([(name, pa.string()) for name in Row.__dataclass_fields__])


class Guard:
    """The life of a row in one stage: skip what is done, condemn what keeps killing, run, stage the end.

    Args:
        ledger: where ends are staged.
        attempts: the markers of starts.
    """

    def __init__(self, ledger: Ledger, attempts: Attempts) -> None:
        self.ledger = ledger
        self.attempts = attempts

    def run(self, row: Row, work: Callable[[Row], Work]) -> Receipt:
        """Work on one row alone in this process, under the deadline. Never raises for the row's sake."""
        start, earlier = self.admit(row)
        if earlier is not None:
            return earlier
        self.attempts.begin(row.key, start, solo=True)
        clock = time.perf_counter()
        with self.attempts.deadline(row.key, start):
            try:
                result: Work | Failure = work(row)
            except (Exception, SystemExit) as error:  # noqa: BLE001  (one row's trouble, whatever it is)
                result = failure_of(row, self.ledger.stage, error)
            # Inside the deadline: a store that hangs is a hang as well.
            receipt = self.settle(row, result, time.perf_counter() - clock, start)
        self.attempts.end(row.key, start)
        return receipt

    def admit(self, row: Row) -> tuple[int, Receipt | None]:
        """Number of the start that may be made now (from 1); or the receipt of a row that needs none."""
        done = self.ledger.state(row.key)
        starts = self.attempts.starts(row.key)
        if done is not None:
            self.attempts.end(row.key, len(starts))  # the process died between staging and clearing up
            return 0, self._receipt_of_done(row, done)
        verdict = self.attempts.verdict(starts)
        if verdict is not None:
            receipt = self._condemn(row, verdict)
            self.attempts.end(row.key, len(starts))
            return 0, receipt
        return len(starts) + 1, None

    def settle(self, row: Row, result: Work | Failure, seconds: float, start: int) -> Receipt:
        """Stage how a row ended."""
        meta: dict[str, Any] = {"seconds": round(seconds, 4), "starts": start, "ended": time.time()}
        if isinstance(result, Failure):
            self.ledger.write_failed(row.key, result, meta)
            return _receipt(row, False, result.code, result.message, seconds)
        self.ledger.write_ok(row.key, result.table, {**result.meta, **meta})
        counts, parts = result.meta.get("counts", {}), result.meta.get("parts", {})
        return _receipt(row, True, "", "", seconds, counts=counts, parts=parts)

    def _condemn(self, row: Row, verdict: Verdict) -> Receipt:
        failure = _failure(row, self.ledger.stage, verdict.code, verdict.message, verdict.starts)
        self.ledger.write_failed(row.key, failure, {"trace": verdict.trace, "ended": time.time()})
        if verdict.trace:
            logger.warning("%s hung here:\n%s", row.name, verdict.trace)
        return _receipt(row, False, verdict.code, verdict.message, 0.0)

    def _receipt_of_done(self, row: Row, done: Done) -> Receipt:
        if done is Done.OK:
            counts = self.ledger.read_meta(row.key).get("counts", {})
            return _receipt(row, True, "", "", 0.0, counts=counts, reused=True)
        failure = self.ledger.read_failure(row.key)
        return _receipt(row, False, failure.code, failure.message, 0.0, reused=True)


def failure_of(row: Row, stage: Stage, error: BaseException) -> Failure:
    """The failure row of an exception. What a clip's own error says is kept; anything else gets the end of
    its traceback, without the addresses that change from run to run."""
    if _process_is_broken(error):
        # No later row can succeed in this process. Its marker stays, so this start counts.
        logger.error("%s: ending this process: %s", row.name, error)
        os._exit(_BROKEN_EXIT)
    if isinstance(error, ClipError):
        return _failure(row, stage, error.code, error.message, 1)
    tail = "".join(traceback.format_exception(error)[-_TRACEBACK_TAIL:])
    code = FailureCode.INTERNAL if stage is Stage.INDEX else FailureCode.BACKEND_ERROR
    message = f"{row.name}: {type(error).__name__}: {error}\n{tail}"
    return _failure(row, stage, code, message, 1)


def timeout_failure(row: Row, stage: Stage, timeout_s: float) -> Failure:
    """The failure row of a row that passed its deadline."""
    return _failure(row, stage, FailureCode.CLIP_TIMEOUT, timeout_message(timeout_s), 1)


def _failure(row: Row, stage: Stage, code: FailureCode, message: str, attempt: int) -> Failure:
    return Failure(
        clip_id=row.clip_id,
        video_id=row.video_id,
        source=row.source,
        uri=row.uri,
        stage=stage,
        code=code,
        message=re.sub(r"0x[0-9a-f]{6,}", "0x...", message),
        attempt=attempt,
    )


def _process_is_broken(error: BaseException) -> bool:
    """An engine that is gone, or a CUDA context that an earlier kernel broke for good."""
    if isinstance(error, EngineDeadError):
        return True
    return "CUDA error:" in str(error) and "out of memory" not in str(error)


def _receipt(
    row: Row,
    ok: bool,
    code: str,
    message: str,
    seconds: float,
    *,
    counts: dict[str, int] | None = None,
    parts: dict[str, float] | None = None,
    reused: bool = False,
) -> Receipt:
    return Receipt(
        row.key,
        row.name,
        ok,
        str(code),
        message,
        seconds,
        json.dumps(counts or {}),
        reused,
        os.getpid(),
        json.dumps(parts or {}),
    )
