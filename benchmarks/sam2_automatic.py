"""Automatic masks of a key frame: ours against sam2's generator, same weights, picture and grid, one run.

    python -m benchmarks.sam2_automatic [--points-per-side 16] [--image-size 256] [--device auto]

With random weights no mask would pass the usual thresholds: they are set so that `--pass-share` of the masks
pass (about a third do with trained weights), for both sides alike. Where torchvision is missing, sam2's box
NMS is replaced by one in plain torch (its share of the time is small).

Prints one JSON line per side (seconds per frame, masks) and the ratios: `raw` up to run-length masks before
duplicates are removed, `whole` with our cleaning and mask-overlap deduplication against sam2's box NMS.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.sam2_common import moving_pictures, quiet, random_checkpoint, torchvision_or_stub
from benchmarks.sam2_propagation import precision
from rvt_ray.masks import rle
from rvt_ray.perception.segment.sam2 import checkpoints
from rvt_ray.perception.segment.sam2.automatic import AutomaticMasks, GridSettings
from rvt_ray.perception.segment.sam2.network import Network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--points-per-side", type=int, default=16)
    parser.add_argument("--image-size", type=int, default=256)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--size", default="tiny", choices=list(checkpoints.VARIANTS))
    parser.add_argument("--checkpoint", type=Path, help="default: random weights")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--pass-share", type=float, default=0.33)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        path = args.checkpoint or random_checkpoint(Path(folder) / "random.pt", args.size, 1, args.image_size)
        model, _ = checkpoints.load(path, args.size, args.image_size, 4)
        stock_model, _ = checkpoints.load(path, args.size, args.image_size, 4)
        network = Network(model, args.device, "float32" if args.device == "cpu" else "bfloat16")
        stock_model.to(args.device)
        image = moving_pictures(1, args.height, args.width)
        settings = thresholds(args, network, image)
        compare(args, network, stock_model, image, settings)


def thresholds(args: argparse.Namespace, network: Network, image: np.ndarray) -> GridSettings:
    """Such that the wanted share of the masks passes, each of the two filters stopping half of the rest."""
    everything = GridSettings(args.points_per_side, min_quality=0, min_stability=0)
    features = network.encode([0], image)
    found = [raw for _, raw in AutomaticMasks(network, everything).raw(features, args.height, args.width)]
    share = args.pass_share**0.5
    quality = float(np.quantile([raw.quality for raw in found], 1 - share))
    stability = float(np.quantile([raw.stability for raw in found if raw.quality > quality], 1 - share))
    return GridSettings(args.points_per_side, min_quality=quality, min_stability=stability)


def compare(
    args: argparse.Namespace, network: Network, stock_model: Any, image: np.ndarray, settings: GridSettings
) -> None:
    ours = AutomaticMasks(network, settings)

    def raw() -> int:
        found = ours.raw(network.encode([0], image), args.height, args.width)
        return len([rle.encode(mask.mask) for _, mask in found])

    def whole() -> int:
        return len(ours.find(network.encode([0], image), args.height, args.width)[0])

    results: dict[str, tuple[float, int]] = {}
    with torchvision_or_stub(), quiet():
        from sam2.automatic_mask_generator import SAM2AutomaticMaskGenerator

        generator = SAM2AutomaticMaskGenerator(
            stock_model,
            points_per_side=args.points_per_side,
            pred_iou_thresh=settings.min_quality,
            stability_score_thresh=settings.min_stability,
            output_mode="coco_rle",
        )
        n = args.image_size // 16
        generator.predictor._bb_feat_sizes = [(4 * n, 4 * n), (2 * n, 2 * n), (n, n)]

        def stock() -> int:
            with torch.inference_mode(), precision(args.device):
                return len(generator.generate(image[0]))

        for _ in range(args.repeats):
            for name, function in (("sam2", stock), ("rvt-ray raw", raw), ("rvt-ray", whole)):
                start = time.perf_counter()
                count = function()
                if args.device != "cpu":
                    torch.cuda.synchronize()
                seconds = time.perf_counter() - start
                results[name] = min(results.get(name, (seconds, count)), (seconds, count))
    common = {"points": args.points_per_side**2, "image_size": args.image_size, "device": args.device}
    for name, (seconds, count) in results.items():
        print(json.dumps({"side": name, **common, "s_per_frame": round(seconds, 4), "masks": count}))
    stock_s = results["sam2"][0]
    ratios = {"raw": stock_s / results["rvt-ray raw"][0], "whole": stock_s / results["rvt-ray"][0]}
    print(json.dumps({"ratio": {k: round(v, 3) for k, v in ratios.items()}, "wanted": 1.5}))


if __name__ == "__main__":
    main()
