from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rvt_ray.errors import ClipError
from rvt_ray.records import (
    TABLES,
    ClipRecord,
    Coverage,
    DigitalTwin,
    Failure,
    FailureCode,
    Record,
    Reject,
    Sample,
    Stage,
    clip_id,
)
from tests.corpora import make_clip, make_twin

TEXT = st.text(max_size=20)


@pytest.mark.parametrize("record", TABLES.values(), ids=list(TABLES))
def test_the_schema_has_exactly_the_columns_of_the_model(record: type[Record]) -> None:
    assert record.SCHEMA.names == ["schema_version", *record.model_fields]


def nested(kind: pa.DataType) -> list[pa.DataType]:
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return [kind, *(deeper for child in inner for deeper in nested(child))]


@pytest.mark.parametrize("record", TABLES.values(), ids=list(TABLES))
def test_no_column_is_null_typed_or_an_empty_struct(record: type[Record]) -> None:
    for field in record.SCHEMA:
        for kind in nested(field.type):
            assert not pa.types.is_null(kind)
            assert not (pa.types.is_struct(kind) and kind.num_fields == 0)


@pytest.mark.parametrize("record", TABLES.values(), ids=list(TABLES))
def test_an_empty_table_keeps_its_schema_through_parquet(record: type[Record], tmp_path: Path) -> None:
    pq.write_table(record.to_table([]), tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").schema.equals(record.SCHEMA)


FAILURES = st.builds(
    Failure,
    clip_id=st.none() | TEXT,
    video_id=st.none() | TEXT,
    source=TEXT,
    uri=TEXT,
    stage=st.sampled_from(Stage),
    code=st.sampled_from(FailureCode),
    message=TEXT,
    attempt=st.integers(1, 9),
)


@given(st.lists(FAILURES, max_size=5))
def test_records_round_trip_through_arrow(failures: list[Failure]) -> None:
    assert Failure.from_table(Failure.to_table(failures)) == failures


def test_a_row_with_an_unknown_column_is_refused() -> None:
    with pytest.raises(ValidationError, match="colour"):
        Failure.from_row({"colour": 1})


def test_a_reject_is_a_sample_with_gate_and_reason() -> None:
    assert set(Reject.model_fields) - set(Sample.model_fields) == {"gate", "reason"}


def test_clip_ids_sort_in_frame_order() -> None:
    ids = [clip_id("a", start, 10) for start in (0, 9, 10, 200, 99999)]
    assert ids == sorted(ids)
    assert ClipRecord.TABLE == "clips"


def test_a_clip_error_keeps_its_code_across_process_borders() -> None:
    error = pickle.loads(pickle.dumps(ClipError(FailureCode.CORRUPT, "x.mp4: no frame", Stage.INDEX)))
    assert (error.code, error.message, error.stage) == (FailureCode.CORRUPT, "x.mp4: no frame", Stage.INDEX)


def test_a_corpus_made_before_a_column_was_added_can_still_be_read(tmp_path: Path) -> None:
    clip = make_clip("ab", 4, 8, 8)
    table = DigitalTwin.to_table([make_twin(clip, [])])
    added = ["depth_alignment", "frame_measures", "flags", "weights"]
    pq.write_table(table.drop_columns([*added, "coverage"]), tmp_path / "old.parquet")
    (twin,) = DigitalTwin.from_table(pq.read_table(tmp_path / "old.parquet", schema=DigitalTwin.SCHEMA))
    assert twin.clip_id == clip.clip_id
    assert [getattr(twin, name) for name in added] == [[], [], [], []]
    assert twin.coverage is Coverage.SOME, "nobody claimed that it holds everything"
