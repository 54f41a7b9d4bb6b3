"""Content identity: the same bytes are the same video, whatever they are called and wherever they lie."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

from rvt_ray.errors import ClipError
from rvt_ray.records.enums import FailureCode
from rvt_ray.video.folder import frame_files
from rvt_ray.video.item import SourceItem
from rvt_ray.video.local import local_path

_CHUNK = 1 << 20
VIDEO_ID_DIGITS = 16

# Hashing a film for each of its clips would cost more than decoding them; size and time of change say
# whether the last hash still holds. Per process, small: one entry per file.
_known: dict[str, tuple[tuple[int, ...], str]] = {}


def content_sha256(item: SourceItem) -> str:
    """sha256 of the video file's bytes, or over (name, bytes) of a folder's frames in order.

    Raises:
        ClipError: `unreadable`.
    """
    return path_sha256(local_path(item.uri, folder=item.kind == "frames"))


def path_sha256(path: Path) -> str:
    """`content_sha256` of a local file or folder of frames.

    Raises:
        ClipError: `unreadable`.
    """
    try:
        files = frame_files(path) if path.is_dir() else [path]
        stats = [f.stat() for f in files]
        if not all(stat.S_ISREG(s.st_mode) for s in stats):
            raise ClipError(FailureCode.UNREADABLE, f"{path}: not a regular file. Drop it from the source")
        state = tuple(n for s in stats for n in (s.st_size, s.st_mtime_ns))
        known = _known.get(str(path))
        if known is not None and known[0] == state:
            return known[1]
        digest = hashlib.sha256()
        for file in files:
            if path.is_dir():
                digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
            _feed(digest, file)
    except OSError as error:
        raise ClipError(
            FailureCode.UNREADABLE, f"{path}: {error.strerror}. Check the path and its permissions"
        ) from error
    value = digest.hexdigest()
    if len(_known) > 10_000:
        _known.clear()
    _known[str(path)] = (state, value)
    return value


def tree_sha256(path: Path) -> str:
    """sha256 of a file, or over (relative name, bytes) of all files below a folder, sorted by name.

    Raises:
        OSError: something cannot be read.
    """
    digest = hashlib.sha256()
    if not path.is_dir():
        _feed(digest, path)
        return digest.hexdigest()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
        _feed(digest, file)
    return digest.hexdigest()


def video_id(sha256: str) -> str:
    """The short id of a video, from its content."""
    return sha256[:VIDEO_ID_DIGITS]


def _feed(digest: hashlib._Hash, file: Path) -> None:
    with open(file, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
