"""The job as a recipe: sources -> index -> perceive (-> caption) -> generate -> finalise.

Every function here may be called again at any time: what the ledgers hold is not done again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray

from rvt_ray.config import Config
from rvt_ray.config.settings import PoolSettings
from rvt_ray.errors import ConfigError
from rvt_ray.pipeline.attempts import sweep_markers
from rvt_ray.pipeline.catalogue import (
    Catalogue,
    Clip,
    Indexed,
    Ledgers,
    log_duplicates,
    read_index,
    read_sources,
)
from rvt_ray.pipeline.finalise import finalise_corpus
from rvt_ray.pipeline.graph import run_graph
from rvt_ray.pipeline.ledger import STAGING, Done, Ledger
from rvt_ray.pipeline.ownership import check_answers_root, check_corpus_root
from rvt_ray.pipeline.preflight import check_config, check_lexicon
from rvt_ray.pipeline.progress import Progress
from rvt_ray.pipeline.resources import check_resources, devices_of, ray_session, rows_in_flight
from rvt_ray.pipeline.stages import ASYNC_STAGES, WORKERS, Job
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Row
from rvt_ray.pipeline.workers import clip_row, index_row
from rvt_ray.records import BUILD_STAGES, Stage
from rvt_ray.twin.build import asks_a_model

logger = logging.getLogger(__name__)


@dataclass
class Result:
    """How a run ended.

    Attributes:
        failed_share: per stage the share of its rows that failed (index also counts what a source could not
            offer).
        stages: per stage the counts of progress.json.
        manifest: the manifest of the finalised corpus; None when the run did not finalise.
    """

    failed_share: dict[Stage, float] = field(default_factory=dict)
    stages: dict[str, Any] = field(default_factory=dict)
    manifest: dict[str, Any] | None = None

    def too_many_failed(self, limit: float) -> bool:
        """Whether some stage lost more than the given share of its rows."""
        return any(share > limit for share in self.failed_share.values())


@dataclass
class Run:
    """One run of the driver on one output root.

    Attributes:
        workers: per stage the function that its actors run; benchmarks and tests put in their own.
    """

    config: Config
    storage: Storage
    progress: Progress
    run_id: str
    retry_failed: bool = False
    workers: dict[Stage, str] = field(default_factory=lambda: dict(WORKERS))
    result: Result = field(default_factory=Result)

    def __post_init__(self) -> None:
        self.ledgers = Ledgers.of(self.storage, self.config)

    def index(self) -> Catalogue:
        """Sources -> catalogue -> clips."""
        from rvt_ray.sources import open_sources

        catalogue = read_sources(open_sources(self.config.sources))
        catalogue.save(self.storage)
        for failure in catalogue.failures:
            logger.warning("source %s: %s (%s)", failure.source, failure.message, failure.code)
        self.run_stage(self.ledgers.index, [index_row(video) for video in catalogue.videos])
        indexed = read_index(catalogue, self.ledgers.index)
        log_duplicates(indexed.duplicates)
        lost = len(indexed.failed) + len(catalogue.failures)
        self.result.failed_share[Stage.INDEX] = lost / max(1, catalogue.offered)
        return catalogue

    def perceive(self, catalogue: Catalogue) -> None:
        """Clips -> twins."""
        indexed = read_index(catalogue, self.ledgers.index)
        self.run_stage(self.ledgers.perceive, _rows(indexed, lambda clip: clip.perceive))

    def caption(self, catalogue: Catalogue) -> None:
        """Twins -> twins with a model's opinions; nothing where no captioner asks one."""
        ledger = self.ledgers.caption
        if ledger is None:
            return
        indexed = read_index(catalogue, self.ledgers.index)
        perceived = self.ledgers.perceive.scan()
        self.run_stage(ledger, _rows(indexed, lambda clip: clip.perceive, perceived))

    def generate(self, catalogue: Catalogue) -> None:
        """Twins -> samples and rejects."""
        indexed = read_index(catalogue, self.ledgers.index)
        twins = self.ledgers.twins.scan()
        self._tell_of_missing_twins(indexed, twins)
        self.run_stage(self.ledgers.generate, _rows(indexed, lambda clip: clip.generate, twins))

    def finalise(self, catalogue: Catalogue) -> None:
        """Staging -> shards and manifest."""
        self.result.manifest = finalise_corpus(self.storage, self.config, catalogue)

    def run_stage(self, ledger: Ledger, rows: Sequence[Row]) -> None:
        """Run what the ledger lacks of these rows."""
        stage = ledger.stage
        if self.retry_failed:
            forgotten = ledger.forget_failures(row.key for row in rows)
            logger.info("%s: %d failures to be tried again", stage, forgotten)
        ended = ledger.scan()
        sweep_markers(ledger, ended)
        todo = [row for row in rows if row.key not in ended]
        pool: PoolSettings = getattr(self.config.run, stage.value)
        self.progress.begin(stage, len(rows), len(rows) - len(todo), devices_of(pool, len(todo)))
        if todo:
            job = Job(
                self.storage.root, self.config.model_dump_json(), stage, self.run_id, self.workers[stage]
            )
            run = self.config.run
            run_graph(
                job,
                ledger,
                todo,
                pool,
                max_attempts=run.max_attempts,
                in_flight=rows_in_flight(self.config, stage) if stage in ASYNC_STAGES else 1,
                on_receipt=self.progress.receipt,
            )
        self.progress.end()
        ended = ledger.scan()
        failed = sum(ended.get(row.key) is Done.FAILED for row in rows)
        self.result.failed_share[stage] = failed / max(1, len(rows))
        self.result.stages = self.progress.summary()

    def _tell_of_missing_twins(self, indexed: Indexed, twins: dict[str, Done]) -> None:
        missing = sum(clip.perceive not in twins for clip in indexed.clips)
        remedy = "run `rvt-ray perceive` (or `build`) with the same settings first"
        if not twins and (missing or indexed.missing):
            raise ConfigError(
                f"{self.storage.root}: no twin is staged under these settings (fingerprint "
                f"{self.ledgers.twins.fingerprint}): {remedy}"
            )
        if missing or indexed.missing:
            logger.warning(
                "%d clips have no twin yet and %d videos are not indexed; to have them asked about, %s",
                missing,
                len(indexed.missing),
                remedy,
            )


