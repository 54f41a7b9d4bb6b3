"""The words for the things of one twin: nouns, adjectives, and what things are good for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from rvt_ray.agent.language.ast import Statement
from rvt_ray.agent.language.words import tokenise
from rvt_ray.queries.lexicon import Lexicon
from rvt_ray.queries.tasks.closed import COLOURS, MATERIALS
from rvt_ray.twin.facts import Facts, kinds

GENERIC = {"thing", "object", "one", "item", "something", "anything", "entity", "instance", "somebody"}
GENERIC_MANY = {"things", "objects", "ones", "items", "those", "them", "instances", "everything"}
_MATERIAL_WORDS = {"wooden": "wood", "golden": "gold", "metallic": "metal"}
_SIZE_WORDS = {"medium-sized": "medium"}
_ADJECTIVE_NAMES = ("material", "size", "pattern", "texture", "shape", "state", "age")
_MAX_KINDS = 6

Words = tuple[str, ...]


class Vocabulary:
    """Look-ups from words to statements, for one twin.

    Kinds of the twin come first; a general word ("vehicle") that the facts do not know as a kind stands for
    the twin's kinds that fall under it.

    Args:
        facts: of the twin.
        lexicon: synonyms, plurals and functions.
    """

    def __init__(self, facts: Facts, lexicon: Lexicon) -> None:
        self.facts = facts
        self.lexicon = lexicon

    @cached_property
    def labels(self) -> list[str]:
        """Kinds that instances of the twin are called by."""
        found = {i.category for i in self.facts.twin.instances}
        found |= {a.value for i in self.facts.twin.instances for a in i.alternatives}
        return sorted(n for n in found if not self.lexicon.is_nameless(n))

    @cached_property
    def nouns(self) -> dict[Words, tuple[bool, tuple[str, ...]]]:
        """Words -> (plural, kinds they may mean; none for words like "thing")."""
        found: dict[Words, tuple[bool, dict[str, None]]] = {}

        def add(name: str, value: str) -> None:
            for word, many in ((name, False), (self.lexicon.plural(name), True)):
                words = tuple(tokenise(word))
                if words:
                    found.setdefault(words, (many, {}))[1].setdefault(value)

        for value in self.facts.values("category"):
            add(value, value)
        for label in self.labels:
            for name in sorted(self.lexicon.names(label)):
                if name != self.lexicon.plural(label):
                    add(name, label)
            for general in self.lexicon.general(label):
                add(general, general if kinds.is_a(label, general) else label)
        here = {w for w in found if found[w][1]}
        for name in self.lexicon.kinds:  # kinds that are not here: "the car" where there is none
            if tuple(tokenise(name)) not in here:
                add(name, name)
        result = {words: (many, tuple(values)[:_MAX_KINDS]) for words, (many, values) in found.items()}
        for word in GENERIC:
            result[(word,)] = (False, ())
        for word in GENERIC_MANY:
            result[(word,)] = (True, ())
        return result

    @cached_property
    def adjectives(self) -> dict[Words, Statement]:
        """Words that stand before a noun, or after "is"."""
        found: dict[Words, Statement] = {}
        for colour in (*COLOURS, *self.facts.values("colour")):
            found[tuple(tokenise(colour))] = Statement("colour", (colour,))
        greys = [c for c in self.facts.values("colour") if c in ("grey", "gray")] or ["grey"]
        found[("grey",)] = found[("gray",)] = Statement("colour", tuple(greys))
        for material in MATERIALS:
            found[(material,)] = Statement("attribute", (f"material:{material}",))
        for word, material in _MATERIAL_WORDS.items():
            found[(word,)] = Statement("attribute", (f"material:{material}",))
        for size in ("small", "medium", "large"):
            found[(size,)] = Statement("attribute", (f"size:{size}",))
        for word, size in _SIZE_WORDS.items():
            found[(word,)] = Statement("attribute", (f"size:{size}",))
        for value in self.facts.values("attribute"):
            name, _, what = value.partition(":")
            if name in _ADJECTIVE_NAMES:
                found[tuple(tokenise(what))] = Statement("attribute", (value,))
        return {words: s for words, s in found.items() if words}

    def clauses(self) -> Iterator[tuple[str, Statement]]:
        """Verb phrases (verbs in brackets) that are special to this twin: what its kinds are good for, and
        attributes that are said with a verb."""
        by_function: dict[str, list[str]] = {}
        for label in self.labels:
            for function, _ in self.lexicon.functions(label):
                by_function.setdefault(function, []).append(label)
        for function, phrases in self.lexicon.function_phrases.items():
            # A function of nothing here still has a meaning: a kind that is not there.
            labels = by_function.get(function) or [
                k for k, e in self.lexicon.kinds.items() if function in e.functions
            ]
            for phrase in phrases:
                yield phrase, Statement("category", tuple(labels[:_MAX_KINDS]))
        for value in self.facts.values("function"):
            for pattern in ("<be> something to {v}", "<be> something one can {v}", "<be> used to {v}"):
                yield pattern.replace("{v}", value), Statement("function", (value,))
        for colour in self.facts.values("colour"):
            yield f"<be> dressed in {colour}", Statement("colour", (colour,))
            yield f"<wear> {colour}", Statement("colour", (colour,))
        for value in self.facts.values("attribute"):
            name, _, what = value.partition(":")
            statement = Statement("attribute", (value,))
            if name == "holding":
                yield f"<hold> a {what}", statement
                yield f"<hold> an {what}", statement
            elif name == "wearing":
                yield f"<wear> {what}", statement
                yield f"<wear> a {what}", statement
            elif name not in _ADJECTIVE_NAMES:
                yield f"<be> {what}", statement

    def ranges(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Ends of superlatives -> the kinds that they range over: "of all", "of all the balls"."""
        yield "of all", (kinds.NEUTRAL,)
        yield "of them all", (kinds.NEUTRAL,)
        yield "in the picture", (kinds.NEUTRAL,)
        for words, (many, values) in self.nouns.items():
            name = " ".join(words)
            if many or self.lexicon.plural(name) == name:  # "of all the food"
                chosen = values or (kinds.NEUTRAL,)
                yield f"of all the {name}", chosen
                yield f"of the {name}", chosen
                yield f"among the {name}", chosen
        for phrase, statement in self.clauses():
            if statement.predicate == "category":
                yield f"of all those that {phrase}", statement.values
