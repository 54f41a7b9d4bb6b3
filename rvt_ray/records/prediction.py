"""What a solver says about a corpus's questions: the rows that the evaluation reads (docs/evaluation.md)."""

from __future__ import annotations

import pyarrow as pa

_BOX = pa.struct([(name, pa.float64()) for name in ("x", "y", "w", "h")])
PREDICTION_SCHEMA = pa.schema(
    [
        ("sample_id", pa.string()),
        ("task", pa.string()),
        ("masks", pa.list_(pa.large_string())),
        ("boxes", pa.list_(pa.list_(_BOX))),
        ("answer", pa.string()),
        ("target_ids", pa.list_(pa.int32())),
        ("flagged", pa.bool_()),
        ("trace", pa.large_string()),
    ]
)
"""A row of predictions as `evaluation` reads it, with what the agent can say of it beside."""
