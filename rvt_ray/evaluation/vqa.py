"""Answers to questions: normalised exact match, and a judge for answers without choices."""

from __future__ import annotations

import asyncio
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rvt_ray.llm.base import Finish, Llm, LlmRequest, Message

_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
            "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
            "twenty"]  # fmt: skip
_NUMBER = {word: str(value) for value, word in enumerate(_NUMBERS)}
_SYNONYMS = {"none": "0", "yeah": "yes", "true": "yes", "false": "no", "grey": "gray"}
_ARTICLES = {"a", "an", "the"}
_OPTION = re.compile(
    r"^\s*(?:(?:option|choice|answer)\s*:?\s*)?\(?([A-Za-z])(?:[).:]|\s*$)\s*(.*)$", re.S | re.I
)

JUDGE_PROMPT_VERSION = "1"
_SYSTEM = (
    "You grade answers about a video. Compare the given answer with the correct answer to the question. "
    "Judge meaning, not wording. Reply in JSON: correct (yes or no) and score, a whole number from 0 (wrong) "
    "to 5 (the same meaning)."
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "correct": {"type": "string", "enum": ["yes", "no"]},
        "score": {"type": "integer", "enum": [0, 1, 2, 3, 4, 5]},
    },
    "required": ["correct", "score"],
    "additionalProperties": False,
}


def normalise(text: str) -> str:
    """Lower case, no articles, no punctuation at a word's ends, number words as digits."""
    found = []
    for word in re.split(r"[\s/]+", text.lower().replace("’", "'")):
        bare = word.strip(string.punctuation)
        bare = _SYNONYMS.get(bare, _NUMBER.get(bare, bare))
        if bare and bare not in _ARTICLES:
            found.append(bare)
    return " ".join(found)


def exact_match(reference: str, answer: str, choices: Sequence[str] = ()) -> bool:
    """Whether an answer is the right one.

    With choices the answer may also be the choice's letter: "B", "(b)", "B. red". A letter with another
    choice's text behind it is wrong.
    """
    wanted = normalise(reference)
    if normalise(answer) == wanted and wanted:
        return True
    option = _OPTION.match(answer) if choices else None
    if option is None:
        return False
    index = ord(option[1].lower()) - ord("a")
    if index >= len(choices) or normalise(choices[index]) != wanted:
        return False
    return option[2].strip() == "" or normalise(option[2]) == wanted


@dataclass(frozen=True)
class Question:
    """What the judge gets to see."""

    question: str
    reference: str
    answer: str


@dataclass(frozen=True)
class Judgement:
    """What the judge said; `error` is set where it gave nothing usable (then the other two are null)."""

    correct: bool | None
    score: int | None
    error: str = ""


async def judge(llm: Llm, questions: Sequence[Question]) -> list[Judgement]:
    """Have answers graded, at temperature 0 and all at once.

    An empty answer is wrong without asking. A reply that cannot be read is reported, never guessed at.
    """
    return list(await asyncio.gather(*(_judge_one(llm, q) for q in questions)))


async def _judge_one(llm: Llm, item: Question) -> Judgement:
    if not item.answer.strip():
        return Judgement(False, 0)
    # The answer is a model's text: it is quoted and bounded, and comes last.
    content = (
        f"Question: {item.question}\nCorrect answer: {item.reference}\nGiven answer: {item.answer[:1000]!r}"
    )
    request = LlmRequest(
        (Message("system", _SYSTEM), Message("user", content)), schema=_SCHEMA, max_tokens=40, temperature=0.0
    )
    reply = await llm.complete(request)
    if reply.finish is not Finish.STOP:
        return Judgement(None, None, reply.error or f"the judge's reply ended by {reply.finish}")
    data = reply.data
    if not isinstance(data, dict) or data.get("correct") not in ("yes", "no"):
        return Judgement(None, None, f"not a judgement: {reply.text[:80]!r}")
    score = data.get("score")
    if not isinstance(score, int) or isinstance(score, bool) or not 0 <= score <= 5:
        return Judgement(None, None, f"score is not 0..5: {reply.text[:80]!r}")
    return Judgement(data["correct"] == "yes", score)
