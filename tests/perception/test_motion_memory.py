"""Guards that the motion segmenter's memory does not grow with the clip."""

from __future__ import annotations

import subprocess
import sys

import pytest

_MEASURE = """
import resource, sys
import numpy as np
from rvt_ray.perception.segment.motion import MotionSegmenter
from rvt_ray.video.frames import FrameWindow
from tests.twin.helpers import make_clip

class Rendered:
    height, width = 120, 160
    def __init__(self, n):
        self.num_frames, self.pts_s = n, np.arange(n) / 25
        blocks = np.random.default_rng(0).integers(60, 200, (15, 20, 3)).astype(np.uint8)
        self.scene = blocks.repeat(8, 0).repeat(8, 1)
    def frame(self, i):
        image = self.scene.copy()
        x = int(70 + 50 * np.sin(i / 12))
        image[40:70, x:x + 25] = (230, 30, 30)
        return image
    def windows(self, size=16):
        for start in range(0, self.num_frames, size):
            indices = np.arange(start, min(start + size, self.num_frames))
            yield FrameWindow(indices, np.stack([self.frame(i) for i in indices]))

def run(n):
    frames = Rendered(n)
    clip = make_clip(n, frames.width, frames.height, list(frames.pts_s))
    found = MotionSegmenter(MotionSegmenter.Options()).segment(clip, frames, [0])
    if n > 16:
        assert max(sum(s is not None for s in t.score) for t in found.tracks) > 0.9 * n
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

run(10)  # whatever is loaded and set up once
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(before, run(int(sys.argv[1])))
"""


def _peak_kib(frames: int) -> tuple[int, int]:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(frames)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = (int(word) for word in done.stdout.split())
    return before, after


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
def test_a_clip_ten_times_as_long_does_not_take_more_memory() -> None:
    start, short = _peak_kib(32)
    _, long = _peak_kib(320)
    assert long <= 1.3 * short
    # Modules hide a lot: frames that are kept, even small ones, would show here (320 of them are 18 MiB).
    assert long - start <= 1.3 * (short - start) + 4096
