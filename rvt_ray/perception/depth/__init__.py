"""Depth estimators: clip -> depth maps. Short names for the config (`perceive.depth.backend`)."""

BACKENDS: dict[str, str] = {
    "annotations": "rvt_ray.perception.depth.annotations:AnnotationsDepth",
    "depth_anything": "rvt_ray.perception.depth.depth_anything:DepthAnything",
    "onnx": "rvt_ray.perception.depth.onnx:OnnxDepth",
    "none": "rvt_ray.perception.depth.none:NoDepth",
}
