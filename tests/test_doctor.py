"""The doctor must never be the patient: whatever is absent or broken becomes a finding with a remedy."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rvt_ray import doctor
from rvt_ray.doctor import Check, Status, checks, probe_codecs
from rvt_ray.llm import models

PROBES = Path(doctor.__file__).parent


@pytest.fixture(scope="module")
def findings() -> list[Check]:
    return doctor.examine()


def test_every_part_is_reported_and_every_missing_one_has_a_remedy(findings: list[Check]) -> None:
    names = {finding.name for finding in findings}
    assert {"python", "platform", "/dev/shm", "ray", "decoder pyav", "decoder decord", "codec h264"} <= names
    assert {"torch", "vllm", "sam2"} <= names
    assert {f"weights {name}" for name in models.KNOWN} <= names
    assert {"model detector", "model onnx depth"} <= names
    for finding in findings:
        assert finding.detail
        assert finding.remedy or finding.status is not Status.MISSING, finding


def test_what_this_test_environment_surely_decodes_is_ok(findings: list[Check]) -> None:
    by_name = {finding.name: finding for finding in findings}
    assert by_name["codec h264"].status is Status.OK, by_name["codec h264"]
    assert by_name["decoder pyav"].status is Status.OK


def test_text_is_plain_without_a_terminal_and_json_is_complete(findings: list[Check]) -> None:
    plain = doctor.to_text(findings, terminal=False)
    assert "\x1b" not in plain
    assert len(plain.splitlines()) == len(findings) + 1
    coloured = doctor.to_text(findings, terminal=True)
    assert "\x1b[" in coloured
    for finding in findings:
        assert finding.name in plain
        assert finding.name in coloured
    parsed = json.loads(doctor.to_json(findings))
    assert [item["name"] for item in parsed] == [finding.name for finding in findings]


def test_a_missing_package_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nothing)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = [*checks.packages(), *checks.ray()]
    assert {finding.status for finding in found} == {Status.MISSING}
    assert all(finding.remedy for finding in found)


def test_missing_weights_name_the_command_that_gets_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RVT_RAY_CACHE", str(tmp_path))
    monkeypatch.setattr(models, "_hub_snapshot", lambda hub_id, revision: None)
    by_name = {finding.name: finding for finding in checks.weights()}
    missing = by_name["weights sam2.1-tiny"]
    assert missing.status is Status.MISSING
    assert missing.remedy == "rvt-ray models pull sam2.1-tiny"
    place = tmp_path / "models" / "sam2.1-tiny"
    place.mkdir(parents=True)
    (place / "sam2.1_hiera_tiny.pt").write_bytes(b"x")
    by_name = {finding.name: finding for finding in checks.weights()}
    assert by_name["weights sam2.1-tiny"].status is Status.OK


@pytest.mark.parametrize(
    ("script", "status", "why"),
    [
        ("import os; os.abort()", Status.MISSING, "exit code -6"),
        ("raise ImportError('libcudart.so')", Status.MISSING, "libcudart"),
        ("import time; time.sleep(60)", Status.WARN, "no answer"),
    ],
)
def test_a_package_that_crashes_or_hangs_on_import_is_a_finding(
    script: str, status: Status, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probe_bad.py").write_text(script)
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(doctor, "_PROBED", (("bad", checks.vllm),))
    monkeypatch.setattr(doctor, "_PROBE_S", 2.0)
    start = time.monotonic()
    [finding] = [finding for finding in doctor.examine() if finding.name == "bad"]
    assert finding.status is status
    assert why in finding.detail
    assert finding.remedy
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("blocked", ["av", "decord", "torch", "vllm"])
def test_a_probe_survives_a_package_that_cannot_be_imported(blocked: str, tmp_path: Path) -> None:
    probe = {"av": "codecs", "decord": "codecs", "vllm": "vllm"}.get(blocked, "torch")
    script = tmp_path / "blocked.py"
    script.write_text(
        f"import sys, runpy\nsys.modules[{blocked!r}] = None\n"
        f"runpy.run_path({str(PROBES / f'probe_{probe}.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    look = {"codecs": checks.video, "torch": checks.torch, "vllm": checks.vllm}[probe]
    assert all(finding.detail for finding in look(found))
    if blocked in ("av", "decord"):
        assert found["pyav" if blocked == "av" else "decord"] is not None


def test_a_codec_that_decodes_too_few_frames_is_no_ok(tmp_path: Path) -> None:
    path = tmp_path / "short.mp4"
    probe_codecs.write_clip(path, "mpeg4")
    assert probe_codecs.decode_pyav(path) == "ok"
    path.write_bytes(path.read_bytes()[:200])
    assert probe_codecs.decode_pyav(path) != "ok"


def test_the_cpu_tiers_models_are_found_by_trying_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RVT_RAY_MODELS", str(tmp_path))
    (tmp_path / "yolox_nano.onnx").write_bytes(b"cut short")
    detector, depth = checks.onnx_models()
    assert (detector.status, depth.status) == (Status.MISSING, Status.MISSING)
    assert "cannot be used" in detector.detail
    assert "no such file" in depth.detail
    assert detector.remedy
