"""Commands that answer questions and score answers: solve, evaluate, compare."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from rvt_ray.cli.commands import OK, PARTIAL, config_of, say
from rvt_ray.errors import ConfigError

logger = logging.getLogger(__name__)


def solve(args: argparse.Namespace) -> int:
    """One question about one video, or every question of a corpus."""
    if args.corpus is not None:
        return _solve_corpus(args)
    if args.video is None or args.query is None:
        raise ConfigError("give --video and --query for one question, or --corpus for all of a corpus's")
    if not args.query.strip():
        raise ConfigError('--query is empty; say what is to be found, for example --query "the red ball"')
    from rvt_ray.agent import Question
    from rvt_ray.config.settings import SourceSettings
    from rvt_ray.pipeline.solution_files import write_solution
    from rvt_ray.pipeline.solve_video import solve_video
    from rvt_ray.records import Task

    config = config_of(args)
    annotation_format, _, annotations = (args.annotations or "").partition(":")
    if args.annotations and not annotations:
        raise ConfigError(f"--annotations {args.annotations}: write it as FORMAT:PATH")
    source = SourceSettings(
        path=args.video, annotations=annotations or None, annotation_format=annotation_format or None
    )
    question = Question(query=args.query, choices=tuple(args.choices))
    answers = solve_video(source, question, config, args.cache)
    for answer in answers:
        solution = answer.solution
        found = ", ".join(f"#{i} {answer.twin.instance(i).category}" for i in solution.target_ids)
        text = solution.answer if solution.answer is not None else found or "nothing found"
        if solution.task is Task.VQA and args.choices and text not in args.choices:
            text = f"none of the choices fits{f' ({text})' if text else ''}"
        guess = f" (a guess: {solution.trace.how.replace('_', ' ')})" if solution.flagged else ""
        start, end = answer.clip.pts_s[0], answer.clip.pts_s[-1]
        say(f"{start:.1f}-{end:.1f} s, {solution.task}: {text}{guess}")
        plan = solution.trace.answered_plan
        if plan is not None and not plan.complete:
            say(f"  ignored: {' '.join(plan.ignored)}" if plan.ignored else f"  {plan.note}")
    say(str(write_solution(answers, config, Path(args.out))))
    return OK


def _solve_corpus(args: argparse.Namespace) -> int:
    from rvt_ray.pipeline.solve_corpus import solve_corpus

    given = [
        name
        for name, value in (("--video", args.video), ("--query", args.query), ("--choice", args.choices))
        if value
    ]
    if given:
        raise ConfigError(f"--corpus brings its own questions; leave {', '.join(given)} out")
    config = config_of(args)
    solved = solve_corpus(
        config,
        args.corpus,
        args.out,
        options=_options(args),
        scored=not args.no_evaluation,
        retry_failed=args.retry_failed,
        bar=False if args.quiet else None,
        verbose=args.verbose > 0,
    )
    say(str(solved.report if solved.report is not None else solved.predictions))
    if solved.run.too_many_failed(config.run.max_failed_share):
        logger.error(
            "%d clips failed, more than run.max_failed_share allows; %s/failures says why, and "
            "--retry-failed tries them again",
            solved.failed_clips,
            args.out,
        )
        return PARTIAL
    return OK


def run_evaluate(args: argparse.Namespace) -> int:
    """Predictions against a corpus."""
    from rvt_ray.evaluation import evaluate

    report = evaluate(args.corpus, args.predictions, args.out, _options(args, judge=_judge(args)))
    say((report.parent / "report.md").read_text(encoding="utf-8"))
    say(str(report.parent / "index.html"))
    return OK


def run_compare(args: argparse.Namespace) -> int:
    """Two reports."""
    from rvt_ray.evaluation import compare

    result = compare(args.a, args.b, args.out, draws=args.draws)
    say(f"a: {result['a']['name']}; b: {result['b']['name']}; difference is b - a, 95 % interval, p")
    for group in result["groups"]:
        axes = [
            f"{k} {v}" for k, v in group["group"].items() if v is not None and k not in ("task", "has_target")
        ]
        if not group["group"].get("has_target", True):
            axes.append("no target")
        if len(axes) > 1:
            continue  # crossings are in the file
        say(f"{group['group']['task']} {', '.join(axes) or 'all'} ({group['samples']} samples)")
        for name, m in group["metrics"].items():
            interval = "" if m["low"] is None else f" [{m['low']:+.3f}, {m['high']:+.3f}] p={m['p']:.3f}"
            say(f"  {name}: {m['a']:.3f} -> {m['b']:.3f}, {m['difference']:+.3f}{interval}")
    for warning in result["warnings"]:
        say(f"warning: {warning}")
    return OK


def _options(args: argparse.Namespace, **more: Any) -> Any:
    from rvt_ray.evaluation import BASELINES, EvaluationOptions

    names = tuple(BASELINES) if args.baselines is None else tuple(n for n in args.baselines.split(",") if n)
    unknown = sorted(set(names) - set(BASELINES))
    if unknown:
        raise ConfigError(f"--baselines: no baseline {unknown[0]!r}; there are {', '.join(BASELINES)}")
    return EvaluationOptions(
        name=args.name,
        skip_ends=args.skip_ends,
        idf=Path(args.idf) if args.idf else None,
        bert_model=args.bert_model,
        bert_layer=args.bert_layer,
        baselines=names,
        plots=not args.no_plots,
        seed=args.seed,
        draws=args.draws,
        **more,
    )


def _judge(args: argparse.Namespace) -> Any:
    """The judge of free answers: the model of agent.llm, where --judge asks for it."""
    if not args.judge:
        return None
    from rvt_ray.llm import build_llm

    config = config_of(args)
    llm = build_llm(config.agent.llm, "agent.llm")
    if llm is None:
        raise ConfigError("--judge needs a model: --set agent.llm.backend=endpoint or vllm (docs/llm.md)")
    return llm
