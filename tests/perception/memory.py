"""Peak memory of a segmenter in a process of its own, on a rendered clip that is never held as a whole."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rvt_ray.perception.base import Segmentation
from rvt_ray.video.frames import FrameWindow
from tests.twin.helpers import make_clip

RED = (230, 30, 30)


class Rendered:
    """A red box that swings before a blocky wall."""

    height, width = 120, 160

    def __init__(self, n: int) -> None:
        self.num_frames, self.pts_s = n, np.arange(n) / 25
        blocks = np.random.default_rng(0).integers(60, 200, (15, 20, 3)).astype(np.uint8)
        self.scene = blocks.repeat(8, 0).repeat(8, 1)

    def frame(self, i: int) -> np.ndarray:
        image = self.scene.copy()
        x = int(70 + 50 * np.sin(i / 12))
        image[40:70, x : x + 25] = RED
        return image

    def windows(self, size: int = 16) -> Iterator[FrameWindow]:
        for start in range(0, self.num_frames, size):
            indices = np.arange(start, min(start + size, self.num_frames))
            yield FrameWindow(indices, np.stack([self.frame(i) for i in indices]))

    def frames_at(self, indices: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
        for i in indices:
            yield i, self.frame(i)


def measure(
    segment: Callable[..., Segmentation], warm_up: int, follows: Callable[[Segmentation, int], bool]
) -> None:
    """What the process does: print its peak before and after `segment` on as many frames as it was told."""

    def run(n: int) -> int:
        frames = Rendered(n)
        clip = make_clip(n, frames.width, frames.height, list(frames.pts_s))
        found = segment(clip, frames, [0])
        assert n <= 16 or follows(found, n)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    run(warm_up)  # whatever is loaded and set up once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(before, run(int(sys.argv[1])))


def peak_kib(script: str, frames: int) -> tuple[int, int]:
    """Peak before and after, of a fresh process that runs a script which calls `measure`."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(frames)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = (int(word) for word in done.stdout.split())
    return before, after


def assert_flat(script: str, spare_kib: int) -> None:
    """Ten times the frames take no more memory."""
    start, short = peak_kib(script, 32)
    _, long = peak_kib(script, 320)
    assert long <= 1.3 * short
    # Modules hide a lot: frames that are kept, even small ones, would show here (320 of them are 18 MiB).
    assert long - start <= 1.3 * (short - start) + spare_kib
