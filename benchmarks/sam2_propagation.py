"""Propagation of many objects: our engine against sam2's video predictor, same weights and pixels, one run.

    python -m benchmarks.sam2_propagation [--objects 16] [--frames 12] [--image-size 256] [--device auto]

Prints one JSON line per side (seconds per frame, the share of each part of the network) and one with the
ratio. Both run in float32 on a CPU and under bfloat16 autocast on a GPU. Weights are random unless a
checkpoint is given; the time does not depend on them.

The first `--warm` frames are left out: until seven frames are remembered, a frame costs less than later on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from benchmarks.sam2_common import (
    first_masks,
    moving_pictures,
    quiet,
    random_checkpoint,
    stock_predictor,
    stock_state,
)
from rvt_ray.perception.segment.sam2 import checkpoints, engine
from rvt_ray.perception.segment.sam2.engine import Propagator
from rvt_ray.perception.segment.sam2.network import Network

HEIGHT, WIDTH = 480, 640


class Stopwatch:
    """Seconds per part, with the device's queue emptied around each."""

    def __init__(self, device: str) -> None:
        self.seconds: dict[str, float] = {}
        self._on_gpu = device != "cpu"

    def now(self) -> float:
        if self._on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    def wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = self.now()
            result = function(*args, **kwargs)
            self.seconds[part] = self.seconds.get(part, 0.0) + self.now() - start
            return result

        return timed

    def shares(self, total: float) -> dict[str, float]:
        shares = {part: round(seconds / total, 3) for part, seconds in sorted(self.seconds.items())}
        return {**shares, "rest": round(1 - sum(self.seconds.values()) / total, 3)}


@contextmanager
def precision(device: str) -> Iterator[None]:
    if device == "cpu":
        yield
    else:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            yield


def run_stock(args: argparse.Namespace, images: torch.Tensor, parts: bool) -> tuple[float, dict[str, float]]:
    predictor = stock_predictor(args.checkpoint, args.size, args.image_size, 4, args.device)
    watch = Stopwatch(args.device)
    if parts:
        for part, owner in (
            ("encoder", predictor.image_encoder),
            ("memory attention", predictor.memory_attention),
            ("mask decoder", predictor.sam_mask_decoder),
            ("memory encoder", predictor.memory_encoder),
        ):
            owner.forward = watch.wrap(part, owner.forward)
    with quiet(), precision(args.device):
        state = stock_state(predictor, images, HEIGHT, WIDTH)
        for i, mask in enumerate(first_masks(args.objects, HEIGHT, WIDTH), 1):
            predictor.add_new_mask(state, 0, i, mask)
        start = 0.0
        for frame, _, masks in predictor.propagate_in_video(state):
            (masks > 0).cpu()
            if frame == args.warm - 1:
                watch.seconds.clear()
                start = watch.now()
        total = watch.now() - start
    return total / (args.frames - args.warm), watch.shares(total)


def run_ours(args: argparse.Namespace, frames: Any, parts: bool) -> tuple[float, dict[str, float]]:
    model, _ = checkpoints.load(args.checkpoint, args.size, args.image_size, 4)
    dtype = "float32" if args.device == "cpu" else "bfloat16"
    network = Network(model, args.device, dtype, compiled=args.compile)
    watch = Stopwatch(args.device)
    original = {name: getattr(engine, name) for name in ("decode", "draw", "remember")}
    if parts:
        network._encode = watch.wrap("encoder", network._encode)
        network.attend_memory = watch.wrap("memory attention", network.attend_memory)
        engine.decode = watch.wrap("mask decoder", engine.decode)
        engine.draw = watch.wrap("mask decoder", engine.draw)
        engine.remember = watch.wrap("memory encoder", engine.remember)
    try:
        propagator = Propagator(network, args.frames, objects_at_once=args.objects_at_once)
        start = 0.0
        step = 1 if args.device == "cpu" else 8
        for first in range(0, args.frames, step):
            indices = list(range(first, min(first + step, args.frames)))
            for features in network.encode(indices, frames[indices]):
                if features.frame == args.warm:
                    watch.seconds.clear()
                    start = watch.now()
                tracked = propagator.step(features)
                if features.frame == 0:
                    masks = dict(enumerate(first_masks(args.objects, HEIGHT, WIDTH), 1))
                    tracked = propagator.prompt(features, masks)
                network.masks_at(tracked.logits, HEIGHT, WIDTH)
        total = watch.now() - start
    finally:
        for name, function in original.items():
            setattr(engine, name, function)
    return total / (args.frames - args.warm), watch.shares(total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--objects", type=int, default=16)
    parser.add_argument("--frames", type=int, default=13)
    parser.add_argument("--warm", type=int, default=8)
    parser.add_argument("--image-size", type=int, default=256)
    parser.add_argument("--size", default="tiny", choices=list(checkpoints.VARIANTS))
    parser.add_argument("--checkpoint", type=Path, help="default: random weights")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--objects-at-once", type=int)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        if args.checkpoint is None:
            args.checkpoint = random_checkpoint(Path(folder) / "random.pt", args.size, 1, args.image_size)
        frames = moving_pictures(args.frames, HEIGHT, WIDTH)
        model, _ = checkpoints.load(args.checkpoint, args.size, args.image_size, 4)
        images = Network(model, "cpu").prepare(frames).to(args.device)
        del model
        # Alternating, best of the repeats: what else the machine does hits both alike.
        stock, ours = [], []
        for _ in range(args.repeats):
            stock.append(run_stock(args, images, parts=False)[0])
            ours.append(run_ours(args, frames, parts=False)[0])
        common = {"objects": args.objects, "image_size": args.image_size, "device": args.device}
        for side, seconds, shares in (
            ("sam2", min(stock), run_stock(args, images, parts=True)[1]),
            ("rvt-ray", min(ours), run_ours(args, frames, parts=True)[1]),
        ):
            print(json.dumps({"side": side, **common, "s_per_frame": round(seconds, 4), "shares": shares}))
        print(json.dumps({"ratio": round(min(stock) / min(ours), 3), "wanted": 1.0}))


if __name__ == "__main__":
    main()
