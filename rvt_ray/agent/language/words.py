"""Tokens and verb forms."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rvt_ray.queries.english import Form, verb

_TOKEN = re.compile(r"[a-z0-9]+(?:['’.-][a-z0-9]+)*|[,.?!:;]")
_PAST = {
    "be": ("was", "were", "been"),
    "come": ("came",),
    "go": ("went", "gone"),
    "leave": ("left",),
    "get": ("got",),
    "keep": ("kept",),
    "stand": ("stood",),
    "begin": ("began", "begun"),
    "hold": ("held",),
    "hide": ("hid", "hidden"),
    "have": ("had",),
    "show": ("showed", "shown"),
    "draw": ("drew",),
    "take": ("took",),
}  # fmt: skip
MODALS = frozenset({"can", "could", "would", "may", "might", "must", "will", "cannot", "does", "do", "did"})


def tokenise(text: str) -> list[str]:
    """Lower-case words and punctuation; a full stop, question or exclamation mark at the end is dropped."""
    found = _TOKEN.findall(text.lower().replace("’", "'"))
    while found and found[-1] in ".?!":
        found.pop()
    return found


def gerund(base: str) -> str:
    """`move` -> `moving`, `stop` -> `stopping`."""
    if base == "be":
        return "being"
    if base.endswith("e") and not base.endswith(("ee", "ye", "oe")):
        return base[:-1] + "ing"
    if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", base):
        return base + base[-1] + "ing"
    return base + "ing"


def _past(base: str) -> tuple[str, ...]:
    if base in _PAST:
        return _PAST[base]
    if base.endswith("e"):
        return (base + "d",)
    if re.search(r"[^aeiou]y$", base):
        return (base[:-1] + "ied",)
    if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", base):
        return (base + base[-1] + "ed",)
    return (base + "ed",)


class VerbForms:
    """Which verbs a word may be a form of."""

    def __init__(self, bases: Iterable[str]) -> None:
        self._finite: dict[str, set[str]] = {}
        self._gerund: dict[str, set[str]] = {}
        for base in bases:
            for form in (*(verb(base, f) for f in Form), *_past(base)):
                self._finite.setdefault(form, set()).add(base)
            self._gerund.setdefault(gerund(base), set()).add(base)

    def finite(self, token: str) -> set[str]:
        """Verbs of which the word is a finite form."""
        return self._finite.get(token, set())

    def gerund(self, token: str) -> set[str]:
        """Verbs of which the word is the -ing form."""
        return self._gerund.get(token, set())
