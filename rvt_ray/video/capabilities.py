"""What this machine can decode, tried rather than looked up: for `rvt-ray doctor`."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rvt_ray.config.settings import IndexSettings, ShotSettings
from rvt_ray.errors import ClipError
from rvt_ray.video.index import index_video
from rvt_ray.video.item import SourceItem

# (container ending, FFmpeg's encoder, decoder, pixel format)
_TRIALS = (
    ("mp4", "libx264", "h264", "yuv420p"),
    ("mp4", "libx265", "hevc", "yuv420p"),
    ("mkv", "libsvtav1", "av1", "yuv420p"),
    ("webm", "libvpx-vp9", "vp9", "yuv420p"),
    ("webm", "libvpx", "vp8", "yuv420p"),
    ("avi", "mpeg4", "mpeg4", "yuv420p"),
    ("mov", "prores_ks", "prores", "yuv422p10le"),
    ("mkv", "ffv1", "ffv1", "yuv420p"),
)
_FRAMES = 5


@dataclass(frozen=True)
class Capability:
    """One kind of file.

    Attributes:
        container, codec: e.g. `mp4`, `h264`.
        decord, pyav: `ok`, or why not; `untested` when no encoder is here to make a trial file.
        usable: `index.decoder: auto` will work.
    """

    container: str
    codec: str
    decord: str
    pyav: str

    @property
    def usable(self) -> bool:
        return "ok" in (self.decord, self.pyav)


def decoder_capabilities() -> list[Capability]:
    """Encode a few frames in each common format, and decode them with each decoder (a few seconds)."""
    found = []
    with tempfile.TemporaryDirectory(prefix="rvt-ray-doctor-") as folder:
        for container, encoder, codec, pix_fmt in _TRIALS:
            path = Path(folder) / f"{codec}.{container}"
            if not _can_decode(codec):
                found.append(Capability(container, codec, "no decoder in PyAV", "no decoder in PyAV"))
            elif not _write(path, encoder, pix_fmt):
                found.append(Capability(container, codec, "untested", "untested"))
            else:
                found.append(Capability(container, codec, _try(path, "decord"), _try(path, "pyav")))
    return found


def _can_decode(codec: str) -> bool:
    import av

    try:
        av.Codec(codec, "r")
    except av.codec.codec.UnknownCodecError:
        return False
    return True


def _write(path: Path, encoder: str, pix_fmt: str) -> bool:
    """Whether this machine's FFmpeg could write the trial file."""
    import av

    os.environ.setdefault("SVT_LOG", "1")  # SVT-AV1 writes its settings to stderr otherwise
    try:
        with av.open(str(path), "w") as output:
            stream = output.add_stream(encoder, rate=25)
            assert isinstance(stream, av.VideoStream)
            stream.width, stream.height, stream.pix_fmt = 128, 96, pix_fmt
            if encoder == "libx265":
                stream.options = {"x265-params": "log-level=none"}
            for i in range(_FRAMES):
                image = np.full((96, 128, 3), i * 40, np.uint8)
                output.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
            output.mux(stream.encode(None))
    except (av.error.FFmpegError, av.codec.codec.UnknownCodecError, ValueError):
        return False
    return True


def _try(path: Path, decoder: str) -> str:
    settings = IndexSettings(decoder=decoder, decode_timeout_s=20.0, shots=ShotSettings(detector="none"))
    try:
        (clip,) = index_video(SourceItem("doctor", path.stem, str(path)), settings)
    except ClipError as error:
        return f"{error.code.value}: {error.message.removeprefix(f'{path}: ')}"
    return "ok" if clip.num_frames == _FRAMES else f"{clip.num_frames} of {_FRAMES} frames"
