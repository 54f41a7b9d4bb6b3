"""The `rewrite` style: the model gets a template sentence and must put it into other words."""

from __future__ import annotations

import re

from rvt_ray.config.settings import GateSettings, GenerateSettings, LlmSettings
from rvt_ray.llm.base import LlmRequest
from rvt_ray.records import Wording
from tests.queries import scripted
from tests.queries.scripted import ScriptedLlm
from tests.queries.test_generate import run

REWRITE = GenerateSettings(
    gates=GateSettings(stability_draws=4, stability_share=0.75),
    llm=LlmSettings(backend="scripted", style="rewrite", max_tries=1),
)


def given(text: str) -> str:
    found = re.search(r"^Sentence: (.*)$", text, re.MULTILINE)
    assert found is not None, text
    return found.group(1)


def answers(request: LlmRequest, query: str) -> dict[str, object]:
    if scripted.is_choice(request):
        return dict(scripted.first_task(request))
    return {"query": query, "paraphrases": [query, query]}


def test_a_writer_that_only_repeats_the_sentence_is_not_called_its_author() -> None:
    llm = ScriptedLlm(
        lambda request, text: answers(request, "" if scripted.is_choice(request) else given(text).upper())
    )
    outcome = run(llm=llm, settings=REWRITE)
    assert outcome.samples
    assert all(s.wording is Wording.TEMPLATE for s in outcome.samples)
    refused = [r for r in outcome.rejects if r.wording is Wording.LLM]
    repeats = [r for r in refused if "repeats" in r.reason]
    assert len(repeats) == sum(not scripted.is_choice(r) for r in llm.asked)
    assert {r.gate for r in refused} == {"reply"}


def test_a_rewritten_sentence_is_kept_as_the_models_own() -> None:
    def reword(request: LlmRequest, text: str) -> dict[str, object]:
        if scripted.is_choice(request):
            return answers(request, "")
        sentence = given(text)
        return answers(request, f"In this clip, {sentence[0].lower()}{sentence[1:]}")

    outcome = run(llm=ScriptedLlm(reword), settings=REWRITE)
    kept = [s for s in outcome.samples if s.wording is Wording.LLM]
    assert kept
    assert all(s.provenance.prompt_version == "rewrite@1" for s in kept)
