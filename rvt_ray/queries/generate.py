"""Twin in, samples and rejects out: the query room's one entry."""

from __future__ import annotations

import contextlib
import hashlib
import random

from rvt_ray.config.settings import GenerateSettings
from rvt_ray.llm.base import Llm
from rvt_ray.queries.bench import Bench
from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.base import Finding
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.lexicon import load_lexicon
from rvt_ray.queries.outcome import Outcome
from rvt_ray.queries.rows import Author, RowMaker
from rvt_ray.queries.tasks import Chooser, fitting
from rvt_ray.queries.wording.llm import LlmFailure, LlmWriter
from rvt_ray.queries.wording.phraser import CannotSay
from rvt_ray.queries.wording.template import VERSION, TemplateWriter, Words
from rvt_ray.reasoning import Candidate, search
from rvt_ray.records import ClipRecord, DigitalTwin, Task, Wording
from rvt_ray.twin.facts import Facts

_TEMPLATE = Author(Wording.TEMPLATE, "template", VERSION)
_TEMPLATE_TRIES = 3


async def generate(
    twin: DigitalTwin,
    clip: ClipRecord,
    settings: GenerateSettings,
    llm: Llm | None,
    seed: int,
    settings_fingerprint: str,
    judge: Llm | None = None,
) -> Outcome:
    """Ask a clip's twin as many good questions as are wanted.

    Facts, then programs (search), a task for each (by what fits and what is wanted; the LLM picks where it
    may), the answer by code, words (LLM, else template), gates.

    Args:
        llm: who words the queries; None is template wording, which is deterministic.
        seed: of every choice; mixed with the clip's id, so that clips differ.
        settings_fingerprint: stands in every row.
        judge: who answers blind for gate 6; None lets the writer judge itself.

    Returns:
        Samples and rejects; candidates = samples + rejects.

    Raises:
        ConfigError: the lexicon file of the settings is wrong.
        EngineDeadError: the engine behind `llm` died.
    """
    rng = random.Random(_mix(seed, clip.clip_id))
    know = Knowledge(Facts(twin, settings.facts), load_lexicon(settings.queries.lexicon))
    candidates = search(know.facts, settings.queries, rng.randrange(2**31))
    session = _Session(know, clip, settings, llm, judge or llm, rng, seed, settings_fingerprint)
    return await session.run(candidates)


class _Session:
    """The work on one clip."""

    def __init__(
        self,
        know: Knowledge,
        clip: ClipRecord,
        settings: GenerateSettings,
        llm: Llm | None,
        judge: Llm | None,
        rng: random.Random,
        seed: int,
        fingerprint: str,
    ) -> None:
        self._know = know
        self._settings = settings
        self._llm = llm
        self._rng = rng
        self._out = Outcome()
        self._rows = RowMaker(know.twin, clip, seed, fingerprint)
        self._template = TemplateWriter(know, rng, settings.gates.opening_ngram)
        self._writer = LlmWriter(llm, know, self._template, settings, rng) if llm is not None else None
        self._bench = Bench(know, settings, judge, rng)

    async def run(self, candidates: list[Candidate]) -> Outcome:
        """Take candidates up, in the order that balance asks for, until enough were kept."""
        queries = self._settings.queries
        self._chooser = Chooser(
            candidates, queries.samples_per_clip, queries.no_target_share, self._rng, self._bench.shortcuts
        )
        while len(self._out.samples) < queries.samples_per_clip:
            candidate = self._chooser.next()
            if candidate is None:
                break
            draft = await self._draft(candidate)
            if draft is not None:
                await self._make(draft)
        return self._out

    async def _draft(self, candidate: Candidate) -> Draft | None:
        drafts = fitting(self._know, candidate, self._settings.queries.tasks, self._rng, self._chooser.sizes)
        if not drafts:
            return None
        ranked = self._chooser.rank(drafts)
        if self._writer is not None and self._settings.llm.task_choice:
            tasks = self._chooser.open_tasks(drafts)
            task: Task = await self._writer.choose_task(ranked[0], tasks)
            ranked = [d for d in ranked if d.task is task]
        return ranked[0]

    async def _make(self, draft: Draft) -> None:
        """One candidate: exactly one row of its own, and one for every refused wording."""
        findings = self._bench.check_truth(draft)
        failed = next((gate for gate, finding in findings.items() if finding.failed), None)
        if failed is not None:
            self._out.candidates += 1
            self._refuse(draft, self._plain_words(draft), _TEMPLATE, findings, failed, 1)
            return
        if self._writer is not None and await self._by_llm(draft, findings):
            return
        await self._by_template(draft, findings)

    async def _by_llm(self, draft: Draft, truth: dict[str, Finding]) -> bool:
        """Whether the model's wording was kept."""
        assert self._writer is not None
        author = Author(Wording.LLM, self._writer.model_id, self._writer.version(draft))
        for attempt in range(1, self._settings.llm.max_tries + 1):
            self._out.candidates += 1
            try:
                words = await self._writer.write(draft, attempt)
            except LlmFailure as failure:
                words = Words(failure.text, ())
                self._refuse(draft, words, author, truth, "reply", attempt, reason=str(failure))
                continue
            if await self._try(draft, words, author, truth, attempt):
                return True
        return False

    async def _by_template(self, draft: Draft, truth: dict[str, Finding]) -> None:
        for attempt in range(1, _TEMPLATE_TRIES + 1):
            self._out.candidates += 1
            try:
                words = self._template.write(draft, self._settings.queries.paraphrases)
            except CannotSay as error:
                self._refuse(draft, Words("", ()), _TEMPLATE, truth, "leak", attempt, reason=str(error))
                return
            if await self._try(draft, words, _TEMPLATE, truth, attempt):
                return

    async def _try(
        self, draft: Draft, words: Words, author: Author, truth: dict[str, Finding], attempt: int
    ) -> bool:
        """Put words before the wording gates; they become a sample or a reject."""
        if author.wording is Wording.LLM:
            words = self._mend_paraphrases(draft, words)
        kept = [sample.query for sample in self._out.samples]
        findings = {**truth, **await self._bench.check_words(draft, words, author.wording, kept)}
        failed = next((gate for gate, finding in findings.items() if finding.failed), None)
        if failed is not None:
            self._refuse(draft, words, author, findings, failed, attempt)
            return False
        self._out.samples.append(self._rows.sample(draft, words, author, findings))
        self._chooser.kept(draft)
        self._template.kept(words.query)
        return True

    def _mend_paraphrases(self, draft: Draft, words: Words) -> Words:
        """A model's paraphrase that a gate refuses gives way to one of the template's."""
        good = [p for p in words.paraphrases if not self._bench.problems(draft, p, Wording.LLM)]
        missing = self._settings.queries.paraphrases - len(good)
        if missing > 0:
            with contextlib.suppress(CannotSay):
                good += self._template.more(draft, [words.query, *good], missing)
        return Words(words.query, tuple(good))

    def _plain_words(self, draft: Draft) -> Words:
        try:
            return Words(self._template.one(draft), ())
        except CannotSay:
            return Words("", ())

    def _refuse(
        self,
        draft: Draft,
        words: Words,
        author: Author,
        findings: dict[str, Finding],
        gate: str,
        attempt: int,
        reason: str | None = None,
    ) -> None:
        why = reason if reason is not None else findings[gate].detail
        self._out.rejects.append(self._rows.reject(draft, words, author, findings, gate, why, attempt))


def _mix(seed: int, clip_id: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{clip_id}".encode()).digest()[:8], "big")
