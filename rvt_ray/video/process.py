"""The parent's side of the decode child: start, ask with a deadline, kill, reuse, recycle."""

from __future__ import annotations

import atexit
import contextlib
import logging
import mmap
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.records.enums import FailureCode
from rvt_ray.video.frames import FrameArray

log = logging.getLogger(__name__)

# decord leaks (dmlc/decord#157, #208): a child serves this many videos or clips, then a fresh one takes over.
RECYCLE_AFTER = 64
# Importing the codec libraries takes seconds on a busy machine.
_START_TIMEOUT_S = 120.0
_MAX_IDLE = 2


class DecodeProcess:
    """One child. Not thread-safe: it belongs to one reader at a time (see `lease`).

    Attributes:
        served: videos or clips that it has worked for.
        owed: requests that it has not answered yet.
    """

    def __init__(self) -> None:
        self.served = 0
        self.owed = 0
        self._buffer_fd = _anonymous_file()
        self._buffer: mmap.mmap | None = None
        lifeline_read, self._lifeline = os.pipe()
        ours, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        fds = (theirs.fileno(), self._buffer_fd, lifeline_read)
        # The child sees the modules that we see (a decoder named by a dotted path).
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p or os.getcwd() for p in sys.path))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rvt_ray.video.child", *map(str, fds)],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env=environment,
            )
        finally:
            os.close(lifeline_read)
            theirs.close()
        self._connection = Connection(ours.detach())
        self._ready = False

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Still able to answer."""
        return self._process.poll() is None and not self._connection.closed

    def ask(self, operation: str, what: str, timeout_s: float, **arguments: Any) -> Any:
        """Send a request and wait for its answer.

        Args:
            what: the file, for error texts.
            timeout_s: longest silence; every decoded frame is a sign of life.

        Raises:
            ClipError: the child's own, or `decode_timeout` or `decoder_crash`; after these two it is dead.
            ConfigError: the decoder named in the config does not exist, or no child can be started here.
        """
        self.send(operation, **arguments)
        return self.receive(what, timeout_s)

    def send(self, operation: str, **arguments: Any) -> None:
        """Send a request; `receive` takes the answer."""
        self.owed += 1
        # A broken pipe shows itself, with the reason, when the answer is awaited.
        with contextlib.suppress(OSError):
            self._connection.send({"op": operation, **arguments})

    def receive(self, what: str, timeout_s: float) -> Any:
        """The answer to the oldest unanswered request; see `ask`."""
        if not self._ready:
            self._await_start()
        while True:
            try:
                if not self._connection.poll(timeout_s):
                    self.kill()
                    raise ClipError(
                        FailureCode.DECODE_TIMEOUT,
                        f"{what}: the decoder gave no frame for {timeout_s:g} s and was killed. If the "
                        "machine is just slow, raise index.decode_timeout_s",
                    )
                answer = self._connection.recv()
            except (EOFError, OSError) as error:
                raise ClipError(FailureCode.DECODER_CRASH, f"{what}: {self._obituary()}") from error
            if answer[0] == "tick":
                continue
            self.owed -= 1
            if answer[0] == "ok":
                return answer[1]
            if answer[0] == "config_error":
                raise ConfigError(answer[2])
            message = answer[2] if what in answer[2] else f"{what}: {answer[2]}"
            raise ClipError(answer[1], message)

    def map_buffer(self, size: int) -> None:
        """Make the shared buffer `size` bytes long."""
        self.unmap_buffer()
        os.ftruncate(self._buffer_fd, size)
        self._buffer = mmap.mmap(self._buffer_fd, size, access=mmap.ACCESS_READ)

    def unmap_buffer(self) -> None:
        """Give the shared buffer's memory back."""
        if self._buffer is not None:
            self._buffer.close()
            self._buffer = None
            os.ftruncate(self._buffer_fd, 0)

    def copy_frames(self, offset: int, shape: tuple[int, int, int, int]) -> FrameArray:
        """An own, read-only copy of frames in the shared buffer."""
        assert self._buffer is not None
        count = int(np.prod(shape))
        frames = np.frombuffer(self._buffer, dtype=np.uint8, count=count, offset=offset).reshape(shape).copy()
        frames.flags.writeable = False
        return frames

    def kill(self) -> None:
        """End the child now, whatever it is doing."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if not self._connection.closed:
            self._connection.close()
            self.unmap_buffer()
            os.close(self._buffer_fd)
            os.close(self._lifeline)

    def _await_start(self) -> None:
        """Importing the codec libraries is not held against the first video."""
        try:
            if not self._connection.poll(_START_TIMEOUT_S):
                self.kill()
                raise ConfigError(f"the decode process did not start within {_START_TIMEOUT_S:g} s")
            self._connection.recv()
        except (EOFError, OSError) as error:
            raise ConfigError(
                f"the decode process does not start: {self._obituary()}. `rvt-ray doctor` checks the decoders"
            ) from error
        self._ready = True

    def _obituary(self) -> str:
        """How the child died, with its last words."""
        try:
            status = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            status = None
        last = b""
        with contextlib.suppress(OSError):
            self._errors.seek(max(0, os.fstat(self._errors.fileno()).st_size - 2000))
            last = self._errors.read()
        self.kill()
        how = "closed its connection"
        if status is not None and status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        elif status is not None:
            how = f"ended with status {status}"
        words = [line for line in last.decode(errors="replace").splitlines() if line.strip()]
        # Addresses and times would make the rows of two equal runs differ.
        said = re.sub(r"0x[0-9a-f]+|\[[0-9:.]+\]", "..", words[-1].strip()) if words else ""
        return f"the decoder's process {how}" + (f" ({said})" if said else "")


_idle: list[DecodeProcess] = []
_idle_owner = os.getpid()
_lock = threading.Lock()


@contextlib.contextmanager
def lease() -> Iterator[DecodeProcess]:
    """A live child for one video or clip; kept for the next one unless it died or is worn out."""
    global _idle_owner
    child = None
    with _lock:
        if _idle_owner != os.getpid():
            # Forked: those children belong to the other process.
            _idle.clear()
            _idle_owner = os.getpid()
        while _idle and child is None:
            child = _idle.pop()
            if not child.alive:
                child.kill()
                child = None
    child = child or DecodeProcess()
    child.served += 1
    try:
        yield child
    finally:
        with _lock:
            # A child that still owes an answer would give it to the next reader.
            keep = (
                child.alive
                and child.owed == 0
                and child.served < RECYCLE_AFTER
                and len(_idle) < _MAX_IDLE
                and _idle_owner == os.getpid()
            )
            if keep:
                _idle.append(child)
        if not keep:
            child.kill()


def close_idle() -> None:
    """End all children that nobody uses."""
    with _lock:
        children = list(_idle) if _idle_owner == os.getpid() else []
        _idle.clear()
    for child in children:
        child.kill()


atexit.register(close_idle)


def _anonymous_file() -> int:
    """A nameless file in memory: not bounded by /dev/shm, gone with its last user."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("rvt-ray-frames", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
