"""The `detector` segmenter of the CPU tier: ONNX detector, GrabCut, optical flow."""

from rvt_ray.perception.segment.detector.segmenter import DetectorSegmenter

__all__ = ["DetectorSegmenter"]
