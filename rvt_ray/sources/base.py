"""What a source is, and what all sources share."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from rvt_ray.config.settings import SourceSettings
from rvt_ray.errors import ConfigError
from rvt_ray.records.enums import FailureCode, Stage
from rvt_ray.records.failure import Failure
from rvt_ray.video.item import SourceItem
from rvt_ray.video.local import file_system, is_remote, plain_path

VIDEO_SUFFIXES = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v")
MANIFEST_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet")


class Source(Protocol):
    """A place that videos come from.

    Built as `cls(settings, options)`, with `options` an instance of the class's inner pydantic model
    `Options` (a subclass of `rvt_ray.backends.Options`). Building it checks nothing but the settings.
    """

    def items(self) -> Iterator[SourceItem | Failure]:
        """Every video, in an order that depends on the content alone; a single bad entry as a `Failure`.

        Raises:
            ConfigError: the source as a whole cannot be read.
        """
        ...


def source_name(settings: SourceSettings) -> str:
    """The configured name, or the last part of the path (of a file without its ending)."""
    if settings.name:
        return settings.name
    last = posixpath.basename(posixpath.normpath(absolute(settings.path)))
    stem, ending = posixpath.splitext(last)
    return (stem if ending.lower() in (*VIDEO_SUFFIXES, *MANIFEST_SUFFIXES) else last) or settings.path


def absolute(uri: str, base: str | None = None) -> str:
    """A local path made absolute (workers run elsewhere in the tree); other URIs as they are.

    Args:
        uri: path or URI.
        base: folder (path or URI) that a relative path is relative to; default: the working directory.
    """
    if is_remote(uri):
        return uri
    path = Path(plain_path(uri)).expanduser()
    if path.is_absolute():
        return str(path)
    if base is not None and is_remote(base):
        return base.rstrip("/") + "/" + path.as_posix()
    return str((Path(base) if base is not None else Path.cwd()) / path)


def refuse_missing(settings: SourceSettings) -> tuple[Any, str]:
    """(fsspec file system, path inside it) of the source's path.

    Raises:
        ConfigError: it does not exist or cannot be reached.
    """
    fs, path = file_system(absolute(settings.path), f"source {source_name(settings)!r}")
    try:
        exists = fs.exists(path)
    except Exception as error:
        raise ConfigError(
            f"source {source_name(settings)!r}: {settings.path} cannot be reached "
            f"({type(error).__name__}: {error})"
        ) from error
    if not exists:
        raise ConfigError(
            f"source {source_name(settings)!r}: {settings.path} does not exist. "
            "Give a video, a folder or a manifest"
        )
    return fs, path


def unreadable(settings: SourceSettings, uri: str, message: str) -> Failure:
    """The failure row of a single bad entry of a source."""
    return Failure(
        clip_id=None,
        video_id=None,
        source=source_name(settings),
        uri=uri,
        stage=Stage.INDEX,
        code=FailureCode.UNREADABLE,
        message=message,
        attempt=1,
    )
