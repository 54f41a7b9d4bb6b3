"""Hanging, crashing and lying decoders cost one file and one process, never the caller or its neighbours."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.records import ClipRecord, FailureCode
from rvt_ray.video import close_idle, open_clip, process
from tests.video.helpers import index, item, read, settings
from tests.video.media import number_of, write_video

HOSTILE = "tests.video.hostile:HostileDecoder"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("video") / "good.mp4")


def renamed(good: Path, folder: Path, name: str) -> Path:
    shutil.copy(good, folder / name)
    return folder / name


@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [
        ("hang", FailureCode.DECODE_TIMEOUT, "no frame for 1 s"),
        ("segv", FailureCode.DECODER_CRASH, "SIGSEGV"),
        ("abort", FailureCode.DECODER_CRASH, "SIGABRT (terminate called after throwing 'dmlc::Error')"),
        ("raise", FailureCode.CORRUPT, "RuntimeError: no such plane"),
    ],
)
def test_a_hostile_decode_fails_with_its_own_code_and_the_next_file_works(
    kind: str, code: FailureCode, says: str, good: Path, tmp_path: Path
) -> None:
    bad = renamed(good, tmp_path, f"{kind}.mp4")
    index(good, decoder=HOSTILE)  # a warm child, so that the deadline measures decoding
    started = time.monotonic()
    with pytest.raises(ClipError) as caught:
        index(bad, decoder=HOSTILE, decode_timeout_s=1.0 if kind == "hang" else 20.0)
    assert time.monotonic() - started < 15
    assert caught.value.code is code
    assert says in caught.value.message
    assert str(bad) in caught.value.message
    (clip,) = index(good, decoder=HOSTILE, decode_timeout_s=20.0)
    assert [number_of(f) for f in read(clip)] == list(range(20))


def clip_of(good: Path, bad: Path) -> ClipRecord:
    """`bad` as it was indexed on a day when its decoder was well."""
    (clip,) = index(good)
    return clip.model_copy(update={"uri": str(bad), "decoder": HOSTILE})


@pytest.mark.parametrize(
    ("kind", "code"), [("hang", FailureCode.DECODE_TIMEOUT), ("segv", FailureCode.DECODER_CRASH)]
)
def test_a_decoder_that_dies_under_a_reader_ends_that_reader_only(
    kind: str, code: FailureCode, good: Path, tmp_path: Path
) -> None:
    clip = clip_of(good, renamed(good, tmp_path, f"{kind}.mp4"))
    neighbour = open_clip(index(good)[0], settings()).windows(4)
    next(neighbour)
    with pytest.raises(ClipError) as caught:
        read(clip, decode_timeout_s=1.0 if kind == "hang" else 20.0)
    assert caught.value.code is code
    assert sum(len(w.indices) for w in neighbour) == 16


def test_a_decoder_that_gives_fewer_frames_than_indexed_is_an_error_not_a_short_clip(
    good: Path, tmp_path: Path
) -> None:
    first, second = index(renamed(good, tmp_path, "drops.mp4"), decoder=HOSTILE, max_clip_frames=10)
    assert len(read(first)) == 10
    with pytest.raises(ClipError, match="gave 5 of 10 frames") as caught:
        read(second)
    assert caught.value.code is FailureCode.CORRUPT


def test_an_unknown_decoder_is_refused_before_any_work(good: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'decord'"):
        index(good, decoder="decorde")


def test_auto_falls_back_to_pyav_when_decord_cannot_be_verified(
    good: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Matroska with AV1: decord's FFmpeg of 2018 has no decoder for it.
    path = write_video(tmp_path / "a.mkv", codec="libsvtav1", options={"preset": "12"})
    (clip,) = index(path)
    assert clip.decoder == "pyav"
    assert clip.flags == ["decoder_fallback"]
    with pytest.raises(ClipError) as caught:
        index(path, decoder="decord")
    assert caught.value.code is FailureCode.CORRUPT


def test_a_child_that_cannot_start_is_the_setup_s_fault_not_the_video_s(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_idle()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ConfigError, match="the decode process does not start"):
        index(good)


def test_one_child_is_reused_and_recycled(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close_idle()
    monkeypatch.setattr(process, "RECYCLE_AFTER", 4)
    pids = []
    for _ in range(9):
        with process.lease() as child:
            child.ask("probe", "good", 20.0, path=str(good), fps=None)
            pids.append(child.pid)
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [4, 4, 1]


def test_a_child_killed_while_idle_is_replaced(good: Path) -> None:
    with process.lease() as child:
        child.ask("probe", "good", 20.0, path=str(good), fps=None)
    os.kill(child.pid, signal.SIGKILL)
    time.sleep(0.1)
    assert len(index(good)) == 1


def test_readers_in_threads_do_not_mix_their_frames(good: Path, tmp_path: Path) -> None:
    other = write_video(tmp_path / "other.mp4", size=(64, 64))
    clips = [index(good)[0], index(other)[0]] * 2
    results: list[list[int]] = [[] for _ in clips]

    def work(i: int) -> None:
        results[i] = [number_of(f) for f in read(clips[i])]

    workers = [threading.Thread(target=work, args=(i,)) for i in range(len(clips))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [list(range(20))] * 4


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_hung_child_does_not_outlive_a_killed_parent(good: Path, tmp_path: Path) -> None:
    bad = renamed(good, tmp_path, "hang.mp4")
    script = (
        "from tests.video.helpers import *\n"
        "from rvt_ray.video import process\n"
        "with process.lease() as child:\n"
        f"    probe = child.ask('probe', 'x', 60.0, path={str(bad)!r}, fps=None)\n"
        "    print(child.pid, flush=True)\n"
        f"    child.ask('scan', 'x', 600.0, path={str(bad)!r}, probe=probe, decoder_name={HOSTILE!r},\n"
        "              shots=settings().shots, max_duration_s=100.0)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(1.0)  # now it hangs with the GIL held
    assert alive(pid)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)
    parent.stdout.close()


def test_the_parent_never_loads_a_decoder(good: Path) -> None:
    script = (
        "import sys\n"
        "from rvt_ray.video import index_video, open_clip\n"
        "from tests.video.helpers import item, settings\n"
        "from pathlib import Path\n"
        f"clip, = index_video(item(Path({str(good)!r})), settings())\n"
        "list(open_clip(clip, settings()).windows())\n"
        "print(sorted({'av', 'decord', 'torch', 'scenedetect', 'ray'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_the_source_item_is_not_changed_by_indexing(good: Path) -> None:
    (clip,) = index(good)
    assert clip.name == item(good).name
    assert clip.clip_id == f"{clip.sha256[:16]}-000000-00020"
    assert np.all(np.diff(clip.pts_s) > 0)
