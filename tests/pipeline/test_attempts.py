"""Who is condemned, who is only a suspect, and that no hang outlives its deadline."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from rvt_ray.pipeline.attempts import Attempts, Start, WorkerStartError, WorkerStarts, sweep_markers
from rvt_ray.pipeline.ledger import Ledger
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import FailureCode, Stage
from tests.pipeline.fakes import hold_the_gil


def attempts(root: Path, *, run: str = "now", max_attempts: int = 3, timeout_s: float = 60.0) -> Attempts:
    return Attempts(Ledger(Storage(root), Stage.PERCEIVE, "f"), run, max_attempts, timeout_s)


def start(run: str = "now", *, solo: bool = True, trace: str = "") -> Start:
    return Start(run, solo, time.time(), 60.0, trace)


def test_a_row_is_condemned_after_its_last_allowed_death(tmp_path: Path) -> None:
    a = attempts(tmp_path)
    assert a.verdict([start()] * 2) is None
    verdict = a.verdict([start()] * 3)
    assert verdict is not None
    assert (verdict.code, verdict.starts) == (FailureCode.WORKER_DIED, 3)


def test_rows_that_shared_a_dying_process_are_only_suspects(tmp_path: Path) -> None:
    a = attempts(tmp_path, max_attempts=1)
    assert a.verdict([start(solo=False)] * 5) is None
    assert a.verdict([start(solo=False), start()]) is not None


def test_a_killed_run_says_little_about_its_rows(tmp_path: Path) -> None:
    a = attempts(tmp_path)
    assert a.verdict([start("earlier")] * 8) is None
    assert a.verdict([start("earlier")] * 9) is not None, "but for ever it does not go on either"
    assert a.verdict([start("earlier")] * 3 + [start()] * 2) is not None


def test_one_timeout_is_enough(tmp_path: Path) -> None:
    a = attempts(tmp_path)
    verdict = a.verdict([start(trace="Timeout!")])
    assert verdict is not None
    assert verdict.code is FailureCode.CLIP_TIMEOUT
    assert a.verdict([start(trace="Timeout!", solo=False)]) is None


def test_markers_come_and_go(tmp_path: Path) -> None:
    a = attempts(tmp_path)
    a.begin("k", 1, solo=False)
    a.begin("k", 2, solo=True)
    assert [s.solo for s in a.starts("k")] == [False, True]
    a.end("k", 2)
    assert a.starts("k") == []


def test_markers_of_rows_that_did_end_are_swept(tmp_path: Path) -> None:
    a = attempts(tmp_path)
    for key in ("ended", "open"):
        a.begin(key, 1, solo=True)
    ledger = Ledger(a.storage, Stage.PERCEIVE, "f")
    with pytest.raises(ZeroDivisionError), WorkerStarts(ledger, "r", 1).counted():
        raise ZeroDivisionError
    sweep_markers(ledger, {"ended"})
    assert a.starts("ended") == []
    assert len(a.starts("open")) == 1


def test_worker_starts_that_never_ended_are_bounded(tmp_path: Path) -> None:
    ledger = Ledger(Storage(tmp_path), Stage.PERCEIVE, "f")
    dying = [WorkerStarts(ledger, "r", 1).counted() for _ in range(3)]
    for start_ in dying:
        start_.__enter__()  # and the process dies
    with (
        pytest.raises(WorkerStartError, match="3 worker processes died"),
        WorkerStarts(ledger, "r", 1).counted(),
    ):
        pass
    with WorkerStarts(ledger, "another run", 1).counted():
        pass
    sweep_markers(ledger, set())
    with WorkerStarts(ledger, "r", 1).counted():
        pass


def _hang(root: Path, kind: str) -> None:
    a = attempts(root, timeout_s=0.5)
    a.begin("k", 1, solo=True)
    with a.deadline("k", 1):
        if kind == "native":
            hold_the_gil(60)
        else:
            time.sleep(60)


@pytest.mark.parametrize("kind", ["native", "python"])
def test_a_hang_is_ended_at_the_deadline_even_when_it_holds_the_gil(tmp_path: Path, kind: str) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_hang, args=(tmp_path, kind))
    process.start()
    process.join(60)
    assert process.exitcode == 1
    (found,) = attempts(tmp_path).starts("k")
    assert "Timeout" in found.trace
    assert "_hang" in found.trace
    verdict = attempts(tmp_path).verdict([found])
    assert verdict is not None
    assert "0.5 s (run.clip_timeout_s)" in verdict.message


def test_a_row_within_its_deadline_leaves_the_process_alone(tmp_path: Path) -> None:
    a = attempts(tmp_path, timeout_s=0.2)
    a.begin("k", 1, solo=True)
    with a.deadline("k", 1):
        pass
    time.sleep(0.4)
    a.end("k", 1)
    assert os.getpid()
    assert list(tmp_path.rglob("k.*")) == []


def test_at_a_uri_a_start_older_than_its_deadline_timed_out() -> None:
    a = Attempts(Ledger(Storage("memory://attempts"), Stage.PERCEIVE, "f"), "now", 3, 10.0)
    old = Start("now", True, time.time() - 11, 10.0, "")
    verdict = a.verdict([old])
    assert verdict is not None
    assert verdict.code is FailureCode.CLIP_TIMEOUT
    assert a.verdict([Start("earlier", True, time.time() - 11, 10.0, "")]) is None
