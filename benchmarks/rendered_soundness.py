"""Is every kept query true? Rendered scenes, from pixels to rows, against the renderer's own truth.

    OMP_NUM_THREADS=1 python -m benchmarks.rendered_soundness --scenes 200

Scenes are perceived with their exact masks, depth and names (the camera is estimated), asked with the default
settings, and each kept sample is judged by `tests/truth`: targets by trying every assignment, masks and boxes
pixel by pixel, answers and cited facts by the renderer's geometry.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from pathlib import Path

from rvt_ray.config.settings import GenerateSettings
from rvt_ray.queries import generate
from rvt_ray.reasoning import Program
from tests.scenes import perceived, small_scene
from tests.truth.judge import Judge


def main() -> None:
    """Print what is wrong, and the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument("--frames", type=int, help="of each scene, instead of its own 20 to 32")
    parser.add_argument("--seed", type=int, default=0, help="of the first scene")
    args = parser.parse_args()
    kept: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for seed in range(args.seed, args.seed + args.scenes):
        with tempfile.TemporaryDirectory() as folder:
            seen = perceived(small_scene(seed, num_frames=args.frames), Path(folder))
        made = asyncio.run(generate(seen.twin, seen.clip, GenerateSettings(), None, seed, "0" * 16))
        judge = Judge(seen)
        for sample in made.samples:
            complaints = judge.complaints(sample)
            scopes = {f"@{c.scope}" for c in Program.from_json(sample.program).constraints if c.scope}
            for cell in (str(sample.task), f"L{sample.level}", "all", *scopes):
                kept[cell] += 1
                wrong[cell] += bool(complaints)
            if complaints:
                print(f"scene {seed}: {sample.query} {sample.program}: {'; '.join(complaints)}")
    for cell in sorted(kept):
        print(f"{cell:<13} {wrong[cell]:>4} wrong of {kept[cell]:>6}  {100 * wrong[cell] / kept[cell]:.2f} %")


if __name__ == "__main__":
    main()
