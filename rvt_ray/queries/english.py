"""The little English grammar that wording rests on: inflection, plurals, articles, lists, questions.

Phrases are written with verbs in angle brackets in their base form: `<come> in last`, `<be> red`; and so is
the one noun that has to agree with them, `<be> <something> to sit on`. `inflect` puts them into the form
that a sentence needs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

_VERB = re.compile(r"<([a-z]+)>")
_THIRD = {"be": "is", "have": "has", "do": "does", "go": "goes"}
_PLURAL_BE = {"be": "are"}
_MODALS = ("can", "could", "would", "may", "might", "must", "will", "cannot")
_INVARIANT = {"scissors", "skis", "glasses", "sheep", "fish", "people", "binoculars"}
# Mass nouns: "of all the furniture".
_MASS = {
    "clothing", "cutlery", "electronics", "equipment", "food", "footwear", "furniture", "headgear",
    "kitchenware", "luggage", "sports equipment", "stationery", "tableware", "vegetation",
}  # fmt: skip


class Form(StrEnum):
    """A verb form."""

    SINGULAR = "singular"  # it comes
    PLURAL = "plural"  # they come
    BASE = "base"  # does it come


def verb(base: str, form: Form) -> str:
    """One verb in one form: `verb("carry", Form.SINGULAR)` is `carries`."""
    if form is Form.BASE:
        return base
    if form is Form.PLURAL:
        return _PLURAL_BE.get(base, base)
    if base in _THIRD:
        return _THIRD[base]
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ies"
    if re.search(r"(s|x|z|ch|sh)$", base):
        return base + "es"
    return base + "s"


def inflect(phrase: str, form: Form) -> str:
    """A verb phrase with every `<verb>` in the given form; `<something>` of several is `things`."""

    def inflected(match: re.Match[str]) -> str:
        word = match.group(1)
        if word == "something":
            return "things" if form is Form.PLURAL else word
        return verb(word, form)

    return _VERB.sub(inflected, phrase)


def plural(noun: str) -> str:
    """Regular plural of a noun (the lexicon knows the irregular ones); mass nouns have none."""
    if noun in _INVARIANT | _MASS:
        return noun
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    if re.search(r"(s|x|z|ch|sh)$", noun):
        return noun + "es"
    return noun + "s"


def article(phrase: str) -> str:
    """`a` or `an`, by the first letter; good enough for the words we own."""
    if re.match(r"(uni|use|euro|one|u-)", phrase):
        return "a"
    return "an" if phrase[:1].lower() in "aeiou" else "a"


def listing(items: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def sentence(text: str) -> str:
    """First letter upper case, single spaces, no space before punctuation, a full stop if none is there."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s+([,.?!:;])", r"\1", text)
    if text and text[-1] not in ".?!":
        text += "."
    return text[:1].upper() + text[1:]


def question(subject: str, phrase: str, many: bool) -> str:
    """A yes/no question: subject `it`, phrase `<end> up near the ball` -> `does it end up near the ball`."""
    modal = phrase.split(" ", 1)[0]
    if modal in _MODALS:
        return f"{modal} {subject} {inflect(phrase[len(modal) + 1 :], Form.BASE)}"
    form = Form.PLURAL if many else Form.SINGULAR
    if phrase.startswith("<be> "):
        return f"{verb('be', form)} {subject} {inflect(phrase[5:], form)}"
    return f"{verb('do', form)} {subject} {inflect(phrase, Form.BASE)}"


_ONES = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")


def number(n: int) -> str:
    """Small numbers as words, larger ones as digits."""
    return _ONES[n] if 0 < n < len(_ONES) else str(n)
