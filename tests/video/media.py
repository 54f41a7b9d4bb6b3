"""Real video files for tests, written with PyAV. Every frame says its own number and which way is up.

The upper half of a frame is red at the left and green at the right, the lower half shows the frame's number
as eight black or white blocks, highest bit first.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]


def picture(number: int, width: int = 128, height: int = 96) -> Image:
    image = np.zeros((height, width, 3), np.uint8)
    image[: height // 2, : width // 2] = (220, 20, 20)
    image[: height // 2, width // 2 :] = (20, 200, 20)
    block = width / 8
    for bit in range(8):
        if number >> (7 - bit) & 1:
            image[height // 2 :, round(bit * block) : round((bit + 1) * block)] = 235
    return image


def number_of(image: Image) -> int:
    height, width = image.shape[:2]
    row = image[round(height * 0.75)].mean(axis=-1)
    bits = [row[round((bit + 0.5) * width / 8)] > 128 for bit in range(8)]
    return sum(int(b) << (7 - i) for i, b in enumerate(bits))


def is_upright(image: Image) -> bool:
    height, width = image.shape[:2]
    left = image[height // 4, width // 4].astype(int)
    right = image[height // 4, 3 * width // 4].astype(int)
    return bool(left[0] > left[1] + 80 and right[1] > right[0] + 80)


def write_video(
    path: Path,
    frames: int | list[Image] = 20,
    *,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    size: tuple[int, int] = (128, 96),
    fps: int = 25,
    times: list[int] | None = None,
    time_base: Fraction = Fraction(1, 1000),
    sar: Fraction | None = None,
    stored: int = 0,
    options: dict[str, str] | None = None,
    container_options: dict[str, str] | None = None,
    transfer: int | None = None,
) -> Path:
    """Write a video.

    Args:
        frames: how many numbered pictures, or the pictures.
        times: presentation times in `time_base` ticks; default: constant rate.
        sar: pixel aspect.
        stored: clockwise degrees the player must turn: pictures are stored turned the other way, and the
            mp4's track header gets the matrix that a phone writes.
        transfer: FFmpeg's number of the transfer function.
    """
    images = [picture(i, *size) for i in range(frames)] if isinstance(frames, int) else frames
    images = [np.ascontiguousarray(np.rot90(image, stored // 90)) for image in images]
    with av.open(str(path), "w", container_options=container_options or {}) as container:
        stream = container.add_stream(codec, rate=fps)
        if images:
            stream.height, stream.width = images[0].shape[:2]
        else:
            stream.width, stream.height = size
        stream.pix_fmt = pix_fmt
        if codec == "libx264":
            stream.options = {"crf": "12", "preset": "veryfast", **(options or {})}
        else:
            stream.options = options or {}
        if times is not None:
            stream.codec_context.time_base = time_base
        if sar is not None:
            stream.codec_context.sample_aspect_ratio = sar
        if transfer is not None:
            stream.codec_context.color_trc = transfer
        for i, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            if times is not None:
                frame.time_base = time_base
                frame.pts = times[i]
            container.mux(stream.encode(frame))
        if images:
            container.mux(stream.encode())
        else:
            container.start_encoding()
    if stored:
        patch_matrix(path, stored)
    return path


def patch_matrix(path: Path, degrees: int) -> None:
    """Write the display matrix of a clockwise turn into the mp4's track header (ISO/IEC 14496-12, 8.3.2)."""
    a, b = {90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
    matrix = struct.pack(">9i", a << 16, b << 16, 0, -b << 16, a << 16, 0, 0, 0, 1 << 30)
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 40
    data[at : at + 36] = matrix
    path.write_bytes(data)


def write_audio(path: Path) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16000)
        for i in range(10):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            frame.sample_rate = 16000
            frame.pts = i * 1024
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def moving(count: int, width: int = 192, height: int = 144, seed: int = 0) -> list[Image]:
    """Noise that moves a little from frame to frame: one shot, and files large enough to damage."""
    rng = np.random.default_rng(seed)
    texture = rng.integers(0, 255, (height // 4, width // 4, 3), dtype=np.uint8)
    big = np.kron(texture, np.ones((4, 4, 1), np.uint8))
    return [np.ascontiguousarray(np.roll(big, i, axis=1)) for i in range(count)]
