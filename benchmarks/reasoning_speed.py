"""How long facts and search take, by instances and frames, on one core.

    OMP_NUM_THREADS=1 python -m benchmarks.reasoning_speed

Goal: 20 instances x 300 frames in at most 1 s; at most linear in frames, quadratic in instances.
"""

from __future__ import annotations

import argparse
import math
import time

from rvt_ray.config.settings import FactSettings, QuerySettings
from rvt_ray.reasoning import search
from rvt_ray.reasoning.pool import Pool
from rvt_ray.twin.facts import Facts
from tests.twin.facts.worlds import random_twin

SIZES = ((10, 300), (20, 300), (40, 300), (60, 300), (20, 1000), (20, 3000), (60, 3000))
BASE = (20, 300)


def measure(instances: int, frames: int, repeats: int) -> tuple[float, float, int]:
    """Best CPU seconds of facts and of search, and the number of candidates."""
    best_facts = best_search = math.inf
    found = 0
    for seed in range(repeats):
        twin = random_twin(seed, count=instances, frames=frames, fps=25, width=640, height=360)
        start = time.process_time()
        facts = Facts(twin, FactSettings())
        Pool(facts)  # asks for every table
        middle = time.process_time()
        found = len(search(facts, QuerySettings(), seed))
        end = time.process_time()
        best_facts, best_search = min(best_facts, middle - start), min(best_search, end - middle)
    return best_facts, best_search, found


def main() -> None:
    """Print the table and the growth exponents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    totals = {}
    print(f"{'instances':>9} {'frames':>6} {'facts s':>8} {'search s':>8} {'total s':>8} {'candidates':>10}")
    for instances, frames in SIZES:
        facts, search_s, found = measure(instances, frames, repeats)
        totals[instances, frames] = facts + search_s
        print(
            f"{instances:>9} {frames:>6} {facts:>8.2f} {search_s:>8.2f} {facts + search_s:>8.2f} {found:>10}"
        )

    def exponent(a: tuple[int, int], b: tuple[int, int], axis: int) -> float:
        return math.log(totals[b] / totals[a]) / math.log(b[axis] / a[axis])

    print(f"20 x 300: {totals[BASE]:.2f} s (goal 1.00)")
    print(f"growth in frames, 300 to 3000: exponent {exponent(BASE, (20, 3000), 1):.2f} (goal at most 1)")
    print(f"growth in instances, 20 to 60: exponent {exponent(BASE, (60, 300), 0):.2f} (goal at most 2)")


if __name__ == "__main__":
    main()
