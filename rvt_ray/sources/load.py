"""From settings to items."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from rvt_ray import backends
from rvt_ray.config.settings import SourceSettings
from rvt_ray.errors import ConfigError
from rvt_ray.records.failure import Failure
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
        ConfigError: no source at all, two sources of one name, or a source that cannot be read.
    """
    if not sources:
        raise ConfigError("no sources: give --source PATH, or `sources:` in the config")
    names = [source_name(s) for s in sources]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two sources are named {name!r}; give one of them another `name`")
    built = [make_source(settings) for settings in sources]
    for source in built:
        yield from source.items()


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
