"""Progress: the file always, lines without a terminal, a bar on one."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from rvt_ray.pipeline.progress import Progress
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Receipt
from rvt_ray.records import Stage


def receipt(n: int, *, ok: bool = True) -> Receipt:
    code, message = ("", "") if ok else ("corrupt", "broken\nTraceback ...")
    return Receipt(f"k{n}", f"src/v{n}", ok, code, message, 1.5, '{"clips": 2}' if ok else "{}", False, 1)


def content(root: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((root / "progress.json").read_text())
    return data


def test_the_file_tells_counts_rate_and_what_is_left(tmp_path: Path) -> None:
    with Progress(Storage(tmp_path), "run", bar=False) as progress:
        progress.begin(Stage.INDEX, 10, 4)
        progress.receipt(receipt(1))
        progress.receipt(receipt(2, ok=False))
        progress.end()
        stage = content(tmp_path)["stages"]["index"]
        assert content(tmp_path)["state"] == "running"
    assert (stage["total"], stage["done"], stage["reused"], stage["ok"], stage["failed"]) == (10, 6, 4, 1, 1)
    assert stage["failures"] == {"corrupt": 1}
    assert stage["counts"] == {"clips": 2}
    assert stage["worker_seconds"] == 3.0
    assert stage["rate_per_s"] > 0
    assert stage["eta_seconds"] == pytest.approx(4 / stage["rate_per_s"], rel=0.1, abs=0.1)
    assert content(tmp_path)["state"] == "finished"


@pytest.mark.parametrize(
    ("error", "state"), [(KeyboardInterrupt(), "interrupted"), (ValueError("no"), "failed")]
)
def test_the_file_tells_how_the_run_ended(tmp_path: Path, error: BaseException, state: str) -> None:
    with pytest.raises(type(error)), Progress(Storage(tmp_path), "run", bar=False):
        raise error
    assert content(tmp_path)["state"] == state


def test_without_a_terminal_each_row_is_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), Progress(Storage(tmp_path), "run", bar=False) as progress:
        progress.begin(Stage.INDEX, 2, 0)
        progress.receipt(receipt(1))
        progress.receipt(receipt(2, ok=False))
    lines = [r.getMessage() for r in caplog.records]
    assert "index 1/2 src/v1: ok, 1.5 s, 2 clips" in lines
    assert "index 2/2 src/v2: failed (corrupt), 1.5 s: broken" in lines


def test_on_a_terminal_there_is_a_bar_and_only_bad_news_is_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    with caplog.at_level(logging.INFO), Progress(Storage(tmp_path), "run", bar=True) as progress:
        progress.begin(Stage.PERCEIVE, 2, 0)
        progress.receipt(receipt(1))
        progress.receipt(receipt(2, ok=False))
    assert "perceive" in screen.getvalue()
    lines = [r.getMessage() for r in caplog.records]
    assert not any("src/v1" in line for line in lines)
    assert any("src/v2" in line for line in lines)


def test_a_full_disk_does_not_end_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    storage = Storage(tmp_path)
    monkeypatch.setattr(storage, "write", full)
    with Progress(storage, "run", bar=False) as progress:
        progress.begin(Stage.INDEX, 1, 0)
        progress.receipt(receipt(1))