@contextmanager
def open_run(
    config: Config,
    out: str | Path,
    stages: Sequence[Stage],
    *,
    retry_failed: bool = False,
    bar: bool | None = None,
    verbose: bool = False,
) -> Iterator[Run]:
    """Check everything, take the output root's lock, start Ray, and tell of progress.

    Raises:
        ConfigError: something is wrong that the user can mend.
    """
    storage = Storage(out)
    # Before the settings' check, whose probe would make any folder look like ours.
    (check_answers_root if list(stages) == [Stage.SOLVE] else check_corpus_root)(storage)
    check_config(config, stages, storage)
    stages = [stage for stage in stages if stage is not Stage.CAPTION or asks_a_model(config)]
    run_id = uuid.uuid4().hex
    with ExitStack() as stack:
        stack.enter_context(storage.lock())
        storage.sweep(STAGING)
        stack.enter_context(ray_session(config.run, verbose=verbose))
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        check_resources(config, list(stages), ray.cluster_resources(), nodes)
        if storage.is_local and len([n for n in ray.nodes() if n["Alive"]]) > 1:
            logger.warning(
                "this Ray has several nodes and --out %s is a folder: it must be shared by all", storage.root
            )
        progress = stack.enter_context(Progress(storage, run_id, bar=bar))
        yield Run(config, storage, progress, run_id, retry_failed)


def perceive(config: Config, out: str | Path, **options: Any) -> Result:
    """Sources -> clips -> twins. `options` as `open_run`'s."""
    with open_run(config, out, [Stage.INDEX, Stage.PERCEIVE, Stage.CAPTION], **options) as run:
        catalogue = run.index()
        run.perceive(catalogue)
        run.caption(catalogue)
    return run.result


def generate(config: Config, out: str | Path, **options: Any) -> Result:
    """Twins that are staged -> samples and rejects. Needs no sources."""
    with open_run(config, out, [Stage.GENERATE], **options) as run:
        run.generate(Catalogue.load(run.storage))
    return run.result


def build(config: Config, out: str | Path, **options: Any) -> Result:
    """Everything, from sources to a finalised corpus."""
    with open_run(config, out, BUILD_STAGES, **options) as run:
        catalogue = run.index()
        run.perceive(catalogue)
        run.caption(catalogue)
        run.generate(catalogue)
        run.finalise(catalogue)
    return run.result


def finalise(config: Config, out: str | Path) -> Result:
    """Staging -> shards and manifest. No Ray."""
    storage = Storage(out)
    check_corpus_root(storage)
    check_lexicon(config)
    storage.check_writable()
    with storage.lock():
        storage.sweep(STAGING)
        return Result(manifest=finalise_corpus(storage, config, Catalogue.load(storage)))


def _rows(indexed: Indexed, key: Callable[[Clip], str], twins: Mapping[str, Done] | None = None) -> list[Row]:
    """A stage's rows, by its ledger's `key`; with `twins` (by perceive key) of the clips that have one."""
    return [
        clip_row(clip, key(clip), indexed.kept[_video_of(clip.clip_id)])
        for clip in indexed.clips
        if twins is None or twins.get(clip.perceive) is Done.OK
    ]


def _video_of(clip_id: str) -> str:
    return clip_id.partition("-")[0]
