"""Which mask is which object: from proposals and propagated masks to tracks. No torch, no decoding."""

from rvt_ray.perception.linking.linker import TrackLinker
from rvt_ray.perception.linking.settings import LinkSettings

__all__ = ["LinkSettings", "TrackLinker"]
