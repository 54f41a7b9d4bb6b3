"""Staging -> the corpus: sorted, sized shards with a manifest that is written last.

Byte-identical by construction: shards hold only what the stage files' rows hold, in the order of ids, cut
by the rows' own size. What depends on time, host or number of starts is in the manifest or nowhere.

Order of steps, so that "manifest present" always means "all shards are there and belong together": new
shards into a scratch folder, remove the old manifest, swap the shards, write the new manifest. A crash in
between leaves a root without manifest, and the same command finishes it.
"""

from __future__ import annotations

import logging
import shutil
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rvt_ray.config import Config
from rvt_ray.errors import ConfigError
from rvt_ray.pipeline.catalogue import Catalogue, Clip, Indexed, Ledgers, read_index
from rvt_ray.pipeline.corpus_gate import CorpusGate
from rvt_ray.pipeline.ledger import STAGING, Done
from rvt_ray.pipeline.manifest import (
    MANIFEST,
    Conservation,
    ConservationError,
    Funnel,
    ModelIds,
    build_manifest,
    write_manifest,
)
from rvt_ray.pipeline.ownership import check_corpus_root, replaceable
from rvt_ray.pipeline.shards import Shard, shard_name, write_shards
from rvt_ray.pipeline.speed import Speed
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import BUILD_STAGES, TABLES, Failure, Stage

logger = logging.getLogger(__name__)

_FAILURES_PER_TABLE = 1000


@dataclass
class _Staged:
    """Everything that goes into a corpus, by key; rows are read when their turn comes."""

    ledgers: Ledgers
    catalogue: Catalogue
    indexed: Indexed
    clips: list[Clip]
    twins: list[Clip]
    asked: list[Clip]
    perceive_failed: list[Clip]
    caption_failed: list[Clip]
    generate_failed: list[Clip]
    stages: list[Stage]


@dataclass
class _Seen:
    """What is learned while the rows stream by."""

    funnel: Funnel = field(default_factory=Funnel)
    models: ModelIds = field(default_factory=ModelIds)
    sample_ids: array[int] = field(default_factory=lambda: array("Q"))


def finalise_corpus(storage: Storage, config: Config, catalogue: Catalogue) -> dict[str, Any]:
    """Write the corpus that the catalogue and the ledgers make. Returns the manifest.

    Raises:
        ConfigError: a stage is unfinished, with the command that finishes it.
        ConservationError: rows were lost or doubled: a bug, never the user's fault.
    """
    staged = _gather(storage, config, catalogue)
    seen = _Seen()
    scratch = storage.scratch(f"{STAGING}/finalise")
    try:
        shards = _write(staged, seen, scratch, config)
        conservation = _conservation(staged, shards)
        conservation.check()
        _check_unique(seen.sample_ids)
        _swap(storage, shards)
        manifest = build_manifest(
            config=config,
            stages=staged.stages,
            conservation=conservation,
            funnel=seen.funnel,
            models=seen.models,
            duplicates=staged.indexed.duplicates,
            shards=shards,
            speed=_speed(staged),
        )
        write_manifest(storage, manifest)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    logger.info(
        "finalised %s: %d clips, %d twins, %d samples, %d rejects, %d failures",
        storage.root,
        *(sum(s.rows for s in shards[name]) for name in ("clips", "twins", "samples", "rejects", "failures")),
    )
    if Stage.GENERATE in staged.stages and staged.asked and (why := seen.funnel.why_nothing()):
        logger.warning("no sample: %s", why)
    return manifest


