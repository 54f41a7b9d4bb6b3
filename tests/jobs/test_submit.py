"""`jobs/*.py` under `ray job submit`, against a real `ray start --head` of this test's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rvt_ray.pipeline.validate import validate_corpus

ROOT = Path(__file__).parents[2]
RAY = Path(sys.executable).parent / "ray"
# Since Ray 2.59 both sides must agree on this, or the submission is refused.
ENV = {**os.environ, "RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": "1"}

pytestmark = pytest.mark.cluster


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture(scope="module")
def head() -> Iterator[str]:
    """Address of the job server of a Ray head with ports and temp folder of its own."""
    # Ray's sockets live in the temp folder, and a socket's path may have 107 characters only.
    temp = Path(tempfile.mkdtemp(prefix="rvt"))
    gcs, dashboard, agent, client, metrics = free_ports(5)
    command = [str(RAY), "start", "--head", "--block", f"--temp-dir={temp}", "--num-cpus=2", f"--port={gcs}"]
    command += ["--include-dashboard=true", "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}"]
    command += [f"--dashboard-agent-listen-port={agent}", f"--ray-client-server-port={client}"]
    command += [f"--metrics-export-port={metrics}", "--disable-usage-stats"]
    log = open(temp / "head.log", "wb")  # noqa: SIM115  (as long as the head)
    process = subprocess.Popen(command, env=ENV, stdout=log, stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{dashboard}"
    try:
        wait_for(f"{address}/api/jobs/", process, temp / "head.log")
        yield address
    finally:
        # Only what this fixture started: `ray stop` would stop the neighbours' Rays as well.
        family = [*psutil.Process(process.pid).children(recursive=True)]
        os.killpg(process.pid, signal.SIGTERM)
        _, alive = psutil.wait_procs(family, timeout=15)
        for child in alive:
            child.kill()
        process.wait(30)
        log.close()
        shutil.rmtree(temp, ignore_errors=True)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise AssertionError(f"no answer from {url}:\n{log.read_text()[-3000:]}")


def submit(head: str, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(RAY),
        "job",
        "submit",
        "--address",
        head,
        "--",
        sys.executable,
        str(ROOT / "jobs" / script),
    ]
    return subprocess.run(
        [*command, *words], env=ENV, capture_output=True, text=True, check=False, timeout=400
    )


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from rvt_ray.synthetic import random_scene, write_clip

    folder = tmp_path_factory.mktemp("scene")
    write_clip(random_scene(seed=3, num_objects=3, num_frames=16, camera="still"), folder, "scene")
    return folder


def test_a_submitted_job_builds_a_sound_corpus(head: str, scene: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = ["--config", str(ROOT / "configs" / "smoke.yaml")]
    config += ["--set", "perceive.segment.backend=annotations", "--set", "run.perceive.actors=1"]
    source = ["--source", str(scene), "--annotations", f"synthetic:{scene / 'annotations'}"]
    done = submit(head, "perceive.py", *config, *source, "--out", str(out))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    done = submit(head, "generate.py", *config, "--out", str(out))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    done = submit(head, "build_corpus.py", *config, *source, "--out", str(out))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "perceive: 0 ok, 0 failed, 1 done before" in done.stdout, "build redid what perceive had done"
    assert "index 1/1" not in done.stdout, (
        "without a terminal and with nothing to do there is nothing to tell"
    )
    assert "Traceback" not in done.stdout
    report = validate_corpus(out)
    assert report.problems == []
    assert report.counts["samples"] > 0
    agent = ["--corpus", str(out), "--out", str(tmp_path / "agent"), "--set", "agent.planner=rules"]
    done = submit(head, "evaluate.py", *agent, "--no-plots", "--draws", "50", "--baselines", "")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    scored = json.loads((tmp_path / "agent" / "report" / "report.json").read_text())
    assert scored["corpus"]["samples"] == report.counts["samples"]
    assert not any(scored["issues"].values()), "every sample has an answer"


def test_misuse_in_a_job_is_told_in_its_log_and_its_exit_code_becomes_1(head: str, tmp_path: Path) -> None:
    """Ray turns every exit code of a job into 1 (ours would be 2): scripts must read the log."""
    done = submit(
        head, "build_corpus.py", "--source", str(tmp_path / "nowhere"), "--out", str(tmp_path / "o")
    )
    assert done.returncode == 1
    assert "nowhere: no such file or folder" in done.stdout + done.stderr
