"""From a program to words: the target as a noun phrase or a clause, without naming its kind.

`Speaker` walks the program from the target outwards. Constraints become verb phrases, adjectives or head
nouns; anchors become noun phrases of their own. What cannot be said without a leak raises `CannotSay`.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rvt_ray.queries import english
from rvt_ray.queries.english import Form, inflect
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.wording.phrases import (
    PHRASES,
    PLACE_SCOPES,
    REGION_PLACES,
    STATE_SCOPES,
    Phrases,
)
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


@dataclass
class Description:
    """What is said of one variable."""

    noun: str | None = None
    adjectives: list[str] = field(default_factory=list)
    clauses: list[Said] = field(default_factory=list)


@dataclass(frozen=True)
class Reference:
    """The target in words.

    Attributes:
        noun_phrase: "the red thing that comes in last".
        clause_singular, clause_plural: "is red and comes in last", "are red and come in last".
        noun: the noun of the phrase, singular.
        many: whether it stands for several.
    """

    noun_phrase: str
    clause_singular: str
    clause_plural: str
    noun: str
    many: bool


class Speaker:
    """Words for one candidate. Each call draws afresh from `rng`, so calls give paraphrases.

    Args:
        know: the clip's facts, kinds and lexicon.
        candidate: what to speak of.
        rng: seeded source of every choice.
        plain: always take the first, plainest variant (for prompts and tests).
    """

    def __init__(
        self, know: Knowledge, candidate: Candidate, rng: random.Random, *, plain: bool = False
    ) -> None:
        self._know = know
        self._candidate = candidate
        self._program = candidate.program
        self._rng = rng
        self._plain = plain
        self._forbidden = know.forbidden_names(candidate)
        self._start()

    def _start(self) -> None:
        self._mentioned: dict[str, str] = {}  # anchor -> how it is called from now on
        self._pending: set[str] = {self._program.target}  # to be introduced by a sentence already begun
        self._spoken: set[Constraint] = set()
        self._nouns: set[str] = set()
        self._patterns: set[str] = set()  # adverbs of time used so far: not twice in a sentence

    def reference(self) -> Reference:
        """The target, worded once.

        Raises:
            CannotSay: see the class.
        """
        self._start()
        target = self._program.target
        many = len(self._candidate.target_ids) > 1
        description = self._describe(target)
        unsaid = [c.predicate for c in self._program.constraints if c not in self._spoken]
        if unsaid:
            raise CannotSay(f"not tied to the target: {', '.join(unsaid)}")
        noun = description.noun or self._generic(self._candidate.target_ids)
        said = [Said(f"<be> {a}") for a in description.adjectives] + description.clauses
        if description.noun is not None:
            said.insert(
                0,
                Said(
                    f"<be> {self._know.lexicon.plural(noun)}"
                    if many
                    else f"<be> {english.article(noun)} {noun}"
                ),
            )
        if not said:
            raise CannotSay("the program says nothing about the target that can be put into words")
        joined = self._join(said)
        return Reference(
            noun_phrase=self._noun_phrase(
                "the", self._know.lexicon.plural(noun) if many else noun, description, many
            ),
            clause_singular=inflect(joined, Form.SINGULAR),
            clause_plural=inflect(joined, Form.PLURAL),
            noun=noun,
            many=many,
        )

    def verb_phrase(self, constraint: Constraint, other: str | None = None) -> str:
        """One fact about the target as a verb phrase that begins with its verb, for yes/no questions.

        Args:
            constraint: the fact; its first argument is the target.
            other: the noun phrase of the second argument.
        """
        return self._say(constraint, other, heavy=False, verb_first=True).text

    # -- descriptions -----------------------------------------------------------------------------

    def _describe(self, variable: str) -> Description:
        """What the program says of a variable, and of what hangs on it."""
        out = Description()
        relations = []
        for constraint in self._program.constraints:
            if variable not in constraint.args or constraint in self._spoken:
                continue
            if len(constraint.args) == 1:
                self._spoken.add(constraint)
                self._unary(variable, constraint, out)
            elif _other(constraint, variable) not in self._pending:
                relations.append(constraint)
            # Else the other one is still to be introduced, and will be said to relate to this one.
        new = {_other(c, variable) for c in relations} - set(self._mentioned)
        self._pending |= new
        # An anchor that needs a clause of its own comes last: what follows it would seem to be said of it.
        relations.sort(key=lambda c: self._weight(_other(c, variable)))
        for constraint in relations:
            other = _other(constraint, variable)
            self._spoken.add(constraint)
            noun_phrase, heavy = self._anchor(other)
            turned = _from_view(constraint, variable)
            if isinstance(turned, str):
                out.clauses.append(Said(turned.format(o=noun_phrase), heavy))
            else:
                out.clauses.append(self._say(turned, noun_phrase, heavy=heavy))
        return out

    def _weight(self, variable: str) -> int:
        """How many clauses an anchor will bring along."""
        return sum(
            1
            for c in self._program.constraints
            if variable in c.args
            and c not in self._spoken
            and (
                c.predicate not in ("category", "colour", "attribute")
                if len(c.args) == 1
                else _other(c, variable) not in self._pending
            )
        )

    def _unary(self, variable: str, constraint: Constraint, out: Description) -> None:
        predicate, value = constraint.predicate, constraint.value or ""
        is_target = variable == self._program.target
        if predicate == "category":
            self._kind(variable, value, out)
        elif predicate == "colour":
            if self._is_person(variable):
                out.clauses.append(Said(f"<be> dressed in {value}"))
            else:
                out.adjectives.append(value)
        elif predicate == "attribute":
            self._attribute(value, out)
        elif predicate == "function":
            out.clauses.append(self._function(value))
        elif is_target and constraint.scope is None and predicate not in PHRASES:
            raise CannotSay(f"no phrase for predicate {predicate!r}")
        else:
            out.clauses.append(self._say(constraint, None, heavy=False))

    def _kind(self, variable: str, value: str, out: Description) -> None:
        know, lexicon = self._know, self._know.lexicon
        if lexicon.is_nameless(value):
            return
        if variable != self._program.target and not self._is_forbidden(value):
            out.noun = value
            return
        if not self._is_forbidden(value) and know.general_means_kind(value, value, self._candidate):
            out.noun = value
            return
        functions = [f for f in lexicon.functions(value) if know.function_means_kind(f[0], value)]
        if functions:
            out.clauses.append(Said(self._pick(self._pick(functions)[1])))
            return
        general = [g for g in lexicon.general(value) if know.general_means_kind(g, value, self._candidate)]
        if general:
            out.noun = general[0]
            return
        raise CannotSay(
            f"{value!r} can be told apart here neither by a function nor by a more general kind; "
            "the lexicon would need another function for it"
        )

    def _attribute(self, value: str, out: Description) -> None:
        name, _, what = value.partition(":")
        if self._is_forbidden(what):
            raise CannotSay(f"attribute {value!r} names the target")
        if name in ("material", "size", "pattern", "texture", "shape", "state", "age"):
            out.adjectives.append({"wood": "wooden", "medium": "medium-sized"}.get(what, what))
        elif name == "holding":
            out.clauses.append(Said(f"<hold> {english.article(what)} {what}"))
        elif name == "wearing":
            out.clauses.append(Said(f"<wear> {what}"))
        elif name == "action":
            out.clauses.append(Said(f"<be> {what}"))
        else:
            out.clauses.append(Said(f"<be> {what}"))

    def _function(self, value: str) -> Said:
        """What it is for: `<be> something to sit on`."""
        plain = [f"<be> something to {value}", f"<be> something one can {value}"]
        usable = [p for p in plain if not self._is_forbidden(p)]
        if not usable:
            raise CannotSay(f"what it is for ({value!r}) names the target")
        return Said(self._pick(usable))

    # -- phrases ----------------------------------------------------------------------------------

    def _say(
        self, constraint: Constraint, other: str | None, *, heavy: bool, verb_first: bool = False
    ) -> Said:
        phrases = PHRASES.get(constraint.predicate)
        if phrases is None:
            raise CannotSay(f"no phrase for predicate {constraint.predicate!r}")
        if constraint.predicate == "region":
            phrases = Phrases(places=REGION_PLACES[constraint.value or "centre"])
        group = "heavy" if heavy else "light"
        kinds = ""
        if CATALOGUE[constraint.predicate].value == "kind":
            kinds, kinds_heavy = self._range(constraint.value or "")
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
        text, pattern = self._allowed(fresh or options)
        if constraint.scope is not None:
            self._patterns.add(_adverb(pattern))
        text = text.replace("{k}", kinds).replace("{o}", other or "").strip()
        return Said(text, heavy or group == "heavy")

    def _range(self, kind: str) -> tuple[str, bool]:
        """The range of a superlative: "of all", "of all the animals"; whether it holds a clause."""
        know, lexicon = self._know, self._know.lexicon
        if lexicon.is_nameless(kind) or know.is_everything(kind):
            return "of all", False
        if not self._is_forbidden(kind):
            return f"of all the {lexicon.plural(kind)}", False
        for general in lexicon.general(kind):
            if know.general_means_kind(general, kind, self._candidate):
                return f"of all the {lexicon.plural(general)}", False
        functions = [f for f in lexicon.functions(kind) if know.function_means_kind(f[0], kind)]
        if functions:
            clause = inflect(self._pick(self._pick(functions)[1]), Form.PLURAL)
            return f"of all those that {clause}", True
        raise CannotSay(f"a superlative among all of kind {kind!r} cannot be said without naming the kind")

    def _anchor(self, variable: str) -> tuple[str, bool]:
        """The noun phrase of an anchor and whether it holds a relative clause."""
        if variable in self._mentioned:
            return self._mentioned[variable], False
        self._pending.discard(variable)
        first = not self._mentioned
        self._mentioned[variable] = "it"
        description = self._describe(variable)
        bound = self._candidate.anchors.get(variable, ())
        noun = description.noun or self._generic(bound)
        article = self._article(variable)
        text = self._noun_phrase(article, noun, description, many=False, named=description.noun is not None)
        # "it" is clear while there is one anchor only; "that same ball" while there is one ball only.
        alike = any(name.endswith(f" {noun}") for v, name in self._mentioned.items() if v != variable)
        if first and len(self._program.variables) == 2:
            again = "it"
        elif alike or description.noun is None:
            again = text if description.noun is not None or not description.clauses else f"that same {noun}"
        else:
            again = f"that same {noun}"
        self._mentioned[variable] = again
        return text, bool(description.clauses)

    def _article(self, variable: str) -> str:
        bound = self._candidate.anchors.get(variable, ())
        if len(bound) == 1 and self._know.identifies(self._program, variable, bound[0]):
            return "the"
        return "a"

    def _noun_phrase(
        self, article: str, noun: str, description: Description, many: bool, named: bool = True
    ) -> str:
        adjectives = " ".join(description.adjectives)
        head = f"{adjectives} {noun}".strip()
        if article == "a":
            article = "another" if not named else english.article(head)
        text = f"{article} {head}"
        if description.clauses:
            clause = inflect(self._join(description.clauses), Form.PLURAL if many else Form.SINGULAR)
            text = f"{text} that {clause}"
        return text

    def _join(self, said: Sequence[Said]) -> str:
        """Verb phrases in a row; after a relative clause only a comma and "also" make clear who is meant."""
        out = said[0].text
        for i, (before, now) in enumerate(itertools.pairwise(said), start=1):
            last = i == len(said) - 1
            if before.heavy:
                out += f", and also {now.text}"
            elif last:
                out += f" and {now.text}"
            else:
                out += f", {now.text}"
        return out

    def _generic(self, ids: Sequence[int]) -> str:
        """A neutral noun, one that the sentence has not used yet where there is one."""
        nouns = self._know.generic_nouns(ids)
        noun = self._pick([n for n in nouns if n not in self._nouns] or nouns)
        self._nouns.add(noun)
        return noun

    # -- choices ----------------------------------------------------------------------------------

    def _pick(self, options: Sequence[_T]) -> _T:
        return options[0] if self._plain else self._rng.choice(options)

    def _allowed(self, options: Sequence[tuple[str, str]]) -> tuple[str, str]:
        """One option that does not happen to hold a forbidden word ("left-hand", when a hand is meant)."""
        clean = [o for o in options if not self._know.names_in(o[0], self._forbidden)]
        if not clean:
            raise CannotSay(f"every phrase like {options[0][0]!r} names the target")
        return self._pick(clean)

    def _is_forbidden(self, word: str) -> bool:
        return bool(self._know.names_in(word, self._forbidden))

    def _is_person(self, variable: str) -> bool:
        bound = (
            self._candidate.target_ids
            if variable == self._program.target
            else self._candidate.anchors.get(variable, ())
        )
        return bool(bound) and all(self._know.is_person(i) for i in bound)


def _adverb(pattern: str) -> str:
    """The time words of a pattern: "<be> {p} at the start" -> "at the start"."""
    return re.sub(r"<be>|\{[ps]\}", "", pattern).strip()


def _other(constraint: Constraint, variable: str) -> str:
    return constraint.args[1] if constraint.args[0] == variable else constraint.args[0]


def _from_view(constraint: Constraint, variable: str) -> Constraint | str:
    """The relation with `variable` as its subject: itself, its inverse, or a passive phrase.

    Raises:
        CannotSay: it can only be said the other way round.
    """
    if constraint.args[0] == variable:
        return constraint
    inverse = CATALOGUE[constraint.predicate].inverse
    if inverse is not None:
        return constraint.model_copy(update={"predicate": inverse, "args": constraint.args[::-1]})
    passives = PHRASES[constraint.predicate].passives
    if not passives:
        raise CannotSay(f"{constraint.predicate!r} has no passive form")
    return passives[0]
