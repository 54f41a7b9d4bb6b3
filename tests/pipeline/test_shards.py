"""Shards: bounded, and the same bytes for the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.pipeline import shards
from rvt_ray.pipeline.shards import write_shards

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.large_string())])


def table(start: int, rows: int, size: int = 10) -> pa.Table:
    return pa.table(
        {"id": [f"{i:06d}" for i in range(start, start + rows)], "text": ["x" * size] * rows}, schema=SCHEMA
    )


def ids(paths: list[Path]) -> list[str]:
    return [i for path in paths for i in pq.read_table(path)["id"].to_pylist()]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 8), st.integers(100, 2000))
def test_no_row_is_lost_doubled_or_moved(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[int], rows: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("s")
    tables, start = [], 0
    for piece in pieces:
        tables.append(table(start, piece))
        start += piece
    found = write_shards(folder, SCHEMA, tables, rows, size)
    assert ids([s.path for s in found]) == [f"{i:06d}" for i in range(start)]
    assert [s.rows for s in found] == [pq.read_metadata(s.path).num_rows for s in found]
    assert all(s.rows <= rows for s in found)
    assert len(found) == 1 or all(s.rows for s in found)


def test_an_empty_table_has_one_readable_shard(tmp_path: Path) -> None:
    (shard,) = write_shards(tmp_path, SCHEMA, [], 10, 1000)
    assert pq.read_schema(shard.path).equals(SCHEMA)


def test_shards_and_row_groups_are_cut_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "_ROW_GROUP_BYTES", 3000)
    found = write_shards(tmp_path, SCHEMA, (table(i, 1, 1000) for i in range(10)), 1000, 6000)
    assert [s.rows for s in found] == [5, 5]
    assert pq.read_metadata(found[0].path).num_row_groups == 3


def test_bytes_do_not_depend_on_how_the_rows_were_chunked(tmp_path: Path) -> None:
    def digests(name: str, chunk: int) -> list[str]:
        (tmp_path / name).mkdir()
        whole = pa.concat_tables([table(i, chunk, 50) for i in range(0, 60, chunk)])
        one_by_one = [whole.slice(i, 1) for i in range(60)]
        return [s.sha256 for s in write_shards(tmp_path / name, SCHEMA, one_by_one, 25, 10**6)]

    assert digests("a", 1) == digests("b", 20)


def test_shards_have_page_index_and_zstd(tmp_path: Path) -> None:
    (shard,) = write_shards(tmp_path, SCHEMA, [table(0, 5)], 10, 1000)
    column = pq.read_metadata(shard.path).row_group(0).column(0)
    assert column.compression == "ZSTD"
    assert column.has_offset_index
    assert column.has_column_index
