"""Single phrases: one constraint as a verb phrase, a superlative's range, a function, a neutral noun."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from rvt_ray.queries.english import Form, inflect
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.wording.lattice import alike
from rvt_ray.queries.wording.phrases import PHRASES, PLACE_SCOPES, REGION_PLACES, STATE_SCOPES, Phrases
from rvt_ray.reasoning import Candidate, Constraint
from rvt_ray.twin.facts import CATALOGUE

_T = TypeVar("_T")


class CannotSay(Exception):
    """A program that cannot be worded without giving the target away, or at all."""


@dataclass(frozen=True)
class Said:
    """A verb phrase, verbs still in brackets; `heavy` when it ends in a relative clause."""

    text: str
    heavy: bool = False


class Phraser:
    """Draws phrases for one candidate that do not name its target, and not the same words twice in a
    sentence.

    Args:
        know, candidate, rng, plain, open_choices: as for `Speaker`.
    """

    def __init__(
        self,
        know: Knowledge,
        candidate: Candidate,
        rng: random.Random,
        *,
        plain: bool,
        open_choices: bool = False,
    ) -> None:
        self._know = know
        self._candidate = candidate
        self._rng = rng
        self._plain = plain
        self._open = open_choices
        self._forbidden = know.forbidden_names(candidate)
        self.start()

    def start(self) -> None:
        """Begin a new sentence: every word may be used again."""
        self._nouns: set[str] = set()
        self._patterns: set[str] = set()

    def say(
        self, constraint: Constraint, other: str | None, *, heavy: bool, verb_first: bool = False
    ) -> Said:
        """One constraint as a verb phrase.

        Args:
            other: the noun phrase of the second argument.
            heavy: whether that holds a relative clause.
            verb_first: the phrase must begin with its verb (for questions).
        """
        phrases = PHRASES.get(constraint.predicate)
        if phrases is None:
            raise CannotSay(f"no phrase for predicate {constraint.predicate!r}")
        if constraint.predicate == "region":
            phrases = Phrases(places=REGION_PLACES[constraint.value or "centre"])
        group = "heavy" if heavy else "light"
        kinds = ""
        if CATALOGUE[constraint.predicate].value == "kind":
            kinds, kinds_heavy = self.range(constraint.value or "")
            group = "heavy" if kinds_heavy else group
        options: list[tuple[str, str]] = []  # phrase, adverb of time in it
        for place in phrases.places:
            for pattern in PLACE_SCOPES[constraint.scope][group]:
                as_ = place.startswith("the ") and "<be>" not in pattern and not pattern.startswith("always")
                options.append((pattern.replace("{p}", f"as {place}" if as_ else place), pattern))
        for state in phrases.states:
            for pattern in STATE_SCOPES[constraint.scope][group]:
                options.append((pattern.replace("{s}", state), pattern))
        options += [(event, "") for event in phrases.events]
        if verb_first:
            options = [o for o in options if o[0].startswith("<")] or options
        fresh = [o for o in options if _adverb(o[1]) not in self._patterns]
        clean = self.allowed(fresh or options)
        text, pattern = self.pick(clean)
        if constraint.scope is not None:
            self._patterns.add(_adverb(pattern))
        if self._open:
            text = _exchangeable(text, [t for t, p in clean if p == pattern], verb_first=verb_first)
        text = text.replace("{k}", kinds).replace("{o}", other or "").strip()
        return Said(text, heavy or group == "heavy")

    def range(self, kind: str) -> tuple[str, bool]:
        """The range of a superlative: "of all", "of all the animals"; whether it holds a clause."""
        know, lexicon = self._know, self._know.lexicon
        if lexicon.is_nameless(kind) or know.is_everything(kind):
            return "of all", False
        if not self.is_forbidden(kind):
            return f"of all the {lexicon.plural(kind)}", False
        # Broader than the kind: then what is not in the twin must not be in the picture.
        broader = know.twin.holds_everything
        for general in lexicon.general(kind) if broader else ():
            if know.general_means_kind(general, kind, self._candidate):
                return f"of all the {lexicon.plural(general)}", False
        functions = [f for f in lexicon.functions(kind) if broader and know.function_means_kind(f[0], kind)]
        if functions:
            clause = inflect(self.any_of(self.pick(functions)[1]), Form.PLURAL)
            return f"of all those that {clause}", True
        raise CannotSay(f"a superlative among all of kind {kind!r} cannot be said without naming the kind")

    def function(self, value: str) -> Said:
        """What it is for: `<be> <something> to sit on`."""
        plain = [f"<be> <something> to {value}", f"<be> <something> one can {value}"]
        usable = [p for p in plain if not self.is_forbidden(p)]
        if not usable:
            raise CannotSay(f"what it is for ({value!r}) names the target")
        self._nouns.add("thing")  # "the thing that is something to sit on" says it twice
        return Said(self.any_of(usable))

    def generic(self, ids: Sequence[int]) -> str:
        """A neutral noun, one that the sentence has not used yet where there is one."""
        nouns = self._know.generic_nouns(ids)
        noun = self.pick([n for n in nouns if n not in self._nouns] or nouns)
        self._nouns.add(noun)
        return noun

    def pick(self, options: Sequence[_T]) -> _T:
        """One of the options; the first in plain speech."""
        return options[0] if self._plain else self._rng.choice(options)

    def any_of(self, options: Sequence[str]) -> str:
        """One of the phrases, or with open choices the place of any that may stand for it."""
        text = self.pick(options)
        return _exchangeable(text, options, verb_first=False) if self._open else text

    def allowed(self, options: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """The options that do not happen to hold a forbidden word ("left-hand", when a hand is meant)."""
        clean = [o for o in options if not self._know.names_in(o[0], self._forbidden)]
        if not clean:
            raise CannotSay(f"every phrase like {options[0][0]!r} names the target")
        return clean

    def is_forbidden(self, word: str) -> bool:
        """Whether a text names the target."""
        return bool(self._know.names_in(word, self._forbidden))


def _adverb(pattern: str) -> str:
    """The time words of a pattern: "<be> {p} at the start" -> "at the start"."""
    return re.sub(r"<be>|\{[ps]\}", "", pattern).strip()


def _exchangeable(text: str, options: Sequence[str], *, verb_first: bool) -> str:
    """A phrase with the place marked where other phrases of the same build may stand.

    Of the same build are phrases that are alike from the slot on ("{o}", "{k}"), since what fills it stands
    outside the mark, and that hold an "and" or not, since that decides about commas. For a question they
    begin with the same verb, which it takes apart.
    """

    def build(phrase: str) -> tuple[str, str, bool]:
        head, slot, tail = _split(phrase)
        return head.split(" ")[0] if verb_first else "", slot + tail, " and " in phrase

    lead, end, _ = build(text)
    heads = [_split(o)[0].removeprefix(lead).strip() for o in (text, *options) if build(o) == build(text)]
    if not all(heads):
        return text
    return " ".join(piece for piece in (lead, alike(heads), end) if piece)


def _split(phrase: str) -> tuple[str, str, str]:
    """What stands before a slot, the slot, and what stands after it."""
    found = re.search(r"\{[ok]\}", phrase)
    return (phrase[: found.start()], found.group(), phrase[found.end() :]) if found else (phrase, "", "")
