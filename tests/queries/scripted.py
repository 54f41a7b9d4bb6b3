"""A scripted language model: the real interface, known behaviour."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from rvt_ray.llm.base import Finish, LlmReply, LlmRequest
from rvt_ray.llm.schema import check_schema

Script = Callable[[LlmRequest, str], Any]


class Said(str):
    """Bare text, as a schema asks for that is one patterned string."""


class ScriptedLlm:
    """Answers by a function of the request; counts what it was asked.

    The script returns the data of a reply, a `Finish` other than `stop`, or a plain string (not JSON).
    """

    def __init__(self, script: Script, model_id: str = "scripted@1") -> None:
        self._script = script
        self._model_id = model_id
        self.asked: list[LlmRequest] = []

    @property
    def model_id(self) -> str:
        return self._model_id

    async def complete(self, request: LlmRequest) -> LlmReply:
        await asyncio.sleep(0)
        assert request.schema is not None
        check_schema(request.schema)  # what a real engine would refuse
        self.asked.append(request)
        said = self._script(request, request.messages[-1].content)
        if isinstance(said, Finish):
            return LlmReply(
                text='{"query": "cut o', finish=said, error="scripted" if said is Finish.ERROR else ""
            )
        if isinstance(said, Said):
            return LlmReply(text=said, finish=Finish.STOP, data=str(said))
        if isinstance(said, str):
            return LlmReply(text=said, finish=Finish.STOP, data=None)
        return LlmReply(text=json.dumps(said), finish=Finish.STOP, data=said)

    async def close(self) -> None:
        return None


def is_choice(request: LlmRequest) -> bool:
    return "task" in (request.schema or {}).get("properties", {})


def is_blind(request: LlmRequest) -> bool:
    return "letters" in (request.schema or {}).get("properties", {})


def first_task(request: LlmRequest) -> dict[str, str]:
    assert request.schema is not None
    return {"task": request.schema["properties"]["task"]["enum"][0]}


def clue(text: str) -> str:
    """The program in plain words, as the prompt gives it."""
    found = re.search(r"^Clue \(.*?\): (?:it|they) (.*)\.$", text, re.MULTILINE)
    assert found is not None, text
    return found.group(1)


def asked_for(text: str) -> str:
    found = re.search(r"^What to ask about the subject: (.*)\.$", text, re.MULTILINE)
    return found.group(1) if found else ""


def example(text: str) -> str:
    found = re.search(r'"query": "([^"]*)"', text)
    assert found is not None, text
    return found.group(1)


def strong(request: LlmRequest, text: str) -> Any:
    """Says exactly the clue, in good form, each time with another beginning."""
    if is_choice(request):
        return first_task(request)
    what = clue(text)
    many = "use the plural" in text
    one = "those that" if many else "the one that"
    if "describe what a target does" in request.messages[0].content:
        return {
            "query": f"Please narrate everything about {one} {what}.",
            "paraphrases": [f"Describe the doings of {one} {what}.", f"Tell at length of {one} {what}."],
        }
    if asked_for(text):
        written = example(text).replace("comes into view", what).replace("come into view", what)
        return {"query": written, "paraphrases": [f"Now, {written[0].lower()}{written[1:]}", "Hm?"]}
    verb = "Outline" if "outline" in request.messages[0].content else "Locate"
    return {
        "query": f"{verb} {one} {what}, please.",
        "paraphrases": [f"Kindly {verb.lower()} {one} {what}.", f"Could you {verb.lower()} {one} {what}?"],
    }


def leaking(request: LlmRequest, text: str) -> Any:
    """A good sentence that names the first forbidden word."""
    said = strong(request, text)
    found = re.search(r"^Words you must not use: ([^,.\n]+)", text, re.MULTILINE)
    if is_choice(request) or found is None or found.group(1) == "none":
        return said
    word = found.group(1)
    return {
        "query": said["query"]
        .replace("the one that", f"the {word} that")
        .replace("those that", f"the {word} that"),
        "paraphrases": said["paraphrases"],
    }


_SWAPS = [
    (r"\bleft\b", "right"),
    (r"\bright\b", "left"),
    (r"\babove\b", "below"),
    (r"\bbelow\b", "above"),
    (r"\bbefore\b", "after"),
    (r"\bafter\b", "before"),
    (r"\bin front of\b", "behind"),
    (r"\bbehind\b", "in front of"),
    (r"\bbigger\b", "smaller"),
    (r"\bsmaller\b", "bigger"),
    (r"\bfaster\b", "slower"),
]


def swap(sentence: str) -> str:
    """The first word of place, order or size turned into its contrary; a negation where there is none."""
    for pattern, other in _SWAPS:
        if re.search(pattern, sentence):
            return re.sub(pattern, other, sentence, count=1)
    return sentence.replace("the one that", "the one that never").replace("those that", "those that never")


def meaning_changing(request: LlmRequest, text: str) -> Any:
    """A good sentence that says the contrary of one hop."""
    said = strong(request, text)
    if is_choice(request):
        return said
    return {"query": swap(said["query"]), "paraphrases": [swap(p) for p in said["paraphrases"]]}


def sloppy(request: LlmRequest, text: str) -> Any:
    """The clue with no form: lower case, two sentences, no end."""
    if is_choice(request):
        return first_task(request)
    return {"query": f"{clue(text)}. find it now ok", "paraphrases": ["what", "which"]}


def forgetful(request: LlmRequest, text: str) -> Any:
    """Says nothing of the clue."""
    if is_choice(request):
        return first_task(request)
    return {"query": "Which one could it be?", "paraphrases": ["Find the thing in question."]}


def garbage(request: LlmRequest, text: str) -> Any:
    """Cut off, not JSON, wrong shape, unknown task, in turn."""
    if is_choice(request):
        return {"task": "juggling"}
    return [Finish.LENGTH, "\n\n\n\n", {"query": 7, "paraphrases": "x"}, Finish.ERROR][request.seed % 4]
