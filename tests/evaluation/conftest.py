"""A corpus of six videos in two sources with all tasks, and the perfect predictions for it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rvt_ray.records import Category, Task
from tests.corpora import make_clip, make_instance, make_sample, make_twin, write_corpus

N, H, W = 12, 60, 80


def clip_and_twin(number):
    clip = make_clip(f"{number:016x}", N, H, W, source="left" if number < 3 else "right")
    small, large = [], []
    for i in range(N):
        a, b = np.zeros((H, W), bool), np.zeros((H, W), bool)
        if i >= 2:  # absent at first
            a[10 + number : 22 + number, 3 * i : 3 * i + 14] = True
        b[30:58, 20 + number : 60 + number] = True
        small.append(a)
        large.append(b)
    return clip, make_twin(clip, [make_instance(1, "ball", small), make_instance(2, "sofa", large)])


def samples_of(number, twin):
    key = f"v{number}"
    level = number % 4 + 1
    text = f"A ball rolls over the floor {number} times."
    common = {"level": level, "categories": [Category.SEMANTIC] if number % 2 else list(Category)}
    return [
        make_sample(f"{key}-seg", twin, Task.SEGMENTATION, [1], **common),
        make_sample(f"{key}-two", twin, Task.GROUNDING, [1, 2], **common),
        make_sample(f"{key}-vqa", twin, Task.VQA, [1], **common),
        make_sample(f"{key}-free", twin, Task.VQA, [1], choices=[], answer=f"{number} times", **common),
        make_sample(f"{key}-sum", twin, Task.SUMMARY, [1], answer=text, **common),
        make_sample(f"{key}-none", twin, Task.SEGMENTATION, [], **common),
        make_sample(f"{key}-nobox", twin, Task.GROUNDING, [], **common),
    ]


@pytest.fixture(scope="session")
def truth():
    """(clips, twins, samples)."""
    pairs = [clip_and_twin(i) for i in range(6)]
    samples = [s for i, (_, twin) in enumerate(pairs) for s in samples_of(i, twin)]
    return [c for c, _ in pairs], [t for _, t in pairs], samples


@pytest.fixture(scope="session")
def corpus(truth, tmp_path_factory):
    """The corpus folder."""
    return write_corpus(tmp_path_factory.mktemp("evaluation") / "six", *truth, row_group_size=5)


def perfect_row(sample):
    row = {"sample_id": sample.sample_id}
    if sample.task is Task.SEGMENTATION:
        row["masks"] = list(sample.masks)
    elif sample.task is Task.GROUNDING:
        row["boxes"] = [[[b.x, b.y, b.w, b.h] for b in boxes] for boxes in sample.boxes]
    else:
        row["answer"] = sample.answer
    return row


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path
