"""Gate 4: the query must not give the answer's name away, nor speak of the machinery behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rvt_ray.queries.gates.text import lemmas, plain, tokens
from rvt_ray.queries.lexicon import Lexicon

# A name followed by one of these is still the name: cuplike, cup-shaped.
_SUFFIXES = ("like", "shaped", "ish", "sized", "esque", "type")

_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|zero)"
_MACHINERY: tuple[tuple[str, str], ...] = (
    (
        "an id",
        r"\b(?:object|instance|track|item|target|entity|segment|region|obj|inst)"
        r"[ _\-]*(?:no\.?|number|id|nr\.?)?[ _\-:#]*\d+\b",
    ),
    ("an id", rf"\b(?:instance|track|object|target|entity) (?:id|number|no\.?) ?{_NUMBER}?\b"),
    ("an id", r"(?:^|\s)#\s?\d+|\bids?\b|\b[a-z]+_[a-z0-9]+\b"),
    ("coordinates", r"[(\[]\s*-?\d+(?:\.\d+)?\s*,\s*-?\d+(?:\.\d+)?"),
    ("coordinates", r"\b[xy]\s*(?:=|:|<|>|is at|at)\s*-?\d+"),
    ("coordinates", r"\b\d+(?:\.\d+)?\s*(?:px|pixels?)\b|\bpixels?\b|\bcoordinates?\b|\bcentroids?\b"),
    ("coordinates", r"\bbounding[ \-]?box(?:es)?\b|\bbbox(?:es)?\b"),
    ("a frame number", rf"\bframes? (?:no\.? |number |index |#)?{_NUMBER}\b|\b\d+(?:st|nd|rd|th) frame\b"),
    ("a frame number", r"\bkey[ \-]?frames?\b|\bframe (?:index|number)\b"),
    (
        "a time stamp",
        r"\b\d+:\d\d\b|\btime ?stamps?\b|\b\d+(?:\.\d+)? ?(?:s|sec|secs|ms)\b|\bat \d+(?:\.\d+)? seconds?\b",
    ),
    ("machinery", r"\bdigital twins?\b|\bground[ \-]truth\b|\bannotat(?:ion|ions|ed)\b|\bpredicates?\b"),
    ("machinery", r"\bsegmentation masks?\b|\brle\b|\bjson\b|\btracklets?\b|\bmetadata\b|\bbinary masks?\b"),
    (
        "machinery",
        r"\bdepth (?:value|map)s?\b|\bconfidence score\b|\bdetector\b|\bconstraints?\b|\bvariables?\b",
    ),
)
_MACHINERY_COMPILED = tuple((what, re.compile(pattern)) for what, pattern in _MACHINERY)
_MASK = re.compile(r"\bmasks?\b")


@dataclass(frozen=True)
class LeakContext:
    """What must not be said.

    Attributes:
        target_kinds: the kinds (and alternative labels) of the targets.
        other_kinds: the kind of every other object of the clip; a general term leaks only if none of them
            falls under it.
        answer_words: closed answers that the query must not contain (a colour that is asked for).
    """

    target_kinds: frozenset[str]
    other_kinds: tuple[str, ...] = ()
    answer_words: frozenset[str] = field(default_factory=frozenset)


def find_leaks(query: str, context: LeakContext, lexicon: Lexicon) -> list[str]:
    """Everything in the query that must not be there, in words; empty when it is clean."""
    found: list[str] = []
    words = tokens(query)
    for kind in sorted(context.target_kinds):
        hits = names_in(words, lexicon.names(kind), lexicon)
        found += [f"{hit!r} names the target ({kind})" for hit in hits]
        known = lexicon.canonical(kind)
        for term in lexicon.general(kind):
            if any(_falls_under(other, term, lexicon) for other in context.other_kinds):
                continue
            plural = lexicon.plural(term)
            if known is not None and names_in(words, frozenset({term, plural}), lexicon):
                found.append(f"{term!r} fits nothing else in the clip, so it gives the target away")
    for answer in sorted(context.answer_words):
        if names_in(words, frozenset({answer}), lexicon):
            found.append(f"{answer!r} is the answer")
    found += machinery_in(query, context.other_kinds)
    return list(dict.fromkeys(found))


def machinery_in(query: str, kinds: Iterable[str] = ()) -> list[str]:
    """Ids, coordinates, frame numbers and words of the data behind the query."""
    text = re.sub(r"\s+", " ", query.lower())
    found = [
        f"{match.group(0).strip()!r} is {what}"
        for what, pattern in _MACHINERY_COMPILED
        for match in pattern.finditer(text)
    ]
    # "mask" is machinery, unless a face mask is among the things that can be seen.
    if not any("mask" in kind for kind in kinds):
        found += [f"{m.group(0)!r} is machinery" for m in _MASK.finditer(plain(query))]
    return found


def _falls_under(kind: str, term: str, lexicon: Lexicon) -> bool:
    return term in lexicon.general(kind) or lexicon.normal(kind) == term


@dataclass(frozen=True)
class _Names:
    """Names prepared for look-up: single words, runs of words, runs written as one word."""

    single: frozenset[str]
    several: tuple[tuple[str, ...], ...]
    joined: frozenset[str]


@lru_cache(maxsize=4096)
def _prepared(names: frozenset[str]) -> _Names:
    several = tuple(sorted({tuple(tokens(name)) for name in names if not name.isalnum()}))
    return _Names(
        single=frozenset(name for name in names if name.isalnum()),
        several=several,
        joined=frozenset("".join(parts) for parts in several),
    )


def names_in(words: Sequence[str], names: frozenset[str], lexicon: Lexicon) -> list[str]:
    """The words (or runs of words) that are one of the names: plural, joined, split, in a compound."""
    known = _prepared(names)
    whole = known.single | known.joined
    hits = []
    for i, word in enumerate(words):
        forms = lemmas(word)
        if not forms.isdisjoint(whole) or _in_compound(forms, known.single, lexicon):
            hits.append(word)
        elif len(word) > 2 and i + 1 < len(words) and lemmas(word + words[i + 1]) & known.single:
            hits.append(f"{word} {words[i + 1]}")
        for parts in known.several:
            run = words[i : i + len(parts)]
            if len(run) == len(parts) and run[:-1] == list(parts[:-1]) and parts[-1] in lemmas(run[-1]):
                hits.append(" ".join(run))
    return list(dict.fromkeys(hits))


def _in_compound(forms: frozenset[str], names: frozenset[str], lexicon: Lexicon) -> bool:
    """Whether a word is a name with something before ("teacup") or after it ("cuplike")."""
    for form in forms:
        for cut in range(3, len(form) - 1):
            head, tail = form[:cut], form[cut:]
            if (len(tail) >= 3 and tail in names and head in lexicon.compound_prefixes) or (
                head in names and tail in _SUFFIXES
            ):
                return True
    return False
