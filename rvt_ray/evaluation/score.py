"""`evaluate`: a corpus and predictions in, scores.parquet and a report out, one clip in memory at a time."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from rvt_ray.corpus import Corpus
from rvt_ray.evaluation.baselines import BASELINES, write_baseline
from rvt_ray.evaluation.bert import BertScorer
from rvt_ray.evaluation.breakdown import breakdown
from rvt_ray.evaluation.metrics import SCORES_SCHEMA, Scorer
from rvt_ray.evaluation.predictions import Issue, Predictions, count_issues
from rvt_ray.evaluation.report import write_report
from rvt_ray.evaluation.text import Idf, TextScorer
from rvt_ray.evaluation.vqa import JUDGE_PROMPT_VERSION, Question, judge
from rvt_ray.llm.base import Llm
from rvt_ray.records import Task

log = logging.getLogger(__name__)

REPORT_VERSION = "1"
_ROWS_HELD = 2000
_ISSUES_LISTED = 50


@dataclass(frozen=True)
class EvaluationOptions:
    """How to score.

    Attributes:
        name: the model's name in reports; default: the predictions' file or folder name.
        skip_ends: DAVIS' protocol, first and last frame of a clip left out of the mask metrics.
        idf: an IDF table to take instead of the corpus's own.
        judge: grades free answers; null: they are matched exactly like the others.
        bert_model: folder or name of BERTScore's model; null: BERTScore is skipped.
        bert_layer: whose output it compares; null: the last one.
        baselines: scored beside the predictions, for comparison.
        plots: draw the page's plots (needs matplotlib).
        seed, draws: of the bootstrap; the seed also drives the random baseline.
    """

    name: str | None = None
    skip_ends: bool = False
    idf: Path | None = None
    judge: Llm | None = None
    bert_model: str | None = None
    bert_layer: int | None = None
    baselines: tuple[str, ...] = tuple(BASELINES)
    plots: bool = True
    seed: int = 0
    draws: int = 1000


@dataclass
class _JudgeTally:
    asked: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)


def evaluate(
    corpus: str | Path, predictions: str | Path, out: str | Path, options: EvaluationOptions | None = None
) -> Path:
    """Score predictions against a finished corpus.

    Writes into `out`: report.json, report.md (the table), index.html with plots, scores.parquet (one row per
    sample), issues.jsonl (everything that is wrong with the predictions) and cider_idf.json.

    Args:
        corpus: folder of a finished corpus.
        predictions: see `rvt_ray.evaluation.predictions` and docs/evaluation.md.

    Returns:
        The path of report.json.

    Raises:
        CorpusError: `corpus` is not a finished corpus.
        ConfigError: no predictions there, or a given IDF table is unreadable.
        MissingDependencyError: the corpus has summaries, but a text metric's package is absent.
    """
    chosen = options or EvaluationOptions()
    source = Corpus(corpus)
    given = Predictions(predictions)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    idf = _idf(source, chosen)
    bert = BertScorer(chosen.bert_model, chosen.bert_layer) if chosen.bert_model else None
    scorer = Scorer(chosen.skip_ends, TextScorer(idf) if idf else None, bert)
    scores = folder / "scores.parquet"
    samples, tally = _score_all(source, given, scorer, chosen.judge, scores)
    issues = given.finish()
    _write_issues(folder / "issues.jsonl", issues)
    if idf is not None:
        idf.save(folder / "cider_idf.json")
    report = {
        "report_version": REPORT_VERSION,
        "name": chosen.name or Path(predictions).stem,
        "corpus": {"name": Path(corpus).resolve().name, "samples": samples},
        "scores": scores.name,
        "options": {"skip_ends": chosen.skip_ends, "seed": chosen.seed, "draws": chosen.draws},
        "cider_idf": idf.digest if idf else None,
        "bert_score": bert.name if bert else "skipped: no model was given",
        "judge": _judge_report(chosen, tally),
        "issues": count_issues(issues),
        "issue_examples": [_issue(i) for i in issues[:_ISSUES_LISTED]],
        "groups": breakdown(scores, chosen.seed, chosen.draws),
        "baselines": {name: _baseline(source, name, scorer, folder, chosen) for name in chosen.baselines},
    }
    return write_report(report, folder, chosen.plots)


def _baseline(
    corpus: Corpus, name: str, scorer: Scorer, folder: Path, options: EvaluationOptions
) -> list[dict[str, Any]]:
    """A baseline's groups without the finer crossings. It is matched exactly, never judged."""
    target = folder / "baselines"
    target.mkdir(exist_ok=True)
    predictions = Predictions(write_baseline(corpus, name, target / f"{name}.jsonl", options.seed))
    scores = target / f"{name}.parquet"
    _score_all(corpus, predictions, scorer, None, scores)
    return breakdown(scores, options.seed, options.draws, max_axes=1)


