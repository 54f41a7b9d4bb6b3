"""The thresholds of linking, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LinkSettings:
    """How masks become tracks. IoU, shares and colour likeness are 0..1.

    Attributes:
        same_iou: from here on a proposal is the track where that was propagated to ...
        guess_iou: ... and where its place is only extrapolated. Lower, as a guess is off by some pixels; the
            gates of size and colour make up for it.
        known_iou, covered: a proposal that overlaps a track this much, or lies in one by this share, is not
            new, though it may not be the track either.
        inside: share of a piece that lies in the whole it is a piece of.
        alike: least histogram intersection of the same thing seen twice.
        size_ratio: areas of the same thing differ by at most this factor.
        reidentify: least score, 0..1, of a lost track and a proposal.
        recent_looks: a track unseen for more looks than this is lost: its place is not reserved any more.
        candidate_looks: a candidate that is not seen again for this many looks in a row is given up.
        piece_looks: things seen as pieces of one, or as one with another, so often in a row, are.
        correct: whether drifted tracks get their new mask ...
        drifted: ... when the IoU of the two lies between these: enough to be worth it, little enough to be
            the same thing.
        bridge: a track that nobody propagates may be unseen for so many frames in a row and gets masks there
            all the same, moved from its neighbours; 0 leaves gaps as they are.
        max_objects: tracks followed at a time.
        scenery: share of the frame from which a mask is the scene rather than a thing in it.
    """

    same_iou: float = 0.5
    guess_iou: float = 0.3
    known_iou: float = 0.2
    covered: float = 0.5
    inside: float = 0.8
    alike: float = 0.5
    size_ratio: float = 2.5
    reidentify: float = 0.55
    recent_looks: int = 3
    candidate_looks: int = 3
    piece_looks: int = 2
    correct: bool = False
    drifted: tuple[float, float] = (0.7, 0.9)
    bridge: int = 0
    max_objects: int = 64
    scenery: float = 0.5
