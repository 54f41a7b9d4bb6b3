"""Rows in order -> sized, sorted, sealed Parquet shards. The same rows give the same bytes, always."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_ROW_GROUP_BYTES = 32 * 1024**2
_ROW_GROUP_ROWS = 4096
_SHARD = re.compile(r"[a-z]+/part-\d{5,}-of-\d{5,}\.parquet")


@dataclass(frozen=True)
class Shard:
    """One finished file: where it waits, and what the manifest says of it."""

    path: Path
    rows: int
    bytes: int
    sha256: str


class ShardWriter:
    """Writes one table's shards into a scratch folder, holding at most one row group in memory.

    A row group is cut by bytes (mask strings make rows of very different size), a shard by bytes and rows;
    both before compression, so that the cuts depend on the rows alone.

    Args:
        folder: scratch folder, exists.
        schema: the table's explicit schema.
        rows_per_shard, bytes_per_shard: bounds; a single piece that is larger makes its own shard.
    """

    def __init__(self, folder: Path, schema: pa.Schema, rows_per_shard: int, bytes_per_shard: int) -> None:
        self._folder = folder
        self._schema = schema
        self._rows_per_shard = rows_per_shard
        self._bytes_per_shard = bytes_per_shard
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._shard_rows = 0
        self._shard_bytes = 0
        self._writer: Any = None
        self._paths: list[Path] = []
        self._rows: list[int] = []

    def add(self, table: pa.Table) -> None:
        """The next rows, in the table's order."""
        if table.num_rows == 0:
            return
        for start in range(0, table.num_rows, self._rows_per_shard):
            self._add(table.slice(start, self._rows_per_shard))

    def _add(self, table: pa.Table) -> None:
        size = table.nbytes
        full_rows = self._shard_rows + table.num_rows > self._rows_per_shard
        full_bytes = self._shard_bytes + size > self._bytes_per_shard
        if self._shard_rows and (full_rows or full_bytes):
            self._close_shard()
        if self._pending and (
            self._pending_bytes + size > _ROW_GROUP_BYTES
            or self._pending_rows + table.num_rows > _ROW_GROUP_ROWS
        ):
            self._flush()
        self._pending.append(table)
        self._pending_rows += table.num_rows
        self._pending_bytes += size
        self._shard_rows += table.num_rows
        self._shard_bytes += size

    def close(self) -> list[Shard]:
        """Finish. A table without rows still has one (empty) shard, so that its schema can be read."""
        if self._pending or self._writer is not None or not self._paths:
            self._close_shard()
        return [
            Shard(path, rows, path.stat().st_size, sha256_of(path))
            for path, rows in zip(self._paths, self._rows, strict=True)
        ]

    def _flush(self) -> None:
        if self._writer is None:
            path = self._folder / f"{len(self._paths):05d}.parquet"
            self._paths.append(path)
            self._writer = pq.ParquetWriter(
                path, self._schema, compression="zstd", write_page_index=True, write_statistics=True
            )
        if self._pending:
            # `combine_chunks` and not chunk by chunk: pages must not depend on how the rows arrived.
            table = pa.concat_tables(self._pending).combine_chunks()
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0

    def _close_shard(self) -> None:
        self._flush()
        self._writer.close()
        self._writer = None
        self._rows.append(self._shard_rows)
        self._shard_rows = self._shard_bytes = 0


def write_shards(
    folder: Path, schema: pa.Schema, tables: Iterable[pa.Table], rows_per_shard: int, bytes_per_shard: int
) -> list[Shard]:
    """All of a table's rows, streamed, into shards."""
    writer = ShardWriter(folder, schema, rows_per_shard, bytes_per_shard)
    for table in tables:
        writer.add(table)
    return writer.close()


def shard_name(table: str, i: int, of: int) -> str:
    """Final name of a table's i-th shard, relative to the output root."""
    return f"{table}/part-{i:05d}-of-{of:05d}.parquet"


def is_shard_name(name: str) -> bool:
    """Whether a name, relative to the output root, is one that `shard_name` gives."""
    return _SHARD.fullmatch(name) is not None


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
