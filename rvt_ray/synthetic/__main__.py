"""`python -m rvt_ray.synthetic --out DIR --scenes N`: a folder of clips with their truth."""

from __future__ import annotations

import argparse
import logging
from typing import get_args

from rvt_ray.synthetic.looks import CameraMode
from rvt_ray.synthetic.scenes import random_scene
from rvt_ray.synthetic.write import write_clip

log = logging.getLogger("rvt_ray.synthetic")


def main(argv: list[str] | None = None) -> int:
    """Render scenes `seed`, `seed + 1`, ...; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m rvt_ray.synthetic", description=__doc__)
    parser.add_argument("--out", required=True, help="folder for the videos; truth goes to OUT/annotations")
    parser.add_argument("--scenes", type=int, default=2, help="number of clips")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first scene")
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--objects", type=int, default=6)
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--height", type=int, default=240)
    parser.add_argument("--fps", type=float, default=24.0)
    parser.add_argument("--camera", choices=get_args(CameraMode), default="any")
    parser.add_argument("--depth-every", type=int, default=1, help="0: no depth files")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for seed in range(args.seed, args.seed + args.scenes):
        spec = random_scene(
            seed, args.objects, args.frames, args.width, args.height, args.fps, camera=args.camera
        )
        paths = write_clip(spec, args.out, f"scene_{seed:04d}", args.depth_every)
        kinds = ", ".join(f"{o.colour} {o.kind}" for o in spec.objects)
        log.info("%s: %s; %s", paths.video, spec.environment, kinds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
