"""From targets to an answer in the task's form, by code: the query room's definitions, read the other way."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from rvt_ray.agent.plan import OTHER, Plan
from rvt_ray.agent.view import TwinView
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.tasks import open_ended, target_boxes, target_masks, vqa
from rvt_ray.queries.tasks.closed import COLOURS, DIRECTIONS, MATERIALS
from rvt_ray.reasoning import Candidate, Constraint
from rvt_ray.records import Box, Tree
from rvt_ray.twin.facts import Truth

_COLOUR_NAMES = ("colour", "color")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*s")


def masks(view: TwinView, ids: Sequence[int]) -> list[str | None]:
    """Per frame the union of the targets' masks."""
    return target_masks(view.twin, ids)


def boxes(view: TwinView, ids: Sequence[int]) -> list[list[Box]]:
    """Per frame one box per visible target."""
    return [frame or [] for frame in target_boxes(view.twin, ids)]


def answer(
    view: TwinView, plan: Plan, ids: Sequence[int], others: Sequence[int], choices: Sequence[str]
) -> str:
    """The text of an answer; empty where nothing can be said.

    Args:
        ids: the targets.
        others: the second object's instances (`check`, `order`).
        choices: a closed question's choices; the answer is then one of them, wherever one fits.
    """
    given = _ANSWERS[plan.form](view.know, plan, list(ids), list(others), list(choices))
    return _closest(given, choices) if choices else given


def _count(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    return str(len(ids))


def _exists(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    return "yes" if ids else "no"


def _check(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    if not ids or plan.asked is None or (plan.other is not None and not others):
        return "no"
    c = plan.asked
    # Of all that it may speak of: certain for all is a yes.
    objects: list[int | None] = [*others] or [None]
    truths = [_truth(know, c, t, o) for t in ids for o in objects]
    return "yes" if min(truths) is Truth.TRUE or (max(truths) is Truth.TRUE and len(ids) == 1) else "no"


def _truth(know: Knowledge, c: Constraint, target: int, other: int | None) -> Truth:
    args = [other if a == OTHER else target for a in c.args]
    found = [a for a in args if a is not None]
    if len(found) != len(args) or len(set(found)) != len(found):
        return Truth.FALSE
    return know.truth(c.predicate, *found, value=c.value, scope=c.scope)


def _attribute(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    name = "material" if plan.form == "material" else plan.attribute or "colour"
    words = [*choices] or [*({"colour": COLOURS, "material": MATERIALS}.get(name, ()))]

    def truth(target: int, value: str) -> Truth:
        if name == "colour":
            return know.truth("colour", target, value=value.lower())
        return know.truth("attribute", target, value=f"{name}:{value.lower()}")

    for target in ids:
        names = _COLOUR_NAMES if name == "colour" else (name,)
        claims = [a for a in know.instances[target].attributes if a.name.lower() in names]
        own = [a.value.lower() for a in sorted(claims, key=lambda a: -a.score)]
        found = _best([*own, *words], lambda v, t=target: truth(t, v))  # type: ignore[misc]
        if found is not None:
            return found
    return ""


def _kind(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    for target in ids:
        labels = [know.lexicon.normal(label) for label in know.labels(target)]
        found = _best(
            [*choices, *labels],
            lambda v, t=target: know.truth("category", t, value=v.lower()),  # type: ignore[misc]
        )
        if found is not None:
            return found
        if labels:
            return labels[0]
    return ""


def _order(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    for target in ids:
        for other in others:
            if target == other:
                continue
            before = know.truth("appears_before", target, other)
            after = know.truth("appears_after", target, other)
            if before is not after:
                return "before" if before > after else "after"
    return ""


def _direction(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    predicates = {words: predicate for predicate, words in DIRECTIONS.items()}
    for target in ids:
        words = [c for c in choices if c.lower() in predicates] or list(predicates)
        found = _best(words, lambda v, t=target: know.truth(predicates[v.lower()], t))  # type: ignore[misc]
        if found is not None:
            return found
    return ""


def _which_of(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    for target in ids:
        name = know.name(target)
        if name is not None:
            return name
        for label in know.labels(target):
            return f"the {label}"
    return ""


def _duration(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    for target in ids:
        return vqa.seconds_text(vqa.visible_seconds(know, target))
    return ""


def _summary(know: Knowledge, plan: Plan, ids: list[int], others: list[int], choices: list[str]) -> str:
    texts = []
    for target in ids:
        candidate = Candidate(
            target_ids=(target,),
            program=plan.program,
            level=1,
            categories=(),
            tree=Tree(tree_id="", nodes=[], edges=[]),
            evidence=(),
        )
        # Seeded by the question itself: the same question gets the same words.
        draft = open_ended.summary(know, candidate, random.Random(plan.program.to_json()))
        texts.append((draft.answer if draft is not None else None) or know.instances[target].caption)
    return " ".join(t for t in texts if t)


_ANSWERS: dict[str, Callable[[Knowledge, Plan, list[int], list[int], list[str]], str]] = {
    "count": _count,
    "exists": _exists,
    "check": _check,
    "attribute": _attribute,
    "material": _attribute,
    "kind": _kind,
    "order": _order,
    "direction": _direction,
    "which_of": _which_of,
    "duration": _duration,
    "summary": _summary,
}


def _best(values: Sequence[str], truth: Callable[[str], Truth]) -> str | None:
    """The first value that is certainly true, else the first that may be."""
    found: str | None = None
    for value in dict.fromkeys(values):
        t = truth(value)
        if t is Truth.TRUE:
            return value
        if t is Truth.UNKNOWN and found is None:
            found = value
    return found


def _closest(given: str, choices: Sequence[str]) -> str:
    """The choice that says the same: the same words, the nearest number of seconds, or most words in common;
    the answer itself where none does."""
    if not given:
        return given
    own = _words(given)
    for choice in choices:
        if _words(choice) == own:
            return choice
    numbers = {c: float(m.group(1)) for c in choices if (m := _SECONDS.search(c))}
    mine = _SECONDS.search(given)
    if numbers and mine:
        value = float(mine.group(1))
        return min(numbers, key=lambda c: abs(numbers[c] - value))
    shared = {c: len(own & _words(c)) for c in choices}
    best = max(shared, key=lambda c: shared[c])
    return best if shared[best] else given


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9.]+", text.lower())) - {"the", "a", "an"}
