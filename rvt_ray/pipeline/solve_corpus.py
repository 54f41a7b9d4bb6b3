"""The agent over a corpus: questions -> predictions -> scores. One row is one clip with all its questions.

What a worker is told of a sample is its id, its words and its choices: the columns that hold the truth are
never read, by anybody, before the evaluation.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from rvt_ray.agent import Agent, Question
from rvt_ray.config import Config, fingerprint
from rvt_ray.corpus import Corpus, CorpusError
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.evaluation import EvaluationOptions, evaluate
from rvt_ray.llm import TEMPLATE
from rvt_ray.pipeline.ledger import STAGING, Done, Ledger
from rvt_ray.pipeline.own_twins import OwnTwins
from rvt_ray.pipeline.ownership import replaceable
from rvt_ray.pipeline.run import Result, open_run
from rvt_ray.pipeline.shards import shard_name, write_shards
from rvt_ray.pipeline.storage import Storage
from rvt_ray.pipeline.work import Row, Work
from rvt_ray.records import PREDICTION_SCHEMA, ClipRecord, Failure, FailureCode, Stage

logger = logging.getLogger(__name__)

PREDICTIONS, FAILURES, REPORT = "predictions", "failures", "report"


@dataclass
class Solved:
    """How a corpus was solved.

    Attributes:
        predictions: folder of the predictions, as `evaluate` reads them.
        report: path of report.json; null when it was not asked for.
        run: counts and failed shares.
        samples, failed_clips: answered samples, and clips that failed (their samples count as unanswered).
    """

    predictions: Path
    report: Path | None
    run: Result
    samples: int
    failed_clips: int


class SolveWorker:
    """Clip with questions -> predictions. The twin is loaded once per clip."""

    def __init__(self, config: Config, storage: Storage) -> None:
        from rvt_ray.llm import build_llm
        from rvt_ray.queries.lexicon import load_lexicon

        self._llm = build_llm(config.agent.llm, "agent.llm")
        lexicon = load_lexicon(config.generate.queries.lexicon)
        self._agent = Agent(config.agent, config.generate.facts, self._llm, lexicon)
        own = config.agent.twin == "own"
        self._own = OwnTwins(config, storage, annotations=False) if own else None
        self._corpora: dict[str, Corpus] = {}

    async def work(self, row: Row) -> Work:
        """Answer all questions on one clip."""
        task = json.loads(row.payload)
        view = self._agent.look(self._twin(task["corpus"], task["clip_id"]))
        rows: list[dict[str, Any]] = []
        flagged = 0
        for sample_id, query, choices in task["questions"]:
            solution = await self._agent.solve(Question(query=query, choices=tuple(choices)), view)
            rows.append(solution.prediction(sample_id))
            flagged += solution.flagged
            await asyncio.sleep(0)  # let the deadline's heartbeat through: rules never wait for anything
        counts = {"samples": len(rows), "flagged": flagged}
        return Work(pa.Table.from_pylist(rows, schema=PREDICTION_SCHEMA), {"counts": counts})

    def _twin(self, root: str, clip_id: str) -> Any:
        if root not in self._corpora:
            self._corpora[root] = Corpus(root)
        corpus = self._corpora[root]
        if self._own is not None:
            clip = next(corpus.tables["clips"].of_clip(clip_id), None)
            if not isinstance(clip, ClipRecord):
                raise ClipError(FailureCode.INTERNAL, f"{root}: no row in clips for {clip_id}", Stage.SOLVE)
            return self._own.twin(clip)
        twin = corpus.twin(clip_id)
        if twin is None:
            raise ClipError(
                FailureCode.INTERNAL,
                f"{root}: {clip_id} has samples but no twin; see `rvt-ray validate`",
                Stage.SOLVE,
            )
        return twin

    async def close(self) -> None:
        """Let the model go."""
        if self._llm is not None:
            await self._llm.close()


def solve_corpus(
    config: Config,
    corpus: str | Path,
    out: str | Path,
    *,
    options: EvaluationOptions | None = None,
    scored: bool = True,
    **run_options: Any,
) -> Solved:
    """Answer every question of a corpus, then score the answers. Resumable: clips that are done are not
    redone.

    Args:
        config: `agent` says how; `generate.facts` are the facts; `run.solve` sizes the pool.
        corpus: folder of a finished corpus.
        out: predictions, failures and the report go here; must not be the corpus itself.
        options: of the evaluation; its name defaults to planner and twin.
        scored: evaluate afterwards.
        run_options: as of `rvt_ray.pipeline.run.open_run`.

    Raises:
        CorpusError: `corpus` is not a finished corpus.
        ConfigError: a setting, or `out`, is wrong.
    """
    source = Corpus(corpus)
    if Path(out).resolve() == Path(corpus).resolve():
        raise ConfigError(f"--out {out}: give the answers a folder of their own, not the corpus")
    storage = Storage(out)
    if not storage.is_local:
        raise ConfigError(f"--out {out}: predictions are scored from a folder; give a local or mounted path")
    rows = list(question_rows(source))
    if not rows:
        raise CorpusError(f"{corpus}: no samples, so there is nothing to answer")
    ledger = Ledger(storage, Stage.SOLVE, fingerprint(config, Stage.SOLVE))
    with open_run(config, out, [Stage.SOLVE], **run_options) as run:
        run.run_stage(ledger, rows)
    failed = _collect(ledger, rows, storage)
    answered = sum(len(json.loads(row.payload)["questions"]) for row in rows if row.key not in failed)
    logger.info("%d samples of %d clips answered; %d clips failed", answered, len(rows), len(failed))
    report = None
    if scored:
        chosen = options or EvaluationOptions()
        if chosen.name is None:
            chosen = EvaluationOptions(**{**chosen.__dict__, "name": model_name(config)})
        report = evaluate(corpus, Path(storage.root, PREDICTIONS), Path(storage.root, REPORT), chosen)
    return Solved(Path(storage.root, PREDICTIONS), report, run.result, answered, len(failed))


def model_name(config: Config) -> str:
    """As it stands in reports: what was solved with corpus twins and with own ones is told apart."""
    planner = config.agent.planner
    model = config.agent.llm.options.get("model", config.agent.llm.backend)
    with_model = "" if config.agent.llm.backend == TEMPLATE else f" {model}"
    return f"RVTagent {planner}{with_model}, {config.agent.twin} twins"


def question_rows(corpus: Corpus) -> Iterator[Row]:
    """One row per clip that has samples. Only ids, words and choices are read."""
    asked: dict[str, list[tuple[str, str, list[str]]]] = {}
    for s in corpus.tables["samples"].scan(["sample_id", "clip_id", "query", "choices"]):
        asked.setdefault(s["clip_id"], []).append((s["sample_id"], s["query"], s["choices"] or []))
    tables = corpus.manifest.get("tables", {})
    twins = json.dumps(tables.get("twins"), sort_keys=True)
    root = str(corpus.root.resolve())
    for clip in corpus.tables["clips"].scan(["clip_id", "video_id", "source", "name", "uri"]):
        questions = sorted(asked.get(clip["clip_id"], ()))
        if not questions:
            continue
        content = json.dumps([clip["clip_id"], questions, twins])
        yield Row(
            key=hashlib.sha256(content.encode()).hexdigest()[:32],
            name=f"{clip['source']}/{clip['name']} {clip['clip_id']}",
            clip_id=clip["clip_id"],
            video_id=clip["video_id"],
            source=clip["source"],
            uri=clip["uri"],
            payload=json.dumps({"corpus": root, "clip_id": clip["clip_id"], "questions": questions}),
        )


def _collect(ledger: Ledger, rows: Sequence[Row], storage: Storage) -> set[str]:
    """Ledger -> predictions and failures, in the corpus's order. Returns the keys that failed."""
    ended = ledger.scan()
    failed = {row.key for row in rows if ended.get(row.key) is Done.FAILED}

    def answered() -> Iterator[pa.Table]:
        for row in rows:
            if row.key not in failed:
                yield ledger.read(row.key)

    def refused() -> Iterator[pa.Table]:
        for row in rows:
            if row.key in failed:
                yield Failure.to_table([ledger.read_failure(row.key)])

    scratch = storage.scratch(f"{STAGING}/collect")
    try:
        for name, schema, tables in (
            (PREDICTIONS, PREDICTION_SCHEMA, answered()),
            (FAILURES, Failure.SCHEMA, refused()),
        ):
            folder = scratch / name
            folder.mkdir()
            shards = write_shards(folder, schema, tables, 2000, 256 * 1024**2)
            for old in replaceable(storage, name):
                storage.delete(old)
            for i, shard in enumerate(shards):
                storage.publish(shard.path, shard_name(name, i, len(shards)))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return failed
