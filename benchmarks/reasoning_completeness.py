"""For which share of targets each level is found, by scene size, and why the rest is not.

    OMP_NUM_THREADS=1 python -m benchmarks.reasoning_completeness --scenes 20

Every confirmed thing is asked for. A level that is missing is put down to *unknown facts* when the search
finds it once unknown counts as false, and otherwise to the scene (nothing in the catalogue tells the thing
apart with that many relations, each of them needed) or the search's bounds.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter

from rvt_ray.config.settings import FactSettings, QuerySettings
from rvt_ray.reasoning.search import Lineages
from rvt_ray.twin.facts import Facts, Table
from rvt_ray.twin.facts.logic import members
from tests.twin.facts.worlds import random_twin


class Closed(Facts):
    """Unknown counts as false."""

    def table(self, predicate: str, value: str | None = None, scope: str | None = None) -> Table:
        found = super().table(predicate, value, scope)
        found.truth[found.truth == 0] = -1
        return found


def levels_of(facts: Facts, seed: int) -> dict[int, set[int]]:
    """Row of each confirmed thing -> the levels found for it."""
    lineages = Lineages(facts, QuerySettings(), random.Random(seed))
    return {
        row: {c.level for c in (*lineages.grow(1 << row), *lineages.grow(1 << row))}
        for row in members(facts.confirmed_bits)
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=20)
    scenes = parser.parse_args().scenes
    print(
        f"{'things':>6} {'targets':>8}" + "".join(f" {f'L{k} found':>9} {'unknown':>8}" for k in range(1, 5))
    )
    for count in (3, 5, 8, 12, 20, 40):
        found: Counter[int] = Counter()
        blocked: Counter[int] = Counter()
        targets = 0
        for seed in range(scenes):
            twin = random_twin(seed, count=count, frames=60, uncertain=0.05, width=640, height=360)
            got = levels_of(Facts(twin, FactSettings()), seed)
            could = levels_of(Closed(twin, FactSettings()), seed)
            targets += len(got)
            for row, levels in got.items():
                found.update(levels)
                blocked.update(could[row] - levels)
        cells = "".join(
            f" {100 * found[k] / targets:>7.0f} % {100 * blocked[k] / targets:>6.0f} %" for k in range(1, 5)
        )
        print(f"{count:>6} {targets:>8}{cells}", flush=True)


if __name__ == "__main__":
    main()
