"""Wording by a language model. It is told the program in plain words and what must not be named; it cannot
change the truth, and the gates read what it wrote."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any

from rvt_ray.config.settings import GenerateSettings
from rvt_ray.llm.base import Finish, Llm, LlmReply, LlmRequest
from rvt_ray.llm.prompting import Prompt, load_prompt
from rvt_ray.queries import english
from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.form import MAX_WORDS
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.wording.lattice import Lattice, Match
from rvt_ray.queries.wording.phraser import CannotSay
from rvt_ray.queries.wording.template import TemplateWriter, Words, too_alike
from rvt_ray.records import Task

_PACKAGE = "rvt_ray.queries"
_MIN_CHARS = 16  # a very small model would close the string after a word
_MAX_CHARS = 320
_MAX_FORBIDDEN = 14
_MAX_OTHERS = 6
_ASKS = {
    "count": "how many there are",
    "exists": "whether there is anything like it",
    "check": "whether {ask}",
    "attribute": "its {attribute}",
    "material": "what it is made of",
    "kind": "what kind of thing it is",
    "order": "whether it comes into view before or after {other}",
    "direction": "in which direction it moves",
    "which_of": "which of the given choices it is",
    "duration": "for about how long it can be seen",
}
_EXAMPLES = {
    "count": "How many things come into view?",
    "exists": "Is there anything that comes into view?",
    "check": "Take the one that comes into view: is it true that {ask}?",
    "attribute": "Which {attribute} does the one that comes into view have?",
    "material": "What is the one that comes into view made of?",
    "kind": "What kind of thing is the one that comes into view?",
    "order": "Is the one that comes into view seen before or after {other}?",
    "direction": "In which direction does the one that comes into view move?",
    "which_of": "Which of these comes into view?",
    "duration": "For how long can the one that comes into view be seen?",
}
"""What a question of each form looks like, for the clue "it comes into view"."""
_TASK_WORDS = {
    Task.SEGMENTATION: "segmentation: asking for its exact outline",
    Task.GROUNDING: "grounding: asking where it is",
    Task.VQA: "vqa: asking a question about it that has a short answer",
    Task.SUMMARY: "summary: asking what it does from beginning to end",
}


class LlmFailure(Exception):
    """No usable reply; `text` is what came back."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(reason)
        self.text = text


