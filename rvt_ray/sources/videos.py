"""Source `videos`: a folder of video files, searched recursively, or a single file."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from rvt_ray import backends
from rvt_ray.config.settings import SourceSettings
from rvt_ray.errors import ConfigError
from rvt_ray.records.failure import Failure
from rvt_ray.sources.annotations import Annotations
from rvt_ray.sources.base import VIDEO_SUFFIXES, absolute, refuse_missing, source_name
from rvt_ray.video.item import SourceItem
from rvt_ray.video.local import is_remote


class VideosSource:
    """Names are paths inside the folder, without extension. Hidden files and folders are left out."""

    class Options(backends.Options):
        """`suffixes`: file endings that count as videos."""

        suffixes: list[str] = Field(default_factory=lambda: list(VIDEO_SUFFIXES))

    def __init__(self, settings: SourceSettings, options: Options) -> None:
        self._settings = settings
        self._suffixes = tuple(s.lower() if s.startswith(".") else f".{s.lower()}" for s in options.suffixes)

    def items(self) -> Iterator[SourceItem | Failure]:
        """See `Source.items`."""
        settings = self._settings
        fs, root = refuse_missing(settings)
        annotations = Annotations(settings)
        if fs.isfile(root):
            name = posixpath.splitext(posixpath.basename(root))[0]
            yield self._item(name, absolute(settings.path), annotations)
            return
        found = False
        for path in sorted(find_files(fs, root)):
            if path.lower().endswith(self._suffixes):
                found = True
                uri = fs.unstrip_protocol(path) if is_remote(settings.path) else path
                inside = path[len(root.rstrip("/")) + 1 :]
                yield self._item(posixpath.splitext(inside)[0], uri, annotations)
        if not found:
            raise ConfigError(
                f"source {source_name(settings)!r}: no video ({', '.join(self._suffixes)}) in {settings.path}"
            )

    def _item(self, name: str, uri: str, annotations: Annotations) -> SourceItem:
        annotation_uri, annotation_format, annotation_sha256 = annotations.of(name)
        return SourceItem(
            source=source_name(self._settings),
            name=name,
            uri=uri,
            license=self._settings.license,
            annotation_uri=annotation_uri,
            annotation_format=annotation_format,
            annotation_sha256=annotation_sha256,
        )


def find_files(fs: Any, root: str) -> list[str]:
    """All files below a folder, hidden ones left out."""
    start = len(root.rstrip("/")) + 1
    return [p for p in fs.find(root) if not any(part.startswith(".") for part in p[start:].split("/"))]
