"""What ours is measured against: linkers as public pipelines have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.proposals import KeyFrameDecision, Proposal, Sight


class FirstMatch:
    """Each proposal takes the id of the first track that it overlaps enough, else a new one.

    Two proposals can take one id; tracks that no proposal takes are dropped.
    """

    keeps = False

    def __init__(self, height: int, width: int, same_iou: float = 0.5) -> None:
        self._size = (height, width)
        self._same = same_iou
        self._last: dict[int, str] = {}
        self._born = 0

    def observe(self, frame: int, seen: Mapping[int, Sight]) -> None:
        """Nothing is remembered but the last masks."""

    def key_frame(
        self, frame: int, proposals: Sequence[Proposal], seen: Mapping[int, Sight]
    ) -> KeyFrameDecision:
        """See `Linker`."""
        decision = KeyFrameDecision()
        tracks = {i: seen[i].rle if i in seen else text for i, text in self._last.items()}
        ids = [i for i, text in tracks.items() if rle.area(text) > 0]
        iou = rle.iou_matrix([tracks[i] for i in ids], [p.rle for p in proposals], *self._size)
        owner = self.assign(iou)
        for column, proposal in enumerate(proposals):
            if column in owner:
                decision.found[ids[owner[column]]] = proposal
            else:
                self._born += 1
                decision.born[self._born] = proposal
        if not self.keeps:
            decision.ended.extend(i for i in tracks if i not in decision.found)
        for i in decision.ended:
            del self._last[i]
        self._last.update((i, p.rle) for i, p in {**decision.found, **decision.born}.items())
        return decision

    def assign(self, iou: np.ndarray) -> dict[int, int]:
        """Column -> row."""
        enough = iou >= self._same
        return {c: int(enough[:, c].argmax()) for c in range(iou.shape[1]) if enough[:, c].any()}

    def finish(self, tracks: Mapping[int, Mapping[int, Sight]]) -> list[TrackDraft]:
        """Public pipelines have no second thoughts."""
        raise NotImplementedError


class Greedy(FirstMatch):
    """A better one: best pairs first, one to one, and tracks that are not found are kept where they were."""

    keeps = True

    def assign(self, iou: np.ndarray) -> dict[int, int]:
        """Column -> row."""
        owner: dict[int, int] = {}
        for place in np.argsort(-iou, axis=None, kind="stable"):
            row, column = np.unravel_index(place, iou.shape)
            if iou[row, column] < self._same:
                break
            if int(column) not in owner and int(row) not in owner.values():
                owner[int(column)] = int(row)
        return owner
