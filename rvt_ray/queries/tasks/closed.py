"""Questions about a fact of the single target that its program does not use. Right choices are certainly
true, wrong ones certainly false; what is unknown is never a choice. Every wrong choice is true of some other
thing of the clip (or the opposite of what is right), and no choice is named in the query: it would be out."""

from __future__ import annotations

import random
from collections.abc import Iterator

from rvt_ray.queries.draft import Draft, Use
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.tasks.fair import even_odds, holders, pick_telling
from rvt_ray.queries.tasks.vqa import MIN_CHOICES, among
from rvt_ray.reasoning import Candidate, Constraint
from rvt_ray.records import Task
from rvt_ray.twin.facts import CATALOGUE, Fact, Truth

COLOURS = ("red", "blue", "green", "yellow", "orange", "purple", "pink", "brown", "black", "white", "grey")
MATERIALS = ("metal", "wood", "rubber", "plastic", "glass", "stone", "fabric", "paper")
"""What an answer may be, for an agent that was given no choices."""
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
        _attribute(know, candidate, "colour", rng),
        _attribute(know, candidate, "material", rng),
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


def _attribute(know: Knowledge, candidate: Candidate, name: str, rng: random.Random) -> Draft | None:
    (target,) = candidate.target_ids
    predicate = "colour" if name == "colour" else "attribute"

    def ask(value: str, thing: int = target) -> Fact:
        return know.fact(predicate, thing, value=value if name == "colour" else f"{name}:{value}")

    if any(c.predicate == predicate for c in _on_target(candidate)):
        return None
    claimed = {
        i: {a.value.lower() for a in thing.attributes if a.name.lower() in _also(name)}
        for i, thing in know.instances.items()
    }
    true = {i: [v for v in sorted(found) if ask(v, i).truth is Truth.TRUE] for i, found in claimed.items()}
    said = _said_values(candidate)
    if len(true[target]) != 1 or true[target][0] in said:
        return None
    (answer,) = true[target]
    have = holders(true.values())
    pool = sorted(set(have) - claimed[target] - said)
    choices = among(answer, [v for v in pool if ask(v).truth is Truth.FALSE], rng)
    if len(choices) < MIN_CHOICES or not even_odds(have, answer, choices, rng):
        return None
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
    answer, said, lexicon = know.lexicon.normal(labels[0]), _said_values(candidate), know.lexicon
    if answer in said or not know.is_true("category", target, value=answer):
        return None
    named = {i: [lexicon.normal(label) for label in know.labels(i)[:1]] for i in know.instances}
    have = holders([k for k in own if know.is_true("category", i, value=k)] for i, own in named.items())
    wrong: list[str] = []
    for kind in rng.sample(sorted(have), len(have)):
        clash = any(kind in lexicon.names(w) or w in lexicon.names(kind) for w in [*wrong, answer])
        if not clash and kind not in said and know.is_false("category", target, value=kind):
            wrong.append(kind)
    choices = among(answer, wrong, rng)
    if len(choices) < MIN_CHOICES or not even_odds(have, answer, choices, rng):
        return None
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
    ways = {i: [p for p in DIRECTIONS if know.is_true(p, i)] for i in know.instances}
    if len(ways[target]) != 1:
        return None
    (answer,) = ways[target]
    have = holders(own for own in ways.values() if len(own) == 1)
    # Things go sideways more often than up: only what some thing does, or its opposite, is as likely.
    opposite = CATALOGUE[answer].opposite
    wrong = [p for p in DIRECTIONS if (have[p] or p == opposite) and know.is_false(p, target)]
    picked = among(answer, wrong, rng)
    if len(picked) < 2 or not even_odds(have, answer, picked, rng):
        return None
    return Draft(
        candidate,
        Task.VQA,
        "direction",
        answer=DIRECTIONS[answer],
        choices=tuple(DIRECTIONS[p] for p in picked),
        evidence=tuple(
            know.evidence(know.fact(p, target), "answer" if p == answer else "wrong choice") for p in picked
        ),
        uses=tuple(Use(p, (target,), None, None, p == answer) for p in picked),
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
    found: dict[str, list[Draft]] = {"before": [], "after": []}
    for other, name in _named(know, candidate):
        truths = know.truth("appears_before", target, other), know.truth("appears_after", target, other)
        if set(truths) != {Truth.TRUE, Truth.FALSE}:
            continue
        before = know.fact("appears_before", target, other)
        after = know.fact("appears_after", target, other)
        answer = "before" if before.truth is Truth.TRUE else "after"
        found[answer].append(
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
    have = holders(_order_words(know, i) for i in know.instances)
    return [
        rng.choice(drafts)
        for answer, drafts in found.items()
        if drafts and even_odds(have, answer, ("before", "after"), rng)
    ]


def _order_words(know: Knowledge, thing: int) -> set[str]:
    """Whether it comes before something that has a name, and after something."""
    named = [i for i in know.instances if i != thing and know.name(i) is not None]
    words = {"before": "appears_before", "after": "appears_after"}
    return {word for word, p in words.items() if any(know.is_true(p, thing, i) for i in named)}


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
    found: list[Draft] = []
    for answer, wanted in (("yes", Truth.TRUE), ("no", Truth.FALSE)):
        fitting = [
            (option, *_others_alike(know, option[2], wanted))
            for option in options
            if know.truth(option[2].predicate, *option[2].ids, scope=option[2].scope) is wanted
        ]
        picked = pick_telling(fitting, rng)
        if picked is None:
            continue
        constraint, checked_name, use = picked
        fact = know.fact(use.predicate, *use.ids, scope=use.scope)
        found.append(
            Draft(
                candidate,
                Task.VQA,
                "check",
                answer=answer,
                choices=("yes", "no"),
                evidence=(know.evidence(fact, "answer"),),
                uses=(Use(use.predicate, use.ids, None, use.scope, answer == "yes"),),
                checked=(constraint, checked_name),
            )
        )
    return found


def _others_alike(know: Knowledge, use: Use, wanted: Truth) -> tuple[int, int]:
    """Of how many things the same is known, and of how many the contrary."""
    others = use.ids[1:]
    truths = [
        know.truth(use.predicate, i, *others, scope=use.scope) for i in know.instances if i not in others
    ]
    contrary = Truth.FALSE if wanted is Truth.TRUE else Truth.TRUE
    return truths.count(wanted), truths.count(contrary)
