"""Verb phrases as a trie: how every predicate may be said. Made from the wording room's own phrases, so that
what we can say we can read, and from plain everyday English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from rvt_ray.agent.language.ast import UNSAID, Statement
from rvt_ray.agent.language.everyday import EVERYDAY, EVERYDAY_SCOPES
from rvt_ray.agent.language.vocabulary import Vocabulary
from rvt_ray.agent.language.words import VerbForms, tokenise
from rvt_ray.queries.wording.phrases import PHRASES, PLACE_SCOPES, REGION_PLACES, STATE_SCOPES, Phrases
from rvt_ray.twin.facts import CATALOGUE

_PART = re.compile(r"<([a-z]+)>|\{([ok])\}|([^<{]+)")
_WORDED_APART = ("category", "colour", "attribute", "function")

Atom = tuple[str, str]
"""("word", w), ("verb", base), ("slot", "o") or ("slot", "k")."""


@dataclass
class Node:
    """A state of the trie."""

    next: dict[Atom, Node] = field(default_factory=dict)
    says: dict[Statement, None] = field(default_factory=dict)


def atoms(phrase: str) -> Iterator[Atom]:
    """`<be> left of {o}` -> verb be, word left, word of, slot o."""
    for base, slot, text in _PART.findall(phrase):
        if base:
            yield "verb", base
        elif slot:
            yield "slot", slot
        else:
            for word in tokenise(text):
                yield "word", word


def add(root: Node, phrase: str, statement: Statement) -> None:
    """Enter a phrase."""
    node = root
    for atom in atoms(phrase):
        node = node.next.setdefault(atom, Node())
    node.says.setdefault(statement)


@cache
def common() -> tuple[tuple[str, Statement], ...]:
    """The phrases that do not depend on the twin."""
    found: list[tuple[str, Statement]] = []
    for predicate, phrases in (*PHRASES.items(), *EVERYDAY.items()):
        if predicate in _WORDED_APART:
            continue
        if predicate == "region":
            for value, places in REGION_PLACES.items():
                found += _scoped(predicate, Phrases(places=places), (value,))
            continue
        if predicate.startswith("region="):
            found += _scoped("region", phrases, (predicate.partition("=")[2],))
            continue
        found += _scoped(predicate, phrases, ())
        found += [(text, Statement(predicate)) for text in phrases.events]
        found += [
            (text, Statement(predicate, scope=UNSAID if CATALOGUE[predicate].scopes else None, passive=True))
            for text in phrases.passives
        ]
    return tuple(found)


def _scoped(predicate: str, phrases: Phrases, values: tuple[str, ...]) -> Iterator[tuple[str, Statement]]:
    scopes = CATALOGUE[predicate].scopes
    for scope in (None, *scopes):
        statement = Statement(predicate, values, UNSAID if scope is None and scopes else scope)
        for slot, patterns, texts in (
            ("{p}", PLACE_SCOPES, phrases.places),
            ("{s}", STATE_SCOPES, phrases.states),
        ):
            said = {p for group in patterns[scope].values() for p in group}
            plain = "<be> {p}" if slot == "{p}" else slot
            said |= {f"{plain} {adverb}" for adverb in EVERYDAY_SCOPES.get(scope or "", ())}
            for pattern in said:
                for text in texts:
                    yield pattern.replace(slot, text), statement
                    if text.startswith("the "):
                        yield pattern.replace(slot, f"as {text}"), statement


class Grammar:
    """Verb phrases and superlatives' ranges for one twin."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.phrases = Node()
        self.ranges = Node()
        for phrase, statement in (*common(), *vocabulary.clauses()):
            add(self.phrases, phrase, statement)
        for phrase, kinds in vocabulary.ranges():
            add(self.ranges, phrase, Statement("category", kinds))
        self.verbs = VerbForms(_bases(self.phrases) | _bases(self.ranges))


def _bases(root: Node) -> set[str]:
    found, todo = set(), [root]
    while todo:
        node = todo.pop()
        found |= {name for kind, name in node.next if kind == "verb"}
        todo += node.next.values()
    return found
