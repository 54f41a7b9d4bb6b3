"""kill -9 at random moments, the same command again: the shards are byte-identical, nothing finished is
redone."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from rvt_ray.pipeline.validate import validate_corpus
from tests.pipeline.conftest import config_for, make_videos, run_inline, shard_bytes
from tests.pipeline.driver import KILL_OVERRIDES
from tests.pipeline.fakes import CLIPS_PER_VIDEO, Plan

ROOT = Path(__file__).parents[2]
VIDEOS = 6
CLIPS = VIDEOS * CLIPS_PER_VIDEO


class Drivers:
    """Starts drivers on one output root, and sees to it that nothing of theirs outlives the test."""

    def __init__(self, videos: Path, out: Path, module: str = "tests.pipeline.driver") -> None:
        self.videos, self.out, self.module = videos, out, module
        self.log = out.parent / "driver.log"
        self._started: list[psutil.Process] = []

    def start(self) -> subprocess.Popen[bytes]:
        with open(self.log, "ab") as log:
            command = [sys.executable, "-m", self.module, str(self.videos), str(self.out)]
            driver = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        self._started.append(psutil.Process(driver.pid))
        return driver

    def kill(self, driver: subprocess.Popen[bytes]) -> None:
        """kill -9 the driver alone. Its Ray must die of it; we wait, so that no orphan disturbs what
        follows."""
        children = psutil.Process(driver.pid).children(recursive=True)
        driver.kill()
        driver.wait()
        _, alive = psutil.wait_procs(children, timeout=20)
        for process in alive:  # Ray's own agents may take minutes to notice
            with contextlib.suppress(psutil.NoSuchProcess):
                assert "MapWorker" not in process.name(), "a worker outlived its driver"
                process.kill()

    def close(self) -> None:
        for process in self._started:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in [*process.children(recursive=True), process]:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        child.kill()

    def wait_until(self, driver: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 180
        while not condition():
            assert driver.poll() is None, f"the driver ended too early:\n{self.log.read_text()[-4000:]}"
            assert time.monotonic() < deadline, f"waited too long:\n{self.log.read_text()[-4000:]}"
            time.sleep(0.02)


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    made = Drivers(make_videos(tmp_path / "videos", VIDEOS), tmp_path / "out")
    yield made
    made.close()


def staged(out: Path, stage: str) -> set[str]:
    return {p.name.partition(".")[0] for p in (out / "_staging" / stage).rglob("*.ok.parquet")}


def worker_of_last_call(plan: Plan, stage: str) -> int:
    lines = [line.split() for line in plan.log.read_text().splitlines()]
    return int([pid for where, _, pid in lines if where == stage][-1])


@pytest.mark.ray
def test_killed_drivers_and_actors_change_no_byte_and_redo_nothing(drivers: Drivers, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    rng = random.Random(seed)
    sys.stdout.write(f"seed {seed}\n")  # shown when the test fails
    out = drivers.out
    plan = Plan(out).write(cost=0.25)
    finished: list[tuple[str, int, set[str]]] = []  # stage, calls so far, keys that were done by then

    def note() -> None:
        for stage in ("index", "perceive", "generate"):
            finished.append((stage, len(plan.calls(stage)), staged(out, stage)))

    driver = drivers.start()
    after = rng.randint(1, CLIPS - 4)
    drivers.wait_until(driver, lambda: len(staged(out, "perceive")) >= after)
    time.sleep(rng.random() * 0.3)
    drivers.kill(driver)
    note()

    driver = drivers.start()
    before = len(plan.calls("perceive"))
    drivers.wait_until(driver, lambda: len(plan.calls("perceive")) > before)
    time.sleep(rng.random() * 0.3)
    os.kill(worker_of_last_call(plan, "perceive"), signal.SIGKILL)
    note()
    after = rng.randint(1, CLIPS // 2)
    drivers.wait_until(driver, lambda: len(staged(out, "generate")) >= after)
    time.sleep(rng.random() * 0.3)
    drivers.kill(driver)
    note()

    driver = drivers.start()
    before = len(plan.calls("generate"))
    drivers.wait_until(driver, lambda: len(plan.calls("generate")) > before)
    time.sleep(rng.random() * 0.3)
    os.kill(worker_of_last_call(plan, "generate"), signal.SIGKILL)
    note()
    assert driver.wait(180) == 0, drivers.log.read_text()[-4000:]

    reference = tmp_path / "undisturbed"
    run_inline(config_for(drivers.videos, KILL_OVERRIDES), reference)
    assert shard_bytes(out) == shard_bytes(reference)
    assert validate_corpus(out).problems == []
    for stage in ("index", "perceive", "generate"):
        used = [p.name for p in (out / "_staging" / stage).iterdir()]
        assert len(used) == 1, f"{stage}: fingerprints {used}: was the settings' code edited during the test?"
    for stage, calls, done in finished:
        redone = set(plan.calls(stage)[calls:]) & done
        assert not redone, f"{stage}: {redone} were finished and yet done again"
    assert all(set(plan.calls(stage)) == staged(out, stage) for stage in ("index", "perceive", "generate"))
    assert list((out / "_staging" / "attempts").rglob("*.json")) == []
