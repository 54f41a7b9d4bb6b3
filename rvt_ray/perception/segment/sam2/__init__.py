"""The `sam2` segmenter. Importing it loads neither torch nor sam2."""

from rvt_ray.perception.segment.sam2.options import Sam2Options
from rvt_ray.perception.segment.sam2.segmenter import Sam2Segmenter

__all__ = ["Sam2Options", "Sam2Segmenter"]
