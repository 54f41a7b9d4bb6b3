"""Does a level mean something? Accuracy of solvers that do not reason, or reason too shortly, by level.

    OMP_NUM_THREADS=1 python -m benchmarks.level_solvers --scenes 40

Rendered scenes are perceived with their exact masks and asked with the default settings. Solvers that pick an
object are judged on the kept queries with one target, by the chance that they pick it. Some read of the query
what is said of the target alone, and no relation; of the objects that this leaves they take

    random          any
    largest         the one with most pixels over the clip
    central         the nearest to the middle of the frame
    most moving     the one with the longest way, camera motion removed

Two read more:

    one hop         any object with those attributes and one of the relations; anchors by their attributes
    first frame     everything that needs no other frame: no event, nothing at the end

Four do not read at all (`blind`): the same four choices among all the objects of the clip. They are the
floor, the same on every level: targets are drawn and balanced over such shortcuts without regard to it.

`text only` sees no clip at all: for questions with choices it gives the answer that was most frequent for
this form of question on the other clips. `guess` draws one of the choices.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rvt_ray.config.settings import GenerateSettings
from rvt_ray.queries import generate
from rvt_ray.queries.gates.shortcut import favourites
from rvt_ray.reasoning import Constraint, Program, execute
from rvt_ray.records import Category, Sample, Task
from rvt_ray.twin.facts import CATALOGUE, Facts
from tests.scenes import perceived, small_scene

LEVELS = (1, 2, 3, 4)
Finder = Callable[[Sample, Facts], float]


def possible(target: str, constraints: Sequence[Constraint], facts: Facts) -> frozenset[int]:
    """The objects that may fulfil the constraints that are tied to the target; all where none is."""
    tied = reachable(target, constraints)
    if not tied:
        return frozenset(facts.ids)
    used = [target, *sorted({v for c in tied for v in c.args} - {target})]
    program = Program(target=target, variables=tuple(used), constraints=tuple(tied))
    return execute(program, facts).possible


def drawn(sample: Sample, found: frozenset[int]) -> float:
    """The chance of the sample's target when one of these is drawn."""
    return 1 / len(found) if sample.target_ids[0] in found else 0.0


def chance(program: Program, constraints: Sequence[Constraint], sample: Sample, facts: Facts) -> float:
    """The chance of the target when one of the objects that may fulfil the constraints is drawn."""
    return drawn(sample, possible(program.target, constraints, facts))


def reachable(target: str, constraints: Sequence[Constraint]) -> list[Constraint]:
    """The constraints that are tied to the target."""
    known = {target}
    while more := {v for c in constraints if known & set(c.args) for v in c.args} - known:
        known |= more
    return [c for c in constraints if known & set(c.args)]


def left_by_attributes(sample: Sample, facts: Facts) -> frozenset[int]:
    """The objects that may have the target's own attributes."""
    program = Program.from_json(sample.program)
    own = [c for c in program.constraints if c.args == (program.target,)]
    return possible(program.target, own, facts)


def attributes(sample: Sample, facts: Facts) -> float:
    """One of those, drawn."""
    return drawn(sample, left_by_attributes(sample, facts))


def one_hop(sample: Sample, facts: Facts) -> float:
    """One relation of the target, each as likely."""
    program = Program.from_json(sample.program)
    unary = [c for c in program.constraints if len(c.args) == 1]
    links = [c for c in program.constraints if len(c.args) == 2 and program.target in c.args]
    if not links:
        return attributes(sample, facts)
    return float(np.mean([chance(program, [*unary, link], sample, facts) for link in links]))


def first_frame(sample: Sample, facts: Facts) -> float:
    """What can be seen before anything happens."""
    program = Program.from_json(sample.program)
    kept = [
        c
        for c in program.constraints
        if CATALOGUE[c.predicate].category is not Category.TEMPORAL and c.scope != "end"
    ]
    return chance(program, kept, sample, facts)


