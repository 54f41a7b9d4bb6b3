"""Rendered clips whose truth is exact: masks, metric depth, kinds, attributes, camera and events."""

from rvt_ray.synthetic.annotation import ClipAnnotation
from rvt_ray.synthetic.render import Frame, render, render_frame
from rvt_ray.synthetic.scenes import random_scene
from rvt_ray.synthetic.spec import CameraKey, CameraSpec, Key, ObjectSpec, SceneSpec
from rvt_ray.synthetic.truth import Event, SceneTruth
from rvt_ray.synthetic.write import ClipPaths, TruthWriter, write_clip

__all__ = [
    "CameraKey",
    "CameraSpec",
    "ClipAnnotation",
    "ClipPaths",
    "Event",
    "Frame",
    "Key",
    "ObjectSpec",
    "SceneSpec",
    "SceneTruth",
    "TruthWriter",
    "random_scene",
    "render",
    "render_frame",
    "write_clip",
]
