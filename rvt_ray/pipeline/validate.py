"""Is a finished corpus what it claims to be? Everything is checked from the shards alone, clip by clip, in
bounded memory; no Ray, no videos, no staging."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from rvt_ray.config.settings import FactSettings
from rvt_ray.corpus import Corpus, CorpusError, NoCorpusError
from rvt_ray.pipeline.ledger import STAGING
from rvt_ray.pipeline.manifest import MANIFEST
from rvt_ray.pipeline.shards import sha256_of
from rvt_ray.pipeline.validate_rows import check_sample, check_twin
from rvt_ray.records import TABLES, ClipRecord, DigitalTwin, Record, Stage

KEYS = {"clips": "clip_id", "twins": "clip_id", "samples": "sample_id", "rejects": "sample_id"}


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. `where`: file, or table and id."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass
class Report:
    """All problems found, and how much was looked at."""

    problems: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, where: str, what: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(where, what))

    @property
    def checked(self) -> str:
        """How much was looked at, in words."""
        return ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items())) or "nothing"


def validate_corpus(out: str | Path) -> Report:
    """Check files against the manifest, tables against their schemas, ids, the conservation law, every
    twin and every sample; never raises for a bad corpus.

    Args:
        out: folder of the corpus.

    Raises:
        NoCorpusError: no such folder, or nothing in it is of a corpus.
    """
    report = Report()
    root = Path(out)
    try:
        manifest = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        begun = (root / STAGING).is_dir() or any(any((root / n).glob("part-*.parquet")) for n in TABLES)
        if not begun:
            raise NoCorpusError(root) from None
        report.add(str(root / MANIFEST), "is missing: the run is not complete (`rvt-ray finalise`)")
        return report
    except (OSError, ValueError) as error:
        report.add(str(root / MANIFEST), f"cannot be read: {error}")
        return report
    _check_files(root, manifest, report)
    try:
        corpus = Corpus(root)
        _check_ids(corpus, report)
        _check_conservation(corpus, manifest, report)
        _check_rows(corpus, manifest, report)
    except (CorpusError, OSError, ValueError) as error:
        # What is above tells which file it is; without readable tables nothing below can be said.
        report.add(str(root), f"cannot be read to the end: {error}")
    return report


def _check_files(root: Path, manifest: dict[str, Any], report: Report) -> None:
    tables = manifest.get("tables", {})
    for name, record in TABLES.items():
        listed = {entry["file"]: entry for entry in tables.get(name, [])}
        if not listed:
            report.add(MANIFEST, f"lists no shard of table {name}")
        there = {str(p.relative_to(root)) for p in (root / name).glob("part-*.parquet")}
        for extra in sorted(there - set(listed)):
            report.add(extra, "is not in the manifest")
        for file, entry in sorted(listed.items()):
            path = root / file
            if not path.exists():
                report.add(file, "is in the manifest, but missing")
                continue
            report.counts["shards"] += 1
            if sha256_of(path) != entry["sha256"]:
                report.add(file, "sha256 is not the manifest's: the file was changed after the run")
            try:
                parquet = pq.ParquetFile(path)
            except (OSError, pa.ArrowException) as error:
                report.add(file, f"is not Parquet: {error}")
                continue
            if problem := _schema_problem(parquet.schema_arrow, record):
                report.add(file, f"{problem} (docs/records.md)")
            if parquet.metadata.num_rows != entry["rows"]:
                report.add(file, f"has {parquet.metadata.num_rows} rows, the manifest says {entry['rows']}")


def _schema_problem(found: pa.Schema, record: type[Record]) -> str | None:
    lacking = [n for n in record.SCHEMA.names if n in record.ADDED and n not in found.names]
    earlier = pa.schema([field for field in record.SCHEMA if field.name not in lacking])
    if not found.remove_metadata().equals(earlier):
        return f"schema is not that of table {record.TABLE}"
    return f"schema is an earlier one, without {', '.join(lacking)}" if lacking else None


def _check_ids(corpus: Corpus, report: Report) -> None:
    clips = {row["clip_id"] for row in corpus.tables["clips"].scan(["clip_id"])}
    for name, key in KEYS.items():
        counts = Counter(row[key] for row in corpus.tables[name].scan([key]))
        if name == "rejects":
            continue  # the same refused wording may be tried twice
        for value, count in counts.items():
            if count > 1:
                report.add(f"{name} {value}", f"{key} occurs {count} times")
    twins = {row["clip_id"] for row in corpus.tables["twins"].scan(["clip_id"])}
    for clip_id in sorted(twins - clips):
        report.add(f"twins {clip_id}", "has no clip")
    for name in ("samples", "rejects"):
        for clip_id in sorted({row["clip_id"] for row in corpus.tables[name].scan(["clip_id"])} - twins):
            report.add(f"{name} of {clip_id}", "have no twin")
    failed = {
        row["clip_id"]
        for row in corpus.tables["failures"].scan(["clip_id", "stage"])
        if row["stage"] in (Stage.PERCEIVE, Stage.CAPTION)
    }
    for clip_id in sorted(failed & twins):
        report.add(f"failures {clip_id}", "failed in perceive or caption and yet has a twin")
    for clip_id in sorted(clips - twins - failed):
        report.add(f"clips {clip_id}", "has neither a twin nor a failure")


def _check_conservation(corpus: Corpus, manifest: dict[str, Any], report: Report) -> None:
    counts = manifest.get("counts", {})
    rows = {name: len(table) for name, table in corpus.tables.items()}
    failed = Counter(row["stage"] for row in corpus.tables["failures"].scan(["stage"]))
    videos = {row["video_id"] for row in corpus.tables["clips"].scan(["video_id"])}
    laws = [
        (
            "videos = indexed + duplicates + failures(index)",
            counts.get("videos"),
            len(videos) + len(manifest.get("duplicates", [])) + failed[Stage.INDEX],
        ),
        (
            "clips = twins + failures(perceive, caption)",
            rows["clips"],
            rows["twins"] + failed[Stage.PERCEIVE] + failed[Stage.CAPTION],
        ),
        ("candidates = samples + rejects", counts.get("candidates"), rows["samples"] + rows["rejects"]),
    ]
    if Stage.GENERATE in manifest.get("stages", []):
        asked = counts.get("asked")
        laws.append(
            ("twins = asked + failures(generate)", rows["twins"], (asked or 0) + failed[Stage.GENERATE])
        )
    for law, left, right in laws:
        if left != right:
            report.add("conservation", f"{law}: {left} != {right}")
    for name, count in rows.items():
        if counts.get(name) != count:
            report.add(MANIFEST, f"counts.{name} is {counts.get(name)}, the table has {count} rows")


def _check_rows(corpus: Corpus, manifest: dict[str, Any], report: Report) -> None:
    facts = _fact_settings(manifest, report)
    for clip in _records(corpus, "clips", report, corpus.clips):
        assert isinstance(clip, ClipRecord)
        report.counts["clips"] += 1
        _check_clip(clip, report)
        try:
            twin = corpus.twin(clip.clip_id)
            samples = [*corpus.samples(clip.clip_id)]
            rejects = [*corpus.rejects(clip.clip_id)]
        except ValidationError as error:
            report.add(f"rows of clip {clip.clip_id}", f"do not fit their models: {_first(error)}")
            continue
        report.counts["rejects"] += len(rejects)
        if twin is None:
            continue  # _check_ids has told
        report.counts["twins"] += 1
        for what in check_twin(twin, clip):
            report.add(f"twins {clip.clip_id}", what)
        execute = _executor(twin, facts)
        for sample in samples:
            report.counts["samples"] += 1
            for what in check_sample(sample, clip, twin, execute):
                report.add(f"samples {sample.sample_id}", what)


def _records(corpus: Corpus, name: str, report: Report, open_records: Callable[[], Any]) -> Any:
    try:
        yield from open_records()
    except ValidationError as error:
        report.add(f"table {name}", f"a row does not fit the model: {_first(error)}")


def _check_clip(clip: ClipRecord, report: Report) -> None:
    where = f"clips {clip.clip_id}"
    if len(clip.pts_s) != clip.num_frames:
        report.add(where, f"{clip.num_frames} frames, but {len(clip.pts_s)} times")
    if any(b <= a for a, b in zip(clip.pts_s, clip.pts_s[1:], strict=False)):
        report.add(where, "pts_s does not increase strictly")
    if clip.width < 1 or clip.height < 1:
        report.add(where, f"has no size: {clip.width}x{clip.height}")


def _fact_settings(manifest: dict[str, Any], report: Report) -> FactSettings | None:
    try:
        return FactSettings.model_validate(manifest["config"]["generate"]["facts"])
    except (KeyError, TypeError, ValidationError) as error:
        report.add(
            MANIFEST, f"config.generate.facts cannot be read, programs are not executed again: {error}"
        )
        return None


def _executor(
    twin: DigitalTwin, settings: FactSettings | None
) -> Callable[[str], tuple[set[int], set[int]]] | None:
    """Program (JSON) -> certain and possible target ids on this twin; facts are read off once per twin."""
    if settings is None:
        return None
    from rvt_ray.reasoning.execute import execute
    from rvt_ray.reasoning.program import Program
    from rvt_ray.twin.facts import Facts

    held: list[Facts] = []

    def run(text: str) -> tuple[set[int], set[int]]:
        program = Program.from_json(text)
        if not held:
            held.append(Facts(twin, settings))
        execution = execute(program, held[0])
        return set(execution.certain), set(execution.possible)

    return run


def _first(error: ValidationError) -> str:
    item = error.errors()[0]
    return f"{'.'.join(str(p) for p in item['loc'])}: {item['msg']}"
