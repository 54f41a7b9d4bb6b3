"""Guards the account of time: what is counted, against what, and that nothing is divided by nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rvt_ray.pipeline.progress import Progress
from rvt_ray.pipeline.speed import Speed
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Receipt
from rvt_ray.records import Stage

PARTS = {"segment": 4.0, "depth": 2.0, "camera": 1.0, "decode": 1.0}
DONE = Receipt("k", "n", True, "", "", 8.0, json.dumps({"frames": 40}), False, 1, json.dumps(PARTS))


def test_the_device_is_idle_when_no_device_step_runs() -> None:
    speed = Speed()
    for _ in range(2):
        speed.add(8.0, {"frames": 40}, PARTS)
    found = speed.as_dict()
    assert found["parts"] == {"segment": 8.0, "depth": 4.0, "camera": 2.0, "decode": 2.0}
    assert found["frames_per_worker_s"] == 5.0
    assert found["device_idle_share"] == 0.25
    assert speed.as_dict(48.0)["device_idle_share"] == 0.75
    assert speed.as_dict(3.0)["device_idle_share"] == 0.0  # several actors on one device


def test_a_stage_without_frames_or_device_steps_claims_nothing() -> None:
    speed = Speed()
    assert speed.as_dict() == {"parts": {}}
    speed.add(2.0, {"samples": 3}, {"opinions": 1.5})
    assert speed.as_dict() == {"parts": {"opinions": 1.5}}


def test_progress_tells_parts_and_frames_of_what_was_done_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    with Progress(Storage(tmp_path), "run", bar=False) as progress:
        progress.begin(Stage.PERCEIVE, 4, 0, devices=2.0)
        progress._stages[Stage.PERCEIVE].started = now[0]
        progress.receipt(DONE)
        progress.receipt(DONE)
        progress.receipt(replace(DONE, reused=True))
        progress.receipt(replace(DONE, ok=False, code="corrupt", counts="{}", parts="{}"))
        now[0] += 10.0
        progress.end()
    stage = json.loads((tmp_path / "progress.json").read_text())["stages"]["perceive"]
    assert stage["parts"]["segment"] == 8.0
    assert stage["frames"] == 80
    assert stage["frames_per_s"] == 8.0
    assert stage["device_idle_share"] == pytest.approx(1 - 12 / 20)
