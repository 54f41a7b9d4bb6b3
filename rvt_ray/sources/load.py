"""From settings to items."""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Iterator, Sequence

from rvt_ray import backends
from rvt_ray.config.settings import SourceSettings
from rvt_ray.errors import ConfigError
from rvt_ray.records.failure import Failure
from rvt_ray.sources.annotations import looked_for
from rvt_ray.sources.base import (
    MANIFEST_SUFFIXES,
    VIDEO_SUFFIXES,
    Source,
    refuse_missing,
    source_name,
)
from rvt_ray.sources.videos import find_files
from rvt_ray.video.folder import IMAGE_SUFFIXES
from rvt_ray.video.item import SourceItem

logger = logging.getLogger(__name__)

BUILTIN = {
    "videos": "rvt_ray.sources.videos:VideosSource",
    "frames": "rvt_ray.sources.frames:FramesSource",
    "manifest": "rvt_ray.sources.manifest:ManifestSource",
}


def make_source(settings: SourceSettings) -> Source:
    """Build one source.

    Raises:
        ConfigError: unknown type or option, or (with type `auto`) a path that tells nothing.
    """
    what = f"source {source_name(settings)!r}"
    kind = guess_type(settings) if settings.type == "auto" else settings.type
    cls = backends.resolve(kind, BUILTIN, f"{what}: type")
    source: Source = cls(settings, backends.check_options(cls, settings.options, what))
    return source


def open_sources(sources: Sequence[SourceSettings]) -> Iterator[SourceItem | Failure]:
    """Every video of every source, in the order of the config; single bad entries as failures.

    Raises:
        ConfigError: no source at all, two sources of one name, a source that cannot be read, or one whose
            `annotations` fit none of its videos (raised after its last video).
    """
    if not sources:
        raise ConfigError("no sources: give --source PATH, or `sources:` in the config")
    names = [source_name(s) for s in sources]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two sources are named {name!r}; give one of them another `name`")
    built = [make_source(settings) for settings in sources]
    for settings, source in zip(sources, built, strict=True):
        yield from _counted(settings, source)


def _counted(settings: SourceSettings, source: Source) -> Iterator[SourceItem | Failure]:
    """The source's videos; tells of those without masks, where masks were given."""
    videos = 0
    bare: list[str] = []
    for item in source.items():
        if isinstance(item, SourceItem):
            videos += 1
            if item.annotation_uri is None:
                bare.append(item.name)
        yield item
    if settings.annotations is None or not bare:
        return
    what = f"source {source_name(settings)!r}"
    where = looked_for(settings.annotation_format, settings.annotations, bare[0])
    if len(bare) == videos:
        raise ConfigError(
            f"{what}: 0 of {videos} videos have masks in {settings.annotations} (looked for {where}). "
            "Give the folder whose entries are named like the videos, or leave the annotations out"
        )
    logger.warning(
        "%s: %d of %d videos have masks in %s; %s has none (looked for %s), so it is perceived without",
        what,
        videos - len(bare),
        videos,
        settings.annotations,
        bare[0],
        where,
    )


def guess_type(settings: SourceSettings) -> str:
    """What `auto` means for a path: a manifest by its ending, a file is a video, a folder is what it holds.

    Raises:
        ConfigError: the path does not exist, or the folder holds neither videos nor images.
    """
    fs, path = refuse_missing(settings)
    if path.lower().endswith(MANIFEST_SUFFIXES) and fs.isfile(path):
        return "manifest"
    if fs.isfile(path):
        return "videos"
    endings = {posixpath.splitext(p)[1].lower() for p in find_files(fs, path)}
    if endings & set(VIDEO_SUFFIXES):
        return "videos"
    if endings & IMAGE_SUFFIXES:
        return "frames"
    raise ConfigError(
        f"source {source_name(settings)!r}: {settings.path} holds neither videos "
        f"({', '.join(VIDEO_SUFFIXES)}) nor images"
    )
