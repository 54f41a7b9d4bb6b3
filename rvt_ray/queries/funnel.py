"""The yield funnel: how many candidates are left after each gate, by task, category and level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

STEPS = ("program", "necessity", "stability", "reply", "leak", "form", "cues", "faithful")
"""Gates that refuse, in the order in which they run; `reply` is what a model sent back."""
NO_CATEGORY = "none"

Cell = tuple[str, str, int]
"""Task, category, level."""


@dataclass
class YieldFunnel:
    """Counts of kept and refused candidates. One with several categories counts in each of its cells, and
    once in the totals by task and level."""

    kept: Counter[Cell] = field(default_factory=Counter)
    refused: Counter[tuple[Cell, str]] = field(default_factory=Counter)

    def add(self, task: str, level: int, categories: Iterable[str], gate: str | None) -> None:
        """One candidate; `gate` is null where it was kept."""
        for category in ("", *(list(categories) or [NO_CATEGORY])):
            cell = (task, category, level)
            if gate is None:
                self.kept[cell] += 1
            else:
                self.refused[cell, gate] += 1

    def left(self, cell: Cell) -> list[int]:
        """Candidates of a cell, then what is left of them after each of `steps()`. Category "" is all."""
        gates = self.steps()
        counts = [self.kept[cell] + sum(self.refused[cell, gate] for gate in gates)]
        for gate in gates:
            counts.append(counts[-1] - self.refused[cell, gate])
        return counts

    def steps(self) -> list[str]:
        """The gates, those that this package does not know last."""
        others = {gate for _, gate in self.refused} - set(STEPS)
        return [*STEPS, *sorted(others)]

    def cells(self) -> list[Cell]:
        """Every task, category and level that had a candidate."""
        return sorted({*self.kept, *(cell for cell, _ in self.refused)})

    def by_cell(self) -> list[dict[str, Any]]:
        """For the manifest: one entry per task, category and level."""
        return [
            {
                "task": task,
                "category": category,
                "level": level,
                **dict(zip(("candidates", *self.steps()), self.left((task, category, level)), strict=True)),
            }
            for task, category, level in self.cells()
            if category
        ]

    def total(self, tasks: Sequence[str], level: int) -> list[int]:
        """As `left`, summed over tasks, categories aside."""
        columns = [self.left((task, "", level)) for task in tasks]
        return [sum(values) for values in zip(*columns, strict=True)] if columns else []
