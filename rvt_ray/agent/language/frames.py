"""Sentences: which form of question a query is, and which of its words describe the target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from rvt_ray.agent.language.ast import NounPhrase, Statement
from rvt_ray.agent.language.parser import Parser
from rvt_ray.agent.language.words import tokenise
from rvt_ray.queries.wording.frames import FRAMES

_EVERYDAY: dict[str, tuple[str, ...]] = {
    "masks": (
        "Segment {np} in the video.",
        "Mask {np}.",
        "Segment out {np}.",
        "Show the mask of {np}.",
        "{np}",
    ),
    "boxes": (
        "Detect {np}.",
        "Locate {np} in the video.",
        "Where is {np} in the video?",
        "Ground {np}.",
        "Give the bounding box of {np}.",
        "Give the bounding boxes of {np}.",
        "Where are {np}?",
    ),
    "count": (
        "How many {nouns} are there?",
        "How many {np} are there?",
        "How many {np} are there in the clip?",
        "How many {np} can be seen?",
        "Count {np}.",
        "What is the number of {np}?",
    ),
    "exists": ("Is there {np}?", "Are there {np}?", "Is there {np} in the clip?", "Can you see {np}?"),
    "attribute": ("What {attribute} is {np}?", "What is {np}'s {attribute}?"),
    "kind": ("What is {np}?", "What kind of object is {np}?", "What is {np} called?"),
    "order": ("Does {np} appear before or after {other}?", "Is {np} seen before or after {other}?"),
    "direction": ("Which direction does {np} move?", "Where does {np} go?", "Which way is {np} moving?"),
    "duration": ("How long is {np} visible?", "How long can {np} be seen?", "How long is {np} in view?"),
    "summary": (
        "Describe {np}.",
        "What does {np} do?",
        "What happens to {np}?",
        "Describe what {np} {does}.",
        "Describe the video.",
        "Describe the clip.",
        "Describe the scene.",
        "Summarise the video.",
        "Summarise the clip.",
        "What happens in the video?",
        "What happens in the clip?",
        "What happens?",
        "Summarise what {np} {does}.",
    ),
    "check": ("{isdo} {np} {rest}?",),
}
_FILLERS: dict[str, tuple[str, ...]] = {
    "it": ("it", "them"),
    "they": ("it", "they"),
    "is": ("is", "are"),
    "does": ("does", "do"),
    "fares": ("fares", "fare"),
    "attribute": ("colour", "color", "material", "size", "shape", "pattern"),
}
_POLITE = re.compile(r"^(?:please|kindly|can you|could you|would you|now|hey)\b[ ,]*", re.IGNORECASE)
_SLOT = re.compile(r"\{([a-z]+)\}")


@dataclass(frozen=True)
class Parsed:
    """One reading of a sentence.

    Attributes:
        form: the form of question, a key of `queries.wording.frames.FRAMES`.
        target: the target as a noun phrase.
        asked: the fact that a yes/no question is about.
        other: the other object that it names.
        attribute: what is asked for.
    """

    form: str
    target: NounPhrase
    asked: Statement | None = None
    other: NounPhrase | None = None
    attribute: str | None = None


@cache
def _frames() -> tuple[tuple[str, bool | None, tuple[tuple[str, str], ...]], ...]:
    """(form, plural or not or open, parts): a part is ("word", w) or ("slot", name)."""
    found = []
    for group in (FRAMES, _EVERYDAY):
        for form, frames in group.items():
            for frame in frames:
                many = {"+": True, "-": False}.get(frame[0])
                parts: list[tuple[str, str]] = []
                position = 0
                text = frame.lstrip("+-").rstrip(".?")
                for match in _SLOT.finditer(text):
                    parts += [("word", w) for w in tokenise(text[position : match.start()] + " ,")[:-1]]
                    parts.append(("slot", match.group(1)))
                    position = match.end()
                parts += [("word", w) for w in tokenise(text[position:])]
                found.append((form.replace("count_ones", "count"), many, tuple(parts)))
    return tuple(found)


def plain(query: str) -> str:
    """The query without a polite beginning."""
    return _POLITE.sub("", query.strip())


def parse(parser: Parser, *, closed: bool) -> list[Parsed]:
    """Every reading of the whole sentence, without duplicates.

    Args:
        closed: choices come with the question, so it cannot ask for masks, boxes or a summary. Without them
            it asks for masks where its words leave that open ("What is it that moves left?").
    """
    found: dict[Parsed, None] = {}
    for form, many, parts in _frames():
        if closed and form in ("masks", "boxes", "summary"):
            continue
        for bound, end in _match(parser, parts, 0, 0, {}):
            if end == len(parser.tokens):
                reading = _reading(form, many, bound)
                if reading is not None:
                    found.setdefault(reading)
    readings = list(found)
    return [r for r in readings if r.target.said] or readings


def _match(
    parser: Parser, parts: tuple[tuple[str, str], ...], p: int, i: int, bound: dict[str, object]
) -> Iterator[tuple[dict[str, object], int]]:
    if p == len(parts):
        yield bound, i
        return
    kind, name = parts[p]
    tokens = parser.tokens
    if kind == "word":
        if i < len(tokens) and tokens[i] == name:
            yield from _match(parser, parts, p + 1, i + 1, bound)
        return
    options: list[tuple[object, int]] = []
    if name in ("np", "other"):
        options = list(parser.noun_phrase(i))
    elif name == "vp":
        options = list(parser.row(i))
    elif name in ("noun", "nouns"):
        options = [((many, values), end) for many, values, end in parser.nouns(i)]
    elif name == "ask":
        options = list(parser.asked(i))
    elif name == "isdo":
        options = [(tokens[i], i + 1)] if i < len(tokens) and tokens[i] in ("is", "are", "does", "do") else []
    elif name == "rest":
        reduced = bound.get("isdo") in ("is", "are")
        options = list(parser.clause(i, reduced=reduced))
        if reduced:
            options += [(s, end) for _, s, end in parser.adjectives(i)]
    elif i < len(tokens) and tokens[i] in _FILLERS[name]:
        options = [(tokens[i], i + 1)]
    for value, end in options:
        yield from _match(parser, parts, p + 1, end, {**bound, name: value})


def _reading(form: str, many: bool | None, bound: dict[str, object]) -> Parsed | None:
    target = bound.get("np")
    if target is None:
        row = bound.get("vp", ())
        assert isinstance(row, tuple)
        said: tuple[Statement, ...] = row
        noun = bound.get("noun") or bound.get("nouns")
        if isinstance(noun, tuple) and noun[1]:
            said = (Statement("category", noun[1]), *said)
        if many is None:
            many = None if form in ("count", "exists") else "nouns" in bound
        if form == "which_of":
            many = False
        target = NounPhrase("", "the", many, said)
    assert isinstance(target, NounPhrase)
    if form in ("count", "exists"):
        target = NounPhrase(target.text, target.article, None, target.said)
    asked = bound.get("ask") or bound.get("rest")
    other = bound.get("other")
    if form == "check" and not isinstance(asked, Statement):
        return None
    attribute = bound.get("attribute")
    return Parsed(
        form=form,
        target=target,
        asked=asked if isinstance(asked, Statement) else None,
        other=other if isinstance(other, NounPhrase) else None,
        attribute=str(attribute).replace("color", "colour") if attribute else None,
    )
