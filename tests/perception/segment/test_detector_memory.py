"""Guards that the detector segmenter's memory does not grow with the clip."""

from __future__ import annotations

import subprocess
import sys

import pytest

_MEASURE = """
import resource, sys
import cv2
import numpy as np
from rvt_ray.perception.segment.detector import DetectorSegmenter
from rvt_ray.perception.segment.detector.options import DetectorOptions
from rvt_ray.perception.segment.detector.yolox import Detection
from rvt_ray.video.frames import FrameWindow
from tests.twin.helpers import make_clip

cv2.setNumThreads(1)

class Rendered:
    height, width = 120, 160
    def __init__(self, n):
        self.num_frames, self.pts_s = n, np.arange(n) / 25
        blocks = np.random.default_rng(0).integers(60, 200, (15, 20, 3)).astype(np.uint8)
        self.scene = blocks.repeat(8, 0).repeat(8, 1)
    def place(self, i):
        return int(70 + 50 * np.sin(i / 12))
    def frame(self, i):
        image = self.scene.copy()
        image[40:70, self.place(i):self.place(i) + 25] = (230, 30, 30)
        return image
    def windows(self, size=16):
        for start in range(0, self.num_frames, size):
            indices = np.arange(start, min(start + size, self.num_frames))
            yield FrameWindow(indices, np.stack([self.frame(i) for i in indices]))
    def frames_at(self, indices):
        for i in indices:
            yield i, self.frame(i)

class Red:
    def detect(self, frame):
        columns = np.flatnonzero((frame[55] == (230, 30, 30)).all(axis=1))
        return [Detection(float(columns[0]), 40.0, 25.0, 30.0, "cup", 0.9)]

def run(n):
    frames = Rendered(n)
    clip = make_clip(n, frames.width, frames.height, list(frames.pts_s))
    options = DetectorOptions(plate_samples=5, look_interval_s=0.4)
    found = DetectorSegmenter(options, Red()).segment(clip, frames, [0])
    if n > 16:
        (track,) = found.tracks
        assert sum(s is not None for s in track.score) > 0.9 * n
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

run(12)  # whatever is loaded and set up once
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
    assert long - start <= 1.3 * (short - start) + 6144