class LlmWriter:
    """Asks the model to choose tasks and to word drafts of one clip."""

    def __init__(
        self,
        llm: Llm,
        know: Knowledge,
        template: TemplateWriter,
        settings: GenerateSettings,
        rng: random.Random,
    ) -> None:
        self._llm = llm
        self._know = know
        self._template = template
        self._settings = settings
        self._rng = rng

    @property
    def model_id(self) -> str:
        """As it stands in the rows."""
        return self._llm.model_id

    def version(self, draft: Draft) -> str:
        """The prompt that words this draft."""
        return self._prompt(draft).id

    async def choose_task(self, draft: Draft, tasks: Sequence[Task]) -> Task:
        """The model's choice among tasks that fit; the draft's own task where it gives none."""
        if len(tasks) == 1:
            return tasks[0]
        fallback = draft.task if draft.task in tasks else tasks[0]
        try:
            clue = self._template.plain(draft)
        except CannotSay:
            return fallback
        options = "\n".join(f"- {_TASK_WORDS[t]}" for t in tasks)
        schema = {
            "type": "object",
            "properties": {"task": {"type": "string", "enum": [str(t) for t in tasks]}},
            "required": ["task"],
            "additionalProperties": False,
        }
        reply = await self._ask(load_prompt("task_choice", _PACKAGE), schema, 32, clue=clue, options=options)
        chosen = reply.data.get("task") if isinstance(reply.data, dict) else None
        return next((t for t in tasks if t == chosen), fallback)

    async def write(self, draft: Draft, attempt: int) -> Words:
        """One attempt; each has its own seed.

        Raises:
            LlmFailure: cut off, failed, or not what was asked for.
        """
        if self._settings.llm.style == "guided":
            return await self._write_guided(draft)
        count = self._settings.queries.paraphrases
        text = {"type": "string", "minLength": _MIN_CHARS, "maxLength": _MAX_CHARS}
        schema = {
            "type": "object",
            "properties": {
                "query": text,
                "paraphrases": {"type": "array", "items": text, "minItems": count, "maxItems": count},
            },
            "required": ["query", "paraphrases"],
            "additionalProperties": False,
        }
        try:
            slots = self._slots(draft)
        except CannotSay as error:
            raise LlmFailure(f"the clue cannot be put into words: {error}", "") from error
        reply = await self._ask(
            self._prompt(draft), schema, self._settings.llm.max_tokens, **slots, paraphrases=count or "no"
        )
        if reply.finish is Finish.LENGTH:
            raise LlmFailure(f"the reply was cut after {self._settings.llm.max_tokens} tokens", reply.text)
        if reply.finish is Finish.ERROR:
            raise LlmFailure(f"no reply: {reply.error}", reply.text)
        words = _words(reply, count)
        if same_letters(words.query, str(slots["sentence"])):
            raise LlmFailure(
                "the reply only repeats the sentence that it should put into other words", reply.text
            )
        return words

    async def _write_guided(self, draft: Draft) -> Words:
        """The model decodes each sentence inside the lattice of those that say the program. Paraphrases begin
        in other frames than the query and each other and, where they can, use other phrases than the query.
        """
        try:
            lattice = self._template.lattice(draft)
            slots = self._slots(draft)
        except CannotSay as error:
            raise LlmFailure(f"the program cannot be put into words: {error}", "") from error
        query, found = await self._choose(draft, lattice, {**slots, "said": _already([])})
        slots["said"] = _already([query])
        shares = lattice.without(found).shares(self._settings.queries.paraphrases)
        # At once: an engine decodes a few sentences in hardly more time than one.
        replies = await asyncio.gather(
            *(self._choose(draft, share, slots) for share in shares), return_exceptions=True
        )
        said = [query]
        for reply in replies:
            if isinstance(reply, LlmFailure):
                continue  # the query stands; its paraphrases may be the template's
            if isinstance(reply, BaseException):
                raise reply
            if not too_alike(reply[0], said):
                said.append(reply[0])
        return Words(query, tuple(said[1:]))

    async def _choose(self, draft: Draft, lattice: Lattice, slots: dict[str, str]) -> tuple[str, Match]:
        """One sentence of the lattice, by the model's own probabilities."""
        schema = {"type": "string", "pattern": lattice.pattern()}
        # The pattern bounds the reply; the limit is for servers that take no notice of it. Tokens may be
        # as short as a letter where the model would rather have said something else.
        limit = max(self._settings.llm.max_tokens, lattice.longest)
        reply = await self._ask(self._prompt(draft), schema, limit, **slots)
        text = str(reply.data)
        found = lattice.find(text)
        if found is None:
            why = reply.error or "it is another sentence"
            raise LlmFailure(
                f"the reply is none of the {len(lattice)} sentences that it may choose among: {why}",
                reply.text,
            )
        return text, found

    def _prompt(self, draft: Draft) -> Prompt:
        style = self._settings.llm.style
        return load_prompt(f"wording_{draft.task}" if style == "free" else style, _PACKAGE)

    async def _ask(
        self, prompt: Prompt, schema: dict[str, Any], max_tokens: int, **slots: object
    ) -> LlmReply:
        request = LlmRequest(
            messages=prompt.messages(**slots),
            schema=schema,
            max_tokens=max_tokens,
            temperature=self._settings.llm.temperature,
            seed=self._rng.randrange(2**31),
        )
        return await self._llm.complete(request)

    def _slots(self, draft: Draft) -> dict[str, str]:
        candidate, know = draft.candidate, self._know
        n = len(candidate.target_ids)
        forbidden = know.forbidden_names(candidate) | draft.answer_words
        kinds = know.target_kinds(candidate)
        shown = sorted(forbidden, key=lambda name: (name not in kinds, len(name), name))[:_MAX_FORBIDDEN]
        others = [
            name
            for i in know.instances
            if i not in candidate.target_ids
            and (name := know.name(i)) is not None
            and not know.names_in(name, forbidden)
        ]
        words = {
            "ask": self._template.statement(draft) if draft.checked is not None else "",
            "attribute": draft.slots.get("attribute", ""),
            "other": draft.slots.get("other", ""),
        }
        rewrite = self._settings.llm.style == "rewrite"
        ask = _ASKS.get(draft.form, "").format(**words)
        return {
            "goal": f"asking {ask}" if ask else _TASK_WORDS[draft.task].partition(": ")[2],
            "sentence": self._template.one(draft) if rewrite else "",
            "clue": self._template.plain(draft),
            "number": "one thing" if n < 2 else f"{english.number(n)} things, so use the plural",
            "others": english.listing(others[:_MAX_OTHERS]) or "nothing else with a name",
            "forbidden": ", ".join(shown) or "none",
            "words": str(MAX_WORDS[candidate.level] - 6),
            "ask": ask,
            "answer": draft.answer or "",
            "example": _EXAMPLES.get(draft.form, "").format(**words),
        }


def _already(said: Sequence[str]) -> str:
    """For the prompt: a model that sees what was said finds the next wording less strange."""
    if not said:
        return ""
    return "\nIt has been said like this:\n" + "\n".join(said) + "\nSay it once more in other words."


def same_letters(a: str, b: str) -> bool:
    """Whether two texts differ in case, space or punctuation only."""
    return [c for c in a.lower() if c.isalnum()] == [c for c in b.lower() if c.isalnum()]


def _words(reply: LlmReply, count: int) -> Words:
    data = reply.data
    if data is None:
        try:
            data = json.loads(reply.text)
        except json.JSONDecodeError as error:
            raise LlmFailure("the reply is not JSON", reply.text) from error
    query = data.get("query") if isinstance(data, dict) else None
    paraphrases = data.get("paraphrases") if isinstance(data, dict) else None
    if not isinstance(query, str) or not query.strip() or not isinstance(paraphrases, list):
        raise LlmFailure("the reply lacks a query or its paraphrases", reply.text)
    texts = [" ".join(p.split()) for p in paraphrases if isinstance(p, str) and p.strip()]
    query = " ".join(query.split())
    unlike = [p for p in dict.fromkeys(texts) if p.lower() != query.lower()]
    return Words(query, tuple(unlike[:count]))
