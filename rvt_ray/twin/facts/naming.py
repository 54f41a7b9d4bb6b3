"""How facts are asked for and named: what the catalogue allows, ids, plain words."""

from __future__ import annotations

from collections.abc import Sequence

from rvt_ray.twin.facts.catalogue import CATALOGUE, REGIONS
from rvt_ray.twin.facts.scopes import END, SOME_TIME, START, THROUGHOUT, WHILE_MOVING
from rvt_ray.twin.facts.spec import PredicateSpec


def check(predicate: str, arity: int, value: str | None, scope: str | None) -> PredicateSpec:
    """Refuse what the catalogue does not allow.

    Raises:
        ValueError: names the predicate, what is wrong and what it takes.
    """
    spec = CATALOGUE.get(predicate)
    if spec is None:
        raise ValueError(f"no predicate {predicate!r}; docs/predicates.md lists them: {', '.join(CATALOGUE)}")
    if arity != spec.arity:
        raise ValueError(f"{predicate} takes {spec.arity} argument(s), not {arity}")
    if (value is None) != (spec.value is None):
        takes = f"a value ({spec.value})" if spec.value else "no value"
        raise ValueError(f"{predicate} takes {takes}, not {value!r}")
    if spec.value == "region" and value not in REGIONS:
        raise ValueError(f"region takes one of {', '.join(REGIONS)}, not {value!r}")
    if spec.scopes and scope not in spec.scopes:
        raise ValueError(f"{predicate} takes one of the scopes {', '.join(spec.scopes)}, not {scope!r}")
    if not spec.scopes and scope is not None:
        raise ValueError(f"{predicate} takes no scope, not {scope!r}")
    return spec


def fact_id(predicate: str, args: Sequence[int], value: str | None, scope: str | None) -> str:
    """`left_of(3,5)@start`, `colour(3)=red`."""
    text = f"{predicate}({','.join(map(str, args))})"
    return text + (f"={value}" if value is not None else "") + (f"@{scope}" if scope is not None else "")


SCOPE_WORDS = {
    THROUGHOUT: "throughout",
    START: "at the start",
    END: "at the end",
    SOME_TIME: "at some time",
    WHILE_MOVING: "while {x} moves",
}
"""`{x}` stands for the subject."""


def statement(spec: PredicateSpec, args: Sequence[int], value: str | None, scope: str | None) -> str:
    """Plain words of a fact: "#3 is to the left of #5 at the start"."""
    shown = value.replace(":", " ") if value else value
    names = {"x": f"#{args[0]}", "y": f"#{args[1]}" if len(args) > 1 else "", "value": shown}
    text = spec.phrase.format(**names)
    return f"{text} {SCOPE_WORDS[scope].format(x=names['x'])}" if scope is not None else text
