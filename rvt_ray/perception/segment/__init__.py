"""Segmenters: clip -> masks and tracks. Short names for the config (`perceive.segment.backend`)."""

BACKENDS: dict[str, str] = {
    "annotations": "rvt_ray.perception.segment.annotations:AnnotationsSegmenter",
    "detector": "rvt_ray.perception.segment.detector:DetectorSegmenter",
    "motion": "rvt_ray.perception.segment.motion:MotionSegmenter",
    "sam2": "rvt_ray.perception.segment.sam2:Sam2Segmenter",
}
