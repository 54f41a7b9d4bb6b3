"""The lexicon of kinds: synonyms, plurals, more general terms, functions.

`lexicon.json` covers COCO's 80 kinds, other everyday kinds and those of the synthetic renderer. A user's
file of the same shape (`generate.queries.lexicon`) adds kinds and functions or replaces them by name.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rvt_ray.backends import explain
from rvt_ray.errors import ConfigError
from rvt_ray.queries import english

NAMELESS = frozenset({"", "unknown", "object", "thing", "item", "unclear", "instance", "blob", "region"})
_REMEDY = "give a JSON file as docs/wording.md shows, or null for the built-in lexicon"


class Kind(BaseModel):
    """One kind of thing.

    Attributes:
        plural: only where it is irregular.
        synonyms: other names, and words that give the kind away (`cyclist` for a bicycle's rider is not
            one; `bicycling` is).
        general: broader terms, nearest first. They give a target away only where no other object of the
            clip falls under them.
        functions: keys of the lexicon's functions that hold for it.
        animate: people and animals are never called "thing".
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    plural: str | None = None
    synonyms: tuple[str, ...] = ()
    general: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    animate: bool = False


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: str = "1"
    about: str = ""
    kinds: dict[str, Kind] = Field(default_factory=dict)
    functions: dict[str, list[str]] = Field(default_factory=dict)
    compound_prefixes: list[str] = Field(default_factory=list)


class Lexicon:
    """Look-ups over kinds; names are normalised (lower case, single spaces)."""

    def __init__(
        self, kinds: dict[str, Kind], functions: dict[str, list[str]], compound_prefixes: frozenset[str]
    ) -> None:
        self.kinds = kinds
        self.function_phrases = functions
        self.compound_prefixes = compound_prefixes
        self._singular = {self._plural_of(name, kind): name for name, kind in kinds.items()}
        # A word that is a broader term somewhere (a vase is a vessel) does not mean a kind that also goes by
        # it (a boat is a vessel): of a "drinking vessel" nothing follows that holds for boats.
        broader = {term for kind in kinds.values() for term in kind.general}
        self._synonym: dict[str, str] = {}
        for name, kind in kinds.items():
            for synonym in kind.synonyms:
                if synonym not in broader:
                    self._synonym.setdefault(synonym, name)

    @staticmethod
    def normal(name: str) -> str:
        """`Sports_Ball ` -> `sports ball`."""
        return re.sub(r"[\s_]+", " ", name.strip().lower())

    def canonical(self, name: str) -> str | None:
        """The lexicon's kind for a label: exact, plural, synonym, or the label's last words ("old oak
        chair" is a chair); null where it knows none, or only as a broader term of several kinds."""
        words = self.normal(name).split(" ")
        for start in range(len(words)):
            rest = " ".join(words[start:])
            if rest in self.kinds:
                return rest
            if rest in self._singular:
                return self._singular[rest]
            if rest in self._synonym:
                return self._synonym[rest]
        return None

    def is_nameless(self, name: str) -> bool:
        """Whether the label says nothing ("object", "unknown")."""
        return self.normal(name) in NAMELESS

    def entry(self, name: str) -> Kind:
        """The kind's entry; an empty one where the lexicon does not know it."""
        known = self.canonical(name)
        return self.kinds[known] if known is not None else Kind()

    def plural(self, name: str) -> str:
        """The plural of a kind's name."""
        name = self.normal(name)
        if name in self.kinds:
            return self._plural_of(name, self.kinds[name])
        return english.plural(name)

    @staticmethod
    def _plural_of(name: str, kind: Kind) -> str:
        return kind.plural if kind.plural is not None else english.plural(name)

    def names(self, name: str) -> frozenset[str]:
        """Every name that gives the kind away: itself, its plural, synonyms and theirs, the head of a
        compound label."""
        name = self.normal(name)
        if name in NAMELESS:
            return frozenset()
        found = {name, self.plural(name)}
        known = self.canonical(name)
        if known is not None:
            kind = self.kinds[known]
            found |= {known, self._plural_of(known, kind)}
            for synonym in kind.synonyms:
                found |= {synonym, self.plural(synonym)}
        elif " " in name:
            head = name.rsplit(" ", 1)[1]
            found |= {head, english.plural(head)}
        return frozenset(found)

    def general(self, name: str) -> tuple[str, ...]:
        """Broader terms, nearest first."""
        return self.entry(name).general

    def animate(self, name: str) -> bool:
        """Whether it must not be called a thing."""
        return self.entry(name).animate

    def functions(self, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """(function, verb phrases) of a kind."""
        return tuple((tag, tuple(self.function_phrases[tag])) for tag in self.entry(name).functions)

    def shares_function(self, name: str, function: str) -> bool:
        """Whether a kind may serve the function too; an unknown kind may serve any."""
        known = self.canonical(name)
        return known is None or function in self.kinds[known].functions


@cache
def load_lexicon(extension: str | None = None) -> Lexicon:
    """The built-in lexicon, extended by a user's file of the same shape.

    Raises:
        ConfigError: the file is missing, not JSON, of another shape, or names a function nobody defines.
    """
    base = _File.model_validate_json(
        files("rvt_ray.queries.lexicon").joinpath("lexicon.json").read_text(encoding="utf-8")
    )
    kinds, functions = dict(base.kinds), dict(base.functions)
    prefixes = set(base.compound_prefixes)
    if extension is not None:
        more = _read(Path(extension))
        kinds |= {Lexicon.normal(k): v for k, v in more.kinds.items()}
        functions |= more.functions
        prefixes |= set(more.compound_prefixes)
    for name, kind in kinds.items():
        for function in kind.functions:
            if not functions.get(function):
                raise ConfigError(
                    f"generate.queries.lexicon: {extension or 'lexicon.json'}: kind {name!r} has function "
                    f"{function!r}, which is not defined; add it under "
                    "`functions` with at least one verb phrase"
                )
    return Lexicon(kinds, functions, frozenset(prefixes))


def _read(path: Path) -> _File:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"generate.queries.lexicon: cannot read {path}: {error.strerror}; {_REMEDY}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"generate.queries.lexicon: {path}: not UTF-8 text ({error}); {_REMEDY}") from error
    try:
        return _File.model_validate(json.loads(text))
    except json.JSONDecodeError as error:
        raise ConfigError(f"generate.queries.lexicon: {path}: not JSON: {error}; {_REMEDY}") from error
    except ValidationError as error:
        raise ConfigError(
            f"generate.queries.lexicon: {path}: {explain(error, _File)}. Mend the key, or {_REMEDY}"
        ) from error
