"""Source `frames`: a root with one folder of images per video (DAVIS JPEGImages/480p), or one such folder."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from pydantic import Field

from rvt_ray import backends
from rvt_ray.config.settings import SourceSettings
from rvt_ray.errors import ConfigError
from rvt_ray.records.failure import Failure
from rvt_ray.sources.annotations import Annotations
from rvt_ray.sources.base import absolute, refuse_missing, source_name
from rvt_ray.sources.videos import find_files
from rvt_ray.video.folder import DEFAULT_FPS, IMAGE_SUFFIXES
from rvt_ray.video.item import SourceItem
from rvt_ray.video.local import is_remote


class FramesSource:
    """Every folder that holds images directly is a video; its name is its path inside the root."""

    class Options(backends.Options):
        """`fps`: frames per second; a folder of images has no clock of its own."""

        fps: float = Field(default=DEFAULT_FPS, gt=0)

    def __init__(self, settings: SourceSettings, options: Options) -> None:
        self._settings = settings
        self._fps = options.fps

    def items(self) -> Iterator[SourceItem | Failure]:
        """See `Source.items`."""
        settings = self._settings
        fs, root = refuse_missing(settings)
        if not fs.isdir(root):
            raise ConfigError(
                f"source {source_name(settings)!r}: {settings.path} is a file; type 'frames' wants a folder "
                "of images, or a folder of such folders. A video file wants type 'videos'"
            )
        annotations = Annotations(settings)
        folders = sorted(
            {
                posixpath.dirname(p)
                for p in find_files(fs, root)
                if posixpath.splitext(p)[1].lower() in IMAGE_SUFFIXES
            }
        )
        if not folders:
            raise ConfigError(
                f"source {source_name(settings)!r}: no images ({', '.join(sorted(IMAGE_SUFFIXES))}) below "
                f"{settings.path}"
            )
        root = root.rstrip("/")
        for folder in folders:
            name = folder[len(root) + 1 :] or posixpath.basename(root)
            annotation_uri, annotation_format, annotation_sha256 = annotations.of(name)
            yield SourceItem(
                source=source_name(settings),
                name=name,
                uri=fs.unstrip_protocol(folder) if is_remote(settings.path) else absolute(folder),
                kind="frames",
                license=settings.license,
                fps=self._fps,
                annotation_uri=annotation_uri,
                annotation_format=annotation_format,
                annotation_sha256=annotation_sha256,
            )
