"""Wording from rules: no model, always faithful. The baseline that a language model must beat."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.english import Form, inflect, question, sentence
from rvt_ray.queries.gates.form import MAX_WORDS
from rvt_ray.queries.gates.text import opening, shingles, similarity
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.wording.frames import FRAMES
from rvt_ray.queries.wording.lattice import Lattice, Row, first, parts
from rvt_ray.queries.wording.phraser import CannotSay
from rvt_ray.queries.wording.speaker import Reference, Speaker

VERSION = "template@3"
_DRAWS = 10
_UNLUCKY = 3
"""Draws that cannot be said after which no more are made."""
_MAX_INNER_WORDS = 8
_GOES_ON = re.compile(r"\{np\} ?[a-z{]")
"""A sentence that goes on after the description: hard to read where that has clauses of its own."""
_LATTICE_FRAMES = 8
"""Sentence frames that a model may choose among for one query; those whose openings were used least."""
_LATTICE_REFERENCES = 6
"""Draws of the description, each with its own nouns, adverbs and order; phrases vary within each."""
_MAX_PATTERN = 16_000
"""Characters of a lattice as a pattern: an engine compiles some ten thousand in a tenth of a second."""
_MAX_LIKENESS = 0.8
"""Paraphrases are at most this alike (Jaccard of word 3-grams)."""


@dataclass(frozen=True)
class Words:
    """A query and its paraphrases."""

    query: str
    paraphrases: tuple[str, ...]


class TemplateWriter:
    """Words drafts of one clip; openings that the clip has used already come last.

    Args:
        know: the clip's facts and names.
        rng: seeded source of every choice.
        opening_ngram: words that count as an opening.
    """

    def __init__(self, know: Knowledge, rng: random.Random, opening_ngram: int) -> None:
        self._know = know
        self._rng = rng
        self._n = opening_ngram
        self._openings: Counter[str] = Counter()

    def write(self, draft: Draft, paraphrases: int) -> Words:
        """A query and up to `paraphrases` others that say the same.

        Raises:
            CannotSay: the program cannot be worded without giving the target away.
        """
        texts = self._variants(draft)
        texts.sort(key=lambda text: self._openings[opening(text, self._n)])
        query = texts[0]
        return Words(query, tuple(self._unlike([query], texts[1:], paraphrases)))

    def one(self, draft: Draft) -> str:
        """A single wording, for candidates that are refused before they need several.

        Raises:
            CannotSay: as for `write`.
        """
        return self._variants(draft, 1)[0]

    def more(self, draft: Draft, given: Sequence[str], count: int) -> tuple[str, ...]:
        """`count` further wordings that differ from those given."""
        return tuple(self._unlike(list(given), self._variants(draft), count))

    def plain(self, draft: Draft) -> str:
        """The plainest clause of the target, for prompts: "it comes into view and ..."."""
        speaker = Speaker(self._know, draft.candidate, self._rng, plain=True)
        reference = speaker.reference()
        several = _is_plural(draft)
        clause = reference.clause_plural if several else reference.clause_singular
        return f"{'they' if several else 'it'} {clause}"

    def statement(self, draft: Draft) -> str:
        """The fact that a yes/no question asks about: "it ends up to the left of the red ball"."""
        if draft.checked is None:
            raise ValueError(f"a draft of form {draft.form!r} checks no fact")
        constraint, other = draft.checked
        many = len(draft.candidate.target_ids) > 1
        phrase = Speaker(self._know, draft.candidate, self._rng, plain=True).verb_phrase(constraint, other)
        return f"{'they' if many else 'it'} {inflect(phrase, Form.PLURAL if many else Form.SINGULAR)}"

    def lattice(self, draft: Draft) -> Lattice:
        """The sentences that a model may choose among: each is one that this writer could have written.

        Raises:
            CannotSay: as for `write`.
        """
        rows = self._rows(draft, open_choices=True) or self._rows(draft, open_choices=False)
        short = [row.within(MAX_WORDS[draft.candidate.level]) for row in rows]
        lattice = Lattice([row for row in short if row is not None] or rows)
        if not lattice.rows:
            raise CannotSay(f"the description is too long for every sentence frame of {draft.form!r}")
        while len(lattice.pattern()) > _MAX_PATTERN and len(lattice.rows) > 1:
            lattice = Lattice(lattice.rows[: len(lattice.rows) // 2])  # every frame has a row among the first
        return lattice

    def _rows(self, draft: Draft, *, open_choices: bool) -> list[Row]:
        frames = self._frames(draft)
        order = self._rng.sample(frames, len(frames))
        speaker = Speaker(self._know, draft.candidate, self._rng, open_choices=open_choices)
        rows: list[Row] = []
        for _ in range(_LATTICE_REFERENCES):
            try:
                reference, asked = self._speak(draft, speaker)
            except CannotSay:
                if open_choices:  # a thing that must be called the same twice
                    continue
                raise
            texts = {frame: self._fill(frame, draft, reference, asked) for frame in order}
            filled = {frame: text for frame, text in texts.items() if text is not None}
            if not rows:
                order = sorted(
                    filled, key=lambda frame: self._openings[opening(first(filled[frame]), self._n)]
                )[:_LATTICE_FRAMES]
            rows += [Row(frame, parts(filled[frame])) for frame in order if frame in filled]
        return rows

    def kept(self, query: str) -> None:
        """A query of this clip was kept: its opening is used up."""
        self._openings[opening(query, self._n)] += 1

    def _unlike(self, given: list[str], texts: Sequence[str], count: int) -> list[str]:
        chosen: list[str] = []
        for text in texts:
            if len(chosen) == count:
                break
            if not too_alike(text, [*given, *chosen]):
                chosen.append(text)
        return chosen

    def _variants(self, draft: Draft, wanted: int = _DRAWS) -> list[str]:
        frames = self._frames(draft)
        speaker = Speaker(self._know, draft.candidate, self._rng)
        order = self._rng.sample(frames, len(frames))
        texts: dict[str, None] = {}
        refusals: list[CannotSay] = []
        for i in range(2 * _DRAWS):
            try:
                text = self._fill(order[i % len(order)], draft, *self._speak(draft, speaker))
            except CannotSay as error:
                # Another draw may do: another noun, another order. What never can is not tried on and on.
                refusals.append(error)
                if len(refusals) == _UNLUCKY:
                    break
                continue
            if text is not None:
                texts.setdefault(text)
            if len(texts) == wanted:
                break
        if not texts:
            too_long = CannotSay(f"the description is too long for every sentence frame of {draft.form!r}")
            raise refusals[0] if refusals else too_long
        return list(texts)

    def _frames(self, draft: Draft) -> list[str]:
        candidate = draft.candidate
        many = len(candidate.target_ids) > 1
        form = draft.form
        if form == "count" and "thing" not in self._know.generic_nouns(candidate.target_ids):
            form = "count_ones"
        forbidden = self._know.forbidden_names(candidate) | draft.answer_words
        frames = [
            frame.lstrip("+-")
            for frame in FRAMES[form]
            if not (frame.startswith("+") and not many) and not (frame.startswith("-") and many)
        ]
        clean = [f for f in frames if not self._know.names_in(f, forbidden)]
        if not clean:
            raise CannotSay(f"every sentence frame of {form!r} names the target")
        return clean

    @staticmethod
    def _speak(draft: Draft, speaker: Speaker) -> tuple[Reference, str]:
        """The target in words, and the yes/no question about "it" where the draft has one."""
        reference = speaker.reference()
        if draft.checked is None:
            return reference, ""
        constraint, other = draft.checked
        subject = "they" if reference.many else "it"
        return reference, question(subject, speaker.verb_phrase(constraint, other), reference.many)

    def _fill(self, frame: str, draft: Draft, reference: Reference, asked: str) -> str | None:
        """A filled frame; null where a long description would stand in its middle."""
        if len(first(reference.noun_phrase).split()) > _MAX_INNER_WORDS and _GOES_ON.search(frame):
            return None
        many = reference.many
        # "How many ones" is no English.
        noun = "thing" if draft.form == "count" and reference.noun == "one" else reference.noun
        return sentence(
            frame.format(
                np=reference.noun_phrase,
                vp=reference.clause_plural if _is_plural(draft) else reference.clause_singular,
                noun=reference.noun,
                nouns=self._know.lexicon.plural(noun),
                it="them" if many else "it",
                **{"is": "are" if many else "is", "does": "do" if many else "does"},
                fares="fare" if many else "fares",
                they="they" if many else "it",
                ask=asked,
                attribute=draft.slots.get("attribute", ""),
                other=draft.slots.get("other", ""),
            )
        )


def _is_plural(draft: Draft) -> bool:
    """Whether the verbs of the clause are plural. "How many are" and "anything that is" stand for any number:
    their verbs must not tell it."""
    if draft.form in ("count", "exists"):
        return draft.form == "count"
    return len(draft.candidate.target_ids) > 1


def too_alike(text: str, others: Sequence[str]) -> bool:
    """Whether a text is too much like one of the others to be its paraphrase."""
    mine = shingles(text)
    return any(similarity(mine, shingles(other)) > _MAX_LIKENESS for other in others)
