"""From a program to words: the target as a noun phrase or a clause, without naming its kind.

`Speaker` walks the program from the target outwards. Constraints become verb phrases, adjectives or head
nouns; anchors become noun phrases of their own. What cannot be said without a leak raises `CannotSay`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from rvt_ray.queries import english
from rvt_ray.queries.english import Form, inflect
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.wording.lattice import first
from rvt_ray.queries.wording.phraser import CannotSay, Phraser, Said
from rvt_ray.queries.wording.phrases import PHRASES, SUPERLATIVE_ADJECTIVES
from rvt_ray.reasoning import Candidate, Constraint
from rvt_ray.twin.facts import CATALOGUE
from rvt_ray.twin.facts.scopes import THROUGHOUT, WHILE_MOVING

_ALSO = ", and also "
"""Goes back to the thing that the whole phrase is about."""


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
        open_choices: leave open which of several phrases of the same build stands in a place: the text has
            marks (`wording.lattice`).
    """

    def __init__(
        self,
        know: Knowledge,
        candidate: Candidate,
        rng: random.Random,
        *,
        plain: bool = False,
        open_choices: bool = False,
    ) -> None:
        self._know = know
        self._candidate = candidate
        self._program = candidate.program
        self._phraser = Phraser(know, candidate, rng, plain=plain, open_choices=open_choices)
        self._start()

    def _start(self) -> None:
        self._mentioned: dict[str, str] = {}  # anchor -> how it is called from now on
        self._pending: set[str] = {self._program.target}  # to be introduced by a sentence already begun
        self._spoken: set[Constraint] = set()
        self._phraser.start()

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
        noun = description.noun or self._phraser.generic(self._candidate.target_ids)
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
        return self._phraser.say(constraint, other, heavy=False, verb_first=True).text

    # -- descriptions -----------------------------------------------------------------------------

    def _describe(self, variable: str) -> Description:
        """What the program says of a variable, and of what hangs on it."""
        out = Description()
        relations, at_last = [], []
        for constraint in self._program.constraints:
            if variable not in constraint.args or constraint in self._spoken:
                continue
            if len(constraint.args) == 1:
                self._spoken.add(constraint)
                if constraint.scope == WHILE_MOVING:
                    at_last.append(constraint)
                    continue
                self._unary(variable, constraint, out)
            elif _other(constraint, variable) not in self._pending:
                relations.append(constraint)
            # Else the other one is still to be introduced, and will be said to relate to this one.
        new = {_other(c, variable) for c in relations} - set(self._mentioned)
        self._pending |= new
        # An anchor that needs a clause of its own comes last: what follows it would seem to be said of it.
        # So does "while moving is ...": "and is ..." after it would seem to be so while moving, too.
        relations.sort(key=lambda c: (c.scope == WHILE_MOVING, self._weight(_other(c, variable))))
        for constraint in relations:
            other = _other(constraint, variable)
            self._spoken.add(constraint)
            noun_phrase, heavy = self._anchor(other)
            turned = _from_view(constraint, variable)
            if isinstance(turned, str):
                out.clauses.append(Said(turned.format(o=noun_phrase), heavy))
            else:
                out.clauses.append(self._phraser.say(turned, noun_phrase, heavy=heavy))
        for constraint in at_last:
            self._unary(variable, constraint, out)
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
                and not self._goes_before_noun(variable, c)
                if len(c.args) == 1
                else _other(c, variable) not in self._pending
            )
        )

    def _unary(self, variable: str, constraint: Constraint, out: Description) -> None:
        predicate, value = constraint.predicate, constraint.value or ""
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
            out.clauses.append(self._phraser.function(value))
        elif self._goes_before_noun(variable, constraint):
            out.adjectives.append(self._phraser.pick(SUPERLATIVE_ADJECTIVES[predicate]))
            out.noun = value
        else:
            out.clauses.append(self._phraser.say(constraint, None, heavy=False))

    def _goes_before_noun(self, variable: str, constraint: Constraint) -> bool:
        """Whether a superlative may say what an anchor is called: "the slowest toy". Without a time it is
        understood as always so."""
        return (
            constraint.predicate in SUPERLATIVE_ADJECTIVES
            and constraint.scope in (None, THROUGHOUT)
            and variable != self._program.target
            and not self._know.lexicon.is_nameless(constraint.value or "")
            and not self._phraser.is_forbidden(constraint.value or "")
        )

    def _kind(self, variable: str, value: str, out: Description) -> None:
        know, lexicon = self._know, self._know.lexicon
        if lexicon.is_nameless(value):
            return
        if variable != self._program.target and not self._phraser.is_forbidden(value):
            out.noun = value
            return
        if not self._phraser.is_forbidden(value) and know.general_means_kind(value, value, self._candidate):
            out.noun = value
            return
        functions = [f for f in lexicon.functions(value) if know.function_means_kind(f[0], value)]
        if functions:
            out.clauses.append(Said(self._phraser.any_of(self._phraser.pick(functions)[1])))
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
        if self._phraser.is_forbidden(what):
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

    # -- noun phrases -----------------------------------------------------------------------------

    def _anchor(self, variable: str) -> tuple[str, bool]:
        """The noun phrase of an anchor and whether it holds a relative clause."""
        if variable in self._mentioned:
            again = self._mentioned[variable]
            if not again:
                raise CannotSay(f"a second mention of anchor {variable!r} would not say which one is meant")
            return again, False
        self._pending.discard(variable)
        only = not self._mentioned
        self._mentioned[variable] = "it"
        description = self._describe(variable)
        bound = self._candidate.anchors.get(variable, ())
        noun = description.noun or self._phraser.generic(bound)
        article = self._article(variable)
        text = self._noun_phrase(article, noun, description, many=False, named=description.noun is not None)
        if _ALSO in text:
            raise CannotSay(f"what comes last of anchor {variable!r} would seem to be said of another thing")
        # "it" is clear while there is one anchor only; "that same ball" while there is one ball only.
        # Of "that same object" one has to guess which thing it is.
        nameless = description.noun is None
        alike = any(name.endswith(f" {noun}") for v, name in self._mentioned.items() if v != variable)
        if only and len(self._program.variables) == 2:
            again = "it"
        elif alike or nameless:
            # Said twice in different words it would seem to be another one.
            again = text if article == "the" and text == first(text) else ""
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
            # A phrase with an "and" of its own needs the comma too.
            if before.heavy or (last and " and " in now.text):
                out += f"{_ALSO}{now.text}"
            elif last:
                out += f" and {now.text}"
            else:
                out += f", {now.text}"
        return out

    def _is_person(self, variable: str) -> bool:
        bound = (
            self._candidate.target_ids
            if variable == self._program.target
            else self._candidate.anchors.get(variable, ())
        )
        return bool(bound) and all(self._know.is_person(i) for i in bound)


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
    if constraint.scope == WHILE_MOVING:
        raise CannotSay("turned round, 'while moving' would be said of the other one")
    if inverse is not None:
        return constraint.model_copy(update={"predicate": inverse, "args": constraint.args[::-1]})
    passives = PHRASES[constraint.predicate].passives
    if not passives:
        raise CannotSay(f"{constraint.predicate!r} has no passive form")
    return passives[0]