def _gather(storage: Storage, config: Config, catalogue: Catalogue) -> _Staged:
    ledgers = Ledgers.of(storage, config)
    indexed = read_index(catalogue, ledgers.index)
    perceived, generated = ledgers.perceive.scan(), ledgers.generate.scan()
    _refuse_unfinished("videos are not indexed", len(indexed.missing), "perceive")
    pending = sum(clip.perceive not in perceived for clip in indexed.clips)
    _refuse_unfinished("clips have no twin", pending, "perceive")
    twins = [c for c in indexed.clips if perceived[c.perceive] is Done.OK]
    stages = list(BUILD_STAGES)
    caption_failed: list[Clip] = []
    if ledgers.caption is None:
        stages.remove(Stage.CAPTION)
    else:
        captioned = ledgers.caption.scan()
        pending = sum(clip.perceive not in captioned for clip in twins)
        _refuse_unfinished("twins have no captions", pending, "perceive")
        caption_failed = [c for c in twins if captioned[c.perceive] is Done.FAILED]
        twins = [c for c in twins if captioned[c.perceive] is Done.OK]
    pending = sum(clip.generate not in generated for clip in twins)
    if twins and pending == len(twins):
        stages.remove(Stage.GENERATE)  # a corpus of twins only
        logger.warning("no twin was asked about: the corpus has twins but no samples (`rvt-ray generate`)")
    else:
        _refuse_unfinished("twins were not asked about", pending, "generate")
    return _Staged(
        ledgers,
        catalogue,
        indexed,
        clips=indexed.clips,
        twins=twins,
        asked=[c for c in twins if generated.get(c.generate) is Done.OK],
        perceive_failed=[c for c in indexed.clips if perceived[c.perceive] is Done.FAILED],
        caption_failed=caption_failed,
        generate_failed=[c for c in twins if generated.get(c.generate) is Done.FAILED],
        stages=stages,
    )


def _refuse_unfinished(what: str, count: int, command: str) -> None:
    if count:
        raise ConfigError(
            f"cannot finalise: {count} {what} under these settings. "
            f"Run `rvt-ray {command}` (or `build`) with the same --config and --set first"
        )


def _write(staged: _Staged, seen: _Seen, scratch: Path, config: Config) -> dict[str, list[Shard]]:
    read = staged.ledgers.generate.read
    gate = CorpusGate(
        (read(clip.generate, CorpusGate.COLUMNS) for clip in staged.asked), config.generate.gates
    )
    streams: dict[str, Iterator[pa.Table]] = {
        "clips": _clips(staged),
        "twins": _twins(staged, seen),
        "samples": _samples(staged, seen, gate),
        "rejects": _rejects(staged, seen, gate),
        "failures": _failures(staged),
    }
    shards = {}
    for name, tables in streams.items():
        folder = scratch / name
        folder.mkdir()
        shards[name] = write_shards(
            folder, TABLES[name].SCHEMA, tables, config.run.rows_per_shard, int(config.run.shard_mb * 1024**2)
        )
    return shards


def _clips(staged: _Staged) -> Iterator[pa.Table]:
    # A clip id starts with its video's id: video after video is in the order of clip ids.
    for video_id in sorted(staged.indexed.kept):
        yield staged.ledgers.index.read(staged.indexed.kept[video_id].key).sort_by("clip_id")


def _twins(staged: _Staged, seen: _Seen) -> Iterator[pa.Table]:
    for clip in staged.twins:
        table = staged.ledgers.twins.read(clip.perceive)
        seen.models.see_twin(table)
        seen.funnel.see_twins(table)
        yield table


def _samples(staged: _Staged, seen: _Seen, gate: CorpusGate) -> Iterator[pa.Table]:
    for clip in staged.asked:
        kept = gate.samples(staged.ledgers.generate.read(clip.generate))
        seen.funnel.see_samples(kept)
        seen.models.see_samples(kept)
        for sample_id in kept["sample_id"].to_pylist():
            seen.sample_ids.append(int.from_bytes(blake2b(sample_id.encode(), digest_size=8).digest()))
        yield kept


def _rejects(staged: _Staged, seen: _Seen, gate: CorpusGate) -> Iterator[pa.Table]:
    for clip in staged.asked:
        refused = gate.rejects(staged.ledgers.generate.read(clip.generate))
        seen.funnel.see_rejects(refused)
        yield refused


