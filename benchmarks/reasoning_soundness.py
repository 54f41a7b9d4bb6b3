"""Wrong truths under noise: three-valued facts against two-valued ones, in one table.

    OMP_NUM_THREADS=1 python -m benchmarks.reasoning_soundness --scenes 200

Each scene's clean twin is disturbed (masks, depth, names, colours, lost frames, uncertain tracks); programs
are found on the disturbed twin and judged on the clean one. A truth is wrong when something that surely fits
is missing from it, or something that surely does not fit is in it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace

from rvt_ray.config.settings import FactSettings, QuerySettings
from rvt_ray.reasoning import search
from rvt_ray.twin.facts import Facts
from tests.reasoning.noise import Noise, TwoValued, disturb, is_wrong
from tests.twin.facts.worlds import random_twin

NONE = Noise(mask_px=0, depth=0, label=0, colour=0, drop=0, ghost=0)
CASES = {
    "none": NONE,
    "masks 2 px": replace(NONE, mask_px=2.0),
    "depth 2 %": replace(NONE, depth=0.02),
    "names 1 %": replace(NONE, label=0.01),
    "colours 2 %": replace(NONE, colour=0.02),
    "lost frames 2 %": replace(NONE, drop=0.02),
    "all, and 5 % uncertain tracks": Noise(),
}


def main() -> None:
    """Print share of wrong truths by noise and reading, and by level for all noise together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), help="rows of the table")
    args = parser.parse_args()
    scenes = args.scenes
    levels: Counter[tuple[str, int, bool]] = Counter()
    predicates: Counter[str] = Counter()
    print(f"{'noise':<30} {'three-valued':>22} {'two-valued':>22}")
    for case in args.cases:
        noise = CASES[case]
        shown = []
        for name, kind in (("three", Facts), ("two", TwoValued)):
            wrong = total = 0
            for seed in range(scenes):
                clean_twin = random_twin(seed, count=6 + seed % 7, frames=40, uncertain=0.0)
                clean = Facts(clean_twin, FactSettings())
                noisy = kind(disturb(clean_twin, noise, seed), FactSettings())
                for candidate in search(noisy, QuerySettings(), seed):
                    bad = is_wrong(candidate, clean)
                    wrong, total = wrong + bad, total + 1
                    if noise == Noise():
                        levels[name, candidate.level, bad] += 1
                        if bad and name == "three":
                            predicates.update({c.predicate for c in candidate.program.constraints})
            shown.append(f"{wrong:>5} / {total:<6} {100 * wrong / max(total, 1):>5.2f} %")
        print(f"{case:<30} {shown[0]:>22} {shown[1]:>22}", flush=True)
    for name in ("three", "two"):
        row = []
        for k in range(1, 5):
            bad, good = levels[name, k, True], levels[name, k, False]
            row.append(f"L{k}: {100 * bad / max(bad + good, 1):.2f} %")
        print(f"all noise, {name}-valued, wrong by level: {', '.join(row)}")
    print("predicates in wrong three-valued programs:", predicates.most_common(12))


if __name__ == "__main__":
    main()
