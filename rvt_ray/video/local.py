"""Local copies of remote videos. Decoders want a real file; local paths are used where they are.

The cache folder is `$RVT_RAY_CACHE` (default `~/.cache/rvt-ray`), bounded by `$RVT_RAY_CACHE_GB` (default
20): the copies that were used longest ago go first. It holds nothing that can't be fetched again.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import time
import uuid
from pathlib import Path
from typing import Any

from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.records.enums import FailureCode

log = logging.getLogger(__name__)

# A copy that was used this recently may be being read: it is never evicted.
_IN_USE_S = 600.0


def is_remote(uri: str) -> bool:
    """A URI of another file system than the local one."""
    return "://" in uri and not uri.startswith(("file://", "local://"))


def plain_path(uri: str) -> str:
    """A local URI without its scheme."""
    for scheme in ("file://", "local://"):
        if uri.startswith(scheme):
            return uri[len(scheme) :]
    return uri


def file_system(uri: str, what: str) -> tuple[Any, str]:
    """(fsspec file system, path inside it) of a URI.

    Raises:
        ConfigError: no driver for the scheme.
    """
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise ConfigError(
            f"{what}: no file system driver for {uri!r} ({error}). Install the fsspec package of this scheme "
            "(s3fs, gcsfs, adlfs, ...) or check the spelling"
        ) from error
    return fs, path


def cache_folder() -> Path:
    """Where local copies of remote videos lie."""
    configured = os.environ.get("RVT_RAY_CACHE")
    root = Path(configured) if configured else Path.home() / ".cache" / "rvt-ray"
    return root / "videos"


def local_path(uri: str, folder: bool = False) -> Path:
    """A local path with the content of `uri`, fetched once if it is remote.

    Args:
        uri: local path or fsspec URI.
        folder: the URI is a folder of frames.

    Raises:
        ClipError: `unreadable`.
    """
    if not is_remote(uri):
        return Path(plain_path(uri))
    try:
        fs, remote = file_system(uri, uri)
        # A changed remote object gets another key, so that a stale copy is never taken for it.
        state = str(fs.ls(remote, detail=False)) if folder else str(fs.ukey(remote))
        key = hashlib.sha256(f"{uri}\0{state}".encode()).hexdigest()[:32]
        target = cache_folder() / (key if folder else key + Path(remote).suffix.lower())
        if target.exists():
            with contextlib.suppress(OSError):
                os.utime(target)
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.{uuid.uuid4().hex}.partial")
        try:
            fs.get(remote.rstrip("/") + ("/" if folder else ""), str(partial), recursive=folder)
            os.replace(partial, target)
        except OSError:
            # Somebody else may have put the same folder there first.
            if not target.exists():
                raise
        finally:
            _remove(partial)
    except ConfigError as error:
        raise ClipError(FailureCode.UNREADABLE, str(error)) from error
    except Exception as error:
        raise ClipError(
            FailureCode.UNREADABLE,
            f"{uri}: cannot be fetched ({type(error).__name__}: {error}). Check the URI and your credentials",
        ) from error
    _evict(keep=target)
    return target


def _evict(keep: Path) -> None:
    limit = float(os.environ.get("RVT_RAY_CACHE_GB", "20")) * 1e9
    entries = []
    for entry in cache_folder().iterdir():
        with contextlib.suppress(OSError):
            entries.append((entry.stat().st_mtime, _size(entry), entry))
    total = sum(size for _, size, _ in entries)
    for used, size, entry in sorted(entries):
        if total <= limit:
            return
        if entry == keep or time.time() - used < _IN_USE_S:
            continue
        _remove(entry)
        total -= size


def _size(entry: Path) -> int:
    if entry.is_dir():
        return sum(p.stat().st_size for p in entry.rglob("*") if p.is_file())
    return entry.stat().st_size


def _remove(entry: Path) -> None:
    if entry.is_dir():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)
