"""Does the memory of `perceive` grow with the length of a clip?

Perceives a synthetic clip and one that is ten times longer, each in a process of its own (decoder child
included), and compares peak memory. Target: <= 1.3. The short clip is 10 s, so that the decoder's
first buffers are full in both.

    python -m benchmarks.memory_long_clip [--config configs/smoke.yaml] [--frames 240] [--times 10] [--set
    A.B=V]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil


def measure(folder: Path, config: str, overrides: list[str]) -> int:
    """Peak memory, bytes, of a process that indexes and perceives the one video in the folder."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.memory_long_clip",
        "--child",
        str(folder),
        "--config",
        config,
    ]
    command += [word for override in overrides for word in ("--set", override)]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE)
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        parent = psutil.Process(process.pid)
        while not done.is_set():
            total = 0
            for one in [parent, *_children(parent)]:
                try:
                    total += one.memory_full_info().uss
                except psutil.Error:
                    continue
            peak = max(peak, total)
            time.sleep(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate()
    done.set()
    watcher.join()
    if process.returncode != 0:
        sys.exit(f"the measured process failed: {process.returncode}")
    said = json.loads(out)
    print(f"  {said['frames']} frames, {said['instances']} instances, peak {peak / 2**20:.0f} MiB")
    return peak


def _children(parent: psutil.Process) -> list[psutil.Process]:
    try:
        return parent.children(recursive=True)
    except psutil.Error:
        return []


def child(folder: Path, config_path: str, overrides: list[str]) -> None:
    """What is measured: exactly what a perceive worker does, without Ray."""
    from rvt_ray.config import load_config
    from rvt_ray.sources import open_sources
    from rvt_ray.twin.build import Perception
    from rvt_ray.video import index_video, open_clip

    source = f"{{path: {folder}}}"
    if (folder / "annotations").is_dir():
        source = f"{{path: {folder}, annotations: {folder / 'annotations'}, annotation_format: synthetic}}"
    config = load_config(
        config_path,
        [
            f"sources=[{source}]",
            "index.max_clip_s=100000",
            "index.max_clip_frames=100000",
            *overrides,
        ],
    )
    (item,) = open_sources(config.sources)
    clips = index_video(item, config.index)
    perception = Perception.from_config(config)
    frames, instances = 0, 0
    for clip in clips:
        stream = open_clip(clip, config.index)
        try:
            twin = perception.twin(clip, stream)
        finally:
            stream.close()
        frames, instances = frames + clip.num_frames, instances + len(twin.instances)
    print(json.dumps({"frames": frames, "instances": instances}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    root = Path(__file__).resolve().parents[1]
    parser.add_argument("--config", default=str(root / "configs" / "smoke.yaml"))
    parser.add_argument("--frames", type=int, default=240, help="of the short clip")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--truth", action="store_true", help="keep the renderer's masks beside the video")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.config, args.overrides)
        return
    from rvt_ray.synthetic import random_scene, write_clip

    folder = Path(tempfile.mkdtemp(prefix="rvt-bench"))
    try:
        peaks = []
        for name, frames in (("short", args.frames), ("long", args.frames * args.times)):
            scene = random_scene(seed=7, num_objects=4, num_frames=frames, camera="still")
            write_clip(scene, folder / name, name, depth_every=0)
            if not args.truth:
                shutil.rmtree(folder / name / "annotations")
            peaks.append(measure(folder / name, args.config, args.overrides))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"ratio {peaks[1] / peaks[0]:.2f} for {args.times} times the frames (target <= 1.3)")


if __name__ == "__main__":
    main()
