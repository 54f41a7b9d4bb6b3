"""The program: a small conjunctive query over a twin. Its execution on the twin *is* a sample's truth.

A program has object variables, one of which is the target, and constraints: unary facts ("x is red",
"x enters") and relations between two variables ("x is left of y at the start"), which together form a
connected DAG rooted in the target.
"""

from __future__ import annotations

import json
from typing import Self

from pydantic import BaseModel, ConfigDict

from rvt_ray.twin.facts import check


class Constraint(BaseModel):
    """One fact that must hold: predicate(args...) [= value] over a scope.

    Attributes:
        predicate: a name of the catalogue (docs/predicates.md).
        args: one variable (unary) or two (relation: first to second).
        value: for predicates that carry a value (`category`, `colour`, `region`, ...); else null.
        scope: `throughout`, `start`, `end`, `some_time`, `while_moving` (while the first argument moves), or
            null for events and scope-free predicates.
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

    def check(self) -> None:
        """Refuse a program that cannot be run.

        Raises:
            ValueError: says which constraint or variable is wrong and why.
        """
        names = set(self.variables)
        if len(names) != len(self.variables):
            raise ValueError(f"program: a variable is declared twice: {', '.join(self.variables)}")
        if self.target not in names:
            raise ValueError(f"program: the target {self.target!r} is not among the variables")
        reached = {self.target}
        for c in self.constraints:
            check(c.predicate, len(c.args), c.value, c.scope)
            unknown = set(c.args) - names
            if unknown:
                raise ValueError(f"program: {c.predicate} uses undeclared variable(s) {sorted(unknown)}")
            if len(set(c.args)) != len(c.args):
                raise ValueError(f"program: {c.predicate} relates {c.args[0]!r} to itself")
        for _ in self.variables:
            for c in self.constraints:
                if reached & set(c.args):
                    reached |= set(c.args)
        if reached != names:
            raise ValueError(
                f"program: variable(s) {sorted(names - reached)} are not connected to the target"
            )

    def replacing(self, old: Constraint, new: Constraint) -> Program:
        """The program with another constraint in one's place."""
        changed = tuple(new if c == old else c for c in self.constraints)
        return self.model_copy(update={"constraints": changed})

    def without(self, constraint: Constraint) -> Program:
        """The program less one constraint, and less what only that one tied to the target."""
        rest = [c for c in self.constraints if c != constraint]
        reached = {self.target}
        while True:
            more = {v for c in rest if reached & set(c.args) for v in c.args} - reached
            if not more:
                break
            reached |= more
        return Program(
            target=self.target,
            variables=tuple(v for v in self.variables if v in reached),
            constraints=tuple(c for c in rest if set(c.args) <= reached),
        )

    def description(self, variable: str) -> Program:
        """What the program says of one variable by itself: the constraints on it and on the variables
        that it leads to, away from the target. `variables` lists parents before children."""
        rank = {v: i for i, v in enumerate(self.variables)}
        below = {variable}
        for v in self.variables:
            if any(
                v in c.args and rank[v] > rank[w] and w in below
                for c in self.constraints
                for w in c.args
                if w != v
            ):
                below.add(v)
        return Program(
            target=variable,
            variables=tuple(v for v in self.variables if v in below),
            constraints=tuple(c for c in self.constraints if set(c.args) <= below),
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the canonical form.

        Raises:
            pydantic.ValidationError: not a program.
        """
        return cls.model_validate_json(text)
