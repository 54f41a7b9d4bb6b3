"""Kinds of things: synonyms, more general kinds, what they are for. The data is `kinds.json`."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

NEUTRAL = "object"
"""The kind of everything; what a thing is called that nobody could name."""


@cache
def _data() -> dict[str, Any]:
    text = (resources.files("rvt_ray.twin.facts") / "kinds.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def _parents() -> dict[str, frozenset[str]]:
    parents: dict[str, set[str]] = {}
    for general, special in _data()["general"].items():
        for kind in special:
            parents.setdefault(normal(kind), set()).add(general)
    return {kind: frozenset(above) for kind, above in parents.items()}


@cache
def normal(kind: str) -> str:
    """The name under which a kind is compared: lower case, single spaces, synonyms folded."""
    name = " ".join(kind.lower().replace("_", " ").split())
    synonyms: dict[str, str] = _data()["synonyms"]
    return synonyms.get(name, name)


@cache
def general_kinds(kind: str) -> frozenset[str]:
    """All more general kinds, without the kind itself and without `object`."""
    found: set[str] = set()
    todo = [normal(kind)]
    while todo:
        for above in _parents().get(todo.pop(), ()):
            if above not in found:
                found.add(above)
                todo.append(above)
    return frozenset(found)


def is_a(kind: str, general: str) -> bool:
    """Whether every `kind` is a `general`."""
    general = normal(general)
    return general == NEUTRAL or normal(kind) == general or general in general_kinds(kind)


@cache
def is_general(kind: str) -> bool:
    """Whether the table knows more special kinds below this one."""
    return bool(_data()["general"].get(normal(kind)))


@cache
def is_known(kind: str) -> bool:
    """Whether the table knows this kind at all."""
    name = normal(kind)
    return name in _parents() or name in _data()["general"]


@cache
def functions(kind: str) -> frozenset[str]:
    """What one does with it ("sit on"), its own and that of its more general kinds."""
    names = {normal(kind), *general_kinds(kind)}
    return frozenset(f for f, users in _data()["functions"].items() if names & set(map(normal, users)))


@cache
def may_serve(kind: str, function: str) -> bool:
    """Whether some special case of `kind` serves this end: an animal may be one to ride."""
    return any(is_a(user, kind) for user in _data()["functions"].get(function, ()))


@cache
def colour_neighbours(colour: str) -> frozenset[str]:
    """Colours that an observer may name instead of this one."""
    pairs = _data()["colour_neighbours"]
    return frozenset(b if a == colour else a for a, b in pairs if colour in (a, b))