def _failures(staged: _Staged) -> Iterator[pa.Table]:
    def read(ledger: Any, keys: list[str]) -> Iterator[Failure]:
        for key in keys:
            yield ledger.read_failure(key)

    def by_place(failure: Failure) -> tuple[str, str, str]:
        return failure.source, failure.uri, failure.message

    ledgers = staged.ledgers
    of_videos = [*staged.catalogue.failures, *read(ledgers.index, [v.key for v in staged.indexed.failed])]
    batch: list[Failure] = []
    for stream in (
        iter(sorted(of_videos, key=by_place)),
        read(ledgers.perceive, [c.perceive for c in staged.perceive_failed]),
        read(ledgers.caption, [c.perceive for c in staged.caption_failed]),
        read(ledgers.generate, [c.generate for c in staged.generate_failed]),
    ):
        for failure in stream:
            batch.append(failure)
            if len(batch) == _FAILURES_PER_TABLE:
                yield Failure.to_table(batch)
                batch = []
    if batch:
        yield Failure.to_table(batch)


def _conservation(staged: _Staged, shards: dict[str, list[Shard]]) -> Conservation:
    rows = {name: sum(shard.rows for shard in found) for name, found in shards.items()}
    candidates = 0
    for clip in staged.asked:
        counts = staged.ledgers.generate.read_meta(clip.generate)["counts"]
        candidates += counts["samples"] + counts["rejects"]
    return Conservation(
        videos=staged.catalogue.offered,
        indexed=len(staged.indexed.kept),
        duplicates=len(staged.indexed.duplicates),
        failed_index=len(staged.indexed.failed) + len(staged.catalogue.failures),
        clips=rows["clips"],
        twins=rows["twins"],
        failed_perceive=len(staged.perceive_failed),
        failed_caption=len(staged.caption_failed),
        asked=len(staged.asked),
        failed_generate=len(staged.generate_failed),
        generated=Stage.GENERATE in staged.stages,
        candidates=candidates,
        samples=rows["samples"],
        rejects=rows["rejects"],
        failures=rows["failures"],
    )


def _speed(staged: _Staged) -> dict[str, Any]:
    """Of what is in the corpus, whichever run made it: read off the stage files' metadata."""
    ledgers, found = staged.ledgers, {}
    for ledger, keys in (
        (ledgers.perceive, [c.perceive for c in staged.twins]),
        (ledgers.caption, [c.perceive for c in staged.twins]),
        (ledgers.generate, [c.generate for c in staged.asked]),
    ):
        if ledger is None or not keys:
            continue
        speed = Speed()
        for key in keys:
            meta = ledger.read_meta(key)
            speed.add(meta.get("seconds", 0.0), meta.get("counts", {}), meta.get("parts", {}))
        found[str(ledger.stage)] = {
            "rows": speed.rows,
            "worker_seconds": round(speed.seconds, 2),
            **speed.as_dict(),
        }
    return found


def _check_unique(hashes: array[int]) -> None:
    values = np.frombuffer(hashes, dtype=np.uint64) if len(hashes) else np.zeros(0, np.uint64)
    doubled = len(values) - len(np.unique(values))
    if doubled:
        raise ConservationError(f"{doubled} sample ids occur twice: a bug in sample_id's derivation")


def _swap(storage: Storage, shards: dict[str, list[Shard]]) -> None:
    check_corpus_root(storage)  # again: a run is long, and its folder open to everybody
    storage.delete(MANIFEST)
    for name, found in shards.items():
        wanted = {shard_name(name, i, len(found)) for i in range(len(found))}
        for old in replaceable(storage, name):
            if old not in wanted:
                storage.delete(old)
        for i, shard in enumerate(found):
            storage.publish(shard.path, shard_name(name, i, len(found)))
