"""Frame operators: what plain image processing measures on every frame (camera motion, blur, light)."""

from rvt_ray.perception.operators.camera import (
    CameraEstimator,
    classify_camera,
    cumulative_motion,
    estimate_camera,
)

__all__ = ["CameraEstimator", "classify_camera", "cumulative_motion", "estimate_camera"]
