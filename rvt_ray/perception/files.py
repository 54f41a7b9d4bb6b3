"""Reading files that stand beside a video (masks, depth), local or behind any fsspec URI, with errors that
name file and field."""

from __future__ import annotations

import functools
import json
from typing import Any

import fsspec

from rvt_ray.errors import ClipError
from rvt_ray.records import ClipRecord, FailureCode, Stage


def bad_annotation(uri: str, message: str) -> ClipError:
    """The error for a file that cannot be used; names it."""
    return ClipError(FailureCode.BAD_ANNOTATION, f"{uri}: {message}", Stage.PERCEIVE)


def is_folder(uri: str) -> bool:
    """Whether the URI is a folder that exists."""
    fs, path = fsspec.core.url_to_fs(uri)
    return bool(fs.isdir(path))


def exists(uri: str) -> bool:
    """Whether the URI is a file or folder that exists."""
    fs, path = fsspec.core.url_to_fs(uri)
    return bool(fs.exists(path))


def child(uri: str, *names: str) -> str:
    """The URI of something inside a folder."""
    return "/".join([uri.rstrip("/"), *names])


def files_in(uri: str, suffix: str) -> list[str]:
    """URIs of a folder's files with this suffix, in name order.

    Raises:
        ClipError: there is no such folder.
    """
    fs, path = fsspec.core.url_to_fs(uri)
    try:
        names = sorted(entry.rstrip("/").rsplit("/", 1)[-1] for entry in fs.ls(path, detail=False))
    except OSError as error:
        raise bad_annotation(uri, f"cannot list the folder: {error}") from error
    return [child(uri, name) for name in names if name.lower().endswith(suffix)]


def video_names(clip: ClipRecord) -> list[str]:
    """How annotations may call the clip's video: its name inside the source, or the last part of it."""
    return list(dict.fromkeys([clip.name, clip.name.rsplit("/", 1)[-1]]))


def find(clip: ClipRecord, uri: str, endings: list[str], what: str) -> str:
    """The first existing `<video name><ending>` in a folder; the URI itself when it is a file.

    Raises:
        ClipError: nothing is there; says what was looked for.
    """
    if not exists(uri):
        raise bad_annotation(uri, f"no such file or folder; it should hold the {what} of {clip.name!r}")
    if not is_folder(uri):
        return uri
    candidates = [name + ending for name in video_names(clip) for ending in endings]
    for name in candidates:
        if exists(child(uri, name)):
            return child(uri, name)
    raise bad_annotation(
        uri, f"holds no {what} for the video {clip.name!r}; looked for {', '.join(candidates)}"
    )


def read_bytes(uri: str) -> bytes:
    """A file's bytes.

    Raises:
        ClipError: it cannot be read.
    """
    try:
        with fsspec.open(uri, "rb") as file:
            return bytes(file.read())
    except OSError as error:
        raise bad_annotation(uri, f"cannot be read: {error}") from error


def read_json(uri: str) -> Any:
    """A JSON file, parsed; the last few stay parsed, since one file may serve thousands of clips.

    Raises:
        ClipError: it cannot be read or is not JSON.
    """
    fs, path = fsspec.core.url_to_fs(uri)
    try:
        info = fs.info(path)
    except OSError as error:
        raise bad_annotation(uri, f"cannot be read: {error}") from error
    return _parse(uri, str(info.get("mtime") or info.get("LastModified")), int(info.get("size") or 0))


@functools.lru_cache(maxsize=2)
def _parse(uri: str, modified: str, size: int) -> Any:
    try:
        return json.loads(read_bytes(uri))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise bad_annotation(uri, f"not valid JSON: {error}") from error


def same_aspect(height: int, width: int, clip: ClipRecord, uri: str, field: str) -> None:
    """Refuse a size that is not the clip's up to scale: such masks belong to other pictures.

    Raises:
        ClipError: the aspect differs by more than a rounded pixel.
    """
    # A side that was rounded (or made even) after scaling is off by at most two pixels.
    expected = width * clip.height / height
    slack = max(2.0, 2.0 * clip.height / height)
    if abs(expected - clip.width) > slack:
        raise bad_annotation(
            uri,
            f"{field}: height {height} x width {width} does not fit the clip's {clip.height} x {clip.width}, "
            "which has another aspect; give the annotations of this video in its upright orientation",
        )
