"""Whole files under one output root, on a local disk or at any fsspec URI.

The only promise that the ledger needs: a name either holds a whole file or does not exist. Locally that is
tmp + fsync + rename in the same folder; an object store gives it by itself, since a put is visible only
when it is complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rvt_ray.errors import ConfigError

TMP_SUFFIX = ".tmp"


class Storage:
    """The output root. Cheap to pickle: workers open their own connection.

    Args:
        root: a folder, or an fsspec URI such as `s3://bucket/corpus`.

    Raises:
        ConfigError: no driver for the URI's scheme.
    """

    def __init__(self, root: str | Path) -> None:
        text = str(root)
        self.is_local = "://" not in text or text.startswith("file://")
        if self.is_local:
            self.root = os.path.abspath(text.removeprefix("file://"))
        else:
            self.root = text.rstrip("/")
        self._fs: Any = None

    def __repr__(self) -> str:
        return f"Storage({self.root!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"is_local": self.is_local, "root": self.root, "_fs": None}

    @property
    def _remote(self) -> tuple[Any, str]:
        """The file system and the root's path inside it."""
        if self._fs is None:
            import fsspec

            try:
                self._fs = fsspec.core.url_to_fs(self.root)
            except (ImportError, ValueError) as error:
                raise ConfigError(
                    f"--out {self.root}: {error}. Install the driver of this URI scheme, or give a folder"
                ) from error
        fs: tuple[Any, str] = self._fs
        return fs

    def uri(self, name: str) -> str:
        """The full path or URI of a file, for messages and readers."""
        return f"{self.root}/{name}"

    def local_path(self, name: str) -> Path | None:
        """The file's path on this machine; None at a URI."""
        return Path(self.root, name) if self.is_local else None

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file as a whole.

        Raises:
            OSError: the disk or store refused.
        """
        if not self.is_local:
            fs, base = self._remote
            parent = f"{base}/{name}".rpartition("/")[0]
            fs.makedirs(parent, exist_ok=True)
            fs.pipe_file(f"{base}/{name}", data)
            return
        path = Path(self.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        tmp = path.parent / f".{path.name}.{uuid.uuid4().hex}{TMP_SUFFIX}"
        try:
            with open(tmp, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(tmp, path)
        except BaseException:
            tmp.unlink(missing_ok=True)
            raise
        _fsync_folder(path.parent)

    def read(self, name: str) -> bytes:
        """A whole file.

        Raises:
            FileNotFoundError: there is no such file.
        """
        if self.is_local:
            return Path(self.root, name).read_bytes()
        fs, base = self._remote
        data: bytes = fs.cat_file(f"{base}/{name}")
        return data

    def exists(self, name: str) -> bool:
        """Whether the file is there, and so complete."""
        if self.is_local:
            return os.path.exists(os.path.join(self.root, name))
        fs, base = self._remote
        return bool(fs.exists(f"{base}/{name}"))

    def delete(self, name: str) -> None:
        """Remove a file; absent is fine."""
        if self.is_local:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.root, name))
            return
        fs, base = self._remote
        with contextlib.suppress(FileNotFoundError):
            fs.rm_file(f"{base}/{name}")

    def names(self, folder: str) -> Iterator[str]:
        """Names, relative to the root, of all complete files below a folder; nothing when it is absent."""
        if self.is_local:
            for parent, _, files in os.walk(os.path.join(self.root, folder)):
                inside = os.path.relpath(parent, self.root)
                for file in files:
                    if not file.endswith(TMP_SUFFIX):
                        yield f"{inside}/{file}"
            return
        fs, base = self._remote
        try:
            found = fs.find(f"{base}/{folder}")
        except FileNotFoundError:
            return
        for path in found:
            yield str(path).removeprefix(base).lstrip("/")

    def entries(self) -> list[str]:
        """Names of the files and folders directly below the root; nothing when it is absent or a file."""
        if self.is_local:
            try:
                return sorted(os.listdir(self.root))
            except (FileNotFoundError, NotADirectoryError):
                return []
        fs, base = self._remote
        try:
            found = fs.ls(base, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted({str(path).rstrip("/").rpartition("/")[2] for path in found})

    def is_file(self, name: str) -> bool:
        """Whether the name is a file, and not a folder."""
        if self.is_local:
            return os.path.isfile(os.path.join(self.root, name))
        fs, base = self._remote
        return bool(fs.isfile(f"{base}/{name}"))

    def publish(self, local: Path, name: str) -> None:
        """Move a finished local file to its final name, as a whole."""
        if not self.is_local:
            fs, base = self._remote
            fs.makedirs(f"{base}/{name}".rpartition("/")[0], exist_ok=True)
            fs.put_file(str(local), f"{base}/{name}")
            local.unlink()
            return
        path = Path(self.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(local, path)
        _fsync_folder(path.parent)

    def scratch(self, name: str) -> Path:
        """An empty local folder for files on their way to `publish`: below the root when that is local, so
        that publishing is a rename."""
        if self.is_local:
            folder = Path(self.root, name)
        else:
            import tempfile

            folder = Path(tempfile.gettempdir(), f"rvt-ray-{uuid.uuid4().hex}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def check_writable(self) -> None:
        """Write and remove a probe.

        Raises:
            ConfigError: the root cannot be written.
        """
        probe = f"_staging/.probe-{uuid.uuid4().hex}"
        try:
            self.write(probe, b"")
            self.delete(probe)
        except OSError as error:
            raise ConfigError(f"--out {self.root}: cannot be written: {error}") from error

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep a second driver off the same local root. Freed by the kernel when the process dies. At a URI
        there is no lock: stage files are idempotent, but two runs would do the work twice.

        Raises:
            ConfigError: another run holds it.
        """
        if not self.is_local:
            yield
            return
        path = Path(self.root, "_staging", ".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConfigError(
                    f"--out {self.root}: another rvt-ray run is writing here. "
                    "Wait for it, or give another --out"
                ) from error
            yield

    def sweep(self, folder: str) -> None:
        """Remove what writers that were killed left half-written. Call it under the lock only."""
        if not self.is_local:
            return
        for parent, _, files in os.walk(os.path.join(self.root, folder)):
            for file in files:
                if file.endswith(TMP_SUFFIX):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(os.path.join(parent, file))


def _fsync_folder(folder: Path) -> None:
    """Make a rename itself durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
