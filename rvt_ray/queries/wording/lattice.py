"""Sentences that say the same: what a model may choose among when it is not left to its own words.

A sentence is a row of *parts*: words that stand fixed, and places where any of several phrases may stand. The
speaker marks such places in its text (`alike`); `parts` reads the marks. A `Lattice` holds many such rows and
knows which sentences they make, as a regular expression for a guided model and as a test of what came back.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Private-use characters: no text of ours holds them, and grammar (inflection, joining) passes over them.
_OPEN, _OR, _CLOSE = "\ue000", "\ue001", "\ue002"
_CHOICE = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_ESCAPED = {".": "[.]", "?": "[?]"}
_UNSAFE = re.compile(r'[\\"*+{}()\[\]^$|\x00-\x1f]')

Part = str | tuple[str, ...]
"""Fixed words, or phrases of which one stands here."""


def alike(options: Sequence[str]) -> str:
    """Mark a place where any of the phrases may stand; one phrase needs no mark."""
    distinct = list(dict.fromkeys(options))
    return distinct[0] if len(distinct) == 1 else f"{_OPEN}{_OR.join(distinct)}{_CLOSE}"


def first(text: str) -> str:
    """A marked text with the first phrase at every place."""
    return _CHOICE.sub(lambda m: m.group(1).partition(_OR)[0], text)


def parts(text: str) -> tuple[Part, ...]:
    """A marked text as fixed words (with the space after them) and choices."""
    found: list[Part] = []
    for i, piece in enumerate(_CHOICE.split(text)):
        if i % 2:
            found.append(tuple(dict.fromkeys(piece.split(_OR))))
        else:
            found += re.findall(r"\S+\s*|\s+", piece)
    return tuple(found)


@dataclass(frozen=True)
class Row:
    """Sentences of one make.

    Attributes:
        frame: the sentence frame, as in `frames.FRAMES`.
        parts: what they consist of.
    """

    frame: str
    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return math.prod(len(_options(p)) for p in self.parts)

    @property
    def longest(self) -> int:
        """Characters of the longest sentence."""
        return sum(max(map(len, _options(p))) for p in self.parts)

    def within(self, words: int) -> Row | None:
        """The sentences of at most so many words, wordy phrases given up first; null where none is short
        enough."""
        left = list(self.parts)
        while sum(max(map(_words, _options(p))) for p in left) > words:
            spread = [max(map(_words, _options(p))) - min(map(_words, _options(p))) for p in left]
            widest = spread.index(max(spread))
            if not spread[widest]:
                return None
            most = max(map(_words, left[widest]))
            left[widest] = tuple(o for o in left[widest] if _words(o) < most)
        return Row(self.frame, tuple(left))

    def match(self, text: str) -> frozenset[str] | None:
        """The phrases chosen where the text is one of the sentences, else null."""
        return _match(self.parts, text)

    def sentences(self) -> Iterator[str]:
        """Every one, in order."""
        for chosen in itertools.product(*map(_options, self.parts)):
            yield "".join(chosen)


@dataclass(frozen=True)
class Match:
    """Which sentence of a lattice a text is: its frame and the phrases chosen."""

    frame: str
    chosen: frozenset[str]


class Lattice:
    """Sentences that all say the same.

    Args:
        rows: as drawn; equal ones count once, and such with characters that a pattern cannot hold are left
            out.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(
            row for row in dict.fromkeys(rows) if not any(_UNSAFE.search("".join(p)) for p in row.parts)
        )

    def __len__(self) -> int:
        """Number of sentences; one that two rows make is counted twice."""
        return sum(map(len, self.rows))

    @property
    def longest(self) -> int:
        """Characters of the longest sentence."""
        return max((row.longest for row in self.rows), default=0)

    def sentences(self) -> Iterator[str]:
        """Every sentence; there may be tens of thousands."""
        yield from dict.fromkeys(s for row in self.rows for s in row.sentences())

    def find(self, text: str) -> Match | None:
        """Which of the sentences a text is; null where it is none of them."""
        for row in self.rows:
            chosen = row.match(text)
            if chosen is not None:
                return Match(row.frame, chosen)
        return None

    def without(self, said: Match) -> Lattice:
        """The sentences that begin in another frame and, where there is a choice, use other phrases."""
        rows = []
        for row in self.rows:
            if row.frame != said.frame:
                left = (
                    p if isinstance(p, str) else tuple(o for o in p if o not in said.chosen) or p
                    for p in row.parts
                )
                rows.append(Row(row.frame, tuple(left)))
        return Lattice(rows)

    def shares(self, count: int) -> list[Lattice]:
        """At most so many lattices that have no frame in common and hold every sentence together."""
        frames = list(dict.fromkeys(row.frame for row in self.rows))
        groups = [set(frames[i::count]) for i in range(min(count, len(frames)))]
        return [Lattice([row for row in self.rows if row.frame in group]) for group in groups]

    def pattern(self) -> str:
        """A regular expression that fits the sentences and nothing else: words, groups and alternatives only,
        so that no reply can run on in it."""
        return f"^{_pattern([row.parts for row in self.rows])}$"


def _options(part: Part) -> tuple[str, ...]:
    return (part,) if isinstance(part, str) else part


def _words(text: str) -> int:
    """As the form gate counts, or more: "left-hand" is two, "picture's" too."""
    return len(re.findall(r"\w+", text))


def _match(row: tuple[Part, ...], text: str) -> frozenset[str] | None:
    if not row:
        return None if text else frozenset()
    part, rest = row[0], row[1:]
    if isinstance(part, str):
        return _match(rest, text[len(part) :]) if text.startswith(part) else None
    for option in part:
        if text.startswith(option):
            found = _match(rest, text[len(option) :])
            if found is not None:
                return found | {option}
    return None


def _pattern(rows: list[tuple[Part, ...]]) -> str:
    """Rows that end alike share their ends: a frame comes before what it frames, so most of them do."""
    shared: list[Part] = []
    while all(rows) and len({row[-1] for row in rows}) == 1:
        shared.insert(0, rows[0][-1])
        rows = list(dict.fromkeys(row[:-1] for row in rows))
    end = "".join(map(_part_pattern, shared))
    if rows == [()]:
        return end
    if len(rows) == 1:
        return "".join(map(_part_pattern, rows[0])) + end
    by_end: dict[Part, list[tuple[Part, ...]]] = {}
    for row in rows:
        by_end.setdefault(row[-1] if row else "", []).append(row)
    return f"(?:{'|'.join(_pattern(group) for group in by_end.values())}){end}"


def _part_pattern(part: Part) -> str:
    if isinstance(part, str):
        return "".join(_ESCAPED.get(c, c) for c in part)
    return f"(?:{'|'.join(map(_part_pattern, part))})"
