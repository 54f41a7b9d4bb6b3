"""The decoders behind `index.decoder`. They run in the decode child only.

A decoder is a class with no arguments that fits `Decoder`; an own one is named in the config as
`my_package.my_module:MyDecoder`. It must give every frame from `start` on, in order of presentation.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from rvt_ray.backends import resolve
from rvt_ray.errors import ClipError
from rvt_ray.records.enums import FailureCode
from rvt_ray.video.frames import FrameArray
from rvt_ray.video.probe import OPEN_OPTIONS, VideoProbe

BUILTIN = {
    "decord": "rvt_ray.video.decoders:DecordDecoder",
    "pyav": "rvt_ray.video.decoders:PyavDecoder",
    "images": "rvt_ray.video.folder:ImageDecoder",
}


class RawFrame(NamedTuple):
    """A frame as stored.

    Attributes:
        pts_s: seconds from the video's first frame; None when the container does not say.
        image: uint8 RGB (h, w, 3), neither turned nor resampled.
    """

    pts_s: float | None
    image: FrameArray


class Decoder(Protocol):
    """Gives the frames of one file.

    Attributes:
        version: of the library behind it; stands in the clip's row.
        packets: filled while decoding: packets seen so far; 0 where the decoder does not tell.
        damage: filled while decoding: the numbers of the packets that were refused.
    """

    version: str
    packets: int
    damage: list[int]

    def frames(
        self, path: str, probe: VideoProbe, start: int = 0, start_pts_s: float | None = None
    ) -> Iterator[RawFrame]:
        """Frames `start`, `start + 1`, ... to the end.

        Args:
            start_pts_s: the time of frame `start`, which allows a seek; None: count from the first frame.

        Raises:
            ClipError: the decoder gives up.
        """
        ...


def make_decoder(name: str) -> Decoder:
    """Resolve and build a decoder.

    Raises:
        ConfigError: there is no such decoder.
    """
    decoder: Decoder = resolve(name, BUILTIN, "index.decoder")()
    return decoder


def threads() -> int:
    """Decoding threads per child: more than four buy little and many children share the machine."""
    return min(4, os.cpu_count() or 1)


class PyavDecoder:
    """FFmpeg through PyAV: times straight from the stream, seeks that are checked."""

    def __init__(self) -> None:
        import av

        self.version = f"pyav {av.__version__}"
        self.packets = 0
        self.damage: list[int] = []

    def frames(
        self, path: str, probe: VideoProbe, start: int = 0, start_pts_s: float | None = None
    ) -> Iterator[RawFrame]:
        import av

        first = probe.first_pts or 0
        with av.open(path, options=OPEN_OPTIONS) as container:
            stream = container.streams[probe.stream_index]
            assert isinstance(stream, av.VideoStream)
            stream.codec_context.thread_count = threads()
            # No frame threads: they report a damaged packet late, and then swallow good frames with it.
            stream.thread_type = "SLICE"
            if start and start_pts_s is not None:
                target = first + round(start_pts_s / probe.time_base)
                decoded = self._seek(container, stream, target, float(1 / probe.time_base))
            else:
                decoded = self._decode(container, stream)
                for _ in range(start):
                    next(decoded, None)
            for frame in decoded:
                pts = None if frame.pts is None else float((frame.pts - first) * probe.time_base)
                yield RawFrame(pts, frame.to_ndarray(format="rgb24"))

    def _decode(self, container: Any, stream: Any) -> Iterator[Any]:
        import av

        try:
            for packet in container.demux(stream):
                self.packets += packet.size > 0
                try:
                    yield from packet.decode()
                except av.error.FFmpegError:
                    self.damage.append(self.packets)
        except av.error.FFmpegError:
            # The demuxer gave up (a file cut short, mostly): what was decoded stands, and some of it is still
            # inside the decoder.
            self.damage.append(self.packets)
            with contextlib.suppress(av.error.FFmpegError):
                yield from stream.codec_context.decode(None)

    def _seek(self, container: Any, stream: Any, target: int, ticks_per_s: float) -> Iterator[Any]:
        """Frames from presentation time `target` on.

        Containers seek by decode time and to open groups of pictures, so the key frame that is reached may
        come after the target, or the frames before it may lack their references. A seek is trusted when
        it gives a key frame at or before the target first; otherwise it is tried further back.
        """
        for back_s in (0.0, 1.0, 4.0, 16.0, 64.0):
            container.seek(max(0, int(target - back_s * ticks_per_s)), stream=stream, backward=True)
            decoded = self._decode(container, stream)
            first = next(decoded, None)
            if first is None or first.pts is None or not first.key_frame or first.pts > target:
                continue
            if first.pts == target:
                yield first
            yield from (f for f in decoded if f.pts is not None and f.pts >= target)
            return
        container.seek(0, stream=stream, backward=True)
        yield from (f for f in self._decode(container, stream) if f.pts is None or f.pts >= target)


class DecordDecoder:
    """decord: quick, but to be verified (see `rvt_ray.video.scan`)."""

    BATCH = 8

    def __init__(self) -> None:
        import decord

        decord.logging.set_level(decord.logging.QUIET)
        self.version = f"decord {decord.__version__}"
        self.packets = 0
        self.damage: list[int] = []
        self._open: tuple[str, Any, npt.NDArray[np.float64]] | None = None

    def frames(
        self, path: str, probe: VideoProbe, start: int = 0, start_pts_s: float | None = None
    ) -> Iterator[RawFrame]:
        import decord

        if probe.rotation or probe.mirrored:
            # decord 0.6 turns frames itself, by half: a quarter turn gives four channels of zeros.
            raise ClipError(FailureCode.CORRUPT, f"{path}: decord cannot decode a rotated video")
        try:
            reader, times = self._reader(path)
            for at in range(start, len(reader), self.BATCH):
                stop = min(at + self.BATCH, len(reader))
                batch = reader.get_batch(range(at, stop)).asnumpy()
                for i, image in enumerate(batch):
                    yield RawFrame(float(times[at + i] - times[0]), image)
        except (decord.DECORDError, IndexError, RuntimeError) as error:
            raise ClipError(FailureCode.CORRUPT, f"{path}: decord gives up: {_words(error)}") from error

    def _reader(self, path: str) -> tuple[Any, npt.NDArray[np.float64]]:
        """(reader, start time of each frame); kept, because opening reads through the whole file."""
        import decord

        if self._open is None or self._open[0] != path:
            reader = decord.VideoReader(path, ctx=decord.cpu(0), num_threads=threads())
            times = np.asarray(reader.get_frame_timestamp(range(len(reader))), dtype=np.float64)
            self._open = (path, reader, times[:, 0])
        return self._open[1], self._open[2]


def _words(error: Exception) -> str:
    """decord's reason, without the clock and the addresses that would make equal failures differ."""
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    text = re.sub(r"^\[[0-9:]+\] \S+: ", "", text.strip())
    return re.sub(r" \([^()]* vs\. [^()]*\)", "", text)
