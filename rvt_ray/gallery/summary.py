"""What the index page says about the whole corpus, counted from light columns only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from rvt_ray.corpus import Corpus
from rvt_ray.queries.funnel import YieldFunnel
from rvt_ray.records import Category, Task

LEVELS = (1, 2, 3, 4)


@dataclass(frozen=True)
class FunnelStep:
    """One stage of the yield funnel. `share` is of the step `of`, 0..1; null where that step is empty."""

    name: str
    count: int
    of: str
    share: float | None


@dataclass(frozen=True)
class Summary:
    """Counts of a corpus.

    Attributes:
        counts: rows per table, and distinct videos.
        funnel: clips → twins, candidates → samples.
        table: (task, category) → one count per level; a sample with several categories counts in each.
        no_target: samples without a target.
        wording: who worded the samples → count.
        failures: (stage, code) → count, most frequent first.
        gates: gate → rejects, most frequent first.
        yields: candidates left after each gate.
        sources: source → clips.
        samples_of: clip_id → number of samples.
    """

    counts: dict[str, int]
    funnel: list[FunnelStep]
    table: dict[tuple[str, str], list[int]]
    no_target: int
    wording: dict[str, int]
    failures: list[tuple[str, str, int]]
    gates: list[tuple[str, int]]
    yields: YieldFunnel
    sources: dict[str, int]
    samples_of: dict[str, int]


def summarise(corpus: Corpus) -> Summary:
    """Count a corpus. Reads no masks, no texts."""
    tables = corpus.tables
    videos: set[str] = set()
    sources: Counter[str] = Counter()
    for row in tables["clips"].scan(["video_id", "source"]):
        videos.add(row["video_id"])
        sources[row["source"]] += 1

    cells: dict[tuple[str, str], list[int]] = {(t, c): [0] * len(LEVELS) for t in Task for c in Category}
    samples_of: Counter[str] = Counter()
    wording: Counter[str] = Counter()
    no_target = 0
    yields = YieldFunnel()
    for row in tables["samples"].scan(["clip_id", "task", "categories", "level", "target_ids", "wording"]):
        samples_of[row["clip_id"]] += 1
        wording[row["wording"]] += 1
        no_target += not row["target_ids"]
        yields.add(row["task"], row["level"], row["categories"], None)
        for category in row["categories"]:
            cells.setdefault((row["task"], category), [0] * len(LEVELS))[_level(row)] += 1

    failures = Counter((row["stage"], row["code"]) for row in tables["failures"].scan(["stage", "code"]))
    gates: Counter[str] = Counter()
    for row in tables["rejects"].scan(["gate", "task", "level", "categories"]):
        gates[row["gate"]] += 1
        yields.add(row["task"], row["level"], row["categories"], row["gate"])
    counts = {name: len(table) for name, table in tables.items()} | {"videos": len(videos)}
    candidates = counts["samples"] + counts["rejects"]
    funnel = [
        _step("clips", counts["clips"], "", 0),
        _step("twins", counts["twins"], "clips", counts["clips"]),
        _step("clips with samples", len(samples_of), "twins", counts["twins"]),
        _step("candidates", candidates, "", 0),
        _step("samples", counts["samples"], "candidates", candidates),
    ]
    return Summary(
        counts,
        funnel,
        cells,
        no_target,
        dict(wording),
        [(stage, code, n) for (stage, code), n in _ordered(failures)],
        _ordered(gates),
        yields,
        dict(sources),
        dict(samples_of),
    )


def _level(row: dict[str, Any]) -> int:
    return min(max(int(row["level"]), LEVELS[0]), LEVELS[-1]) - 1


def _step(name: str, count: int, of: str, total: int) -> FunnelStep:
    return FunnelStep(name, count, of, count / total if total else None)


def _ordered(counter: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))
