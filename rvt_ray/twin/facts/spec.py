"""What is known of a predicate besides its rule: its words, arity, scopes, values, units and kin."""

from __future__ import annotations

from dataclasses import dataclass

from rvt_ray.records import Category

SEMANTIC, SPATIAL, TEMPORAL = Category.SEMANTIC, Category.SPATIAL, Category.TEMPORAL


@dataclass(frozen=True)
class PredicateSpec:
    """One predicate.

    Attributes:
        name: as in programs.
        category: which kind of reasoning it asks for.
        arity: 1 or 2.
        definition: one line; {x}, {y}, {value} stand for the arguments.
        phrase: plain words of the fact, for evidence and prompts; the same placeholders.
        unit: of the margin.
        scopes: scopes it may carry; empty: it carries none.
        value: what kind of value it carries: null, `kind`, `colour`, `name:value`, `text` or `region`.
        inverse: p(x, y) is inverse(y, x); equal to `name` for symmetric relations.
        needs: settings that set its threshold and margin.
        opposite: a predicate that cannot hold together with it (used for near misses).
    """

    name: str
    category: Category
    arity: int
    definition: str
    phrase: str
    unit: str
    scopes: tuple[str, ...] = ()
    value: str | None = None
    inverse: str | None = None
    needs: tuple[str, ...] = ()
    opposite: str | None = None

    @property
    def symmetric(self) -> bool:
        """p(x, y) is p(y, x)."""
        return self.inverse == self.name


DIAGONALS = "frame diagonals"
SECONDS = "seconds"
DEPTH_RANGE = "of the frame's depth range"
AREA_RATIO = "log of the area ratio"
SPEED_RATIO = "log of the speed ratio"
