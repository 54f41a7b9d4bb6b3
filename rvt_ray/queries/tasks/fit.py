"""Which tasks and forms of question fit a proven program."""

from __future__ import annotations

import random
from collections.abc import Sequence

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.tasks import closed, open_ended, vqa
from rvt_ray.reasoning import Candidate
from rvt_ray.records import Task


def fitting(
    know: Knowledge,
    candidate: Candidate,
    tasks: Sequence[Task],
    rng: random.Random,
    sizes: Sequence[int] = (),
) -> list[Draft]:
    """Every draft that this candidate allows, in a fixed order.

    Masks and boxes fit always, questions where a certain fact answers them, a summary where enough certain
    facts tell what the target does. `sizes`: how many things the clip's queries are for, which are then the
    choices of "how many"; none: numbers around the right one.
    """
    drafts: list[Draft] = []
    for task in tasks:
        if task is Task.SEGMENTATION:
            drafts.append(Draft(candidate, task, "masks"))
        elif task is Task.GROUNDING:
            drafts.append(Draft(candidate, task, "boxes"))
        elif task is Task.VQA:
            drafts += vqa.questions(know, candidate, rng, sizes)
            drafts += closed.questions(know, candidate, rng)
        elif task is Task.SUMMARY:
            draft = open_ended.summary(know, candidate, rng)
            drafts += [draft] if draft is not None else []
    return drafts
