"""What the agent means to do about a query."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from rvt_ray.reasoning import Constraint, Program
from rvt_ray.records import Task

FORM_TASK: dict[str, Task] = {
    "masks": Task.SEGMENTATION,
    "boxes": Task.GROUNDING,
    "summary": Task.SUMMARY,
    **dict.fromkeys(
        (
            "count",
            "exists",
            "check",
            "attribute",
            "material",
            "kind",
            "order",
            "direction",
            "which_of",
            "duration",
        ),
        Task.VQA,
    ),
}
"""Form of question -> its task; the forms are those of `rvt_ray.queries.wording.frames`."""
OTHER = "other"
"""The name, in `Plan.asked`, of the second object that a question is about."""


class Question(BaseModel):
    """What the agent is given: words, and the choices that come with them. Nothing else of a sample."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str
    choices: tuple[str, ...] = ()


class Judgement(BaseModel):
    """A description that the twin's facts cannot express, to be judged by a language model: the instances
    that `text` fits. In the program it stands as an attribute of a variable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    text: str

    @property
    def value(self) -> str:
        """The value of `attribute` that stands for it in a program."""
        return f"judged {self.name}:yes"


class Plan(BaseModel):
    """A query as a program.

    Attributes:
        form: the form of question (`FORM_TASK` gives the task).
        program: what finds the targets.
        many: whether the query speaks of several targets; null where it leaves that open.
        asked: for `check`: the fact asked about; its first argument is the program's target, a second one is
            `other`.
        other: for `check` and `order`: the program that finds the second object.
        attribute: for `attribute`: its name.
        judged: descriptions for the language model, used in the program.
        complete: every word of the query was understood.
        ignored: words of the query that were not understood and say nothing in the program.
        note: what was left out, for the trace.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    form: str
    program: Program
    many: bool | None = None
    asked: Constraint | None = None
    other: Program | None = None
    attribute: str | None = None
    judged: tuple[Judgement, ...] = ()
    complete: bool = True
    ignored: tuple[str, ...] = ()
    note: str = ""

    @property
    def task(self) -> Task:
        """The task that the form belongs to."""
        return FORM_TASK[self.form]
