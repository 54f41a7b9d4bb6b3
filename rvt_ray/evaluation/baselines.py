"""Trivial predictors: what a number is worth shows beside what costs nothing.

* `empty`: predicts nothing.
* `full_frame`: everything: the whole frame, the first choice, the scene's caption.
* `largest_track`: the instance with the largest area over the clip, its kind or caption.
* `random_track`: a random instance (seeded by the sample's id), a random choice.
* `text_only`: never sees a pixel or a position: the instance whose kind shares words with the query; for
  texts the answer of the most similar query of *another* video.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvt_ray.corpus import Corpus
from rvt_ray.errors import ConfigError
from rvt_ray.evaluation.text import words
from rvt_ray.evaluation.vqa import normalise
from rvt_ray.masks import rle
from rvt_ray.records import ClipRecord, DigitalTwin, Instance, Sample, Task

_MEMORY = 4000  # queries that text_only knows

Row = dict[str, Any]


@dataclass(frozen=True)
class _Known:
    """A query of the corpus and its answer, as text_only remembers it."""

    video_id: str
    task: str
    words: frozenset[str]
    answer: str


@dataclass(frozen=True)
class Context:
    """What a baseline may look at."""

    clip: ClipRecord
    twin: DigitalTwin
    rng: random.Random
    memory: list[_Known]


Baseline = Callable[[Sample, Context], Row]


def write_baseline(corpus: Corpus, name: str, path: Path, seed: int = 0) -> Path:
    """Write a baseline's predictions as JSONL, one clip in memory at a time.

    Raises:
        ConfigError: no such baseline.
    """
    if name not in BASELINES:
        raise ConfigError(f"no baseline {name!r}; there are {', '.join(BASELINES)}")
    predict = BASELINES[name]
    memory = _remember(corpus, seed) if name == "text_only" else []
    with path.open("w", encoding="utf-8") as file:
        for clip in corpus.clips():
            twin = corpus.twin(clip.clip_id)
            for sample in corpus.samples(clip.clip_id) if twin else ():
                assert twin is not None
                rng = random.Random(f"{seed}:{sample.sample_id}")
                row = predict(sample, Context(clip, twin, rng, memory))
                file.write(json.dumps({"sample_id": sample.sample_id, **row}, ensure_ascii=False) + "\n")
    return path


def _empty(sample: Sample, context: Context) -> Row:
    return _of_instance(sample, context, None)


def _full_frame(sample: Sample, context: Context) -> Row:
    clip = context.clip
    if sample.task is Task.SEGMENTATION:
        whole = rle.from_counts([0, clip.height * clip.width], clip.height, clip.width)
        return {"masks": [whole] * clip.num_frames}
    if sample.task is Task.GROUNDING:
        return {"boxes": [[[0, 0, clip.width, clip.height]]] * clip.num_frames}
    return {"answer": sample.choices[0] if sample.choices else context.twin.scene.caption}


def _largest_track(sample: Sample, context: Context) -> Row:
    instances = context.twin.instances
    # The larger first; of equals the smaller id, so that the choice is not the file's order.
    best = max(instances, key=lambda i: (_total_area(i), -i.instance_id), default=None)
    return _of_instance(sample, context, best)


def _random_track(sample: Sample, context: Context) -> Row:
    ordered = sorted(context.twin.instances, key=lambda i: i.instance_id)
    if sample.choices:
        return {"answer": context.rng.choice(sample.choices)}
    return _of_instance(sample, context, context.rng.choice(ordered) if ordered else None)


def _text_only(sample: Sample, context: Context) -> Row:
    query = frozenset(words(sample.query))
    if sample.task in (Task.SEGMENTATION, Task.GROUNDING):
        ordered = sorted(context.twin.instances, key=lambda i: i.instance_id)
        context.rng.shuffle(ordered)  # where the words decide nothing, chance does, not the smallest id
        best = max(ordered, key=lambda i: len(query & frozenset(words(i.category))), default=None)
        return _of_instance(sample, context, best)
    allowed = {normalise(c): c for c in sample.choices}
    best_score, best_answer = -1.0, sample.choices[0] if sample.choices else ""
    for known in context.memory:
        if known.video_id == context.clip.video_id or known.task != sample.task:
            continue
        if allowed and normalise(known.answer) not in allowed:
            continue
        score = len(query & known.words) / max(1, len(query | known.words))
        if score > best_score:
            best_score, best_answer = score, known.answer
    return {"answer": best_answer}


BASELINES: dict[str, Baseline] = {
    "empty": _empty,
    "full_frame": _full_frame,
    "largest_track": _largest_track,
    "random_track": _random_track,
    "text_only": _text_only,
}


def _of_instance(sample: Sample, context: Context, instance: Instance | None) -> Row:
    """The prediction that says "this instance" in the task's form; None: nothing."""
    n = context.clip.num_frames
    if sample.task is Task.SEGMENTATION:
        masks: list[str | None] = [None] * n
        if instance is not None:
            for frame, text in zip(instance.track.frame_idx, instance.track.rle, strict=True):
                masks[frame] = text
        return {"masks": masks}
    if sample.task is Task.GROUNDING:
        boxes: list[list[list[float]]] = [[] for _ in range(n)]
        if instance is not None:
            t = instance.track
            for frame, *box in zip(t.frame_idx, t.box_x, t.box_y, t.box_w, t.box_h, strict=True):
                numbers = [v for v in box if v is not None]
                if len(numbers) == 4:
                    boxes[frame] = [numbers]
        return {"boxes": boxes}
    if instance is None:
        return {"answer": ""}
    return {"answer": instance.category if sample.task is Task.VQA else instance.caption}


def _total_area(instance: Instance) -> float:
    return sum(a for a in instance.track.area if a is not None)


def _remember(corpus: Corpus, seed: int) -> list[_Known]:
    """Queries with text answers; of more than fit, those whose ids hash lowest (seeded, order-free)."""
    video_of = {r["clip_id"]: r["video_id"] for r in corpus.tables["clips"].scan(["clip_id", "video_id"])}
    kept: list[tuple[str, _Known]] = []
    for row in corpus.tables["samples"].scan(["sample_id", "clip_id", "task", "query", "answer"]):
        if row["answer"] is None:
            continue
        known = _Known(
            video_of.get(row["clip_id"], row["clip_id"]),
            row["task"],
            frozenset(words(row["query"])),
            row["answer"],
        )
        kept.append((hashlib.sha256(f"{seed}:{row['sample_id']}".encode()).hexdigest(), known))
        if len(kept) > 2 * _MEMORY:
            kept = sorted(kept, key=lambda item: item[0])[:_MEMORY]
    return [known for _, known in sorted(kept, key=lambda item: item[0])[:_MEMORY]]
