"""Verdicts of people: intervals and kappas against published numbers, and refusals that name the line."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from rvt_ray.errors import ConfigError
from rvt_ray.evaluation.audit_report import (
    AuditVerdict,
    audit_report,
    cohen,
    fleiss,
    read_verdicts,
    to_text,
    wilson,
)


def said(sample: str, rater: str, verdict: str, task: str = "vqa", level: int = 1) -> AuditVerdict:
    return AuditVerdict.model_validate(
        {"audit": "a", "sample_id": sample, "clip_id": "c", "task": task, "level": level, "rater": rater,
         "verdict": verdict}
    )  # fmt: skip


def test_wilsons_interval_is_as_published() -> None:
    # R: prop.test(15, 148, correct = FALSE); Newcombe 1998 gives 0 / 20 and 81 / 263 among its examples.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)
    assert wilson(0, 0) == (0.0, 1.0)


def test_cohens_kappa_is_as_in_the_textbook() -> None:
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohen(pairs) == pytest.approx(0.4)
    assert cohen([("y", "y")] * 5 + [("n", "n")] * 5) == pytest.approx(1.0)
    assert math.isnan(cohen([("y", "y")] * 5)), "one verdict only: agreement by chance is certain"


def test_fleiss_kappa_is_as_in_the_textbook() -> None:
    table = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    rows = [Counter({str(k): n for k, n in enumerate(row) if n}) for row in table]
    assert fleiss(rows) == pytest.approx(0.210, abs=5e-4)


def test_a_sample_counts_once_and_a_tie_does_not_flatter() -> None:
    verdicts = [said("s1", r, "correct") for r in "abc"]
    verdicts += [said("s2", "a", "correct"), said("s2", "b", "wrong"), said("s2", "c", "wrong")]
    verdicts += [said("s3", "a", "correct", "summary", 4), said("s3", "b", "wrong", "summary", 4)]
    report = audit_report(verdicts)
    assert report.verdicts == {"correct": 1, "disputed": 1, "wrong": 1}
    assert (report.strata["all"].faults, report.strata["all"].samples) == (2, 3)
    assert report.wrong["all"].faults == 2
    assert report.strata["summary/L4"].share == 1.0
    assert list(report.strata)[:2] == ["all", "L1"]
    assert report.common == 2
    assert report.disputes["s2"] == {"a": "correct", "b": "wrong", "c": "wrong"}
    assert report.agreement == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert "Fleiss" in to_text(report)


def test_one_rater_has_nobody_to_agree_with() -> None:
    report = audit_report([said("s1", "a", "correct"), said("s2", "a", "leaks")])
    assert math.isnan(report.kappa)
    assert report.as_dict()["kappa"] is None
    assert "kappa" not in to_text(report)
    json.dumps(report.as_dict(), allow_nan=False)


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


GOOD = said("s1", "a", "correct").model_dump(mode="json")


def test_the_last_word_of_a_rater_counts(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", GOOD)
    new = write(tmp_path / "new.jsonl", GOOD | {"verdict": "wrong"})
    assert [v.verdict for v in read_verdicts([old, new])] == ["wrong"]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (["{"], "line 1: not JSON"),
        ([GOOD, GOOD | {"verdict": "meh"}], "line 2: verdict"),
        ([GOOD | {"rater": ""}], "line 1: rater"),
        ([GOOD, GOOD | {"sample_id": "s2", "audit": "b"}], "different draws"),
        ([], "no verdicts"),
    ],
)
def test_what_is_no_verdict_is_refused_by_file_and_line(tmp_path: Path, rows: list[object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_verdicts([write(tmp_path / "v.jsonl", *rows)])
    with pytest.raises(ConfigError, match=r"missing\.jsonl"):
        read_verdicts([tmp_path / "missing.jsonl"])
