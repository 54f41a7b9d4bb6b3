"""Memory of propagation: ours against sam2's video predictor, and ours against itself.

    python -m benchmarks.sam2_memory [--objects 16] [--frames 300] [--image-size 256] [--clips 200] [--full]

Each run is a process of its own; its number is what it needed at most beyond the loaded, warm model: resident
memory on a CPU, allocated device memory on a GPU. sam2's predictor keeps every frame and every object-frame,
so its memory is a straight line over the frames: its peak is measured on a short clip and drawn out to
`--frames` by the bytes that its state holds per frame; `--full` measures there instead (long on a CPU).

Prints the peaks, the ratio at `--frames`, our worker's whole peak over ten times the frames, what four times
the objects add,
and the growth of one worker over `--clips` clips through the whole segmenter.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from benchmarks.sam2_common import (
    first_masks,
    moving_pictures,
    quiet,
    random_checkpoint,
    stock_predictor,
    stock_state,
)
from benchmarks.sam2_propagation import precision
from rvt_ray.perception.segment.sam2 import Sam2Options, Sam2Segmenter, checkpoints
from rvt_ray.perception.segment.sam2.engine import Propagator
from rvt_ray.perception.segment.sam2.network import Network
from rvt_ray.records import ClipRecord
from rvt_ray.video.frames import ArrayFrames

HEIGHT, WIDTH = 240, 320
SHORT, LONGER = 4, 20


def peak_mb(device: str) -> float:
    """Most that was needed since `start_mb`."""
    if device != "cpu":
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]


def start_mb(device: str) -> float:
    """What is needed now; forgets the peak of loading the model."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / 2**20
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what loading freed would else hide what comes after
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # Linux: the peak becomes the present
    return psutil.Process().memory_info().rss / 2**20


def run_stock(args: argparse.Namespace) -> tuple[float, float]:
    """Peak, and what is held at the end."""
    predictor = stock_predictor(args.checkpoint, args.size, args.image_size, 4, args.device)
    follow_stock(args, predictor, 2)
    before = start_mb(args.device)
    state = follow_stock(args, predictor, args.frames)
    return peak_mb(args.device) - before, held_mb(state)


def held_mb(state: Any) -> float:
    """All tensors below, each storage once."""
    storages: dict[int, int] = {}
    waiting = [state]
    while waiting:
        item = waiting.pop()
        if isinstance(item, torch.Tensor):
            storages[item.untyped_storage().data_ptr()] = item.untyped_storage().nbytes()
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)
    return sum(storages.values()) / 2**20


def follow_stock(args: argparse.Namespace, predictor: Any, num_frames: int) -> Any:
    pictures = moving_pictures(8, args.image_size, args.image_size)
    images = torch.empty(num_frames, 3, args.image_size, args.image_size)
    for t in range(num_frames):
        images[t] = torch.from_numpy(pictures[t % 8]).permute(2, 0, 1) / 127.5 - 1
    with quiet(), precision(args.device):
        state = stock_state(predictor, images.to(args.device), HEIGHT, WIDTH)
        for i, mask in enumerate(first_masks(args.objects, HEIGHT, WIDTH), 1):
            predictor.add_new_mask(state, 0, i, mask)
        for _, _, masks in predictor.propagate_in_video(state):
            (masks > 0).cpu()
    return state


def run_ours(args: argparse.Namespace) -> tuple[float, float]:
    """Peak, and what is held at the end."""
    model, _ = checkpoints.load(args.checkpoint, args.size, args.image_size, 4)
    network = Network(model, args.device, "float32" if args.device == "cpu" else "bfloat16")
    follow_ours(args, network, 2)
    before = start_mb(args.device)
    propagator = follow_ours(args, network, args.frames)
    return peak_mb(args.device) - before, propagator.state_bytes() / 2**20


def run_whole(args: argparse.Namespace) -> tuple[float, float]:
    """As `run_ours`, the peak with the model in it: what a worker needs."""
    _, held = run_ours(args)
    return peak_mb(args.device), held


def follow_ours(args: argparse.Namespace, network: Network, num_frames: int) -> Propagator:
    pictures = moving_pictures(8, HEIGHT, WIDTH)
    propagator = Propagator(network, args.frames)
    for t in range(num_frames):
        features = network.encode([t], pictures[t % 8][None])[0]
        tracked = propagator.step(features)
        if t == 0:
            tracked = propagator.prompt(
                features, dict(enumerate(first_masks(args.objects, HEIGHT, WIDTH), 1))
            )
        network.masks_at(tracked.logits, HEIGHT, WIDTH)
    return propagator


