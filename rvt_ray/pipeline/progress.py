"""What a run tells while it runs: a bar on a terminal, log lines without one, progress.json always."""

from __future__ import annotations

import json
import logging
import sys
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from rvt_ray.pipeline.speed import Speed
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Receipt
from rvt_ray.records import Stage

logger = logging.getLogger(__name__)

PROGRESS = "progress.json"
_WRITE_EVERY_S = 1.0


@dataclass
class StageProgress:
    """Counts of one stage. `reused`: ended in an earlier run. `devices`: that its actors share."""

    total: int
    reused: int
    ok: int = 0
    failed: int = 0
    seconds: float = 0.0
    started: float = field(default_factory=time.time)
    ended: float | None = None
    failures: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    devices: float = 1.0
    speed: Speed = field(default_factory=Speed)

    @property
    def done(self) -> int:
        return self.reused + self.ok + self.failed

    def as_dict(self) -> dict[str, Any]:
        """For progress.json. `worker_seconds` adds up over workers; `rate_per_s` and `frames_per_s` are by
        wall time, in which the workers also start and load their models."""
        wall = (self.ended or time.time()) - self.started
        now = self.ok + self.failed
        rate = now / wall if now and wall > 0 else None
        left = self.total - self.done
        frames = self.speed.frames
        return {
            "total": self.total,
            "done": self.done,
            "reused": self.reused,
            "ok": self.ok,
            "failed": self.failed,
            "failures": dict(sorted(self.failures.items())),
            "counts": dict(sorted(self.counts.items())),
            "wall_seconds": round(wall, 2),
            "worker_seconds": round(self.seconds, 2),
            "rate_per_s": None if rate is None else round(rate, 4),
            "eta_seconds": None if rate is None else round(left / rate, 1),
            "frames_per_s": round(frames / wall, 3) if frames and wall > 0 else None,
            **self.speed.as_dict(wall * self.devices),
        }


class Progress:
    """Collects receipts and tells of them. Use as a context manager around a run.

    Args:
        storage: where progress.json goes.
        run: id of the run.
        bar: draw a bar on the terminal; None: when stderr is one.
    """

    def __init__(self, storage: Storage, run: str, *, bar: bool | None = None) -> None:
        self._storage = storage
        self._run = run
        self._stages: dict[Stage, StageProgress] = {}
        self._current: Stage | None = None
        self._started = time.time()
        self._written = 0.0
        self._bar: Any = None
        self._task: Any = None
        if sys.stderr.isatty() if bar is None else bar:
            self._bar = _make_bar()

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        self._write("running")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if kind is None:
            self._write("finished")
        elif issubclass(kind, KeyboardInterrupt):
            self._write("interrupted")
        else:
            self._write("failed", str(error))

    def begin(self, stage: Stage, total: int, reused: int, devices: float = 1.0) -> None:
        """A stage starts: `total` rows, of which `reused` ended in an earlier run, on so many devices."""
        self._current = stage
        self._stages[stage] = StageProgress(total, reused, devices=devices)
        logger.info("%s: %d in all, %d done before, %d to do", stage, total, reused, total - reused)
        if self._bar is not None:
            self._task = self._bar.add_task(str(stage), total=total, completed=reused, note="")
        self._write("running")

    def receipt(self, receipt: Receipt) -> None:
        """A row ended."""
        assert self._current is not None, "begin() comes first"
        stage = self._stages[self._current]
        stage.seconds += receipt.seconds
        if receipt.ok:
            stage.ok += 1
        else:
            stage.failed += 1
            stage.failures[receipt.code] = stage.failures.get(receipt.code, 0) + 1
        counts: dict[str, int] = json.loads(receipt.counts)
        for name, count in counts.items():
            stage.counts[name] = stage.counts.get(name, 0) + count
        if receipt.ok and not receipt.reused:
            stage.speed.add(receipt.seconds, counts, json.loads(receipt.parts))
        self._tell(self._current, stage, receipt, counts)
        if time.time() - self._written >= _WRITE_EVERY_S:
            self._write("running")

    def end(self) -> None:
        """The current stage ended."""
        assert self._current is not None, "begin() comes first"
        stage = self._stages[self._current]
        stage.ended = time.time()
        logger.info(
            "%s: %d ok, %d failed, %d done before, %.1f s",
            self._current,
            stage.ok,
            stage.failed,
            stage.reused,
            stage.ended - stage.started,
        )
        self._write("running")

    def summary(self) -> dict[str, Any]:
        """Counts per stage."""
        return {str(stage): progress.as_dict() for stage, progress in self._stages.items()}

    def _tell(self, name: Stage, stage: StageProgress, receipt: Receipt, counts: dict[str, int]) -> None:
        if self._bar is not None:
            note = f"{stage.failed} failed" if stage.failed else ""
            self._bar.update(self._task, completed=stage.done, note=note)
        said = ", ".join(f"{count} {what}" for what, count in counts.items())
        head = f"{name} {stage.done}/{stage.total} {receipt.name}"
        if receipt.ok:
            # Under a bar the good news stays out of the way.
            level = logging.DEBUG if self._bar is not None else logging.INFO
            logger.log(level, "%s: ok, %.1f s%s", head, receipt.seconds, f", {said}" if said else "")
        else:
            reason = receipt.message.partition("\n")[0]
            logger.warning("%s: failed (%s), %.1f s: %s", head, receipt.code, receipt.seconds, reason)

    def _write(self, state: str, error: str = "") -> None:
        self._written = time.time()
        content = {
            "run": self._run,
            "state": state,
            "error": error,
            "stage": None if self._current is None else str(self._current),
            "started": self._started,
            "updated": self._written,
            "stages": self.summary(),
        }
        try:
            self._storage.write(PROGRESS, json.dumps(content, indent=1).encode())
        except OSError:
            logger.warning("cannot write %s", PROGRESS, exc_info=True)  # never a reason to lose a run


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description:<9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("[red]{task.fields[note]}"),
        console=Console(stderr=True),
    )
