"""The yield funnel as bars: geometry for the SVGs that the index template draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rvt_ray.queries.funnel import YieldFunnel

LEFT, RIGHT, TOP, ROW, WIDTH = 84, 46, 4, 20, 420


@dataclass(frozen=True)
class Piece:
    """A level's part of a bar."""

    level: int
    count: int
    x: float
    width: float


@dataclass(frozen=True)
class Bar:
    """What is left after one step."""

    name: str
    y: int
    count: int
    end: float
    pieces: list[Piece]


@dataclass(frozen=True)
class YieldPlot:
    """One task. All plots of a page share the scale."""

    task: str
    width: int
    height: int
    bars: list[Bar]


def yield_plots(funnel: YieldFunnel, tasks: Sequence[str], levels: Sequence[int]) -> list[YieldPlot]:
    """A plot per task that had candidates: a bar per step, made of levels."""
    counts = {(t, k): funnel.left((t, "", k)) for t in tasks for k in levels}
    most = max((sum(counts[t, k][0] for k in levels) for t in tasks), default=0)
    if most == 0:
        return []
    scale = (WIDTH - LEFT - RIGHT) / most
    names = ["candidates", *funnel.steps()]
    plots = []
    for task in tasks:
        if not any(counts[task, k][0] for k in levels):
            continue
        bars = []
        for step, name in enumerate(names):
            x, pieces = float(LEFT), []
            for level in levels:
                count = counts[task, level][step]
                width = count * scale
                pieces.append(Piece(level, count, round(x, 2), round(width, 2)))
                x += width
            total = sum(p.count for p in pieces)
            bars.append(Bar(name, TOP + step * ROW, total, round(x, 2), [p for p in pieces if p.count]))
        plots.append(YieldPlot(task, WIDTH, TOP + len(names) * ROW, bars))
    return plots
