"""Gate 6a: a model's wording says every hop of the program, and nothing that the program does not say.

Read off words alone: each constraint has cues of which one must occur; words that state something (a side,
a direction, an order, a colour, a kind, a negation) must belong to some constraint. It cannot see who is
left of whom; that is gate 6b's work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.text import plain, tokens
from rvt_ray.queries.knowledge import Knowledge, variable_depths
from rvt_ray.queries.wording.frames import FRAMES
from rvt_ray.queries.wording.phrases import (
    PHRASES,
    PLACE_SCOPES,
    REGION_CUES,
    REGION_PLACES,
    SCOPE_CUES,
    STATE_SCOPES,
    WHILE_MOVING_ITSELF,
)
from rvt_ray.reasoning import Constraint
from rvt_ray.twin.facts import CATALOGUE
from rvt_ray.twin.facts.scopes import THROUGHOUT, WHILE_MOVING

COLOURS = frozenset(
    {
        "red",
        "blue",
        "green",
        "yellow",
        "orange",
        "purple",
        "pink",
        "brown",
        "black",
        "white",
        "grey",
        "gray",
        "violet",
        "cyan",
        "magenta",
        "beige",
        "turquoise",
        "golden",
        "silver",
    }
)

# Words that state something; each line is one statement, whoever says it must be licensed to.
_STATEMENTS: dict[str, str] = {
    "left": r"\bleft(?!-over)\b|\bleft(most|wards?)\b",
    "right": r"\bright\b|\bright(most|wards?)\b",
    "up": r"\b(above|higher|highest|topmost|upwards?|upper|top)\b",
    "down": r"\b(below|lower|lowest|bottommost|bottom|downwards?|under|underneath|beneath)\b",
    "front": r"\b(in front|nearest|nearer|closest|foremost)\b",
    "back": r"\b(behind|farther|farthest|furthest|further)\b",
    "before": r"\b(before|earlier|sooner)\b",
    "after": r"\b(after|later)\b",
    "start": r"\b(start|starts|beginning|begins|initially|at first|first)\b",
    "end": r"\b(end|ends|ending|finally|eventually|finishes|last)\b",
    "bigger": r"\b(bigger|biggest|larger|largest|taller)\b",
    "smaller": r"\b(smaller|smallest|tiniest|tinier|shorter)\b",
    "fast": r"\b(fast|faster|fastest|quicker|quickest)\b",
    "slow": r"\b(slow|slower|slowest|slowly)\b",
    "enters": r"\b(enters?|entering|arrives?|arriving|comes? in(to)?)\b",
    "leaves": r"\b(leaves?|leaving|exits?|departs?|disappears?|vanish(es)?)\b",
    "away": r"\baway\b",
    "towards": r"\b(towards?|approach(es|ing)?)\b",
    "hidden": r"\b(hidden|hides?|hiding|covered|covers|obscured|blocked)\b",
    "inside": r"\b(inside|within|contains?|containing|surround(s|ed|ing)?|enclos(es?|ed|ing))\b",
    "touching": r"\b(touch(es|ing)?|contact)\b",
    "following": r"\b(follows|following|chas(es|ing)|trails?)\b",
    "passing": r"\b(pass(es|ing)?|past|overtakes?)\b",
    "standing still": r"\b(still|motionless|stationary|stops?|halts?|rests?)\b",
    "always": r"\b(always|throughout)\b",
    "not": r"\b(not|never|no|none|without|except|nothing|nobody)\b|n't\b",
    "other": r"\b(either|or)\b",
}  # fmt: skip
_COMPILED = {name: re.compile(pattern) for name, pattern in _STATEMENTS.items()}
MUST_BE_SAID = frozenset(SCOPE_CUES) - {THROUGHOUT}
"""Scopes without which a statement says something else."""


def find_misstatements(text: str, draft: Draft, know: Knowledge) -> list[str]:
    """What the text leaves out, and what it adds, in words; empty when neither is seen."""
    said = plain(text)
    low = _calm(said)
    words = set(tokens(text))
    constraints = list(draft.candidate.program.constraints)
    depths = variable_depths(draft.candidate.program) | {"other": 1}
    if draft.checked is not None:
        constraints.append(draft.checked[0])
    found = [gap for c in constraints for gap in _missing(c, said, words, draft, know, depths)]
    other = draft.slots.get("other") or (draft.checked[1] if draft.checked else None)
    if other is not None and not set(tokens(other)) - {"the"} <= words:
        found.append(f"it does not speak of {other}")
    licence = _calm(" ".join(_licence(constraints, draft, know, depths)).lower())
    for name, pattern in _COMPILED.items():
        hit = pattern.search(low)
        if hit and not pattern.search(licence):
            found.append(f"it says {hit.group(0)!r} ({name}), which the program does not")
    allowed = set(tokens(licence))
    found += [f"it says {c!r}, which the program does not" for c in sorted(COLOURS & words - allowed)]
    found += _strange_kinds(text, licence, know)
    return list(dict.fromkeys(found))


def _calm(text: str) -> str:
    """Take out set phrases whose words do not mean what they say elsewhere."""
    return re.sub(r"\bnot far\b|\bmore or less\b|\bno more\b|\bleft[- ]over\b", " ", text)


def _missing(
    c: Constraint, low: str, words: set[str], draft: Draft, know: Knowledge, depths: dict[str, int]
) -> Iterator[str]:
    value = (c.value or "").lower()
    if c.predicate == "region":
        cues: tuple[str, ...] = REGION_CUES[value]
    elif c.predicate == "colour":
        if value not in words and not (value in ("grey", "gray") and words & {"grey", "gray"}):
            yield f"it does not say {value!r}"
        return
    elif c.predicate == "attribute":
        what = value.partition(":")[2]
        if not any(w[:4] == what[:4] for w in words):
            yield f"it does not say {what!r}"
        return
    elif c.predicate == "category":
        named = know.names_in(low, know.lexicon.names(value) | set(know.lexicon.general(value)))
        if c.args != (draft.candidate.program.target,) and not named:
            forbidden = know.names_in(value, know.forbidden_names(draft.candidate))
            if not forbidden:
                yield f"it does not speak of the {value}"
        return
    elif c.predicate == "function":
        stems = [w[:4] for w in value.split() if len(w) > 2]
        if stems and not any(w.startswith(s) for s in stems for w in words):
            yield f"it does not say what it is for ({value})"
        return
    else:
        cues = tuple(cue for name in _spoken(c, depths) for cue in PHRASES[name].cues)
    if not any(re.search(cue, low) for cue in cues):
        yield f"it does not say {c.predicate.replace('_', ' ')}"
    if c.scope in MUST_BE_SAID and not any(re.search(s, low) for s in SCOPE_CUES[c.scope]):
        yield f"it does not say when ({c.scope.replace('_', ' ')})"
    elif c.scope == WHILE_MOVING and len(c.args) == 2 and not re.search(WHILE_MOVING_ITSELF, low):
        yield "it leaves open which of the two is moving"


def _spoken(c: Constraint, depths: dict[str, int]) -> tuple[str, ...]:
    """The predicates under which a constraint may be said. A relation is said of the object that is nearer
    to the target: "x is left of y" must not become "y is right of x" there, since a reader of words alone
    could not tell it from "x is right of y". Between two anchors of like distance either is good."""
    inverse = CATALOGUE[c.predicate].inverse
    if len(c.args) == 1 or inverse is None or c.scope == WHILE_MOVING:  # turned round, the other one moves
        return (c.predicate,)
    first, second = (depths[v] for v in c.args)
    if first == second:
        return (c.predicate, inverse)
    return (c.predicate,) if first < second else (inverse,)


def _licence(
    constraints: list[Constraint], draft: Draft, know: Knowledge, depths: dict[str, int]
) -> Iterator[str]:
    """Every text whose words the wording may use."""
    yield from FRAMES[draft.form]
    yield from draft.slots.values()
    if draft.checked is not None and draft.checked[1] is not None:
        yield draft.checked[1]
    for c in constraints:
        for phrases in (PHRASES[name] for name in _spoken(c, depths)):
            yield from (*phrases.places, *phrases.states, *phrases.events, *phrases.passives)
        for patterns in (PLACE_SCOPES, STATE_SCOPES):
            for group in patterns.get(c.scope, {}).values():
                yield from group
        if c.predicate == "region":
            yield from REGION_PLACES[c.value or "centre"]
        elif c.value is not None:
            yield c.value.replace(":", " ").replace("_", " ")
            yield from know.lexicon.general(c.value)
            if c.predicate in ("category", "function"):
                for _, options in know.lexicon.functions(c.value):
                    yield from options


def _strange_kinds(text: str, licence: str, know: Knowledge) -> list[str]:
    """Kinds of this clip that the wording names and the program does not."""
    here = {label for i in know.instances for label in know.labels(i)}
    found = []
    for kind in sorted(here):
        names = frozenset({kind, know.lexicon.plural(kind)})
        if know.names_in(text, names) and not know.names_in(licence, know.lexicon.names(kind)):
            found.append(f"it speaks of a {kind}, which the program does not")
    return found
