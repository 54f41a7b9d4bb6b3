"""A draft, its words and its verdicts as one row of the samples or rejects table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.base import GATES, Finding
from rvt_ray.queries.tasks.regions import target_boxes, target_masks
from rvt_ray.queries.wording.template import Words
from rvt_ray.records import Category, ClipRecord, DigitalTwin, Reject, Sample, SampleProvenance, Task, Wording
from rvt_ray.twin.facts import CATALOGUE


@dataclass(frozen=True)
class Author:
    """Who wrote the words, as it stands in the row."""

    wording: Wording
    model: str
    prompt_version: str


class RowMaker:
    """Rows of one clip. Masks and boxes of a target set are made once.

    Args:
        seed, settings: as they stand in `SampleProvenance`.
    """

    def __init__(self, twin: DigitalTwin, clip: ClipRecord, seed: int, settings: str) -> None:
        self._twin = twin
        self._clip = clip
        self._seed = seed
        self._settings = settings
        self._masks: dict[tuple[int, ...], list[str | None]] = {}

    def sample(self, draft: Draft, words: Words, author: Author, findings: Mapping[str, Finding]) -> Sample:
        """A kept query."""
        return Sample(**self._fields(draft, words, author, findings, attempt=0))

    def reject(
        self,
        draft: Draft,
        words: Words,
        author: Author,
        findings: Mapping[str, Finding],
        gate: str,
        reason: str,
        attempt: int,
    ) -> Reject:
        """A refused candidate or wording; `attempt` tells equal ones of a candidate apart."""
        return Reject(**self._fields(draft, words, author, findings, attempt), gate=gate, reason=reason)

    def _fields(
        self, draft: Draft, words: Words, author: Author, findings: Mapping[str, Finding], attempt: int
    ) -> dict[str, Any]:
        candidate = draft.candidate
        ids = candidate.target_ids
        if ids not in self._masks and draft.task is Task.SEGMENTATION:
            self._masks[ids] = target_masks(self._twin, ids)
        program = candidate.program.to_json()
        return {
            "sample_id": sample_id(
                self._clip.clip_id, draft, program, words.query, author, attempt if attempt else None
            ),
            "clip_id": self._clip.clip_id,
            "task": draft.task,
            "query": words.query,
            "paraphrases": list(words.paraphrases),
            "categories": list(categories(draft)),
            "level": candidate.level,
            "target_ids": list(ids),
            "answer": draft.answer,
            "choices": list(draft.choices),
            "masks": self._masks[ids] if draft.task is Task.SEGMENTATION else None,
            "boxes": target_boxes(self._twin, ids) if draft.task is Task.GROUNDING else None,
            "program": program,
            "tree": candidate.tree,
            "evidence": [*candidate.evidence, *draft.evidence],
            "gates": [findings[gate].row(gate) for gate in GATES if gate in findings],
            "wording": author.wording,
            "provenance": SampleProvenance(
                model=author.model,
                prompt_version=author.prompt_version,
                seed=self._seed,
                settings=self._settings,
            ),
            "source_license": self._clip.license,
        }


def categories(draft: Draft) -> tuple[Category, ...]:
    """The program's categories and those of the facts that a question's answer rests on."""
    found = set(draft.candidate.categories)
    if draft.task is Task.VQA:
        found |= {CATALOGUE[use.predicate].category for use in draft.uses}
    return tuple(c for c in Category if c in found)


def sample_id(
    clip_id: str, draft: Draft, program: str, query: str, author: Author, attempt: int | None
) -> str:
    """16 hex digits of the content: the same query on the same clip has the same id on any machine."""
    content = [clip_id, draft.task, draft.form, draft.answer, program, author.wording, query, attempt]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
