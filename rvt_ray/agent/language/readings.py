"""From what a sentence says to programs: variables, scopes, and each of several meanings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from rvt_ray.agent.language.ast import UNSAID, NounPhrase, Statement
from rvt_ray.agent.language.frames import Parsed
from rvt_ray.agent.plan import OTHER, Plan
from rvt_ray.reasoning import Constraint, Program
from rvt_ray.twin.facts import CATALOGUE, kinds

MAX_MEANINGS = 12
_NAMES = "abcdefghijklmnopqrstuvw"
_UNSAID_SCOPES = ("throughout", "some_time")


@dataclass
class _Draft:
    """A program in the making. A constraint's value may still be one of several."""

    order: list[str] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)
    definite: list[str] = field(default_factory=list)
    parts: list[tuple[str, tuple[str, ...], tuple[str, ...], str | None]] = field(default_factory=list)


class Unsayable(Exception):
    """A pronoun that has nothing to stand for, a thing that is described by itself, or more things than there
    are names."""


@dataclass(frozen=True)
class Meaning:
    """A plan and the anchors that its words call "the"."""

    plan: Plan
    definite: tuple[str, ...] = ()


def meanings(parsed: Parsed) -> Iterator[Meaning]:
    """The plans that a reading may stand for, the likeliest first."""
    for program, definite in _programs(parsed.target):
        asked = other = None
        if parsed.asked is not None:
            asked = _asked(parsed.asked, program.target)
            if asked is None:
                continue
        phrase = parsed.asked.other if parsed.asked is not None else parsed.other
        if phrase is not None:
            other = next((p for p, _ in _programs(phrase)), None)
            if other is None:
                continue
        yield Meaning(
            Plan(
                form=parsed.form,
                program=program,
                many=parsed.target.many,
                asked=asked,
                other=other,
                attribute=parsed.attribute,
            ),
            definite,
        )


def statements_program(said: tuple[Statement, ...]) -> Iterator[tuple[Program, tuple[str, ...]]]:
    """Programs for a target of which just these things are said."""
    return _programs(NounPhrase("", "the", None, said))


def _programs(phrase: NounPhrase) -> Iterator[tuple[Program, tuple[str, ...]]]:
    draft = _Draft()
    try:
        _describe(draft, "x", phrase)
    except Unsayable:
        return
    scopes = _UNSAID_SCOPES if any(scope == UNSAID for *_, scope in draft.parts) else (None,)
    values = [part[2] or (None,) for part in draft.parts]
    for scope, chosen in itertools.islice(
        itertools.product(scopes, itertools.product(*values)), MAX_MEANINGS
    ):
        constraints = []
        for (predicate, args, _, given), value in zip(draft.parts, chosen, strict=True):
            if given == UNSAID:
                allowed = CATALOGUE[predicate].scopes
                given = scope if scope in allowed else allowed[0]
            constraint = Constraint(predicate=predicate, args=args, value=value, scope=given)
            if constraint not in constraints:
                constraints.append(constraint)
        program = Program(target="x", variables=tuple(draft.order), constraints=tuple(constraints))
        try:
            program.check()
        except ValueError:
            continue
        yield program, tuple(draft.definite)


def _describe(draft: _Draft, name: str, phrase: NounPhrase) -> None:
    draft.order.append(name)
    kind = next((s.values for s in phrase.said if s.predicate == "category"), (kinds.NEUTRAL,))
    for statement in phrase.said:
        args: tuple[str, ...] = (name,)
        if statement.other is not None:
            other = _anchor(draft, name, statement.other)
            args = (other, name) if statement.passive else (name, other)
        # "The bottle that is nearest" is the nearest of the bottles.
        values = kind if statement.values == (UNSAID,) else statement.values
        draft.parts.append((statement.predicate, args, values, statement.scope))


def _anchor(draft: _Draft, subject: str, phrase: NounPhrase) -> str:
    known = _mentioned(draft, phrase)
    if known is not None:
        if known == subject:
            raise Unsayable
        draft.order.remove(known)
        draft.order.append(known)  # parents come before children
        return known
    name = next((n for n in _NAMES if n not in draft.order), None)
    if name is None:
        raise Unsayable
    draft.named[phrase.text] = name
    if phrase.article == "the":
        draft.definite.append(name)
    _describe(draft, name, phrase)
    return name


def _mentioned(draft: _Draft, phrase: NounPhrase) -> str | None:
    """The variable of a thing that was spoken of before."""
    if phrase.article == "it":
        anchors = [n for n in draft.order if n != "x"]
        if len(anchors) != 1:
            raise Unsayable
        return anchors[0]
    if phrase.article == "same":
        noun = phrase.text.split(" ")[-1]
        last = [name for text, name in draft.named.items() if noun in text.split(" ")]
        if not last:
            raise Unsayable
        return last[0]
    if phrase.article == "the" and phrase.text in draft.named:
        return draft.named[phrase.text]
    return None


def _asked(statement: Statement, target: str) -> Constraint | None:
    spec = CATALOGUE[statement.predicate]
    scope = statement.scope
    if scope == UNSAID:
        scope = "some_time" if "some_time" in spec.scopes else spec.scopes[0]
    args = (target,) if statement.other is None else (target, OTHER)
    if statement.passive:
        args = args[::-1]
    if len(args) != spec.arity:
        return None
    return Constraint(
        predicate=statement.predicate,
        args=args,
        value=_asked_value(statement),
        scope=scope,
    )


def _asked_value(statement: Statement) -> str | None:
    if not statement.values:
        return None
    return kinds.NEUTRAL if statement.values == (UNSAID,) else statement.values[0]
