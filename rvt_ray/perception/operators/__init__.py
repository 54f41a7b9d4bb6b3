"""Frame operators: what plain image processing measures on every frame (camera motion, light, blur, cuts)."""

from rvt_ray.perception.operators.camera import (
    CameraEstimator,
    classify_camera,
    cumulative_motion,
)
from rvt_ray.perception.operators.measures import FrameMeter, flags_of, look_through

__all__ = [
    "CameraEstimator",
    "FrameMeter",
    "classify_camera",
    "cumulative_motion",
    "flags_of",
    "look_through",
]
