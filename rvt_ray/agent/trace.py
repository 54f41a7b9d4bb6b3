"""What the agent gives back: the answer in the task's form, and everything that led to it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from rvt_ray.agent.plan import Plan
from rvt_ray.records import Box, Task

Verdict = Literal["found", "nothing", "possible", "ambiguous", "empty", "invalid"]
How = Literal["program", "possible", "relaxed", "direct_choice", "nothing"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TaskFinding(_Model):
    """What kind of question it is, and who said so."""

    task: Task
    form: str
    by: str


class JudgementMade(_Model):
    """A description that the language model judged: which instances it fits."""

    name: str
    text: str
    instance_ids: list[int]
    note: str = ""


class Run(_Model):
    """One plan and its execution.

    Attributes:
        planner: who planned; `rules` or the model's id.
        plan: null where the planner gave none that can be run; `report` says why.
        certain, possible: instance ids of the target.
        other: instance ids of the second object, where the plan has one.
        verdict: `found` and `nothing` end the search; the others ask for a revision.
        report: the executor's words: the feedback for the next plan.
    """

    planner: str
    plan: Plan | None
    certain: list[int] = []
    possible: list[int] = []
    other: list[int] = []
    judged: list[JudgementMade] = []
    verdict: Verdict
    report: str


class Trace(_Model):
    """The whole way from the query to the answer. No times, so that equal runs give equal traces."""

    query: str
    choices: list[str]
    task: TaskFinding
    runs: list[Run]
    chosen: int | None
    how: How
    notes: list[str]
    model: str | None
    model_calls: int

    @property
    def answered_plan(self) -> Plan | None:
        """The plan that the answer comes from; where nothing was found, the first that there is; null where
        the model chose the targets itself."""
        if self.how == "direct_choice":
            return None
        if self.chosen is not None:
            return self.runs[self.chosen].plan
        return next((run.plan for run in self.runs if run.plan is not None), None)


class Solution(_Model):
    """An answer in the task's form.

    Attributes:
        masks: for segmentation: per frame the RLE of the union of the targets; null where unknown.
        boxes: for grounding: per frame one box per visible target.
        answer: for vqa and summary.
        target_ids: the instances that were found.
        flagged: the answer is a guess: only possible, relaxed, chosen directly, or nothing.
    """

    task: Task
    target_ids: list[int]
    masks: list[str | None] | None = None
    boxes: list[list[Box]] | None = None
    answer: str | None = None
    flagged: bool
    trace: Trace

    def prediction(self, sample_id: str) -> dict[str, Any]:
        """The row of a predictions file (docs/evaluation.md), with the trace beside it."""
        return {
            "sample_id": sample_id,
            "task": str(self.task),
            "masks": self.masks,
            "boxes": None
            if self.boxes is None
            else [[box.model_dump() for box in frame] for frame in self.boxes],
            "answer": self.answer,
            "target_ids": self.target_ids,
            "flagged": self.flagged,
            "trace": self.trace.model_dump_json(),
        }
