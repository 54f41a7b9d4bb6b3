"""A decoder as bad as its file's name says, for `index.decoder: tests.video.hostile:HostileDecoder`."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from rvt_ray.video.decoders import PyavDecoder, RawFrame
from rvt_ray.video.probe import VideoProbe


class HostileDecoder(PyavDecoder):
    """The real PyAV decoder, except that after five frames a file `hang*` hangs with the GIL held, `segv*`
    segfaults, `abort*` aborts, `raise*` raises; and `drops*` ends there unless it began at 0."""

    def frames(
        self, path: str, probe: VideoProbe, start: int = 0, start_pts_s: float | None = None
    ) -> Iterator[RawFrame]:
        kind = Path(path).stem
        for i, frame in enumerate(super().frames(path, probe, start, start_pts_s)):
            if i == 5:
                if kind.startswith("drops") and start:
                    return
                misbehave(kind)
            yield frame


def misbehave(kind: str) -> None:
    if kind.startswith("hang"):
        # PyDLL keeps the GIL during the call, as decord does when it hangs.
        ctypes.PyDLL(None).sleep(3600)
    elif kind.startswith("segv"):
        ctypes.string_at(0)
    elif kind.startswith("abort"):
        os.write(2, b"terminate called after throwing 'dmlc::Error'\n")
        os.abort()
    elif kind.startswith("raise"):
        raise RuntimeError("no such plane")