def _score_all(
    corpus: Corpus, predictions: Predictions, scorer: Scorer, llm: Llm | None, path: Path
) -> tuple[int, _JudgeTally]:
    """Write the scores table; returns the number of samples and what the judge did."""
    tally, samples = _JudgeTally(), 0
    with _ScoresWriter(path) as writer, asyncio.Runner() as runner:
        for rows in _rows(corpus, predictions, scorer, llm, runner, tally):
            samples += len(rows)
            writer.write(rows)
    return samples, tally


def _rows(
    corpus: Corpus,
    predictions: Predictions,
    scorer: Scorer,
    llm: Llm | None,
    runner: asyncio.Runner,
    tally: _JudgeTally,
) -> Iterator[list[dict[str, Any]]]:
    """The rows of one clip after the other."""
    for clip in corpus.clips():
        twin = None
        rows: list[dict[str, Any]] = []
        questions: list[tuple[int, Question]] = []
        for sample in corpus.samples(clip.clip_id):
            if twin is None and sample.task is Task.SEGMENTATION:
                twin = corpus.twin(clip.clip_id)
            prediction = predictions.of(sample, clip)
            rows.append(scorer.score(sample, clip, twin, prediction))
            rows[-1]["predicted"] = predictions.has(sample.sample_id)
            if sample.task is Task.VQA and not sample.choices and llm is not None:
                questions.append(
                    (len(rows) - 1, Question(sample.query, sample.answer or "", prediction.answer))
                )
        if questions and llm is not None:
            judgements = runner.run(judge(llm, [q for _, q in questions]))
            for (index, _), verdict in zip(questions, judgements, strict=True):
                tally.asked += 1
                if verdict.correct is None or verdict.score is None:
                    tally.failed += 1
                    tally.errors.append(f"{rows[index]['sample_id']}: {verdict.error}")
                    continue
                correct = float(verdict.correct)
                rows[index] |= {
                    "judge_correct": correct,
                    "judge_score": verdict.score / 5,
                    "accuracy": max(correct, rows[index]["exact_match"]),
                }
        if rows:
            yield rows


def _idf(corpus: Corpus, options: EvaluationOptions) -> Idf | None:
    """The given table, or the corpus's own over all its summaries; None where there is no summary."""
    if options.idf is not None:
        return Idf.load(options.idf)
    rows = corpus.tables["samples"].scan(["task", "answer"])
    table = Idf.build(row["answer"] or "" for row in rows if row["task"] == Task.SUMMARY)
    return table if table.documents else None


def _judge_report(options: EvaluationOptions, tally: _JudgeTally) -> dict[str, Any]:
    if options.judge is None:
        return {"model": None, "note": "no judge was given: free answers are matched exactly"}
    return {
        "model": options.judge.model_id,
        "prompt_version": JUDGE_PROMPT_VERSION,
        "asked": tally.asked,
        "failed": tally.failed,
        "errors": tally.errors[:_ISSUES_LISTED],
    }


def _issue(issue: Issue) -> dict[str, Any]:
    return {
        "kind": str(issue.kind),
        "sample_id": issue.sample_id,
        "detail": issue.detail,
        "times": issue.times,
    }


def _write_issues(path: Path, issues: list[Issue]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for issue in issues:
            file.write(json.dumps(_issue(issue), ensure_ascii=False) + "\n")


class _ScoresWriter:
    """Writes the scores table group by group; the file appears under its name when complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_suffix(".tmp")
        self._held: list[dict[str, Any]] = []
        self._writer = pq.ParquetWriter(self._part, SCORES_SCHEMA, compression="zstd")

    def write(self, rows: list[dict[str, Any]]) -> None:
        self._held += [{name: row[name] for name in SCORES_SCHEMA.names} for row in rows]
        if len(self._held) >= _ROWS_HELD:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_pylist(self._held, schema=SCORES_SCHEMA))
            self._held = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
        if kind is None:
            os.replace(self._part, self._path)
        else:
            self._part.unlink(missing_ok=True)
