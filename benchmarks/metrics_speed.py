"""J&F on run-length masks against a straightforward dense implementation, in one process and run.

    python -m benchmarks.metrics_speed [--masks FOLDER] [--repeats 3]

The dense implementation is what one writes first: decode both masks, IoU by counting pixels, contours by
shifted comparison, matches by dilating the whole frame's contour with a disk (OpenCV). Both sides take the
same RLE strings and must give the same numbers to 1e-9, or the benchmark fails.

Prints one JSON line per case: seconds (best of the repeats) and the ratio.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from rvt_ray.evaluation.boundary import disk
from rvt_ray.evaluation.masks import boundary_tolerance, score_frames
from rvt_ray.masks import rle

Case = tuple[list[list[str]], list[list[str]], int, int]


def dense(truth: list[str], prediction: list[str], height: int, width: int) -> np.ndarray:
    """J and F per frame, shape (2, num_frames), full frames all the way."""
    kernel = disk(boundary_tolerance(height, width))
    result = np.ones((2, len(truth)))
    for i, (a_text, b_text) in enumerate(zip(truth, prediction, strict=True)):
        a, b = rle.decode(a_text, height, width), rle.decode(b_text, height, width)
        union = np.count_nonzero(a | b)
        result[0, i] = np.count_nonzero(a & b) / union if union else 1.0
        edge_a, edge_b = contour(a), contour(b)
        n_a, n_b = np.count_nonzero(edge_a), np.count_nonzero(edge_b)
        if n_a == 0 or n_b == 0:
            result[1, i] = float(n_a == n_b)
            continue
        recall = np.count_nonzero(edge_a & (cv2.dilate(edge_b.view(np.uint8), kernel) > 0)) / n_a
        precision = np.count_nonzero(edge_b & (cv2.dilate(edge_a.view(np.uint8), kernel) > 0)) / n_b
        total = precision + recall
        result[1, i] = 2 * precision * recall / total if total else 0.0
    return result


def contour(mask: np.ndarray) -> np.ndarray:
    """Pixels that differ from their right, lower or lower right neighbour."""
    edge = np.zeros_like(mask)
    edge[:, :-1] |= mask[:, :-1] ^ mask[:, 1:]
    edge[:-1] |= mask[:-1] ^ mask[1:]
    edge[:-1, :-1] |= mask[:-1, :-1] ^ mask[1:, 1:]
    return edge


def jitter(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A plausible prediction: moved by up to 3 px, then grown or shrunk."""
    moved = np.roll(mask, rng.integers(-3, 4, 2), (0, 1)).astype(np.uint8)
    change = cv2.dilate if rng.random() < 0.5 else cv2.erode
    return np.asarray(change(moved, np.ones((3, 3), np.uint8))) > 0


def from_folder(folder: Path, rng: np.random.Generator) -> Case:
    """Palette PNGs, one id per object."""
    from PIL import Image

    maps = [np.array(Image.open(p)) for p in sorted(folder.glob("*.png"))]
    ids = sorted(set(np.unique(np.stack(maps)).tolist()) - {0})
    truth = [[rle.encode(m == i) for m in maps] for i in ids]
    prediction = [[rle.encode(jitter(m == i, rng)) for m in maps] for i in ids]
    return truth, prediction, *maps[0].shape[:2]


def synthetic(frames: int, objects: int, height: int, width: int, rng: np.random.Generator) -> Case:
    """Ellipses of many sizes on straight paths."""
    truth, prediction = [], []
    for _ in range(objects):
        start, speed = rng.uniform(0, 1, 2) * (width, height), rng.uniform(-2, 2, 2)
        axes = tuple(int(v) for v in rng.integers(height // 30, height // 5, 2))
        rows: tuple[list[str], list[str]] = ([], [])
        for t in range(frames):
            mask = np.zeros((height, width), np.uint8)
            x, y = start + speed * t
            cv2.ellipse(mask, (int(x) % width, int(y) % height), axes, 20, 0, 360, 1, -1)
            rows[0].append(rle.encode(mask))
            rows[1].append(rle.encode(jitter(mask, rng)))
        truth.append(rows[0])
        prediction.append(rows[1])
    return truth, prediction, height, width


def best(work: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return min(times), result


def measure(name: str, case: Case, repeats: int) -> dict[str, object]:
    truth, prediction, height, width = case

    def fast() -> np.ndarray:
        scores = [score_frames(t, p, height, width) for t, p in zip(truth, prediction, strict=True)]
        return np.stack([[s.j, s.f] for s in scores])

    def slow() -> np.ndarray:
        return np.stack([dense(t, p, height, width) for t, p in zip(truth, prediction, strict=True)])

    fast_s, fast_result = best(fast, repeats)
    slow_s, slow_result = best(slow, repeats)
    worst = float(np.abs(fast_result - slow_result).max())
    if worst > 1e-9:
        raise SystemExit(f"{name}: the two implementations differ by {worst}")
    return {
        "case": name,
        "frames": len(truth[0]),
        "objects": len(truth),
        "size": f"{width}x{height}",
        "rvt_ray_s": round(fast_s, 4),
        "dense_s": round(slow_s, 4),
        "ratio": round(slow_s / fast_s, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--masks", type=Path, help="folder of palette PNGs (e.g. a DAVIS sequence)")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    rng = np.random.default_rng(0)
    if arguments.masks is not None:
        print(
            json.dumps(
                measure(arguments.masks.parent.name, from_folder(arguments.masks, rng), arguments.repeats)
            )
        )
    print(json.dumps(measure("synthetic", synthetic(300, 20, 480, 854, rng), 1)))


if __name__ == "__main__":
    main()
