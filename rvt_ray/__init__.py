"""rvt-ray: raw video in, reasoning visual tasks with proven truth out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rvt_ray.loading import load

__version__ = "0.1.0"

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    # Not at import: `rvt-ray --help` must not wait for Arrow and OpenCV.
    if name == "load":
        from rvt_ray.loading import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
