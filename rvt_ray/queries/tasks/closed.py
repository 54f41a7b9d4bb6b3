"""Questions about a fact of the single target that its program does not use. Right choices are certainly
true, wrong ones certainly false; what is unknown is never a choice."""

from __future__ import annotations

import random
from collections.abc import Iterator

from rvt_ray.queries.draft import Draft, Use
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.tasks.vqa import MAX_CHOICES
from rvt_ray.reasoning import Candidate, Constraint
from rvt_ray.records import Task
from rvt_ray.twin.facts import CATALOGUE, Fact, Truth

COLOURS = ("red", "blue", "green", "yellow", "orange", "purple", "pink", "brown", "black", "white", "grey")
MATERIALS = ("metal", "wood", "rubber", "plastic", "glass", "stone", "fabric", "paper")
DIRECTIONS = {
    "moves_left": "to the left",
    "moves_right": "to the right",
    "moves_up": "upwards",
    "moves_down": "downwards",
    "moves_towards_camera": "towards the camera",
    "moves_away_from_camera": "away from the camera",
}
CHECKED_EVENTS = (
    "enters",
    "leaves",
    "present_throughout",
    "gets_hidden",
    "moves_left",
    "moves_right",
    "moves_towards_camera",
    "moves_away_from_camera",
    "starts_moving",
    "stops_moving",
    "still",
)
CHECKED_RELATIONS = (
    ("left_of", "end"),
    ("right_of", "end"),
    ("left_of", "start"),
    ("right_of", "start"),
    ("in_front_of", "end"),
    ("above", "end"),
    ("touching", "some_time"),
    ("approaches", None),
    ("passes", None),
    ("faster", None),
    ("hidden_by", None),
)


def questions(know: Knowledge, candidate: Candidate, rng: random.Random) -> list[Draft]:
    """The drafts of this module that fit; none unless there is a single target."""
    if len(candidate.target_ids) != 1:
        return []
    found = [
        _attribute(know, candidate, "colour", COLOURS, rng),
        _attribute(know, candidate, "material", MATERIALS, rng),
        _kind(know, candidate, rng),
        _direction(know, candidate, rng),
        *_orders(know, candidate, rng),
        *_checks(know, candidate, rng),
    ]
    return [draft for draft in found if draft is not None]


def _also(name: str) -> tuple[str, ...]:
    """Names under which an attribute may stand in a twin."""
    return ("colour", "color") if name == "colour" else (name,)


def _on_target(candidate: Candidate) -> list[Constraint]:
    target = candidate.program.target
    return [c for c in candidate.program.constraints if target in c.args]


def _said_values(candidate: Candidate) -> set[str]:
    """Words that the query will hold because the program has them, of whatever object."""
    return {word for c in candidate.program.constraints if c.value for word in c.value.lower().split(":")}


def _attribute(
    know: Knowledge, candidate: Candidate, name: str, words: tuple[str, ...], rng: random.Random
) -> Draft | None:
    (target,) = candidate.target_ids
    predicate = "colour" if name == "colour" else "attribute"

    def ask(value: str) -> Fact:
        return know.fact(predicate, target, value=value if name == "colour" else f"{name}:{value}")

    if any(c.predicate == predicate for c in _on_target(candidate)):
        return None
    own = {a.value.lower() for a in know.instances[target].attributes if a.name.lower() in _also(name)}
    true = [v for v in sorted(own) if ask(v).truth is Truth.TRUE]
    if len(true) != 1 or true[0] in _said_values(candidate):
        return None
    # Plausible: what other things of the clip are, before what they might be.
    seen = {
        a.value.lower() for i in know.twin.instances for a in i.attributes if a.name.lower() in _also(name)
    }
    pool = sorted(seen - own) + rng.sample(words, len(words))
    wrong = [v for v in dict.fromkeys(pool) if v not in own and ask(v).truth is Truth.FALSE]
    if len(wrong) < 2:
        return None
    answer, wrong = true[0], wrong[: MAX_CHOICES - 1]
    choices = rng.sample([answer, *wrong], len(wrong) + 1)
    return Draft(
        candidate,
        Task.VQA,
        "material" if name == "material" else "attribute",
        answer=answer,
        choices=tuple(choices),
        evidence=tuple(know.evidence(ask(v), "answer" if v == answer else "wrong choice") for v in choices),
        uses=tuple(
            Use(predicate, (target,), v if name == "colour" else f"{name}:{v}", None, v == answer)
            for v in choices
        ),
        slots={"attribute": name},
        answer_words=frozenset({answer}),
    )


def _kind(know: Knowledge, candidate: Candidate, rng: random.Random) -> Draft | None:
    (target,) = candidate.target_ids
    labels = know.labels(target)
    # What the program says of the kind or its use would answer the question, or half of it.
    if not labels or any(c.predicate in ("category", "function") for c in _on_target(candidate)):
        return None
    answer = know.lexicon.normal(labels[0])
    if answer in _said_values(candidate) or not know.is_true("category", target, value=answer):
        return None
    lexicon = know.lexicon
    own = lexicon.names(answer)
    here = sorted({lexicon.normal(label) for i in know.instances for label in know.labels(i)})
    general = set(lexicon.general(answer))
    kin = [k for k, e in lexicon.kinds.items() if general & set(e.general)]
    pool = [k for k in [*rng.sample(here, len(here)), *rng.sample(kin, len(kin))] if k not in own]
    wrong: list[str] = []
    for kind in dict.fromkeys(pool):
        if len(wrong) == MAX_CHOICES - 1:
            break
        clash = any(kind in lexicon.names(w) or w in lexicon.names(kind) for w in [*wrong, answer])
        if not clash and know.is_false("category", target, value=kind):
            wrong.append(kind)
    if len(wrong) < 2:
        return None
    choices = rng.sample([answer, *wrong], len(wrong) + 1)
    return Draft(
        candidate,
        Task.VQA,
        "kind",
        answer=answer,
        choices=tuple(choices),
        evidence=tuple(
            know.evidence(know.fact("category", target, value=v), "answer" if v == answer else "wrong choice")
            for v in choices
        ),
        uses=tuple(Use("category", (target,), v, None, v == answer) for v in choices),
        answer_words=frozenset({answer}),
    )


