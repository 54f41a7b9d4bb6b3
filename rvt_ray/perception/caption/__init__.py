"""Captioners: clip and tracks -> words. Short names for the config (`perceive.caption.backend`)."""

BACKENDS: dict[str, str] = {
    "annotations": "rvt_ray.perception.caption.annotations:AnnotationsCaptioner",
    "appearance": "rvt_ray.perception.caption.appearance:AppearanceCaptioner",
    "vlm": "rvt_ray.perception.caption.vlm:VlmCaptioner",
}
