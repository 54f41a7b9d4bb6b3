"""The failures table: one row is one video or clip that did not make it, and why."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from rvt_ray.records.base import Record, schema
from rvt_ray.records.enums import FailureCode, Stage


class Failure(Record):
    """A video (stage `index`, `clip_id` null) or clip that failed.

    `attempt`: how many starts this verdict took: 1, or for `worker_died` all that were allowed. Not how
    often a run was interrupted: that is no property of the clip, and shards do not depend on it.
    """

    TABLE: ClassVar[str] = "failures"

    clip_id: str | None
    video_id: str | None
    source: str
    uri: str
    stage: Stage
    code: FailureCode
    message: str
    attempt: int

    SCHEMA: ClassVar[pa.Schema] = schema(
        ("clip_id", pa.string()),
        ("video_id", pa.string()),
        ("source", pa.string()),
        ("uri", pa.string()),
        ("stage", pa.string()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("attempt", pa.int32()),
    )
