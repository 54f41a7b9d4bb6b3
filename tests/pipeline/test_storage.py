"""Whole files or none, on a disk and at a URI."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from rvt_ray.errors import ConfigError
from rvt_ray.pipeline.storage import Storage


@pytest.fixture(params=["folder", "uri"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "folder":
        yield Storage(tmp_path / "out")
        return
    root = f"memory://{uuid.uuid4().hex}/out"
    yield Storage(root)
    fsspec.filesystem("memory").rm(root.removeprefix("memory://"), recursive=True)


def test_what_is_written_can_be_read_listed_and_deleted(storage: Storage) -> None:
    storage.check_writable()
    storage.write("a/b/one", b"1")
    storage.write("a/b/one", b"2")
    storage.write("a/two", b"3")
    assert storage.read("a/b/one") == b"2"
    assert sorted(storage.names("a")) == ["a/b/one", "a/two"]
    assert list(storage.names("nothing")) == []
    storage.delete("a/two")
    storage.delete("a/two")
    assert not storage.exists("a/two")
    with pytest.raises(FileNotFoundError):
        storage.read("a/two")


def test_a_worker_gets_the_same_storage(storage: Storage) -> None:
    storage.write("x", b"1")
    assert pickle.loads(pickle.dumps(storage)).read("x") == b"1"


def test_publish_moves_a_finished_file(storage: Storage) -> None:
    scratch = storage.scratch("_staging/scratch")
    (scratch / "part").write_bytes(b"rows")
    storage.publish(scratch / "part", "table/part-0")
    assert storage.read("table/part-0") == b"rows"
    assert not (scratch / "part").exists()
    scratch.rmdir()


def _write_for_ever(root: str) -> None:
    storage, n = Storage(root), 0
    while True:
        n += 1
        storage.write("f", bytes([n % 256]) * 1_000_000)


def test_a_killed_writer_leaves_a_whole_file_and_its_litter_is_swept(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    writer = multiprocessing.get_context("fork").Process(target=_write_for_ever, args=(str(tmp_path),))
    writer.start()
    deadline = time.monotonic() + 20
    while not storage.exists("f") and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    data = storage.read("f")
    assert len(data) == 1_000_000
    assert len(set(data)) == 1
    (tmp_path / ".g.0.tmp").write_bytes(b"half")
    assert sorted(storage.names(".")) in (["./f"], ["f"])
    storage.sweep(".")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_second_run_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with (
        Storage(tmp_path).lock(),
        pytest.raises(ConfigError, match="another rvt-ray run"),
        Storage(tmp_path).lock(),
    ):
        pass
    with Storage(tmp_path).lock():
        pass


def test_an_unwritable_folder_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file/out: cannot be written"):
        Storage(tmp_path / "file" / "out").check_writable()


def test_an_unknown_scheme_is_refused_with_a_remedy() -> None:
    with pytest.raises(ConfigError, match="driver of this URI scheme"):
        Storage("nosuch://bucket/out").exists("x")
