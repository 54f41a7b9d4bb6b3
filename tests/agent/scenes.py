"""Questions on exact twins of synthetic scenes, with the plan that answers each; and planners that know
it."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from functools import cache
from typing import Any

from rvt_ray.agent.plan import OTHER, Plan, Question
from rvt_ray.agent.reply import write_plan
from rvt_ray.config.settings import GenerateSettings
from rvt_ray.llm.base import Finish, LlmReply, LlmRequest
from rvt_ray.llm.schema import check_schema, violation
from rvt_ray.queries.draft import Draft
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.lexicon import load_lexicon
from rvt_ray.queries.rows import Author, RowMaker
from rvt_ray.queries.tasks import Chooser, fitting
from rvt_ray.queries.wording.speaker import CannotSay
from rvt_ray.queries.wording.template import TemplateWriter
from rvt_ray.reasoning import Constraint, Program, search
from rvt_ray.records import ClipRecord, DigitalTwin, Sample, Wording
from rvt_ray.twin.facts import Facts
from tests.queries.twins import scene_twin

AUTHOR = Author(Wording.TEMPLATE, "template", "test")


@dataclass(frozen=True)
class Asked:
    """A sample, what the agent is told of it, and the plan that answers it."""

    sample: Sample
    question: Question
    plan: Plan
    form: str


@dataclass(frozen=True)
class Scene:
    """A clip with its twin and questions."""

    clip: ClipRecord
    twin: DigitalTwin
    asked: tuple[Asked, ...]


@cache
def ask(seed: int, count: int = 12, num_objects: int = 6) -> Scene:
    """A scene with up to `count` questions, spread over tasks and levels. Truth is computed from the twin;
    words are the template's."""
    twin, clip = scene_twin(seed, num_objects=num_objects)
    settings = GenerateSettings()
    rng = random.Random(seed)
    know = Knowledge(Facts(twin, settings.facts), load_lexicon())
    chooser = Chooser(search(know.facts, settings.queries, seed), count, 0.07, rng)
    writer = TemplateWriter(know, rng, 3)
    rows = RowMaker(twin, clip, seed, "0" * 16)
    asked: dict[str, Asked] = {}
    while len(asked) < count:
        candidate = chooser.next()
        if candidate is None:
            break
        drafts = fitting(know, candidate, settings.queries.tasks, rng)
        if not drafts:
            continue
        draft = chooser.rank(drafts)[0]
        try:
            words = writer.write(draft, 0)
        except CannotSay:
            continue
        sample = rows.sample(draft, words, AUTHOR, {})
        question = Question(query=sample.query, choices=tuple(sample.choices))
        asked.setdefault(sample.query, Asked(sample, question, right_plan(draft, know), draft.form))
        chooser.kept(draft)
        writer.kept(words.query)
    return Scene(clip, twin, tuple(asked.values()))


def right_plan(draft: Draft, know: Knowledge) -> Plan:
    """The plan that a draft was made from."""
    target = draft.candidate.program.target
    asked = other = None
    if draft.checked is not None:
        c = draft.checked[0]
        asked = c.model_copy(update={"args": tuple(OTHER if a not in (target,) else "x" for a in c.args)})
    if draft.form in ("check", "order") and draft.uses and len(draft.uses[0].ids) == 2:
        (second,) = (i for i in draft.uses[0].ids if i not in draft.candidate.target_ids)
        other = _named(know, second)
    n = len(draft.candidate.target_ids)
    return Plan(
        form=draft.form,
        program=draft.candidate.program,
        many=None if draft.form in ("count", "exists") or n == 0 else n > 1,
        asked=asked,
        other=other,
        attribute=draft.slots.get("attribute"),
    )


def _named(know: Knowledge, instance_id: int) -> Program:
    """What `Knowledge.name` says of an instance, as a program."""
    name = know.name(instance_id)
    assert name is not None
    instance = know.instances[instance_id]
    constraints = [Constraint(predicate="category", args=("x",), value=know.labels(instance_id)[0])]
    constraints += [
        Constraint(predicate="colour", args=("x",), value=a.value)
        for a in instance.attributes
        if a.name == "colour" and a.value in name.split()
    ]
    return Program(target="x", variables=("x",), constraints=tuple(constraints))


class Planner:
    """A model that is told the right plans. `spoil` may change what it says of a query, by attempt.

    Attributes:
        asked: what was asked for, in order: `form`, `plan` or `ids`.
    """

    def __init__(self, plans: dict[str, Plan], spoil: Any = None) -> None:
        self._plans = plans
        self._spoil = spoil
        self.asked: list[str] = []
        self.prompts: list[str] = []

    @property
    def model_id(self) -> str:
        return "perfect-planner"

    async def complete(self, request: LlmRequest) -> LlmReply:
        await asyncio.sleep(0)
        assert request.schema is not None
        check_schema(request.schema)
        content = request.messages[-1].content
        self.prompts.append(content)
        known = [q for q in self._plans if q in content]
        assert known, f"a question that nobody asked: {content}"
        plan = self._plans[max(known, key=len)]
        properties = request.schema["properties"]
        if "ids" in properties:
            self.asked.append("ids")
            data: Any = {"ids": []}
        elif "facts" in properties:
            self.asked.append("plan")
            data = write_plan(plan)
        else:
            self.asked.append("form")
            data = {"form": plan.form}
        if self._spoil is not None:
            data = self._spoil(self.asked, data)
        wrong = violation(data, request.schema)
        if wrong is not None:
            return LlmReply(text=json.dumps(data), finish=Finish.ERROR, error=wrong)
        return LlmReply(text=json.dumps(data), finish=Finish.STOP, data=data)

    async def close(self) -> None:
        return None


def planner_for(*scenes: Scene) -> Planner:
    """The planner that knows the right plans of scenes."""
    return Planner({a.question.query: a.plan for scene in scenes for a in scene.asked})
