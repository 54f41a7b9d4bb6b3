"""What is known of things that are followed: where each was found last, how it looks, what it was called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.linking.looks import Colours, alike, learned
from rvt_ray.perception.proposals import Proposal

_LEARN_AREA = 0.3  # weight of the newest look


@dataclass(frozen=True)
class BoxedProposal(Proposal):
    """A mask with the detector's own box, x, y, w, h in the mask's pixels: steadier than the mask's."""

    box: rle.Box | None = None


@dataclass(frozen=True)
class LinkRules:
    """Attributes: see `DetectorOptions`."""

    birth_score: float
    confirm_score: float
    confirm_looks: int
    same_iou: float
    known_iou: float
    lost_s: float
    max_objects: int


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
    colours: Colours | None
    votes: dict[str, list[float]] = field(default_factory=dict)
    looks: list[int] = field(default_factory=list)

    def find(self, proposal: Proposal, box: rle.Box, area: float, now_s: float, learn: bool) -> None:
        """Take in a look at which it was found.

        Args:
            learn: whether its size and colours are surely its own.
        """
        self.vote(proposal)
        self.looks.append(proposal.frame)
        self.box, self.seen_s = box, now_s
        if learn:
            self.area += _LEARN_AREA * (area - self.area)
            self.colours = learned(self.colours, proposal.colours)

    def vote(self, proposal: Proposal) -> None:
        self.votes.setdefault(proposal.label or "", []).append(proposal.score)

    def absorb(self, other: Life) -> None:
        """Take over what is known of another life that turned out to be the same thing's."""
        for label, scores in other.votes.items():
            self.votes.setdefault(label, []).extend(scores)
        self.looks = sorted({*self.looks, *other.looks})

    def likeness(self, proposal: Proposal) -> float:
        """Of the colours, 0..1; 1 where they were not measured."""
        value = alike(self.colours, proposal.colours)
        return 1.0 if value is None else value

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


class Lives(dict[int, Life]):
    """Everything that was ever followed in a clip, by id; ids count up.

    Args:
        needed: looks at which a candidate must be found to be a thing.
    """

    def __init__(self, needed: int) -> None:
        super().__init__()
        self._needed = needed

    def is_thing(self, i: int) -> bool:
        """Whether a candidate was found as often as a thing must be."""
        return len(self[i].looks) >= self._needed

    def things(self, ids: Iterable[int]) -> list[int]:
        """Those that are things."""
        return [i for i in ids if self.is_thing(i)]

    def namesakes(self, a: int, b: int) -> bool:
        """Whether two were ever called the same."""
        return bool(self[a].votes.keys() & self[b].votes.keys())


@dataclass(frozen=True)
class Found:
    """What there is on one look.

    Attributes:
        frame: clip frame index.
        now_s: its time.
        proposals: best first.
        boxes, areas: of the proposals, in the masks' pixels.
    """

    frame: int
    now_s: float
    proposals: Sequence[Proposal]
    boxes: Sequence[rle.Box]
    areas: Sequence[float]
