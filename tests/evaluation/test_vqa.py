"""Exact match and judge."""

from __future__ import annotations

import asyncio

import pytest

from rvt_ray.evaluation.vqa import Question, exact_match, judge, normalise
from rvt_ray.llm.base import Finish, LlmReply

CHOICES = ["red", "blue", "a dark green"]


@pytest.mark.parametrize(
    ("reference", "answer", "choices", "right"),
    [
        ("red", "Red.", CHOICES, True),
        ("red", "the red", CHOICES, True),
        ("red", "A", CHOICES, True),
        ("red", "(a)", CHOICES, True),
        ("blue", "B. blue", CHOICES, True),
        ("blue", "Answer: B", CHOICES, True),
        ("blue", "B) red", CHOICES, False),
        ("blue", "A", CHOICES, False),
        ("blue", "Z", CHOICES, False),
        ("a dark green", "C", CHOICES, True),
        ("red", "", CHOICES, False),
        ("red", "reddish", CHOICES, False),
        ("3", "three", [], True),
        ("two times", "2 times", [], True),
        ("yes", "Yes!", ["no", "yes"], True),
        ("red", "A", [], False),
        ("", "", [], False),
    ],
)
def test_exact_match(reference, answer, choices, right):
    assert exact_match(reference, answer, choices) is right


def test_normalising_drops_articles_case_and_punctuation_only():
    assert normalise("  The, RED ball (left) ") == "red ball left"
    assert normalise("a") == ""


class Scripted:
    """An Llm that replies from a list and keeps the requests."""

    model_id = "scripted"

    def __init__(self, *replies):
        self.replies, self.requests = list(replies), []

    async def complete(self, request):
        self.requests.append(request)
        return self.replies[len(self.requests) - 1]

    async def close(self):
        pass


def reply(data, finish=Finish.STOP):
    return LlmReply(text=str(data), finish=finish, data=data)


def test_the_judge_is_asked_coldly_and_what_it_garbles_is_reported():
    llm = Scripted(
        reply({"correct": "yes", "score": 5}),
        reply({"correct": "maybe", "score": 5}),
        reply({"correct": "yes", "score": 9}),
        reply({"correct": "no", "score": 1}, Finish.LENGTH),
        reply("nonsense"),
    )
    result = asyncio.run(judge(llm, [Question("Q", "ref", f"answer {i}") for i in range(5)]))
    assert (result[0].correct, result[0].score, result[0].error) == (True, 5, "")
    assert all(r.correct is None and r.score is None and r.error for r in result[1:])
    assert all(r.temperature == 0 and r.schema is not None for r in llm.requests)
    assert "'answer 0'" in llm.requests[0].messages[1].content


def test_an_empty_answer_is_wrong_without_asking():
    llm = Scripted()
    result = asyncio.run(judge(llm, [Question("Q", "ref", "  ")]))
    assert (result[0].correct, result[0].score) == (False, 0)
    assert llm.requests == []
