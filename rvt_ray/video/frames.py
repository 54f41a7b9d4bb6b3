"""The one way pixels reach a backend: windows of upright RGB frames, decoded as they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

FrameArray = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class FrameWindow:
    """A run of consecutive (by `step`) frames.

    Attributes:
        indices: clip frame indices, ascending, shape (n,).
        frames: uint8 RGB, shape (n, height, width, 3), upright, square pixels. Read-only.
    """

    indices: npt.NDArray[np.int64]
    frames: FrameArray


class FrameStream(Protocol):
    """A clip's frames. Iterating again decodes again; nothing is kept beyond the current window, so that
    memory does not grow with the clip."""

    @property
    def num_frames(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def pts_s(self) -> npt.NDArray[np.float64]: ...

    def windows(self, size: int = 16) -> Iterator[FrameWindow]:
        """All frames in order, `size` at a time (the last window may be shorter).

        Raises:
            ClipError: the decoder failed, hung or died; or the bytes changed since indexing.
        """
        ...

    def frames_at(self, indices: list[int]) -> Iterator[tuple[int, FrameArray]]:
        """Single frames (ascending indices), shape (height, width, 3) each."""
        ...


class ArrayFrames:
    """A `FrameStream` over frames that are already in memory, for tests and small tools."""

    def __init__(self, frames: FrameArray, pts_s: npt.NDArray[np.float64]) -> None:
        if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != np.uint8:
            raise ValueError(f"frames must be uint8 (n, h, w, 3), not {frames.dtype} {frames.shape}")
        if len(pts_s) != len(frames):
            raise ValueError(f"{len(frames)} frames but {len(pts_s)} times")
        self._frames = frames
        self._pts_s = pts_s

    @property
    def num_frames(self) -> int:
        return len(self._frames)

    @property
    def height(self) -> int:
        return int(self._frames.shape[1])

    @property
    def width(self) -> int:
        return int(self._frames.shape[2])

    @property
    def pts_s(self) -> npt.NDArray[np.float64]:
        return self._pts_s

    def windows(self, size: int = 16) -> Iterator[FrameWindow]:
        for start in range(0, len(self._frames), size):
            stop = min(start + size, len(self._frames))
            yield FrameWindow(np.arange(start, stop), self._frames[start:stop])

    def frames_at(self, indices: list[int]) -> Iterator[tuple[int, FrameArray]]:
        for index in indices:
            yield index, self._frames[index]