def _direction(know: Knowledge, candidate: Candidate, rng: random.Random) -> Draft | None:
    (target,) = candidate.target_ids
    said = {c.predicate for c in _on_target(candidate)}
    if said & (set(DIRECTIONS) | {"still", "moves", "approaches", "follows", "passes", "moves_away_from"}):
        return None
    truths = {p: know.truth(p, target) for p in DIRECTIONS}
    true = [p for p, t in truths.items() if t is Truth.TRUE]
    false = [p for p, t in truths.items() if t is Truth.FALSE]
    if len(true) != 1 or len(false) < 2:
        return None
    picked = [true[0], *rng.sample(false, min(MAX_CHOICES - 1, len(false)))]
    rng.shuffle(picked)
    return Draft(
        candidate,
        Task.VQA,
        "direction",
        answer=DIRECTIONS[true[0]],
        choices=tuple(DIRECTIONS[p] for p in picked),
        evidence=tuple(
            know.evidence(know.fact(p, target), "answer" if p == true[0] else "wrong choice") for p in picked
        ),
        uses=tuple(Use(p, (target,), None, None, p == true[0]) for p in picked),
    )


def _named(know: Knowledge, candidate: Candidate) -> Iterator[tuple[int, str]]:
    """Other things with a name of their own that does not give the target away."""
    forbidden = know.forbidden_names(candidate)
    anchors = {i for bound in candidate.anchors.values() for i in bound}
    for i in know.instances:
        if i in candidate.target_ids or i in anchors:
            continue
        name = know.name(i)
        if name is not None and not know.names_in(name, forbidden):
            yield i, name


def _orders(know: Knowledge, candidate: Candidate, rng: random.Random) -> list[Draft]:
    (target,) = candidate.target_ids
    if any("appears" in c.predicate or c.predicate == "enters" for c in _on_target(candidate)):
        return []
    found = []
    for other, name in _named(know, candidate):
        truths = know.truth("appears_before", target, other), know.truth("appears_after", target, other)
        if set(truths) != {Truth.TRUE, Truth.FALSE}:
            continue
        before = know.fact("appears_before", target, other)
        after = know.fact("appears_after", target, other)
        answer = "before" if before.truth is Truth.TRUE else "after"
        found.append(
            Draft(
                candidate,
                Task.VQA,
                "order",
                answer=answer,
                choices=("before", "after"),
                evidence=(know.evidence(before, "answer"), know.evidence(after, "answer")),
                uses=(
                    Use("appears_before", (target, other), true=answer == "before"),
                    Use("appears_after", (target, other), true=answer == "after"),
                ),
                slots={"other": name},
            )
        )
    return rng.sample(found, 1) if found else []


def _checks(know: Knowledge, candidate: Candidate, rng: random.Random) -> list[Draft]:
    """At most one question with the answer yes and one with no."""
    (target,) = candidate.target_ids
    said = {c.predicate for c in _on_target(candidate)}
    said |= {p for c in said for p in (CATALOGUE[c].opposite, CATALOGUE[c].inverse) if p}
    if said & {"moves", "still", "starts_moving", "stops_moving", *DIRECTIONS}:
        said |= {"moves", "still", "starts_moving", "stops_moving", *DIRECTIONS}
    if said & {"enters", "leaves", "present_throughout"}:
        said |= {"present_throughout", "enters", "leaves"}
    options: list[tuple[Constraint, str | None, Use]] = []
    for predicate in CHECKED_EVENTS:
        if predicate not in said:
            constraint = Constraint(predicate=predicate, args=(candidate.program.target,))
            options.append((constraint, None, Use(predicate, (target,))))
    for other, name in _named(know, candidate):
        both_move = know.is_true("moves", target) and know.is_true("moves", other)
        for predicate, scope in CHECKED_RELATIONS:
            if predicate == "faster" and not both_move:
                continue  # "quicker than the chair": nobody asks that
            if predicate not in said:
                args = (candidate.program.target, "other")
                constraint = Constraint(predicate=predicate, args=args, scope=scope)
                options.append((constraint, name, Use(predicate, (target, other), None, scope)))
    rng.shuffle(options)
    found: dict[str, Draft] = {}
    for constraint, checked_name, use in options:
        truth = know.truth(use.predicate, *use.ids, scope=use.scope)
        answer = "yes" if truth is Truth.TRUE else "no"
        if truth is Truth.UNKNOWN or answer in found:
            continue
        fact = know.fact(use.predicate, *use.ids, scope=use.scope)
        found[answer] = Draft(
            candidate,
            Task.VQA,
            "check",
            answer=answer,
            choices=("yes", "no"),
            evidence=(know.evidence(fact, "answer"),),
            uses=(Use(use.predicate, use.ids, None, use.scope, answer == "yes"),),
            checked=(constraint, checked_name),
        )
        if len(found) == 2:
            break
    return [found[answer] for answer in sorted(found)]
