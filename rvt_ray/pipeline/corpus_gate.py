"""Gate 5 over the whole corpus: samples that a corpus has too many of become rejects when it is finalised."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rvt_ray.config.settings import GateSettings
from rvt_ray.queries.corpus_form import corpus_excess
from rvt_ray.records import Reject, Sample, Verdict

logger = logging.getLogger(__name__)

GATE = "form"


class CorpusGate:
    """Splits a clip's staged rows into samples and rejects. Which ones move follows from all queries of the
    corpus, never from the order in which they are read.

    Args:
        tables: `COLUMNS` of the staged rows of every clip, read one by one; only ids and queries are held.
        settings: switched off with gate `form`.
    """

    COLUMNS: ClassVar[list[str]] = ["sample_id", "query", "gate"]

    def __init__(self, tables: Iterable[pa.Table], settings: GateSettings) -> None:
        self._excess: dict[str, str] = {}
        if not settings.form:
            return
        queries: list[tuple[str, str]] = []
        for table in tables:
            kept = table.filter(pc.is_null(table["gate"]))
            queries += zip(kept["sample_id"].to_pylist(), kept["query"].to_pylist(), strict=True)
        self._excess = corpus_excess(
            queries, settings.opening_ngram, settings.max_opening_share, settings.max_duplicate_share
        )
        if self._excess:
            logger.info(
                "gate form over the corpus: %d of %d samples become rejects", len(self._excess), len(queries)
            )

    def samples(self, table: pa.Table) -> pa.Table:
        """The rows of a clip that stay samples."""
        kept = pc.and_(pc.is_null(table["gate"]), pc.invert(self._moved(table)))
        return table.filter(kept).select(Sample.SCHEMA.names).cast(Sample.SCHEMA)

    def rejects(self, table: pa.Table) -> pa.Table:
        """The rows of a clip that were refused, and after them those that are now."""
        refused = table.filter(pc.is_valid(table["gate"])).cast(Reject.SCHEMA)
        if not self._excess:
            return refused
        moved = table.filter(pc.and_(pc.is_null(table["gate"]), self._moved(table)))
        if not moved.num_rows:
            return refused
        rows = [self._refused(row) for row in moved.to_pylist()]
        return pa.concat_tables([refused, pa.Table.from_pylist(rows, schema=Reject.SCHEMA)])

    def _moved(self, table: pa.Table) -> pa.Array:
        return pa.array([i in self._excess for i in table["sample_id"].to_pylist()], pa.bool_())

    def _refused(self, row: dict[str, object]) -> dict[str, object]:
        reason = f"over the corpus: {self._excess[str(row['sample_id'])]}"
        gates = row["gates"]
        assert isinstance(gates, list)
        verdict = {"gate": GATE, "verdict": str(Verdict.FAIL), "detail": reason}
        others = [g for g in gates if g["gate"] != GATE]
        place = next((k for k, g in enumerate(gates) if g["gate"] == GATE), len(others))
        return {**row, "gates": [*others[:place], verdict, *others[place:]], "gate": GATE, "reason": reason}
