"""From the scores table to the report's groups: task × category × level × source, with intervals.

One metric's columns are read at a time, so memory holds a few numbers per sample and no texts or masks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rvt_ray.evaluation import bootstrap
from rvt_ray.evaluation.metrics import METRICS, Metric
from rvt_ray.records import Category, Task

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """A cell of the breakdown; null means all. No-target samples are never mixed with the others."""

    task: Task
    has_target: bool = True
    category: str | None = None
    level: int | None = None
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As it stands in a report."""
        return {
            "task": str(self.task),
            "has_target": self.has_target,
            "category": self.category,
            "level": self.level,
            "source": self.source,
        }


@dataclass
class Columns:
    """The scores of one task, as arrays over its samples."""

    task: Task
    sample_ids: list[str]
    videos: npt.NDArray[np.int64]
    video_ids: list[str]
    categories: dict[str, Bools]
    levels: npt.NDArray[np.int64]
    sources: npt.NDArray[np.object_]
    has_target: Bools
    table: pa.Table

    @classmethod
    def read(cls, path: Path, task: Task, columns: list[str]) -> Columns:
        """Read a task's rows of a scores file."""
        names = ["sample_id", "video_id", "source", "categories", "level", "has_target", *columns]
        table = pq.read_table(path, columns=names, filters=[("task", "=", str(task))])
        videos = table["video_id"].combine_chunks().dictionary_encode()
        flat = table["categories"].combine_chunks()
        parents = np.asarray(pc.list_parent_indices(flat))
        values = np.asarray(pc.list_flatten(flat), dtype=object)
        members = {}
        for category in Category:
            members[str(category)] = np.zeros(len(table), np.bool_)
            members[str(category)][parents[values == str(category)]] = True
        return cls(
            task,
            table["sample_id"].to_pylist(),
            np.asarray(videos.indices, np.int64),
            videos.dictionary.to_pylist(),
            members,
            np.asarray(table["level"], np.int64),
            np.asarray(table["source"].to_pylist(), dtype=object),
            np.asarray(table["has_target"], np.bool_),
            table.select(columns),
        )

    def groups(self, max_axes: int = 3) -> Iterator[tuple[Group, Bools]]:
        """Every group with at least one sample that names at most `max_axes` of category, level and source,
        and which samples are in it."""
        for has_target in (True, False):
            base = self.has_target == has_target
            if not base.any():
                continue
            categories: list[str | None] = [None, *self.categories]
            levels: list[int | None] = [None, *sorted({int(v) for v in self.levels[base]})]
            sources: list[str | None] = [None, *sorted(set(self.sources[base]))]
            for category, level, source in itertools.product(categories, levels, sources):
                if sum(axis is not None for axis in (category, level, source)) > max_axes:
                    continue
                where = base.copy()
                if category is not None:
                    where &= self.categories[category]
                if level is not None:
                    where &= self.levels == level
                if source is not None:
                    where &= self.sources == source
                if where.any():
                    yield Group(self.task, has_target, category, level, source), where

    def fraction(self, metric: Metric) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], Bools]:
        """Numerator, denominator and which samples have the metric."""
        top = np.asarray(self.table[metric.column].to_numpy(), np.float64)
        has = ~np.isnan(top)
        if metric.weight is None:
            return np.where(has, top, 0.0), has.astype(np.float64), has
        bottom = np.asarray(self.table[metric.weight].to_numpy(), np.float64)
        return np.where(has, top, 0.0), np.where(has, bottom, 0.0), has


def breakdown(scores: Path, seed: int, draws: int, max_axes: int = 3) -> list[dict[str, Any]]:
    """All groups with all their metrics: `{"group": ..., "samples": n, "metrics": {name: estimate}}`."""
    result = []
    for task in Task:
        metrics = [m for m in METRICS if m.task is task]
        names = list(dict.fromkeys(c for m in metrics for c in (m.column, m.weight) if c is not None))
        columns = Columns.read(scores, task, names)
        top, bottom, has = (
            np.stack(parts, axis=1) for parts in zip(*map(columns.fraction, metrics), strict=True)
        )
        for group, where in columns.groups(max_axes):
            estimates = bootstrap.estimate_all(
                columns.videos[where], top[where], bottom[where], has[where], seed, draws
            )
            found = {m.name: e.to_json() for m, e in zip(metrics, estimates, strict=True) if e is not None}
            result.append({"group": group.to_json(), "samples": int(where.sum()), "metrics": found})
    return result
