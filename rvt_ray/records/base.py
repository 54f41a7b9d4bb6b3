"""What all records share: strictness, and rows that become Arrow tables under one explicit schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = "1"


class Part(BaseModel):
    """A piece of a record (a struct column)."""

    model_config = ConfigDict(extra="forbid", validate_assignment=False, ser_json_inf_nan="constants")


class Record(Part):
    """One row of one table.

    Subclasses set `TABLE` (the folder's name) and `SCHEMA` (its Arrow schema, the same columns as the
    model's fields plus `schema_version`).
    """

    TABLE: ClassVar[str]
    SCHEMA: ClassVar[pa.Schema]
    ADDED: ClassVar[frozenset[str]] = frozenset()
    """Columns that corpora of earlier versions lack; read as the field's default."""

    def to_row(self) -> dict[str, Any]:
        """The record as a plain dict that fits `SCHEMA`."""
        row = self.model_dump(mode="python")
        row["schema_version"] = SCHEMA_VERSION
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Parse a row that came out of Arrow.

        Raises:
            pydantic.ValidationError: the row does not fit the model.
        """
        return cls.model_validate({k: v for k, v in row.items() if k != "schema_version"})

    @classmethod
    def to_table(cls, records: Iterable[Self]) -> pa.Table:
        """Rows of this table under its explicit schema; an empty iterable gives an empty table."""
        return pa.Table.from_pylist([r.to_row() for r in records], schema=cls.SCHEMA)

    @classmethod
    def from_table(cls, table: pa.Table) -> list[Self]:
        """Parse every row of a table."""
        return [cls.from_row(row) for row in table.to_pylist()]


def schema(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    """An Arrow schema of the given columns, with `schema_version` added first."""
    return pa.schema([pa.field("schema_version", pa.string()), *(pa.field(n, t) for n, t in fields)])
