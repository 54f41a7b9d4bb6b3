"""Where a clip's seconds go: each step without its waits for frames, and the waits on their own."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rvt_ray.video.frames import FrameArray, FrameStream, FrameWindow

_T = TypeVar("_T")

DECODE = "decode"
"""Waits for the decoder: it works ahead in a process of its own, so this is what the others did not hide."""


class Clock:
    """Adds up wall seconds by name; what runs inside of another step is taken out of it.

    Args:
        seconds: gets the sums.
    """

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """The seconds of the block belong to `name`, but for those of steps inside of it."""
        self._book()
        self._running.append(name)
        try:
            yield
        finally:
            self._book()
            self._running.pop()

    def over(self, name: str, items: Iterable[_T]) -> Iterator[_T]:
        """The items; the time that each takes to come is of `name`."""
        iterator = iter(items)
        try:
            while True:
                with self.step(name):
                    try:
                        item = next(iterator)
                    except StopIteration:
                        return
                yield item
        finally:
            if isinstance(iterator, Generator):
                iterator.close()  # at once: a decoder waits behind it

    def _book(self) -> None:
        now = time.perf_counter()
        if self._running:
            name = self._running[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now


class ClockedFrames:
    """A `FrameStream` whose waits are booked as `DECODE`."""

    def __init__(self, frames: FrameStream, clock: Clock) -> None:
        self._frames, self._clock = frames, clock

    @property
    def num_frames(self) -> int:
        return self._frames.num_frames

    @property
    def height(self) -> int:
        return self._frames.height

    @property
    def width(self) -> int:
        return self._frames.width

    @property
    def pts_s(self) -> npt.NDArray[np.float64]:
        return self._frames.pts_s

    def windows(self, size: int = 16) -> Iterator[FrameWindow]:
        """See `FrameStream.windows`."""
        return self._clock.over(DECODE, self._frames.windows(size))

    def frames_at(self, indices: list[int]) -> Iterator[tuple[int, FrameArray]]:
        """See `FrameStream.frames_at`."""
        return self._clock.over(DECODE, self._frames.frames_at(indices))
