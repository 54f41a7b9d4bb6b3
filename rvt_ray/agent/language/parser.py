"""A chart parser for descriptions: noun phrases and rows of verb phrases, with every reading kept.

English leaves open where a clause belongs ("the ball left of the cup that moves"): all attachments are
read, and the executor decides which of them means something (see `readings`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rvt_ray.agent.language.ast import UNSAID, NounPhrase, Statement
from rvt_ray.agent.language.grammar import Grammar, Node
from rvt_ray.agent.language.words import MODALS

MAX_PER_CELL = 48
"""Readings kept per place of the text; a template sentence has a handful."""
_DEFINITE = {"the": "the", "that": "the", "this": "the", "those": "the", "these": "the", "all": "the"}
_INDEFINITE = {"a", "an", "another", "some", "any"}
_RELATIVE = {"that", "which", "who"}
_SUPERLATIVES = {
    "leftmost": "leftmost", "rightmost": "rightmost", "topmost": "topmost", "highest": "topmost",
    "bottommost": "bottommost", "lowest": "bottommost", "nearest": "nearest", "closest": "nearest",
    "farthest": "farthest", "furthest": "farthest", "largest": "largest", "biggest": "largest",
    "smallest": "smallest", "tiniest": "smallest", "fastest": "fastest", "quickest": "fastest",
    "slowest": "slowest",
}  # fmt: skip

Said = tuple[Statement, ...]


class Parser:
    """Readings of stretches of one token list.

    Args:
        grammar: of the twin.
        tokens: of the query.
        strict: verb phrases are joined as careful writers do: ", and also" after a phrase that ends in a
            relative clause, and only there, so that one can tell whom it is said of.
    """

    def __init__(self, grammar: Grammar, tokens: list[str], *, strict: bool = True) -> None:
        self._strict = strict
        self._grammar = grammar
        self._vocabulary = grammar.vocabulary
        self.tokens = tokens
        self._noun_phrases: dict[int, list[tuple[NounPhrase, int]]] = {}
        self._rows: dict[int, list[tuple[Said, int]]] = {}
        self._clauses: dict[tuple[int, bool], list[tuple[Statement, int]]] = {}

    # -- noun phrases -----------------------------------------------------------------------------

    def noun_phrase(self, i: int) -> list[tuple[NounPhrase, int]]:
        """Every noun phrase that starts at token i, with the token after it; the longest first."""
        if i not in self._noun_phrases:
            self._noun_phrases[i] = []  # a phrase cannot begin with itself
            self._noun_phrases[i] = _longest(self._find_noun_phrases(i))
        return self._noun_phrases[i]

    def _find_noun_phrases(self, i: int) -> Iterator[tuple[NounPhrase, int]]:
        tokens = self.tokens
        if i >= len(tokens):
            return
        if tokens[i] in ("it", "they", "them"):
            yield NounPhrase("it", "it", None), i + 1
        article, j = "a", i
        if (tokens[i] == "that" and tokens[i + 1 : i + 2] == ["same"]) or (
            tokens[i] == "the" and tokens[i + 1 : i + 2] == ["same"]
        ):
            article, j = "same", i + 2
        elif tokens[i] in _DEFINITE:
            article, j = "the", i + 1
            if tokens[i] == "all" and tokens[j : j + 1] == ["the"]:
                j += 1
        elif tokens[i] in _INDEFINITE:
            j = i + 1
        starts = {j}
        if tokens[i] in ("those", "these"):
            starts.add(i)  # "those that ...": the article is the noun
        for start in starts:
            for said, many, end in self._head(start):
                yield self._phrase(i, end, article, many, said), end
                for more, after in self._modifiers(end):
                    yield self._phrase(i, after, article, many, (*said, *more)), after

    def _phrase(self, i: int, end: int, article: str, many: bool, said: Said) -> NounPhrase:
        return NounPhrase(" ".join(self.tokens[i:end]), article, many, said)

    def _head(self, i: int) -> Iterator[tuple[Said, bool, int]]:
        """Adjectives and a noun: what they say, whether it is plural, the token after them."""
        for _, statement, j in self.adjectives(i):
            for said, many, end in self._head(j):
                yield (statement, *said), many, end
        for many, values, end in self.nouns(i):
            yield (Statement("category", values),) if values else (), many, end
        if i < len(self.tokens) and self.tokens[i] in _SUPERLATIVES:
            predicate = _SUPERLATIVES[self.tokens[i]]
            for said, many, end in self._head(i + 1):
                scope = None if predicate in ("fastest", "slowest") else UNSAID
                yield (*said, Statement(predicate, (UNSAID,), scope)), many, end

    def adjectives(self, i: int) -> Iterator[tuple[str, Statement, int]]:
        """Adjectives at token i: the words, what they say, the token after them."""
        for length in (2, 1):
            words = tuple(self.tokens[i : i + length])
            statement = self._vocabulary.adjectives.get(words)
            if len(words) == length and statement is not None:
                yield " ".join(words), statement, i + length

    def nouns(self, i: int) -> Iterator[tuple[bool, tuple[str, ...], int]]:
        """Nouns at token i: whether plural, the kinds that they may mean, the token after them."""
        for length in (4, 3, 2, 1):
            words = tuple(self.tokens[i : i + length])
            found = self._vocabulary.nouns.get(words)
            if len(words) == length and found is not None:
                yield found[0], found[1], i + length

    def _modifiers(self, i: int) -> Iterator[tuple[Said, int]]:
        """What follows a noun: "that moves ...", "left of ...", "moving ...", "in red"."""
        tokens = self.tokens
        if i >= len(tokens):
            return
        if tokens[i] in _RELATIVE:
            yield from self.row(i + 1)
            return
        if tokens[i] == "in":
            for _, statement, end in self.adjectives(i + 1):
                yield (statement,), end
        for statement, end in self.clause(i, reduced=True):
            yield (statement,), end
            if end < len(tokens) and tokens[end] in _RELATIVE:
                for said, after in self.row(end + 1):
                    yield (statement, *said), after

    # -- verb phrases -----------------------------------------------------------------------------

    def row(self, i: int) -> list[tuple[Said, int]]:
        """Every row of verb phrases that starts at token i: "is red, moves left and touches the cup"."""
        if i not in self._rows:
            self._rows[i] = []
            self._rows[i] = _longest(self._find_rows(i))
        return self._rows[i]

    def _find_rows(self, i: int) -> Iterator[tuple[Said, int]]:
        for statement, end in self.clause(i):
            yield (statement,), end
            for after, also in self._joints(end):
                if self._strict and also is not self._is_heavy(i, end):
                    continue
                for said, last in self.row(after):
                    yield (statement, *said), last

    def _is_heavy(self, i: int, end: int) -> bool:
        """Whether a phrase holds a relative clause."""
        return any(
            self.tokens[j] in _RELATIVE and self.tokens[j + 1 : j + 2] != ["same"] for j in range(i, end)
        )

    def _joints(self, i: int) -> Iterator[tuple[int, bool]]:
        """Where the next verb phrase of a row may begin: after a comma, "and", ", and also", "and that"; and
        whether it is joined by "also"."""
        tokens = self.tokens
        j = i
        also = False
        if tokens[j : j + 1] == [","]:
            j += 1
        if tokens[j : j + 1] == ["and"]:
            j += 1
            if tokens[j : j + 1] == ["also"]:
                j += 1
                also = True
        if j > i:
            yield j, also
            if tokens[j : j + 1] and tokens[j] in _RELATIVE:
                yield j + 1, also

    def clause(self, i: int, *, reduced: bool = False) -> list[tuple[Statement, int]]:
        """Every verb phrase that starts at token i.

        Args:
            reduced: as after a noun: without its "is", or its verb as "-ing".
        """
        key = (i, reduced)
        if key not in self._clauses:
            self._clauses[key] = []
            self._clauses[key] = _longest(self._find_clauses(i, reduced))
        return self._clauses[key]

    def _find_clauses(self, i: int, reduced: bool) -> Iterator[tuple[Statement, int]]:
        root = self._grammar.phrases
        if reduced:
            for (kind, name), child in root.next.items():
                if kind != "verb":
                    continue
                if name == "be":
                    yield from self._walk(child, i, None, None)
                elif name in self._verbs_at(i, gerund=True):
                    yield from self._walk(child, i + 1, None, None)
            return
        yield from self._walk(root, i, None, None)
        yield from self._being(i)

    def _being(self, i: int) -> Iterator[tuple[Statement, int]]:
        """ "is red", "are balls", "is a ball", "is moving left"."""
        tokens = self.tokens
        if i >= len(tokens) or "be" not in self._grammar.verbs.finite(tokens[i]):
            return
        j = i + 1
        for _, statement, end in self.adjectives(j):
            yield statement, end
        start = j + 1 if tokens[j : j + 1] and tokens[j] in ("a", "an", "the", "one") else j
        for _, values, end in self.nouns(start):
            if values:
                yield Statement("category", values), end
        for (kind, name), child in self._grammar.phrases.next.items():
            if kind == "verb" and name != "be" and name in self._verbs_at(j, gerund=True):
                yield from self._walk(child, j + 1, None, None)

    def _verbs_at(self, i: int, *, gerund: bool) -> set[str]:
        if i >= len(self.tokens):
            return set()
        verbs = self._grammar.verbs
        return verbs.gerund(self.tokens[i]) if gerund else verbs.finite(self.tokens[i])

    def _walk(
        self, node: Node, i: int, other: NounPhrase | None, kinds_said: tuple[str, ...] | None
    ) -> Iterator[tuple[Statement, int]]:
        for statement in node.says:
            yield self._filled(statement, other, kinds_said), i
        token = self.tokens[i] if i < len(self.tokens) else None
        for (kind, name), child in node.next.items():
            if kind == "word":
                if token == name:
                    yield from self._walk(child, i + 1, other, kinds_said)
            elif kind == "verb":
                if token is not None and name in self._grammar.verbs.finite(token):
                    yield from self._walk(child, i + 1, other, kinds_said)
            elif name == "o":
                for phrase, end in self.noun_phrase(i):
                    yield from self._walk(child, end, phrase, kinds_said)
            else:
                for values, end in self._range(self._grammar.ranges, i):
                    yield from self._walk(child, end, other, values)
                yield from self._walk(child, i, other, (UNSAID,))

    def _range(self, node: Node, i: int) -> Iterator[tuple[tuple[str, ...], int]]:
        for statement in node.says:
            yield statement.values, i
        if i >= len(self.tokens):
            return
        for (kind, name), child in node.next.items():
            if (kind == "word" and self.tokens[i] == name) or (
                kind == "verb" and name in self._verbs_at(i, gerund=False)
            ):
                yield from self._range(child, i + 1)

    @staticmethod
    def _filled(
        statement: Statement, other: NounPhrase | None, kinds_said: tuple[str, ...] | None
    ) -> Statement:
        if other is None and kinds_said is None:
            return statement
        return replace(statement, other=other, values=kinds_said or statement.values)

    # -- questions --------------------------------------------------------------------------------

    def asked(self, i: int) -> list[tuple[Statement, int]]:
        """A yes/no question about "it": "does it move left", "is it near the cup", "can it be seen ..."."""
        tokens = self.tokens
        if i + 2 > len(tokens) or tokens[i + 1] not in ("it", "they", "he", "she"):
            return []
        first = tokens[i]
        if "be" in self._grammar.verbs.finite(first):
            found = list(self.clause(i + 2, reduced=True))
            found += [(s, end) for _, s, end in self.adjectives(i + 2)]
            return found
        if first in ("does", "do", "did"):
            return self.clause(i + 2)
        if first in MODALS:
            turned = Parser(self._grammar, [first, *tokens[i + 2 :]], strict=self._strict)
            return [(s, end + i + 1) for s, end in turned.clause(0)]
        return []

    def spotted(self, i: int, end: int) -> tuple[Said, list[str]]:
        """What can be made of tokens i to end where no reading fits all of them: verb phrases, adjectives and
        nouns in order, and the words that were passed over."""
        found: list[Statement] = []
        left: list[str] = []
        while i < end:
            options: list[tuple[Statement, int]] = [
                *((s, e) for s, e in self.clause(i) if e <= end),
                *((s, e) for s, e in self.clause(i, reduced=True) if e <= end),
                *((s, e) for _, s, e in self.adjectives(i) if e <= end),
                *((Statement("category", v), e) for _, v, e in self.nouns(i) if v and e <= end),
            ]
            best = max(options, key=lambda o: o[1], default=None)
            if best is None:
                left.append(self.tokens[i])
                i += 1
            else:
                found.append(best[0])
                i = best[1]
        return tuple(dict.fromkeys(found)), left


def _longest(found: Iterator[tuple]) -> list:
    """Distinct readings, the longest first, at most `MAX_PER_CELL`."""
    distinct = dict.fromkeys(found)
    return sorted(distinct, key=lambda item: -item[1])[:MAX_PER_CELL]
