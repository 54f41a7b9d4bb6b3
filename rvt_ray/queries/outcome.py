"""What comes out of the query room for one clip."""

from __future__ import annotations

from dataclasses import dataclass, field

from rvt_ray.records import Reject, Sample


@dataclass
class Outcome:
    """Every candidate that was taken up ends as exactly one row here.

    A candidate is a program with a task, or one refused attempt at wording it. `candidates` is counted where
    they arise, so that candidates = samples + rejects can be checked and not only defined.
    """

    samples: list[Sample] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    candidates: int = 0
