"""Everything the agent asks a language model: task, plan, judgements, and the direct choice."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from rvt_ray.agent.plan import FORM_TASK, Judgement, Plan, Question
from rvt_ray.agent.reply import JUDGED, ReplyError, plan_schema, read_plan
from rvt_ray.agent.report import constraint_text
from rvt_ray.agent.sketch import shown_ids, sketch
from rvt_ray.agent.trace import JudgementMade
from rvt_ray.agent.view import TwinView
from rvt_ray.llm.base import Finish, Llm, LlmReply, LlmRequest
from rvt_ray.llm.prompting import load_prompt
from rvt_ray.records import Attribute, DigitalTwin, Task
from rvt_ray.twin.facts import CATALOGUE

_PACKAGE = "rvt_ray.agent"
_MAX_FEEDBACK = 1500
_FORM_WORDS = {
    "masks": "the exact outline of something",
    "boxes": "where something is",
    "summary": "a description of what something does",
    "count": "how many there are",
    "exists": "whether there is such a thing at all",
    "check": "whether something is true of a thing (yes or no)",
    "attribute": "the colour or another attribute of a thing",
    "material": "what a thing is made of",
    "kind": "what kind of thing it is",
    "order": "whether a thing is seen before or after another one",
    "direction": "in which direction a thing moves",
    "which_of": "which of the given choices it is",
    "duration": "for how long a thing can be seen",
}


class Model:
    """One language model at the agent's service; counts its calls.

    Args:
        llm: the model.
        temperature, seed: of the first plan; revisions draw with other seeds.
        plan_tokens: the most that a plan may take.
    """

    def __init__(self, llm: Llm, temperature: float = 0.0, seed: int = 0, plan_tokens: int = 500) -> None:
        self._llm = llm
        self._temperature = temperature
        self._plan_tokens = plan_tokens
        self._seed = seed
        self.calls = 0

    @property
    def name(self) -> str:
        """The model's id, for the trace."""
        return self._llm.model_id

    async def form(self, question: Question, guess: str) -> str:
        """Which form of question it is; the guess where the model gives none."""
        forms = [f for f, t in FORM_TASK.items() if not question.choices or t is Task.VQA]
        schema = _closed({"form": {"enum": forms}})
        options = "\n".join(f"- {form}: {_FORM_WORDS[form]}" for form in forms)
        reply = await self._ask("form", question, schema, 32, 0, options=options)
        chosen = reply.data.get("form") if isinstance(reply.data, dict) else None
        return chosen if chosen in forms else guess

    async def plan(
        self, question: Question, view: TwinView, form: str | None, feedback: str, attempt: int
    ) -> Plan:
        """The query as a program.

        Args:
            form: what the question was found to be; null leaves it to the model.
            feedback: the executor's report on the last plan; empty for the first.

        Raises:
            ReplyError: no reply that can be run; the message says why.
        """
        schema = plan_schema(view, (form,) if form is not None else tuple(FORM_TASK))
        reply = await self._ask(
            "plan",
            question,
            schema,
            self._plan_tokens,
            attempt,
            things=sketch(view, shown_ids(view)),
            predicates=predicates_text(),
            vocabulary=vocabulary_text(view),
            feedback=f"Your last plan was run. {feedback[:_MAX_FEEDBACK]}\nWrite a better plan."
            if feedback
            else "Write the plan.",
        )
        if reply.finish is Finish.LENGTH:
            raise ReplyError("the plan was cut: write fewer facts")
        if not isinstance(reply.data, dict):
            raise ReplyError(f"no plan came back: {reply.error or 'not JSON'}")
        return read_plan(reply.data)

    async def judge(self, judgement: Judgement, question: Question, view: TwinView) -> JudgementMade:
        """Which instances fit a description that the facts cannot express."""
        ids, note = await self._choose("judge", question, view, shown_ids(view), text=judgement.text)
        return JudgementMade(name=judgement.name, text=judgement.text, instance_ids=ids, note=note)

    async def choose(
        self, question: Question, view: TwinView, among: list[int], report: str
    ) -> tuple[list[int], str]:
        """The last resort: the targets by their ids, and what there is to say of it."""
        return await self._choose("choose", question, view, among, report=report[:_MAX_FEEDBACK])

    async def _choose(
        self, prompt: str, question: Question, view: TwinView, ids: list[int], **slots: str
    ) -> tuple[list[int], str]:
        if not ids:
            return [], "there is nothing to choose from"
        schema = _closed(
            {"ids": {"type": "array", "items": {"enum": ids}, "minItems": 0, "maxItems": min(len(ids), 12)}}
        )
        reply = await self._ask(prompt, question, schema, 80, 0, things=sketch(view, ids), **slots)
        picked = reply.data.get("ids") if isinstance(reply.data, dict) else None
        if not isinstance(picked, list):
            return [], f"no usable reply: {reply.error or reply.finish}"
        return sorted({i for i in picked if i in ids}), ""

    async def _ask(
        self,
        name: str,
        question: Question,
        schema: dict[str, Any],
        max_tokens: int,
        attempt: int,
        **slots: str,
    ) -> LlmReply:
        self.calls += 1
        choices = f"\nChoices: {'; '.join(question.choices)}" if question.choices else ""
        digest = hashlib.sha256(f"{self._seed}|{question.query}|{name}|{attempt}".encode()).digest()
        request = LlmRequest(
            messages=load_prompt(name, _PACKAGE).messages(query=question.query, choices=choices, **slots),
            schema=schema,
            max_tokens=max_tokens,
            temperature=self._temperature if attempt == 0 else max(self._temperature, 0.4),
            seed=int.from_bytes(digest[:4]) % 2**31,
        )
        return await self._llm.complete(request)


def judged_twin(twin: DigitalTwin, made: list[JudgementMade]) -> DigitalTwin:
    """The twin with judgements as attributes `judged: <name>`, so that the executor can use them like any
    other fact: true for the instances that fit, false for all others."""
    instances = []
    for instance in twin.instances:
        claims = [
            # One attribute per judgement: two must not refute each other.
            Attribute(
                name=f"{JUDGED} {j.name}",
                value="yes" if instance.instance_id in j.instance_ids else "no",
                score=1.0,
                source="agent",
            )
            for j in made
        ]
        instances.append(instance.model_copy(update={"attributes": [*instance.attributes, *claims]}))
    return twin.model_copy(update={"instances": instances})


@cache
def predicates_text() -> str:
    """What every predicate says, a line each, for a prompt."""
    lines = []
    for spec in CATALOGUE.values():
        said = spec.phrase.format(x="A", y="B", value="VALUE")
        lines.append(f"{spec.name}: {said}{' (when)' if spec.scopes else ''}")
    return "\n".join(lines)


def vocabulary_text(view: TwinView) -> str:
    """The twin's values per predicate that carries one, for a prompt."""
    lines = []
    for predicate in ("category", "colour", "attribute", "function"):
        values = view.facts.values(predicate)
        if values:
            lines.append(f"{predicate}: {', '.join(values)}")
    return "\n".join(lines)


def plan_text(plan: Plan) -> str:
    """A plan in one line, for feedback."""
    facts = ", ".join(constraint_text(c) for c in plan.program.constraints)
    return f"find {plan.program.target} with {facts or 'no facts'}"


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
