"""Static pages over a finished corpus, to look at and judge it. No network, no framework."""

from rvt_ray.gallery.audit import write_audit
from rvt_ray.gallery.write import write_gallery

__all__ = ["write_audit", "write_gallery"]
