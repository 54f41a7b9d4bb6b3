"""What a gate says, and the order in which gates stand in a row."""

from __future__ import annotations

from dataclasses import dataclass

from rvt_ray.records import GateVerdict, Verdict

GATES = ("program", "stability", "necessity", "leak", "form", "cues", "faithful", "shortcut")
"""In the order of docs/gates.md: 1, 2, 3, 4, 5, 6a, 6b, 7. Names are those of the switches in the config."""


@dataclass(frozen=True)
class Finding:
    """A verdict and why."""

    verdict: Verdict
    detail: str

    @property
    def failed(self) -> bool:
        """Whether the candidate is refused."""
        return self.verdict is Verdict.FAIL

    def row(self, gate: str) -> GateVerdict:
        """As it stands in the table."""
        return GateVerdict(gate=gate, verdict=self.verdict, detail=self.detail)


def passed(detail: str = "") -> Finding:
    """The gate lets it through."""
    return Finding(Verdict.PASS, detail)


def refused(detail: str) -> Finding:
    """The gate refuses it."""
    return Finding(Verdict.FAIL, detail)


def not_run(why: str) -> Finding:
    """The gate could not run, or is switched off; never the same as a pass."""
    return Finding(Verdict.NOT_RUN, why)


def judge(problems: list[str], fine: str = "") -> Finding:
    """A refusal that names all problems, or a pass."""
    return refused("; ".join(problems)) if problems else passed(fine)
