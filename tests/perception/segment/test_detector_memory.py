"""Guards that the detector segmenter's memory does not grow with the clip."""

from __future__ import annotations

import sys

import pytest

from tests.perception.memory import assert_flat

_MEASURE = """
import cv2
import numpy as np
from rvt_ray.perception.segment.detector import DetectorSegmenter
from rvt_ray.perception.segment.detector.options import DetectorOptions
from rvt_ray.perception.detect import Detection
from tests.perception.memory import RED, measure

cv2.setNumThreads(1)

class Red:
    name = "red"

    def detect(self, frame):
        columns = np.flatnonzero((frame[55] == RED).all(axis=1))
        return [Detection(float(columns[0]), 40.0, 25.0, 30.0, "cup", 0.9)]

def follows(found, n):
    (track,) = found.tracks
    return sum(s is not None for s in track.score) > 0.9 * n

options = DetectorOptions(plate_samples=5, look_interval_s=0.4)
measure(DetectorSegmenter(options, Red()).segment, 12, follows)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
def test_a_clip_ten_times_as_long_does_not_take_more_memory() -> None:
    assert_flat(_MEASURE, spare_kib=6144)
