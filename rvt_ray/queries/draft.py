"""A draft: a proven program with a task and its answer, before it has words."""

from __future__ import annotations

from dataclasses import dataclass, field

from rvt_ray.reasoning import Candidate, Constraint
from rvt_ray.records import Evidence, Task


@dataclass(frozen=True)
class Draft:
    """What is to be asked, and the truth.

    Attributes:
        form: the form of question: `masks`, `boxes`, `summary`, or one of vqa's (`count`, `exists`, `check`,
            `attribute`, `material`, `kind`, `order`, `direction`, `which_of`, `duration`).
        answer: text for vqa and summary; null where masks or boxes are the answer.
        choices: closed-answer choices, the right one among them.
        evidence: facts that the answer uses, beyond those that the program's proof uses.
        uses: the facts of `evidence` as constraints over instance ids, so that gate 1 can check them anew.
        slots: words for the sentence frames (`attribute`, `other`).
        checked: for form `check`: the fact that is asked about, and the name of its second argument.
        answer_words: words that must not stand in the query.
    """

    candidate: Candidate
    task: Task
    form: str
    answer: str | None = None
    choices: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    uses: tuple[Use, ...] = ()
    slots: dict[str, str] = field(default_factory=dict)
    checked: tuple[Constraint, str | None] | None = None
    answer_words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Use:
    """A fact about instances that an answer rests on, and whether it must be true or false."""

    predicate: str
    ids: tuple[int, ...]
    value: str | None = None
    scope: str | None = None
    true: bool = True
