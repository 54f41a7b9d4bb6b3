"""Depth estimators: clip -> depth maps. Short names for the config (`perceive.depth.backend`)."""

BACKENDS: dict[str, str] = {
    "annotations": "rvt_ray.perception.depth.annotations:AnnotationsDepth",
    "none": "rvt_ray.perception.depth.none:NoDepth",
}
