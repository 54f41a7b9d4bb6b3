"""The program: a small conjunctive query over a twin. Its execution on the twin *is* a sample's truth.

A program has object variables, one of which is the target, and constraints: unary facts ("x is red",
"x enters") and relations between two variables ("x is left of y at the start"), which together form a
connected DAG rooted in the target.
"""

from __future__ import annotations

import json
from typing import Self

from pydantic import BaseModel, ConfigDict


class Constraint(BaseModel):
    """One fact that must hold: predicate(args...) [= value] over a scope.

    Attributes:
        predicate: a name of the catalogue (docs/predicates.md).
        args: one variable (unary) or two (relation: first to second).
        value: for predicates that carry a value (`category`, `colour`, `region`, ...); else null.
        scope: `throughout`, `start`, `end`, `some_time`, or null for events and scope-free predicates.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    predicate: str
    args: tuple[str, ...]
    value: str | None = None
    scope: str | None = None


class Program(BaseModel):
    """A conjunction of constraints over variables; `target` is what is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    variables: tuple[str, ...]
    constraints: tuple[Constraint, ...]

    def to_json(self) -> str:
        """Canonical form: sorted keys, constraints in a canonical order, no white space. Equal programs
        give equal text."""
        data = self.model_dump(mode="json")
        data["constraints"].sort(key=lambda c: json.dumps(c, sort_keys=True))
        return json.dumps(data, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the canonical form.

        Raises:
            pydantic.ValidationError: not a program.
        """
        return cls.model_validate_json(text)
