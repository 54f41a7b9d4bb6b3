"""What the search hands to the query room: a proven program with its proof."""

from __future__ import annotations

from dataclasses import dataclass, field

from rvt_ray.reasoning.program import Program
from rvt_ray.records import Category, Evidence, Tree


@dataclass(frozen=True)
class Candidate:
    """A program that is valid for its target set: certain = possible = `target_ids`.

    Attributes:
        anchors: per anchor variable the instance ids that its own description (its constraints and those of
            the anchors below it) can mean; exactly one, so that wording may say "the".
        level: 1..4, counted from necessary hops.
        categories: read off the constraints used.
        tree: the reasoning tree of the target up to `level`.
        evidence: one entry per fact that the proof uses.
        no_target: the program is a near miss of a true one and holds for nothing (`target_ids` empty).
    """

    target_ids: tuple[int, ...]
    program: Program
    level: int
    categories: tuple[Category, ...]
    tree: Tree
    evidence: tuple[Evidence, ...]
    anchors: dict[str, tuple[int, ...]] = field(default_factory=dict)
    no_target: bool = False
