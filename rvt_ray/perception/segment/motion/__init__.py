"""The `motion` segmenter: clean plates, optical flow and colour; no weights."""

from rvt_ray.perception.segment.motion.segmenter import MotionSegmenter

__all__ = ["MotionSegmenter"]
