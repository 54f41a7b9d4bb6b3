"""Bounded starts: a row that kills or hangs its process ends in the failures table, and takes nobody along.

Before a row is worked on, its worker leaves a marker; when the row ends, in whatever way Python can still
speak of, the marker goes. A marker that is found later belongs to a start that ended in the death of the
process:

* The deadline is kept by `faulthandler`'s C thread, which needs no GIL: also a native call that hangs
  while it holds the GIL is ended. It writes the stack into the marker's trace file and exits the process;
  the trace is how the next process knows that this start timed out.
* Without a trace the process was killed (a segfault, the OOM killer, `kill -9`). After `max_attempts` such
  starts the row is condemned without being run.
* Rows that shared a process when it died (`generate` keeps several in flight) are only suspects: each is
  then run alone, and only a death alone condemns.
* Starts that a *whole run* took along with it (a driver that was killed, a machine that went away) say little
  about the row: they count a third.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import socket
import time
import uuid
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import IO, Any

from rvt_ray.errors import RvtError
from rvt_ray.pipeline.ledger import STAGING, Ledger, shelf
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import FailureCode

_OTHER_RUNS_WEIGHT = 1 / 3
_STARTS_PER_ACTOR = 3


class WorkerStartError(RvtError):
    """Workers of a stage cannot be started."""


def timeout_message(timeout_s: float) -> str:
    """What the failures table says of a row that passed its deadline."""
    return f"no result within {timeout_s:g} s (run.clip_timeout_s)"


@dataclass(frozen=True)
class Start:
    """One start that never ended."""

    run: str
    solo: bool
    started: float
    deadline_s: float
    trace: str


@dataclass(frozen=True)
class Verdict:
    """Why a row is not started again. `starts` is how many starts that took."""

    code: FailureCode
    message: str
    trace: str
    starts: int


class Attempts:
    """The markers of one stage under one fingerprint.

    Args:
        ledger: the stage's ledger; the markers lie beside its files.
        run: id of this run of the driver; starts of other runs weigh less.
        max_attempts: starts of a row that kills its process.
        timeout_s: the deadline of one row.
    """

    def __init__(self, ledger: Ledger, run: str, max_attempts: int, timeout_s: float) -> None:
        self.storage: Storage = ledger.storage
        self.folder = f"{STAGING}/attempts/{ledger.stage.value}/{ledger.fingerprint}"
        self.run = run
        self.max_attempts = max_attempts
        self.timeout_s = timeout_s

    def _base(self, key: str) -> str:
        return f"{self.folder}/{shelf(key)}/{key}"

    def _name(self, key: str, n: int) -> str:
        return f"{self._base(key)}.{n}.json"

    def _trace_name(self, key: str, n: int) -> str:
        return f"{self._base(key)}.{n}.trace"

    def starts(self, key: str) -> list[Start]:
        """The starts of this key that never ended, oldest first."""
        found: list[Start] = []
        n = 1
        while True:
            try:
                marker: dict[str, Any] = json.loads(self.storage.read(self._name(key, n)))
            except FileNotFoundError:
                return found
            trace = ""
            with contextlib.suppress(FileNotFoundError):
                trace = self.storage.read(self._trace_name(key, n)).decode(errors="replace")
            found.append(Start(marker["run"], marker["solo"], marker["started"], marker["deadline_s"], trace))
            n += 1

    def verdict(self, starts: list[Start]) -> Verdict | None:
        """Whether a row with this past is condemned; None: it may be started."""
        for start in starts:
            if start.solo and self._timed_out(start):
                return Verdict(
                    FailureCode.CLIP_TIMEOUT,
                    timeout_message(start.deadline_s),
                    start.trace,
                    1,
                )
        if not any(start.solo for start in starts):
            return None
        weight = sum(1.0 if s.run == self.run else _OTHER_RUNS_WEIGHT for s in starts)
        if weight < self.max_attempts - 1e-9:
            return None
        return Verdict(
            FailureCode.WORKER_DIED,
            f"killed its process on each of {self.max_attempts} starts (run.max_attempts): a crash in native "
            "code, or out of memory. Ray's logs of the worker say more",
            "",
            self.max_attempts,
        )

    def _timed_out(self, start: Start) -> bool:
        if start.trace:
            return True
        # A trace cannot be written to an object store. There a start of this very run that is older than its
        # deadline did time out, since a death is followed by the next start within seconds.
        return (
            not self.storage.is_local
            and start.run == self.run
            and time.time() - start.started >= start.deadline_s
        )

    def begin(self, key: str, n: int, *, solo: bool) -> None:
        """Leave the marker of the n-th start (from 1)."""
        marker = {
            "run": self.run,
            "solo": solo,
            "started": time.time(),
            "deadline_s": self.timeout_s,
            "pid": os.getpid(),
            "host": socket.gethostname(),
        }
        self.storage.write(self._name(key, n), json.dumps(marker).encode())

    def end(self, key: str, n: int) -> None:
        """The row ended: remove its markers, first to n-th, last first so that `starts` never sees a gap."""
        for i in range(n, 0, -1):
            self.storage.delete(self._name(key, i))
            self.storage.delete(self._trace_name(key, i))

    @contextlib.contextmanager
    def deadline(self, key: str, n: int) -> Iterator[None]:
        """End this process when the block takes longer than the deadline, even inside native code that
        holds the GIL. One row at a time per process: the timer is the process's only one."""
        trace = self.open_trace(key, n)
        try:
            faulthandler.dump_traceback_later(self.timeout_s, exit=True, file=trace)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()
        finally:
            trace.close()

    def open_trace(self, key: str, n: int) -> IO[str]:
        """Where the stack of a start that times out is written; nowhere at a URI."""
        path = self.storage.local_path(self._trace_name(key, n))
        if path is None:
            return open(os.devnull, "w")
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "w")


def sweep_markers(ledger: Ledger, ended: Container[str]) -> None:
    """Clear up after runs that were killed: markers of rows that did end (the process died between staging
    and clearing up), and counts of worker starts. Call it before a stage starts, under the root's lock."""
    folder = f"{STAGING}/attempts/{ledger.stage.value}/{ledger.fingerprint}"
    for name in list(ledger.storage.names(folder)):
        key = name.rpartition("/")[2].partition(".")[0]
        if key in ended or "/starts-" in name:
            ledger.storage.delete(name)


class WorkerStarts:
    """Bounded deaths while a worker is *built*: a backend that kills its process as it loads would
    otherwise be restarted by Ray for every row of the corpus.

    Args:
        ledger: the stage's ledger.
        run: id of this run of the driver.
        actors: size of the pool; so many may be starting at once without anything being wrong.
    """

    def __init__(self, ledger: Ledger, run: str, actors: int) -> None:
        self._storage = ledger.storage
        self._folder = f"{STAGING}/attempts/{ledger.stage.value}/{ledger.fingerprint}/starts-{run}"
        self._limit = _STARTS_PER_ACTOR * actors

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Around the building of a worker.

        Raises:
            WorkerStartError: too many starts of this run never got to the end of this block.
        """
        unfinished = sum(1 for _ in self._storage.names(self._folder))
        if unfinished >= self._limit:
            raise WorkerStartError(
                f"{unfinished} worker processes died while they loaded their backends: a crash in native "
                "code, or out of memory. Ray's logs of the workers say more"
            )
        name = f"{self._folder}/{uuid.uuid4().hex}"
        self._storage.write(name, b"")
        try:
            yield
        finally:
            self._storage.delete(name)
