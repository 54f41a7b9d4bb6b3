"""The decode child: `python -m rvt_ray.video.child SOCKET BUFFER LIFELINE` (inherited file descriptors).

All native parsers and decoders run here and nowhere else, so that whatever they do (crash, hang with the
GIL held, leak) costs one process that is started again. Small messages go over the socket, pixels through a
shared buffer. Requests are dicts with an `op`; answers are ("tick",), ("ok", payload) or
("error", code, message).
"""

from __future__ import annotations

import fcntl
import itertools
import logging
import math
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

import numpy as np

from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.records.enums import FailureCode
from rvt_ray.video.decoders import RawFrame, make_decoder
from rvt_ray.video.folder import probe_folder
from rvt_ray.video.messages import OpenRequest
from rvt_ray.video.probe import VideoProbe, probe
from rvt_ray.video.scan import scan, verify_seeks
from rvt_ray.video.upright import upright

_TICK_S = 0.2


class Child:
    """Answers requests one after the other until the parent goes away."""

    def __init__(self, connection: Connection, buffer_fd: int) -> None:
        self._connection = connection
        self._buffer_fd = buffer_fd
        self._buffer: mmap.mmap | None = None
        self._request: OpenRequest | None = None
        self._frames: Iterator[np.ndarray] = iter(())
        self._given = 0
        self._ticked = 0.0

    def serve(self) -> None:
        """Until the socket closes."""
        handlers: dict[str, Callable[..., Any]] = {
            "probe": self._probe,
            "scan": lambda **kw: scan(tick=self._tick, **kw),
            "verify_seeks": lambda **kw: verify_seeks(tick=self._tick, **kw),
            "open": self._open,
            "read": self._read,
            "close": self._close,
        }
        while True:
            try:
                message = self._connection.recv()
            except EOFError:
                return
            operation = message.pop("op")
            answer: tuple[Any, ...]
            try:
                answer = ("ok", handlers[operation](**message))
            except ClipError as error:
                answer = ("error", error.code, error.message)
            except ConfigError as error:
                answer = ("config_error", None, str(error))
            except MemoryError:
                answer = ("error", FailureCode.TOO_LARGE, "out of memory while decoding")
            except Exception as error:  # noqa: BLE001 - any decoder may raise anything; the parent names the file
                answer = ("error", FailureCode.CORRUPT, f"{type(error).__name__}: {error}")
            self._connection.send(answer)

    def _tick(self) -> None:
        now = monotonic()
        if now - self._ticked > _TICK_S:
            self._ticked = now
            self._connection.send(("tick",))

    def _probe(self, path: str, fps: float | None) -> VideoProbe:
        return probe_folder(path, fps) if os.path.isdir(path) else probe(path)

    def _open(self, request: OpenRequest) -> None:
        seen = self._probe(request.path, None)
        width, height = request.size
        now_width, now_height = seen.upright_size(max(width, height))
        if abs(now_width - width) > 1 or abs(now_height - height) > 1:
            raise ClipError(
                FailureCode.CHANGED_SINCE_INDEX,
                f"{request.path}: its frames are no longer of the indexed shape. Index it again",
            )
        self._buffer = mmap.mmap(self._buffer_fd, 2 * request.slot_frames * height * width * 3)
        self._request = request
        self._given = 0
        decoder = make_decoder(request.decoder)
        start_pts = request.pts_s[0] if request.pts_s else None
        raw = decoder.frames(request.path, seen, request.start, start_pts)
        self._frames = (upright(f.image, seen, request.size) for f in self._checked(raw, request))

    def _checked(self, raw: Iterator[RawFrame], request: OpenRequest) -> Iterator[RawFrame]:
        given = 0
        for given, frame in enumerate(itertools.islice(raw, request.num_frames), 1):
            if request.pts_s and frame.pts_s is not None:
                expected = request.pts_s[given - 1]
                if not math.isclose(frame.pts_s, expected, rel_tol=1e-6, abs_tol=1.5e-3):
                    raise ClipError(
                        FailureCode.CORRUPT,
                        f"{request.path}: frame {request.start + given - 1} is at {frame.pts_s:.4f} s, but "
                        f"was indexed at {expected:.4f} s: {request.decoder} does not decode it twice alike",
                    )
            self._tick()
            yield frame
        if given != request.num_frames:
            raise ClipError(
                FailureCode.CORRUPT,
                f"{request.path}: {request.decoder} gave {given} of {request.num_frames} frames from frame "
                f"{request.start} on",
            )

    def _read(self, count: int, slot: int) -> int:
        """Write up to `count` frames into a slot; returns how many."""
        request, buffer = self._request, self._buffer
        if request is None or buffer is None:
            raise ClipError(FailureCode.INTERNAL, "read before open")
        width, height = request.size
        shape = (2, request.slot_frames, height, width, 3)
        slots = np.frombuffer(buffer, dtype=np.uint8, count=math.prod(shape)).reshape(shape)
        count = min(count, request.slot_frames, request.num_frames - self._given)
        for i in range(count):
            slots[slot, i] = next(self._frames)
        self._given += count
        if self._given == request.num_frames:
            # Runs the check of the count, and lets the decoder close its file.
            next(self._frames, None)
        return count

    def _close(self) -> None:
        self._frames = iter(())
        self._request = None
        if self._buffer is not None:
            self._buffer.close()
            self._buffer = None


def _die_with_parent(lifeline_fd: int) -> None:
    """SIGIO, which kills by default, when the last writer of the pipe is gone.

    Kernel-delivered, so it also ends a child whose native code hangs with the GIL held; and unlike
    PR_SET_PDEATHSIG it follows the parent's process, not the thread that started us.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline_fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(
        lifeline_fd, fcntl.F_SETFL, fcntl.fcntl(lifeline_fd, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK
    )
    try:
        gone = os.read(lifeline_fd, 1) == b""
    except BlockingIOError:
        gone = False
    if gone:
        sys.exit(1)


def main() -> None:
    """Entry point of the child."""
    socket_fd, buffer_fd, lifeline_fd = (int(a) for a in sys.argv[1:4])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    _die_with_parent(lifeline_fd)
    logging.basicConfig(level=logging.WARNING)
    import av
    import cv2

    # PyAV's own log callback takes the GIL in FFmpeg's threads and deadlocks with a decoder that is being
    # freed (PyAV#751, #909; seen about once in 300 files).
    av.logging.set_level(None)
    av.logging.restore_default_callback()
    av.logging.set_libav_level(av.logging.FATAL)
    cv2.setNumThreads(1)
    connection = Connection(socket_fd)
    connection.send(("ready",))
    Child(connection, buffer_fd).serve()


if __name__ == "__main__":
    main()
