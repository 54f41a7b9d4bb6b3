"""What is known of a thing that is followed: where it was found last, how it looks, what it was called."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.perception.proposals import Proposal


@dataclass(frozen=True)
class BoxedProposal(Proposal):
    """A mask with the detector's own box, x, y, w, h in the mask's pixels: steadier than the mask's."""

    box: rle.Box | None = None


@dataclass
class Life:
    """What is known of a candidate.

    Attributes:
        box, area, seen_s: as it was found last.
        colours: averaged over the looks, the newer the more.
        votes: scores per label.
        looks: frames on which it was found.
    """

    box: rle.Box
    area: float
    seen_s: float
    colours: npt.NDArray[np.float32] | None
    votes: dict[str, list[float]] = field(default_factory=dict)
    looks: list[int] = field(default_factory=list)
    gone: bool = False

    def vote(self, proposal: Proposal) -> None:
        self.votes.setdefault(proposal.label or "", []).append(proposal.score)

    @property
    def label(self) -> str:
        return max(self.votes, key=lambda name: (sum(self.votes[name]), name))

    @property
    def agreement(self) -> float:
        """Share of all votes, weighted by score, that the best label has."""
        return sum(self.votes[self.label]) / sum(sum(scores) for scores in self.votes.values())

    @property
    def label_score(self) -> float:
        """The label's best looks, on average, as far as the votes agree: a thing is half hidden or blurred on
        most looks, and known by the clear ones."""
        scores = sorted(self.votes[self.label], reverse=True)
        return float(np.mean(scores[: max(3, len(scores) // 4)])) * self.agreement

    @property
    def best(self) -> float:
        return max(max(scores) for scores in self.votes.values())
