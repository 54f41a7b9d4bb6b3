"""What a sentence says, before it is a program."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Statement:
    """One verb phrase or adjective.

    Attributes:
        predicate: of the catalogue; `category` for nouns and for what a thing is good for.
        values: the values that the words may mean, the likeliest first; empty where it carries none.
        scope: as the predicate demands; `?` where the sentence does not say when.
        other: the second object of a relation.
        passive: the roles are exchanged ("is followed by ...").
    """

    predicate: str
    values: tuple[str, ...] = ()
    scope: str | None = None
    other: NounPhrase | None = None
    passive: bool = False


@dataclass(frozen=True)
class NounPhrase:
    """A thing, or things, in words.

    Attributes:
        text: the words themselves: the same words mean the same thing.
        article: `the`, `a`, `same` ("that same ball"), or `it`.
        many: whether it speaks of several; null where the words leave it open.
        said: all that is said of it, its noun included.
    """

    text: str
    article: str = "a"
    many: bool | None = False
    said: tuple[Statement, ...] = field(default_factory=tuple)


UNSAID = "?"
"""Scope of a statement that does not say when; range of a superlative that does not say among what."""
