"""Detectors: frame -> named boxes. Short names for the config (`...detector.backend`).

What a segmenter makes of the boxes is its own affair: `sam2` asks for a mask in each, `detector` cuts each
out.
"""

from __future__ import annotations

from rvt_ray import backends
from rvt_ray.perception.detect.base import WHAT, Detection, Detector

BACKENDS: dict[str, str] = {"yolox": "rvt_ray.perception.detect.yolox:Yolox"}

__all__ = ["BACKENDS", "Detection", "Detector", "build", "preflight"]


def build(spec: backends.BackendSpec) -> Detector:
    """The detector that a segmenter's options name.

    Raises:
        ConfigError: unknown name or option, or its weights are corrupt.
        MissingDependencyError: its weights, or a package, are not on this machine.
    """
    detector: Detector = backends.build(spec, BACKENDS, WHAT)
    return detector


def preflight(spec: backends.BackendSpec) -> None:
    """Whether it could be built, before any video is read.

    Raises:
        ConfigError, MissingDependencyError: as `build`.
    """
    cls = backends.resolve(spec.backend, BACKENDS, WHAT)
    options = backends.check_options(cls, spec.options, WHAT)
    check = getattr(cls, "preflight", None)
    if check is not None:
        check(options)
