"""Questions whose answer follows from the target set as such: count, existence, which-of, duration."""

from __future__ import annotations

import random

import numpy as np

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.reasoning import Candidate
from rvt_ray.records import Task
from rvt_ray.twin.facts import EXTREMES

MAX_CHOICES = 4
DURATION_STEP_S = 0.5
DURATION_RATIO = 1.6
"""Wrong durations are off by at least this factor."""


def questions(know: Knowledge, candidate: Candidate, rng: random.Random) -> list[Draft]:
    """The drafts of this module that fit."""
    found: list[Draft | None] = []
    if know.twin.holds_everything:
        # What nobody tracked would count too. That there is one is proven all the same, but asked only where
        # the answer is yes the question would tell its answer.
        found += [_count(candidate, rng), _exists(candidate)]
    if len(candidate.target_ids) == 1:
        found += [_which_of(know, candidate, rng), _duration(know, candidate, rng)]
    return [draft for draft in found if draft is not None]


def _count(candidate: Candidate, rng: random.Random) -> Draft | None:
    if any(
        c.predicate in EXTREMES and c.args == (candidate.program.target,)
        for c in candidate.program.constraints
    ):
        return None  # how many are the leftmost?
    n = len(candidate.target_ids)
    low = max(0, n - rng.randint(0, MAX_CHOICES - 1))
    choices = tuple(str(i) for i in range(low, low + MAX_CHOICES))
    return Draft(candidate, Task.VQA, "count", answer=str(n), choices=choices)


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
    others = [name for i in know.instances if i != target and (name := know.name(i)) is not None]
    if len(others) < 2:
        return None
    choices = [answer, *rng.sample(sorted(others), min(MAX_CHOICES - 1, len(others)))]
    rng.shuffle(choices)
    return Draft(candidate, Task.VQA, "which_of", answer=answer, choices=tuple(choices))


def _duration(know: Knowledge, candidate: Candidate, rng: random.Random) -> Draft | None:
    """How long it can be seen. Certain only where no frame is in doubt."""
    (target,) = candidate.target_ids
    tracks = know.facts.view.tracks
    if tracks.unsure[tracks.ids.index(target)].any() or len(tracks.pts) < 2:
        return None
    rounded = visible_seconds(know, target)
    if rounded < 1.0:
        return None
    values = {rounded}
    for factor in (1 / DURATION_RATIO**2, 1 / DURATION_RATIO, DURATION_RATIO, DURATION_RATIO**2, 4.0):
        other = round(rounded * factor / DURATION_STEP_S) * DURATION_STEP_S
        if other >= DURATION_STEP_S and all(max(other, v) / min(other, v) >= 1.45 for v in values):
            values.add(other)
    wrong = sorted(values - {rounded})
    picked = sorted([rounded, *rng.sample(wrong, min(MAX_CHOICES - 1, len(wrong)))])
    if len(picked) < 2:
        return None
    return Draft(
        candidate,
        Task.VQA,
        "duration",
        answer=seconds_text(rounded),
        choices=tuple(seconds_text(v) for v in picked),
        uses=(),
    )


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
