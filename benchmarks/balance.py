"""Are the kept queries spread over tasks, categories and levels, and do they read differently?

    OMP_NUM_THREADS=1 python -m benchmarks.balance --scenes 100

Rendered scenes, perceived with their exact masks, asked with the default settings in template wording. Prints
how many kept queries fall into each cell of task x category x level (a query of two categories counts in
both), for an empty cell how many scenes could have filled it (a program of this level and category was found
there and the task fits it), and the corpus' form before and after gate 5 looks at it as a whole: the largest
share of an opening 3-gram (wanted: at most 5 %) and of near-duplicates (below 1 %).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections import Counter
from pathlib import Path

from rvt_ray.config.settings import GenerateSettings
from rvt_ray.queries import generate
from rvt_ray.queries.corpus_form import corpus_excess, corpus_form
from rvt_ray.queries.gates.text import opening
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.lexicon import load_lexicon
from rvt_ray.queries.tasks import fitting
from rvt_ray.reasoning import search
from rvt_ray.records import Category, DigitalTwin, Sample, Task
from rvt_ray.twin.facts import Facts
from tests.scenes import perceived, small_scene

LEVELS = (1, 2, 3, 4)
Cell = tuple[Task, Category, int]


def fillable(twin: DigitalTwin, settings: GenerateSettings, seed: int) -> set[Cell]:
    """The cells for which this twin has a program and a fitting task."""
    know = Knowledge(Facts(twin, settings.facts), load_lexicon(settings.queries.lexicon))
    rng = random.Random(seed)
    return {
        (draft.task, category, candidate.level)
        for candidate in search(know.facts, settings.queries, seed)
        for draft in fitting(know, candidate, settings.queries.tasks, rng)
        for category in candidate.categories
    }


def print_form(name: str, samples: list[Sample], settings: GenerateSettings) -> None:
    """The corpus' most frequent openings and near-duplicates."""
    gates = settings.gates
    form = corpus_form([(s.sample_id, s.query) for s in samples], gates.opening_ngram, 1.0)
    counts = Counter(opening(s.query, gates.opening_ngram) for s in samples)
    common = ", ".join(f"{text!r} {100 * n / len(samples):.1f} %" for text, n in counts.most_common(3))
    print(f"{name}: {len(samples)} queries, {len(counts)} openings, most frequent: {common}")
    print(f"{'':<{len(name)}}  near-duplicates {100 * form.duplicate_share:.2f} %")


def main() -> None:
    """Print the table and the two shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first scene")
    args = parser.parse_args()
    settings = GenerateSettings()
    samples: list[Sample] = []
    offered: Counter[Cell] = Counter()
    for seed in range(args.seed, args.seed + args.scenes):
        with tempfile.TemporaryDirectory() as folder:
            seen = perceived(small_scene(seed), Path(folder))
        samples += asyncio.run(generate(seen.twin, seen.clip, settings, None, seed, "0" * 16)).samples
        offered.update(fillable(seen.twin, settings, seed))
    kept: Counter[Cell] = Counter((s.task, c, s.level) for s in samples for c in s.categories)
    print(f"{args.scenes} scenes, seeds {args.seed} to {args.seed + args.scenes - 1}, template wording")
    print(f"{'':<26}" + "".join(f"{f'L{k}':>8}" for k in LEVELS))
    for task in Task:
        for category in Category:
            cells = [(task, category, k) for k in LEVELS]
            shown = [str(kept[c]) if kept[c] else f"0/{offered[c]}" for c in cells]
            print(f"{task.value:<14}{category.value:<12}" + "".join(f"{text:>8}" for text in shown))
    empty = [c for c in offered if not kept[c]]
    print(f"cells that are empty though a scene could fill them: {len(empty)}")
    sizes = [len(s.target_ids) for s in samples]
    none, several = sum(n == 0 for n in sizes), sum(n > 1 for n in sizes)
    print(f"targets: none {100 * none / len(sizes):.1f} %, several {100 * several / len(sizes):.1f} %")
    gates = settings.gates
    excess = corpus_excess(
        [(s.sample_id, s.query) for s in samples],
        gates.opening_ngram,
        gates.max_opening_share,
        gates.max_duplicate_share,
    )
    print_form("as generated", samples, settings)
    print_form("as finalised", [s for s in samples if s.sample_id not in excess], settings)


if __name__ == "__main__":
    main()
