"""Guards that the motion segmenter's memory does not grow with the clip."""

from __future__ import annotations

import sys

import pytest

from tests.perception.memory import assert_flat

_MEASURE = """
from rvt_ray.perception.segment.motion import MotionSegmenter
from tests.perception.memory import measure

def follows(found, n):
    return max(sum(s is not None for s in t.score) for t in found.tracks) > 0.9 * n

measure(MotionSegmenter(MotionSegmenter.Options()).segment, 10, follows)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
def test_a_clip_ten_times_as_long_does_not_take_more_memory() -> None:
    assert_flat(_MEASURE, spare_kib=4096)
