"""Folders of frames (DAVIS JPEGImages/<video>/00000.jpg ...) behind the same interface as videos.

Such a folder has no clock: time is index / fps with the fps that the source states. This is the one place
where that is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from rvt_ray.errors import ClipError
from rvt_ray.records.enums import FailureCode
from rvt_ray.video.decoders import RawFrame
from rvt_ray.video.frames import FrameArray
from rvt_ray.video.probe import VideoProbe

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"})
DEFAULT_FPS = 24.0


def frame_files(folder: str | Path) -> list[Path]:
    """The folder's images in order: numbers count as numbers (2 before 10), then the name decides."""
    files = [
        p
        for p in Path(folder).iterdir()
        if p.suffix.lower() in IMAGE_SUFFIXES and not p.name.startswith(".") and p.is_file()
    ]
    return sorted(files, key=lambda p: (_natural(p.stem), p.name))


def _natural(text: str) -> list[tuple[int, int, str]]:
    return [(0, int(t), "") if t.isdigit() else (1, 0, t) for t in re.findall(r"[0-9]+|[^0-9]+", text)]


def probe_folder(folder: str, fps: float | None) -> VideoProbe:
    """A folder of frames as a `VideoProbe`; size and depth are those of the first frame.

    Raises:
        ClipError: `unreadable`, `no_frames` or `corrupt`.
    """
    try:
        files = frame_files(folder)
    except OSError as error:
        raise ClipError(
            FailureCode.UNREADABLE, f"{folder}: {error.strerror}. Check the path and its permissions"
        ) from error
    if not files:
        raise ClipError(FailureCode.NO_FRAMES, f"{folder}: no image ({', '.join(sorted(IMAGE_SUFFIXES))})")
    image = _load(files[0])
    stored = cv2.imread(str(files[0]), cv2.IMREAD_UNCHANGED)
    return replace(
        VideoProbe("folder", files[0].suffix.lower().lstrip("."), 0, image.shape[1], image.shape[0]),
        bit_depth=stored.dtype.itemsize * 8 if stored is not None else 8,
        alpha=stored is not None and stored.ndim == 3 and stored.shape[2] == 4,
        header_frames=len(files),
        fps=fps or DEFAULT_FPS,
        first_pts=0,
    )


class ImageDecoder:
    """Reads the folder's images one by one (OpenCV)."""

    def __init__(self) -> None:
        self.version = f"opencv {cv2.__version__}"
        self.packets = 0
        self.damage: list[int] = []

    def frames(
        self, path: str, probe: VideoProbe, start: int = 0, start_pts_s: float | None = None
    ) -> Iterator[RawFrame]:
        fps = probe.fps or DEFAULT_FPS
        for i, file in enumerate(frame_files(path)[start:], start):
            image = _load(file)
            if image.shape[:2] != (probe.coded_height, probe.coded_width):
                raise ClipError(
                    FailureCode.CORRUPT,
                    f"{file}: {image.shape[1]}x{image.shape[0]}, but the folder's first frame is "
                    f"{probe.coded_width}x{probe.coded_height}. All frames of a video need one size",
                )
            yield RawFrame(i / fps, image)


def _load(file: Path) -> FrameArray:
    image = cv2.imread(str(file), cv2.IMREAD_COLOR)
    if image is None:
        raise ClipError(FailureCode.CORRUPT, f"{file}: not a readable image")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), dtype=np.uint8)