def picker(name: str, *, reads: bool) -> Finder:
    """One of gate 7's solvers, among what the target's own attributes leave or among all."""

    def find(sample: Sample, facts: Facts) -> float:
        among = left_by_attributes(sample, facts) if reads else None
        if among is not None and len(among) == 1:
            return drawn(sample, among)  # nothing to choose, whether it moves or not
        return float(getattr(favourites(facts, among), name) == sample.target_ids[0])

    return find


FINDERS: dict[str, Finder] = {
    "random": attributes,
    "largest": picker("largest", reads=True),
    "central": picker("central", reads=True),
    "most moving": picker("moving", reads=True),
    "one hop": one_hop,
    "first frame": first_frame,
    "blind random": lambda sample, facts: 1 / len(facts.ids),
    "blind largest": picker("largest", reads=False),
    "blind central": picker("central", reads=False),
    "blind moving": picker("moving", reads=False),
}


@dataclass
class Asked:
    """A clip's facts and its kept queries."""

    facts: Facts
    samples: list[Sample]


def ask(seeds: Sequence[int], settings: GenerateSettings) -> Iterator[Asked]:
    """Render, perceive and ask scenes."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            seen = perceived(small_scene(seed), Path(folder))
        made = asyncio.run(generate(seen.twin, seen.clip, settings, None, seed, "0" * 16))
        yield Asked(Facts(seen.twin, settings.facts), made.samples)


def question(sample: Sample) -> tuple[str, ...]:
    """What a reader without the clip can tell questions apart by: what is asked, and the kind of choices."""
    if set(sample.choices) == {"yes", "no"}:
        # "Is there anything that" is one form of question, "does it" another.
        return ("exists" if "any" in sample.query.lower() else "check",)
    if all(c.isdigit() for c in sample.choices):
        return ("count",)
    if all("second" in c for c in sample.choices):
        return ("duration",)
    return ("open",)


def text_only(asked: Sequence[Asked]) -> dict[int, list[tuple[float, float]]]:
    """Level -> per question (chance of the answer most frequent on other clips, chance of a guess)."""
    closed = [[s for s in a.samples if s.task is Task.VQA and s.choices and s.answer] for a in asked]
    counts: Counter[tuple[tuple[str, ...], str]] = Counter(
        (question(s), s.answer or "") for clip in closed for s in clip
    )
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for clip in closed:
        mine = Counter((question(s), s.answer or "") for s in clip)
        for sample in clip:
            votes = {c: counts[question(sample), c] - mine[question(sample), c] for c in sample.choices}
            best = [c for c, n in votes.items() if n == max(votes.values())]
            hit = 1 / len(best) if sample.answer in best else 0.0
            found[sample.level].append((hit, 1 / len(sample.choices)))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scenes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="of the first scene")
    args = parser.parse_args()
    asked = list(ask(range(args.seed, args.seed + args.scenes), GenerateSettings()))
    scores: dict[tuple[str, int], list[float]] = defaultdict(list)
    for clip in asked:
        for sample in clip.samples:
            if len(sample.target_ids) == 1:
                for name, finder in FINDERS.items():
                    scores[name, sample.level].append(finder(sample, clip.facts))
    print(f"{args.scenes} scenes, seeds {args.seed} to {args.seed + args.scenes - 1}, template wording")
    print(f"{'':<14}" + "".join(f"{f'L{k}':>8}" for k in LEVELS))
    print(f"{'queries':<14}" + "".join(f"{len(scores['random', k]):>8}" for k in LEVELS))
    for name in FINDERS:
        print(f"{name:<14}" + "".join(f"{100 * np.mean(scores[name, k] or [0]):>6.1f} %" for k in LEVELS))
    closed = text_only(asked)
    print(f"{'closed':<14}" + "".join(f"{len(closed[k]):>8}" for k in LEVELS))
    for row, name in enumerate(("text only", "guess")):
        shown = [100 * float(np.mean([pair[row] for pair in closed[k]] or [0.0])) for k in LEVELS]
        print(f"{name:<14}" + "".join(f"{value:>6.1f} %" for value in shown))


if __name__ == "__main__":
    main()
