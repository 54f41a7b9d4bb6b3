"""Run as a child process: which decoders load and which codecs they decode. One JSON object on stdout."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

# Codec -> (encoder to make a clip with, container).
CODECS = {
    "h264": ("libx264", "mp4"),
    "hevc": ("libx265", "mp4"),
    "vp9": ("libvpx-vp9", "webm"),
    "av1": ("libsvtav1", "mp4"),
    "mpeg4": ("mpeg4", "avi"),
    "mjpeg": ("mjpeg", "avi"),
}
FRAMES = 4
SIDE = 64


def problem(error: Exception) -> str:
    """An error in one line. Native libraries put their source positions first: the last part says what."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0].rpartition('ERROR ')[2]}"[:160]


def load() -> dict[str, str | None]:
    """Decoder -> why it cannot be imported; null when it can."""
    found: dict[str, str | None] = {"pyav": None, "decord": None}
    for name, module in (("decord", "decord"), ("pyav", "av")):
        try:
            __import__(module)
        except Exception as error:  # noqa: BLE001 - a broken native package may raise anything
            found[name] = problem(error)
    return found


def write_clip(path: Path, encoder: str) -> None:
    """A clip of FRAMES grey frames."""
    import av
    import numpy as np

    with av.open(str(path), "w") as file:
        stream: Any = file.add_stream(encoder, rate=10)
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuvj420p" if encoder == "mjpeg" else "yuv420p"
        for i in range(FRAMES):
            image = np.full((SIDE, SIDE, 3), 40 * i, np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(image, "rgb24")):
                file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)


def decode_pyav(path: Path) -> str:
    """`ok`, or what went wrong."""
    import av

    try:
        with av.open(str(path)) as file:
            count = sum(1 for _ in file.decode(video=0))
    except Exception as error:  # noqa: BLE001 - the finding is the error
        return problem(error)
    return "ok" if count == FRAMES else f"{count} of {FRAMES} frames"


def decode_decord(path: Path) -> str:
    """`ok`, or what went wrong."""
    import decord

    try:
        frame = decord.VideoReader(str(path))[FRAMES - 1].asnumpy()
    except Exception as error:  # noqa: BLE001 - the finding is the error
        return problem(error)
    return "ok" if frame.shape == (SIDE, SIDE, 3) else f"a frame of shape {frame.shape}"


def try_codec(codec: str, folder: Path, *, with_decord: bool) -> dict[str, str]:
    """Decoder -> `ok` or the problem; `untried` names the encoder that was not there to make a clip."""
    import av

    try:
        av.Codec(codec, "r")
    except Exception as error:  # noqa: BLE001 - the finding is the error
        return {"pyav": problem(error)}
    encoder, container = CODECS[codec]
    path = folder / f"{codec}.{container}"
    try:
        write_clip(path, encoder)
    except Exception:  # noqa: BLE001 - no encoder: nothing is known about decoding
        return {"pyav": "ok", "untried": encoder}
    found = {"pyav": decode_pyav(path)}
    if with_decord:
        found["decord"] = decode_decord(path)
    return found


def main() -> None:
    """Probe and print."""
    out: dict[str, Any] = {**load(), "codecs": {}}
    if out["pyav"] is None:
        import av

        with contextlib.suppress(AttributeError):
            av.logging.set_level(av.logging.PANIC)
        with tempfile.TemporaryDirectory() as folder:
            for codec in CODECS:
                out["codecs"][codec] = try_codec(codec, Path(folder), with_decord=out["decord"] is None)
    sys.stdout.write(json.dumps(out) + "\n")


if __name__ == "__main__":
    main()
