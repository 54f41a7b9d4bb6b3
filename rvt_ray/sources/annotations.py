"""Which existing masks belong to which video.

By convention, so that one `annotations` setting serves a whole source: `davis` is a folder per video,
`sav` is `<video>_manual.json` (else `_auto.json`), `synthetic` is `<video>.json`, and `youtube_vis` is one
JSON with many videos, in which the `annotations` backend looks the video up by its name.
"""

from __future__ import annotations

from pathlib import Path

from rvt_ray.config.settings import SourceSettings
from rvt_ray.errors import ConfigError
from rvt_ray.sources.base import absolute, source_name
from rvt_ray.video.identity import tree_sha256
from rvt_ray.video.local import is_remote

FORMATS = ("davis", "sav", "youtube_vis", "synthetic")
_ENDINGS = {
    "sav": ("_manual.json", "_auto.json", ".json"),
    "synthetic": (".json",),
    "youtube_vis": (".json",),
}


class Annotations:
    """Finds the annotation of each video of a source.

    Args:
        settings: `annotations` and `annotation_format`.

    Raises:
        ConfigError: format missing or unknown, or the path does not exist.
    """

    def __init__(self, settings: SourceSettings) -> None:
        what = f"source {source_name(settings)!r}"
        self.format = settings.annotation_format
        self._root: Path | None = None
        self._hashes: dict[Path, str] = {}
        if settings.annotations is None:
            if settings.annotation_format is not None:
                raise ConfigError(f"{what}: annotation_format is set but annotations is not; give its folder")
            return
        check_format(settings.annotation_format, what)
        if is_remote(settings.annotations):
            raise ConfigError(
                f"{what}: annotations must lie in a local or mounted folder, not at {settings.annotations}"
            )
        self._root = Path(absolute(settings.annotations))
        if not self._root.exists():
            raise ConfigError(f"{what}: annotations {self._root} does not exist")

    def of(self, name: str) -> tuple[str | None, str | None, str | None]:
        """(uri, format, sha256) of the annotation of the video `name`; three None when it has none."""
        path = self._find(name)
        if path is None:
            return None, None, None
        return str(path), self.format, self.hash(path)

    def hash(self, path: Path) -> str:
        """Content hash, computed once per path (one JSON may serve a thousand videos)."""
        if path not in self._hashes:
            self._hashes[path] = tree_sha256(path)
        return self._hashes[path]

    def _find(self, name: str) -> Path | None:
        root = self._root
        if root is None:
            return None
        if root.is_file():
            # One file: for youtube_vis it speaks of all videos, else of the source's only one.
            return root
        candidates = [name, name.rsplit("/", 1)[-1]]
        if self.format == "davis":
            for candidate in candidates:
                if (root / candidate).is_dir():
                    return root / candidate
            # The folder of masks of a single video.
            return root if any(root.glob("*.png")) else None
        for candidate in candidates:
            for ending in _ENDINGS[self.format or ""]:
                if (root / (candidate + ending)).is_file():
                    return root / (candidate + ending)
        return None


def looked_for(annotation_format: str | None, folder: str, name: str) -> str:
    """Where a video's annotation would have been found, in words."""
    if annotation_format == "davis":
        return f"the folder {folder.rstrip('/')}/{name}/"
    return " or ".join(f"{name}{ending}" for ending in _ENDINGS.get(annotation_format or "", (".json",)))


def check_format(value: str | None, what: str) -> None:
    """Refuse an annotation format that no backend reads.

    Raises:
        ConfigError: missing or unknown.
    """
    if value not in FORMATS:
        given = "is missing" if value is None else f"{value!r} is unknown"
        raise ConfigError(f"{what}: annotation_format {given}; valid: {', '.join(FORMATS)}")
