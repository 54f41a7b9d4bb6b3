"""RVTagent on synthetic scenes, by task and level, beside trivial baselines.

    OMP_NUM_THREADS=1 python -m benchmarks.agent_synthetic --scenes 30 [--llm smollm2] [--traces 3]

Twins are exact and questions have template wording, so what is measured is understanding alone: `perfect
planner`
is told the right program and shows what the executor and the answers can do at best; `rules` parses the
query; `--llm` plans with a real model (`llm` for everything, `auto` where the rules fail) in the vLLM engine.
Baselines
are those of `rvt-ray evaluate`. Scores are the evaluation room's; `targets` is the share of samples whose
target set was found exactly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from rvt_ray.agent import Agent, Solution
from rvt_ray.config.settings import AgentLlmSettings, AgentSettings
from rvt_ray.evaluation import EvaluationOptions, evaluate
from rvt_ray.evaluation.metrics import HEADLINE
from rvt_ray.llm import Llm, build_llm
from rvt_ray.records import Task
from tests.agent.scenes import Scene, ask, planner_for
from tests.corpora import write_corpus

BASELINES = ("largest_track", "random_track", "text_only")
SCENES_AT_A_TIME = 4
SMOLLM2 = AgentLlmSettings(
    backend="vllm",
    options={"model": "smollm2", "max_model_len": 4096, "kv_cache_gb": 1, "enforce_eager": True},
)


async def solve(agent: Agent, scenes: list[Scene]) -> dict[str, Solution]:
    """Every question of every scene, a few scenes at a time, so that an engine has a batch to work on; a twin
    is looked at once."""
    found: dict[str, Solution] = {}
    turn = asyncio.Semaphore(SCENES_AT_A_TIME)

    async def one(scene: Scene) -> None:
        async with turn:
            view = agent.look(scene.twin)
            solutions = await asyncio.gather(*(agent.solve(a.question, view) for a in scene.asked))
        found.update({a.sample.sample_id: s for a, s in zip(scene.asked, solutions, strict=True)})
        print(f"\r  {len(found)} questions answered", end="", file=sys.stderr, flush=True)

    await asyncio.gather(*(one(scene) for scene in scenes))
    print(file=sys.stderr)
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scenes", type=int, default=30)
    parser.add_argument("--questions", type=int, default=12, help="per scene")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--llm", choices=["smollm2"], help="also plan with this model")
    parser.add_argument("--traces", type=int, default=0, help="print so many traces per solver")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    args = parser.parse_args()
    scenes = [ask(args.seed + i, args.questions) for i in range(args.scenes)]
    samples = [a.sample for scene in scenes for a in scene.asked]
    print(f"{len(scenes)} scenes, {len(samples)} questions")
    solvers: dict[str, tuple[AgentSettings, Llm | None]] = {
        "perfect planner": (AgentSettings(planner="llm"), planner_for(*scenes)),
        "rules": (AgentSettings(planner="rules"), None),
    }
    if args.llm:
        llm = build_llm(SMOLLM2)
        solvers["smollm2 plans"] = (AgentSettings(planner="llm"), llm)
        solvers["rules, else smollm2"] = (AgentSettings(planner="auto"), llm)
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        root = Path(folder)
        twins = [scene.twin for scene in scenes]
        write_corpus(root / "corpus", [scene.clip for scene in scenes], twins, samples)
        for number, (name, (settings, llm)) in enumerate(solvers.items()):
            start = time.perf_counter()
            solutions = runner.run(solve(Agent(settings, llm=llm), scenes))
            seconds = time.perf_counter() - start
            path = root / f"{number}.jsonl"
            with path.open("w") as file:
                for sample_id, solution in solutions.items():
                    file.write(json.dumps(solution.prediction(sample_id)) + "\n")
            options = EvaluationOptions(
                name=name, plots=False, draws=200, baselines=BASELINES if number == 0 else ()
            )
            report = json.loads(
                evaluate(root / "corpus", path, root / f"report{number}", options).read_text()
            )
            rows[name] = by_level(report["groups"])
            rows[name]["targets"] = {
                task: share(
                    [
                        set(solutions[s.sample_id].target_ids) == set(s.target_ids)
                        for s in samples
                        if s.task == task
                    ]
                )
                for task in Task
            }
            how = defaultdict(int)
            for solution in solutions.values():
                how[solution.trace.how] += 1
            print(f"{name}: {seconds:.1f} s, {dict(how)}")
            for baseline, groups in report["baselines"].items():
                rows[f"baseline {baseline}"] = by_level(groups)
            show_traces(name, solutions, args.traces)
        if args.llm:
            runner.run(solvers["smollm2 plans"][1].close())  # type: ignore[union-attr]
    print_tables(rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


def by_level(groups: list[dict[str, Any]]) -> dict[str, Any]:
    """`task` -> level (or `all`) -> the task's headline metric; no-target queries apart."""
    found: dict[str, Any] = {}
    for group in groups:
        axes = group["group"]
        metric = group["metrics"].get(HEADLINE[Task(axes["task"])])
        if metric is None or axes["category"] is not None or axes["source"] is not None:
            continue
        key = "no target" if not axes["has_target"] else axes["level"] or "all"
        if key == "no target" and axes["level"] is not None:
            continue
        found.setdefault(axes["task"], {})[key] = (metric["value"], group["samples"])
    return found


def share(hits: list[bool]) -> float:
    """Of the hits."""
    return sum(hits) / len(hits) if hits else float("nan")


def print_tables(rows: dict[str, dict[str, Any]]) -> None:
    """One table per task."""
    keys = [1, 2, 3, 4, "all", "no target"]
    for task in Task:
        counts = next(iter(rows.values())).get(task, {})
        head = "".join(f"{f'L{k}' if isinstance(k, int) else k:>11}" for k in keys)
        print(f"\n{task} ({HEADLINE[task]}){'':<4}{head}{'targets':>11}")
        print(f"{'samples':<26}" + "".join(f"{counts.get(k, (0, 0))[1]:>11}" for k in keys))
        for name, row in rows.items():
            cells = [row.get(task, {}).get(k) for k in keys]
            shown = "".join(f"{'-':>11}" if c is None else f"{c[0]:>11.3f}" for c in cells)
            targets = row.get("targets", {}).get(task)
            print(f"{name:<26}{shown}" + ("" if targets is None else f"{targets:>11.3f}"))


def show_traces(name: str, solutions: dict[str, Solution], count: int) -> None:
    """The first traces of a solver."""
    for solution in list(solutions.values())[:count]:
        print(f"--- {name}: {solution.model_dump_json(include={'task', 'target_ids', 'answer', 'trace'})}")


if __name__ == "__main__":
    main()
