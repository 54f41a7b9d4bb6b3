"""The staged output as a ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvt_ray.pipeline.ledger import Done, Ledger
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import Failure, FailureCode, Reject, Stage


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Storage(tmp_path), Stage.GENERATE, "f" * 16)


def failure(message: str = "broken") -> Failure:
    return Failure(
        clip_id="c",
        video_id="v",
        source="s",
        uri="u",
        stage=Stage.GENERATE,
        code=FailureCode.CORRUPT,
        message=message,
        attempt=1,
    )


def test_an_empty_result_is_done_all_the_same(ledger: Ledger) -> None:
    ledger.write_ok("k", Reject.to_table([]), {"counts": {"samples": 0}})
    assert ledger.state("k") is Done.OK
    assert ledger.read("k").schema.remove_metadata().equals(Reject.SCHEMA)
    assert ledger.read_meta("k") == {"counts": {"samples": 0}}
    assert ledger.scan() == {"k": Done.OK}


def test_a_failure_reads_back_and_can_be_forgotten(ledger: Ledger) -> None:
    ledger.write_failed("k", failure(), {})
    assert ledger.scan() == {"k": Done.FAILED}
    assert ledger.read_failure("k") == failure()
    assert ledger.forget_failures(["k", "other"]) == 1
    assert ledger.state("k") is None


def test_success_after_failure_replaces_it(ledger: Ledger) -> None:
    ledger.write_failed("k", failure(), {})
    ledger.write_ok("k", Reject.to_table([]), {})
    assert ledger.scan() == {"k": Done.OK}
    # A crash between the two steps of `write_ok` leaves both: success counts.
    ledger.write_failed("k", failure(), {})
    assert ledger.scan() == {"k": Done.OK}
    assert ledger.state("k") is Done.OK


def test_another_fingerprint_is_another_ledger(ledger: Ledger) -> None:
    ledger.write_ok("k", Reject.to_table([]), {})
    assert Ledger(ledger.storage, ledger.stage, "0" * 16).scan() == {}
