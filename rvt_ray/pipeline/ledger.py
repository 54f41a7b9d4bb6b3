"""The ledger of a stage: its staged output. What exists is done; what does not is to do.

    <out>/_staging/<stage>/<fingerprint>/<2 hex>/<key>.ok.parquet       the rows that this key gave
    <out>/_staging/<stage>/<fingerprint>/<2 hex>/<key>.failed.parquet   one row of the failures table

A file appears as a whole or not at all, holds everything that one clip (or video) gave, and is written by the
worker that made it, at once. What must not stand in the corpus (seconds, attempts, hosts) travels in the
Parquet footer's metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import PREDICTION_SCHEMA, ClipRecord, DigitalTwin, Failure, Reject, Stage

STAGING = "_staging"
_META = b"rvt"


class Done(StrEnum):
    """How a key ended."""

    OK = "ok"
    FAILED = "failed"


# One staged row of `generate` is a reject, or a sample whose `gate` is null: one file per clip, one schema.
STAGED_SCHEMA: dict[Stage, pa.Schema] = {
    Stage.INDEX: ClipRecord.SCHEMA,
    Stage.PERCEIVE: DigitalTwin.SCHEMA,
    Stage.CAPTION: DigitalTwin.SCHEMA,
    Stage.GENERATE: Reject.SCHEMA,
    Stage.SOLVE: PREDICTION_SCHEMA,
}


@dataclass(frozen=True)
class Ledger:
    """The staged output of one stage under one fingerprint."""

    storage: Storage
    stage: Stage
    fingerprint: str

    @property
    def folder(self) -> str:
        """The stage's folder, relative to the output root."""
        return f"{STAGING}/{self.stage.value}/{self.fingerprint}"

    def name(self, key: str, done: Done) -> str:
        """The file of a key, relative to the output root."""
        return f"{self.folder}/{shelf(key)}/{key}.{done.value}.parquet"

    def scan(self) -> dict[str, Done]:
        """Every key that ended. Success wins where a crash between write and delete left both."""
        found: dict[str, Done] = {}
        for name in self.storage.names(self.folder):
            key, _, ending = name.rpartition("/")[2].partition(".")
            if ending == "ok.parquet":
                found[key] = Done.OK
            elif ending == "failed.parquet":
                found.setdefault(key, Done.FAILED)
        return found

    def state(self, key: str) -> Done | None:
        """How this key ended; None: it did not."""
        for done in (Done.OK, Done.FAILED):
            if self.storage.exists(self.name(key, done)):
                return done
        return None

    def write_ok(self, key: str, table: pa.Table, meta: dict[str, Any]) -> None:
        """Stage a result."""
        self.storage.write(self.name(key, Done.OK), _encode(table, meta))
        self.storage.delete(self.name(key, Done.FAILED))

    def write_failed(self, key: str, failure: Failure, meta: dict[str, Any]) -> None:
        """Stage a failure."""
        self.storage.write(self.name(key, Done.FAILED), _encode(Failure.to_table([failure]), meta))

    def read(self, key: str, columns: list[str] | None = None) -> pa.Table:
        """The rows of a successful key, under the stage's schema; only some columns where they are named.

        Raises:
            FileNotFoundError: the key has no success.
        """
        data = self.storage.read(self.name(key, Done.OK))
        return pq.read_table(pa.BufferReader(data), columns=columns, schema=STAGED_SCHEMA[self.stage])

    def read_failure(self, key: str) -> Failure:
        """The failure of a key.

        Raises:
            FileNotFoundError: the key has no failure.
        """
        data = self.storage.read(self.name(key, Done.FAILED))
        return Failure.from_table(pq.read_table(pa.BufferReader(data), schema=Failure.SCHEMA))[0]

    def read_meta(self, key: str, done: Done = Done.OK) -> dict[str, Any]:
        """The metadata of a key (only the footer is parsed)."""
        name = self.name(key, done)
        path = self.storage.local_path(name)
        source: Any = str(path) if path is not None else pa.BufferReader(self.storage.read(name))
        return _meta_of(pq.read_schema(source))

    def forget_failures(self, keys: Iterable[str]) -> int:
        """Delete the failures among these keys, so that they are tried again. Returns how many there were."""
        count = 0
        for key in keys:
            if self.storage.exists(self.name(key, Done.FAILED)):
                self.storage.delete(self.name(key, Done.FAILED))
                count += 1
        return count


def shelf(key: str) -> str:
    """The 2-hex-digit folder of a key: no folder grows beyond what a file system likes."""
    return hashlib.sha256(key.encode()).hexdigest()[:2]


def _encode(table: pa.Table, meta: dict[str, Any]) -> bytes:
    metadata = {**(table.schema.metadata or {}), _META: json.dumps(meta, sort_keys=True).encode()}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
    return bytes(sink.getvalue())


def _meta_of(schema: pa.Schema) -> dict[str, Any]:
    text = (schema.metadata or {}).get(_META, b"{}")
    meta: dict[str, Any] = json.loads(text)
    return meta
