"""Questions whose answer follows from the target set as such: count, existence, which-of, duration."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.reasoning import Candidate
from rvt_ray.records import Task
from rvt_ray.twin.facts import EXTREMES

_T = TypeVar("_T")

MAX_CHOICES = 4
MIN_CHOICES = 3
"""Of questions with a list of choices."""
DURATION_STEP_S = 0.5
DURATION_RATIO = 1.6
"""How much longer than what is asked for the clip must be, at least."""
DURATION_LEAST = 1.0
DURATION_APART = 1.45
"""Choices differ by at least this factor."""


def questions(
    know: Knowledge, candidate: Candidate, rng: random.Random, sizes: Sequence[int] = ()
) -> list[Draft]:
    """The drafts of this module that fit."""
    found: list[Draft | None] = []
    if know.twin.holds_everything:
        # What nobody tracked would count too. That there is one is proven all the same, but asked only where
        # the answer is yes the question would tell its answer.
        found += [_count(candidate, rng, sizes), _exists(candidate)] if not _is_extreme(candidate) else []
    if len(candidate.target_ids) == 1:
        found += [_which_of(know, candidate, rng), _duration(know, candidate, rng)]
    return [draft for draft in found if draft is not None]


def among(answer: _T, wrong: Sequence[_T], rng: random.Random) -> list[_T]:
    """The answer among as many wrong ones as there is room for, anywhere in the list."""
    picked = [answer, *rng.sample(wrong, min(MAX_CHOICES - 1, len(wrong)))]
    return rng.sample(picked, len(picked))


def _is_extreme(candidate: Candidate) -> bool:
    """How many are the leftmost, and is there one? One, and yes: nobody need look."""
    target = (candidate.program.target,)
    return any(c.predicate in EXTREMES and c.args == target for c in candidate.program.constraints)


def _count(candidate: Candidate, rng: random.Random, sizes: Sequence[int]) -> Draft | None:
    n = len(candidate.target_ids)
    low = max(0, n - rng.randint(0, MAX_CHOICES - 1))
    others = sorted(set(sizes or range(low, low + MAX_CHOICES)) - {n})
    if len(others) < MIN_CHOICES - 1:
        return None
    # In no order: of ascending numbers a small one would stand in the first places.
    choices = [str(i) for i in among(n, others, rng)]
    return Draft(candidate, Task.VQA, "count", answer=str(n), choices=tuple(choices))


def _exists(candidate: Candidate) -> Draft:
    answer = "yes" if candidate.target_ids else "no"
    return Draft(candidate, Task.VQA, "exists", answer=answer, choices=("yes", "no"))


def _which_of(know: Knowledge, candidate: Candidate, rng: random.Random) -> Draft | None:
    """The choices are other things of the clip, each under a name that fits it alone; since the target set is
    exact, none of them is the target."""
    (target,) = candidate.target_ids
    answer = know.name(target)
    if answer is None:
        return None
    # What the query speaks of is not what it asks for, and who reads it knows.
    spoken_of = {target, *(i for bound in candidate.anchors.values() for i in bound)}
    others = [name for i in know.instances if i not in spoken_of and (name := know.name(i)) is not None]
    if len(others) < MIN_CHOICES - 1:
        return None
    choices = [answer, *rng.sample(sorted(others), min(MAX_CHOICES - 1, len(others)))]
    rng.shuffle(choices)
    return Draft(candidate, Task.VQA, "which_of", answer=answer, choices=tuple(choices))


def _duration(know: Knowledge, candidate: Candidate, rng: random.Random) -> Draft | None:
    """How long it can be seen. Certain only where no frame is in doubt; asked only of what is out of sight
    for a good part of the clip: else the clip's usual length would be the answer."""
    (target,) = candidate.target_ids
    tracks = know.facts.view.tracks
    if tracks.unsure[tracks.ids.index(target)].any() or len(tracks.pts) < 2:
        return None
    rounded = visible_seconds(know, target)
    most = (tracks.pts[-1] - tracks.pts[0]) / DURATION_RATIO
    if not DURATION_LEAST <= rounded <= most:
        return None
    choices = _durations(rounded, float(most), rng)
    if len(choices) < MIN_CHOICES:
        return None
    return Draft(
        candidate,
        Task.VQA,
        "duration",
        answer=seconds_text(rounded),
        choices=tuple(seconds_text(v) for v in choices),
        uses=(),
    )


def _durations(right: float, most: float, rng: random.Random) -> list[float]:
    """The right one among others, or nothing where there are too few. All that may be right are dealt to
    ladders whose rungs nobody takes for each other; that each stands on one ladder only makes every rung as
    likely. (Made from the right one by factors, some would be choices only where they are right.)"""
    grid = [n * DURATION_STEP_S for n in range(1, int(most / DURATION_STEP_S) + 1)]
    left = [v for v in grid if v >= DURATION_LEAST]
    ladder: list[float] = []
    while right in left:
        ladder = [left[0]]
        for value in left:
            if value / ladder[-1] >= DURATION_APART:
                ladder.append(value)
        left = [v for v in left if v not in ladder]
    return among(right, [v for v in ladder if v != right], rng)


def visible_seconds(know: Knowledge, target: int) -> float:
    """How long an instance is surely seen, by presentation times, rounded to `DURATION_STEP_S`."""
    tracks = know.facts.view.tracks
    if len(tracks.pts) < 2:
        return 0.0
    spans = np.diff(tracks.pts)
    spans = np.append(spans, np.median(spans))
    seconds = float(spans[tracks.seen[tracks.ids.index(target)]].sum())
    return round(seconds / DURATION_STEP_S) * DURATION_STEP_S


def seconds_text(value: float) -> str:
    """`about 2.5 seconds`."""
    text = f"{value:g}"
    return f"about {text} second{'' if text == '1' else 's'}"
