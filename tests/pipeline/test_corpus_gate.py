"""Gate 5 over the corpus: rows move from samples to rejects, none is lost, none is changed otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from rvt_ray.config.settings import GateSettings
from rvt_ray.pipeline.corpus_gate import CorpusGate
from rvt_ray.pipeline.validate import validate_corpus
from rvt_ray.records import GateVerdict, Reject, Sample, Task, Verdict
from tests.corpora import make_clip, make_instance, make_sample, make_twin
from tests.pipeline.conftest import config_for, make_videos, run_inline


def staged(number: int, queries: list[str]) -> pa.Table:
    """A clip's staged rows: kept queries, and one refused before."""
    clip = make_clip(f"{number:016x}", 2, 8, 10)
    twin = make_twin(clip, [make_instance(1, "ball", [np.eye(8, 10, dtype=bool)] * 2)])
    gates = [GateVerdict(gate=g, verdict=Verdict.PASS, detail="") for g in ("program", "form")]
    rows = [
        make_sample(f"{number:02d}-{i:04d}", twin, Task.GROUNDING, [1], query=q, gates=gates)
        for i, q in enumerate(queries)
    ]
    kept = [row.model_dump(mode="json") | {"gate": None, "reason": None} for row in rows]
    refused = rows[0].model_dump(mode="json") | {
        "sample_id": f"{number:02d}-refused",
        "gate": "leak",
        "reason": "it names the target",
    }
    return pa.Table.from_pylist([*kept, refused], schema=Reject.SCHEMA)


TABLES = [
    staged(n, [f"Where would one find the thing of clip {n} that has number {i}?" for i in range(14)])
    for n in range(2)
]


def test_crowded_openings_become_rejects_and_nothing_is_lost() -> None:
    gate = CorpusGate(iter(TABLES), GateSettings(max_duplicate_share=1.0))
    samples = [row for t in TABLES for row in Sample.from_table(gate.samples(t))]
    rejects = [row for t in TABLES for row in Reject.from_table(gate.rejects(t))]
    assert len(samples) == 10  # 5 % of 200
    assert len(samples) + len(rejects) == sum(t.num_rows for t in TABLES)
    moved = [r for r in rejects if r.gate == "form"]
    assert len(moved) == 18
    assert all("begin with 'where would one'" in r.reason for r in moved)
    assert all([g.verdict for g in r.gates if g.gate == "form"] == [Verdict.FAIL] for r in moved)
    assert all([g.verdict for g in r.gates if g.gate == "program"] == [Verdict.PASS] for r in moved)
    assert [r.reason for r in rejects if r.gate == "leak"] == ["it names the target"] * 2


def test_the_order_of_clips_does_not_matter() -> None:
    settings = GateSettings(max_duplicate_share=1.0)
    one, other = CorpusGate(iter(TABLES), settings), CorpusGate(reversed(TABLES), settings)
    for table in TABLES:
        assert one.samples(table).equals(other.samples(table))
        assert one.rejects(table).equals(other.rejects(table))


def test_a_gate_that_is_off_moves_nothing() -> None:
    gate = CorpusGate(iter(TABLES), GateSettings(form=False))
    assert sum(gate.samples(t).num_rows for t in TABLES) == 28


def test_a_finalised_corpus_sheds_what_it_has_too_many_of_and_stays_sound(tmp_path: Path) -> None:
    config = config_for(make_videos(tmp_path / "videos", 2), ["generate.gates.form=true"])
    run_inline(config, tmp_path / "out")
    report = validate_corpus(tmp_path / "out")
    assert report.problems == []
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    # Two queries over and over; two repetitions may stay. The fakes refuse a candidate per twin themselves.
    assert (report.counts["samples"], report.counts["rejects"]) == (4, 8)
    assert manifest["funnel"]["refused_by_gate"]["form"] >= 4
    assert sum(manifest["funnel"]["refused_by_gate"].values()) == 8
    assert manifest["counts"]["candidates"] == 12
    assert manifest["funnel"]["twins_by_coverage"] == {"some": manifest["counts"]["twins"]}
    assert sum(manifest["funnel"]["tracks_by_status"].values()) > 0
    assert sum(cell["candidates"] for cell in manifest["funnel"]["left_after_gate"]) == 12
    assert sum(cell["faithful"] for cell in manifest["funnel"]["left_after_gate"]) == 4