def run_clips(args: argparse.Namespace) -> tuple[float, float]:
    """Resident MB that the last nine tenths of the clips add, and all of it."""
    segmenter = Sam2Segmenter(
        Sam2Options(
            checkpoint=str(args.checkpoint),
            image_size=64,
            device=args.device,
            points_per_side=3,
            min_quality=0.3,
            min_stability=0.1,
            max_objects=2,
        )
    )
    clip = ClipRecord.model_construct(clip_id="c", num_frames=4)
    before = 0.0
    for i in range(args.clips):
        frames = ArrayFrames(moving_pictures(4, 72, 96, seed=i), np.arange(4) / 25)
        segmenter.segment(clip, frames, [0, 2])
        if i == args.clips // 10:
            before = psutil.Process().memory_info().rss / 2**20
    after = psutil.Process().memory_info().rss / 2**20
    return after - before, after


def measure(args: argparse.Namespace, side: str, **changes: int) -> tuple[float, float]:
    """What `run_...` gives, in a process of its own."""
    values = {**vars(args), **changes}
    names = ("objects", "frames", "image_size", "size", "checkpoint", "device", "threads", "clips")
    flags = [f"--{name.replace('_', '-')}={values[name]}" for name in names]
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.sam2_memory", "--side", side, *flags],
        check=True,
        capture_output=True,
        text=True,
    )
    first, second = json.loads(result.stdout.splitlines()[-1])
    return first, second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--objects", type=int, default=16)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--image-size", type=int, default=256)
    parser.add_argument("--size", default="tiny", choices=list(checkpoints.VARIANTS))
    parser.add_argument("--checkpoint", type=Path, help="default: random weights")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clips", type=int, default=200)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--side", choices=["sam2", "rvt-ray", "whole", "clips"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    if args.side is not None:
        run = {"sam2": run_stock, "rvt-ray": run_ours, "whole": run_whole, "clips": run_clips}[args.side]
        print(json.dumps(run(args)))
        return
    with tempfile.TemporaryDirectory() as folder:
        if args.checkpoint is None:
            args.checkpoint = random_checkpoint(Path(folder) / "random.pt", args.size, 1, args.image_size)
        report(args)


def report(args: argparse.Namespace) -> None:
    def say(**fields: object) -> None:
        print(json.dumps(fields), flush=True)

    if args.full:
        stock, stock_state_mb = measure(args, "sam2")
        ours, ours_state_mb = measure(args, "rvt-ray")
    else:
        (_, held), (peak, held_later) = (measure(args, "sam2", frames=n) for n in (SHORT, LONGER))
        more = (held_later - held) / (LONGER - SHORT) * (args.frames - LONGER)
        stock, stock_state_mb = peak + more, held_later + more
        say(
            side="sam2",
            frames=LONGER,
            peak_mb=round(peak, 1),
            state_mb=[round(held, 1), round(held_later, 1)],
        )
        ours, ours_state_mb = measure(args, "rvt-ray", frames=LONGER)
    common = {"objects": args.objects, "image_size": args.image_size, "device": args.device}
    say(side="sam2", **common, frames=args.frames, peak_mb=round(stock, 1), state_mb=round(stock_state_mb, 1))
    frames = args.frames if args.full else LONGER
    say(side="rvt-ray", **common, frames=frames, peak_mb=round(ours, 1), state_mb=round(ours_state_mb, 1))
    say(ratio=round(ours / stock, 4), wanted=0.1, state_ratio=round(ours_state_mb / stock_state_mb, 4))
    few = max(1, args.objects // 4)
    short, long = (measure(args, "whole", objects=few, frames=n)[0] for n in (10, 100))
    fewer, _ = measure(args, "rvt-ray", objects=few, frames=frames)
    say(what="ten times the frames", objects=few, peak_mb=[round(short, 1), round(long, 1)])
    say(what="ten times the frames", ratio=round(long / short, 3), wanted=1.2)
    say(what="four times the objects", objects=[few, args.objects], added_mb=round(ours - fewer, 1))
    say(what="clips in one worker", clips=args.clips, grown_mb=round(measure(args, "clips")[0], 1))


if __name__ == "__main__":
    main()
