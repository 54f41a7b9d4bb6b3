"""What speaks for a track being one whole object, and the decision that it is.

Confirmed means: a person would accept the mask as an object on nearly all of its frames. The plate finds
whatever differs from a scene that it believes to be still. On footage that has no still scene (a street
seen from a bike, leaves in the wind, a face that fills the picture) it finds pieces of it, and each piece can
be well followed. So following well is not enough: the outline, the motion inside against the motion around,
and what the plate makes of the whole picture have to speak for it too. Wrong is worse than missed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.perception.segment.motion.looks import Look
from rvt_ray.perception.segment.motion.options import MotionOptions
from rvt_ray.perception.segment.motion.passes import StoredSight

_log = logging.getLogger(__name__)

# Set on six real clips (people, dog, hands with cups, street, car, animation) by eye and on ten rendered
# scenes by IoU with the truth, checked on eight others.
_MOVED_SIZES = 0.35
_COVERAGE = 0.88
_ALONE = 0.3
_RESTLESS = 0.08
_THICK = 0.012
_SPREAD = 2.0
_SOLID = 0.5
_SOLID_LOW = 0.4
_WHOLE_LOW = 0.65
_EDGE = 1.3
_EDGE_LOW = 1.2
_BLEND = 0.45
_AGREE = 0.6
_FOLLOW = 0.45
_UNEXPLAINED = 0.25
_STIRRED = 0.2


@dataclass(frozen=True)
class Scene:
    """How well the plate and the camera model explain the run of frames that a track lies in.

    Attributes:
        unexplained: median share of the picture that differs from the plate.
        stirred: share of what belongs to no track that moves on its own all the same.
    """

    unexplained: float
    stirred: float

    @classmethod
    def of(cls, shares: Sequence[float], stirred: float) -> Scene:
        """From the shares of foreground per frame."""
        return cls(unexplained=float(np.median(shares)) if shares else 1.0, stirred=stirred)


@dataclass(frozen=True)
class Evidence:
    """Measured on a track.

    Attributes:
        frames: on how many it was seen.
        coverage: share of the frames between its first and last sight on which it was seen.
        score: mean score of its sights.
        alone: share of its sights on which it stood apart from all other foreground.
        moved: pixels between the ends (5th and 95th percentile) of its path, camera taken out.
        diagonal: of the frame, pixels.
        size: root of its median area, pixels.
        thick: median radius of the largest disc inside, pixels.
        restless: median relative change of its area from frame to frame.
        spread: natural log of the ratio of its 90th to its 10th percentile area, where it is wholly in view.
        solidity, solidity_low: area / convex hull, median and 10th percentile.
        whole_low: share of the pixels in its largest piece, 10th percentile.
        edge, edge_low: see `Look.edge`, median and 10th percentile.
        blend: see `Look.blend`, median.
        active: share of the looks at which it moved against its surroundings.
        agree, follow: see `Look`, medians of where it moved; null: it never did between looks.
        scene: of its run.
    """

    frames: int
    coverage: float
    score: float
    alone: float
    moved: float
    diagonal: float
    size: float
    thick: float
    restless: float
    spread: float
    solidity: float
    solidity_low: float
    whole_low: float
    edge: float
    edge_low: float
    blend: float
    active: float
    agree: float | None
    follow: float | None
    scene: Scene


def measure(
    sights: dict[int, StoredSight],
    path: Sequence[npt.NDArray[np.float64]],
    looks: Sequence[Look],
    scene: Scene,
    width: int,
    height: int,
) -> Evidence:
    """The evidence of a track.

    Args:
        path: centroids in common coordinates.
        width, height: of the masks, pixels.
    """
    frames = sorted(sights)
    area = np.array([rle.area(sights[f].rle) for f in frames], np.float64)
    few = [rle.decode(sights[f].rle, height, width) for f in frames[:: max(len(frames) // 24, 1)]]
    inside = [float(m.sum()) for m in few if not _at_border(m)]
    low, high = np.percentile(np.array(path), [5, 95], axis=0)  # a flicker of the mask is not motion
    agree = [x.agree for x in looks if x.agree is not None]
    follow = [x.follow for x in looks if x.follow is not None]
    return Evidence(
        frames=len(frames),
        coverage=len(frames) / (frames[-1] - frames[0] + 1),
        score=float(np.mean([s.score for s in sights.values()])),
        alone=float(np.mean([s.found_alone for s in sights.values()])),
        moved=float(np.linalg.norm(high - low)),
        diagonal=float(np.hypot(width, height)),
        size=float(np.sqrt(np.median(area))),
        thick=float(
            np.median([cv2.distanceTransform(m.astype(np.uint8), cv2.DIST_L2, 3).max() for m in few])
        ),
        restless=float(np.median(np.abs(np.diff(np.log(area))))) if len(area) > 1 else 0.0,
        spread=float(np.diff(np.log(np.percentile(inside, [10, 90])))[0]) if len(inside) > 2 else 0.0,
        solidity=_percentile([x.solidity for x in looks], 50),
        solidity_low=_percentile([x.solidity for x in looks], 10),
        whole_low=_percentile([x.whole for x in looks], 10),
        edge=_percentile([x.edge for x in looks], 50),
        edge_low=_percentile([x.edge for x in looks], 10),
        blend=_percentile([x.blend for x in looks], 50),
        active=len(agree) / max(len(looks), 1),
        agree=float(np.median(agree)) if agree else None,
        follow=float(np.median(follow)) if follow else None,
        scene=scene,
    )


def doubts(e: Evidence, options: MotionOptions, num_frames: int) -> list[str]:
    """The criteria that a track fails, by name; each with the reason why it is asked.

    Args:
        num_frames: of the clip; a short clip is not held to `confirm_frames`.
    """
    failed = {
        # A surface whose light changes wobbles by less than a part of its own size; noise does not travel.
        "moved": e.moved < max(options.min_motion * e.diagonal, _MOVED_SIZES * e.size),
        # A path without motion in the picture is an error of the camera's.
        "active": e.active == 0,
        "score": e.score < options.confirm_score,
        "frames": e.frames < min(options.confirm_frames, num_frames),
        # What comes and goes with the noise is a flaw of the plate.
        "coverage": e.coverage < _COVERAGE,
        # A thing that never stands apart may be a part of something.
        "alone": e.alone < _ALONE,
        # Noise flickers more than things; an area that drifts by a multiple is not one thing all along.
        "restless": e.restless > _RESTLESS,
        "spread": e.spread > _SPREAD,
        # Parallax leaves slivers at edges.
        "thick": e.thick < _THICK * e.diagonal,
        # Outlines of things (a head and arms without the body), nets and scattered pieces fill little of
        # their hull; people with spread limbs still fill half.
        "solidity": e.solidity < _SOLID or e.solidity_low < _SOLID_LOW,
        "whole": e.whole_low < _WHOLE_LOW,
        # The border of a thing lies on an edge of the picture; that of a made-up region anywhere.
        "edge": e.edge < _EDGE or e.edge_low < _EDGE_LOW,
        # A piece cut out of a surface looks like what is next to it.
        "blend": e.blend > _BLEND,
        # A thing moves in itself alike and not like what is around it; a piece takes its surroundings along.
        "agree": e.agree is not None and e.agree < _AGREE,
        "follow": e.follow is not None and e.follow > _FOLLOW,
        # Where the plate explains the picture badly no piece of it is to be trusted.
        "unexplained": e.scene.unexplained > _UNEXPLAINED,
        "stirred": e.scene.stirred > _STIRRED,
    }
    return [name for name, is_so in failed.items() if is_so]


def is_confirmed(e: Evidence, options: MotionOptions, num_frames: int) -> bool:
    """Whether nothing speaks against the track being one whole object; see `doubts`."""
    against = doubts(e, options, num_frames)
    if against:
        _log.debug("uncertain: %s (%s)", ", ".join(against), e)
    return not against


def _thickness(mask: npt.NDArray[np.bool_]) -> float:
    return float(cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 3).max())


def _percentile(values: Sequence[float], q: float) -> float:
    return float(np.percentile(values, q)) if values else 0.0


def _at_border(mask: npt.NDArray[np.bool_]) -> bool:
    return bool(mask[:2].any() or mask[-2:].any() or mask[:, :2].any() or mask[:, -2:].any())
