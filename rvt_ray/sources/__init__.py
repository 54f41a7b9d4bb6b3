"""Where videos come from. A new source is one small class; see docs/sources.md."""

from rvt_ray.sources.base import Source, source_name
from rvt_ray.sources.load import make_source, open_sources
from rvt_ray.video.item import SourceItem

__all__ = ["Source", "SourceItem", "make_source", "open_sources", "source_name"]
