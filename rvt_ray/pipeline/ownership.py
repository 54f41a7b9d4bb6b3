"""Whose files are these? A run replaces the tables' folders as a whole, and must never take a user's file
with them: what is not ours is refused before any work, and again before the first file is removed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rvt_ray.errors import ConfigError
from rvt_ray.pipeline.ledger import STAGING
from rvt_ray.pipeline.manifest import MANIFEST, TOOL
from rvt_ray.pipeline.shards import is_shard_name
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import PREDICTION_SCHEMA, TABLES, Failure

_SHOWN = 3
_TABLES = {name: record.SCHEMA for name, record in TABLES.items()}
_ANSWERS = {"predictions": PREDICTION_SCHEMA, "failures": Failure.SCHEMA}


def check_corpus_root(storage: Storage) -> None:
    """A corpus may be written here: the root is empty or ours, and so is each file that would be replaced.

    Hidden files and other folders (pages, audits, notes) are nobody's business: they stay as they are.

    Raises:
        ConfigError: naming what is not ours, and what to do.
    """
    manifest = _our_manifest(storage)
    entries = [name for name in storage.entries() if not _hidden(name)]
    if entries and manifest is None and STAGING not in entries:
        raise ConfigError(
            f"--out {storage.root}: the folder is not empty and holds no work of rvt-ray "
            f"({_some(entries)}). Give a new or empty folder"
        )
    listed = None
    if manifest is not None:
        tables = manifest.get("tables")
        shards = tables.values() if isinstance(tables, dict) else ()
        listed = {shard["file"] for found in shards for shard in found}
    _refuse_foreign(storage, _TABLES, listed)


def check_answers_root(storage: Storage) -> None:
    """Predictions may be written here: each file that would be replaced is one of ours.

    Raises:
        ConfigError: naming what is not ours, and what to do.
    """
    _refuse_foreign(storage, _ANSWERS, None)


def replaceable(storage: Storage, folder: str) -> list[str]:
    """The files of a folder that a new table takes the place of: all but hidden ones."""
    return [name for name in storage.names(folder) if not _hidden(name.rpartition("/")[2])]


def _our_manifest(storage: Storage) -> dict[str, Any] | None:
    try:
        text = storage.read(MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        text = b""
    try:
        manifest = json.loads(text)
        ours = manifest["tool"]["name"] == TOOL
    except (ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise ConfigError(
            f"--out {storage.root}: {MANIFEST} there is not one of rvt-ray's and would be replaced. "
            "Move it away, or give another folder"
        )
    found: dict[str, Any] = manifest
    return found


def _refuse_foreign(storage: Storage, folders: dict[str, pa.Schema], listed: set[str] | None) -> None:
    foreign = []
    for folder, schema in folders.items():
        if storage.is_file(folder):
            foreign.append(folder)
        for name in replaceable(storage, folder):
            if name in listed if listed is not None else _is_our_shard(storage, name, schema):
                continue
            foreign.append(name)
    if foreign:
        raise ConfigError(
            f"--out {storage.root}: {_some(foreign)} would be deleted or replaced, and is listed by no "
            "manifest of rvt-ray. Move away what is yours, or give another folder"
        )


def _is_our_shard(storage: Storage, name: str, schema: pa.Schema) -> bool:
    """Without a manifest, as a run leaves it that was killed while it replaced the shards: by name and
    columns."""
    if not is_shard_name(name):
        return False
    path = storage.local_path(name)
    try:
        source: Any = str(path) if path is not None else pa.BufferReader(storage.read(name))
        return set(pq.read_schema(source).names) == set(schema.names)
    except (OSError, pa.ArrowException):
        return False


def _hidden(name: str) -> bool:
    return name.startswith(".") or name == "lost+found"


def _some(names: Iterable[str]) -> str:
    names = sorted(names)
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
