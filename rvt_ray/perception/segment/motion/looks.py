"""A track's masks looked at on some frames: their shape, their outline, and what moves inside and around."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.perception.segment.motion.assign import histogram, overlap
from rvt_ray.perception.segment.motion.flow import DenseFlow, camera_flow
from rvt_ray.perception.segment.motion.passes import Tracks
from rvt_ray.perception.segment.motion.plate import quantise
from rvt_ray.perception.segment.motion.shot import Shot
from rvt_ray.perception.segment.motion.spool import to_lab

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]

_SHIFT_SHARE = 0.025  # of the diagonal: how far the outline is moved to compare it with itself
_RING_SHARE = 0.02  # of the diagonal: width of the band outside the outline
_GAP_PX = 2  # between the mask and the band: the outline is never exact
_LOOKS = 10  # of a track at least, where it has as many sights
_FLOW_GAP = 3  # frames over which motion is measured
_STIRRED_PX = 1.0  # residual flow from which a pixel moves
_TEXTURED = 24.0  # CIELAB units over a Sobel window
_SCENE_SHARE = 0.02  # of the picture; less of it says nothing
_MOVES_PX = 0.8  # residual flow of the mask's pixels, from which its motion can be told from its ring's


@dataclass(frozen=True)
class Look:
    """One mask on one frame.

    Attributes:
        solidity: area / area of the convex hull.
        whole: share of its pixels in its largest piece.
        edge: colour gradient along the outline / along shifted copies of it; 1: no better than by chance.
        blend: how alike the colours just inside and just outside are, 0..1.
        speed: pixels that it moves on its own until the compared frame.
        agree: share of its pixels that move like it rather than like its surroundings; null: too slow.
        follow: share of the surroundings that move like it; null: too slow.
    """

    solidity: float
    whole: float
    edge: float
    blend: float
    speed: float
    agree: float | None
    follow: float | None


class Looks:
    """Looks at each track on about `_LOOKS` to twice as many of its frames, shared by tracks where they can
    be, so that the cost does not grow with the length of the clip.

    Args:
        reported: the tracks to look at.
        known: all that was followed, also briefly: what moves there is explained.
    """

    def __init__(self, shot: Shot, reported: Tracks, known: Tracks) -> None:
        self._shot = shot
        self._flow = DenseFlow()
        self._looks: dict[int, list[Look]] = {i: [] for i in reported}
        self._stirred: dict[int, float] = {}
        chosen = {i: _sample(sorted(sights)) for i, sights in reported.items()}
        for frame in sorted(set().union(*chosen.values())):
            self._visit(frame, [i for i in reported if frame in chosen[i]], known)

    def of(self, track: int) -> list[Look]:
        """The looks at a track, by frame."""
        return self._looks[track]

    def stirred(self, first: int, last: int) -> float:
        """Median share of the picture outside of all tracks that moves on its own, frames first..last."""
        shares = [share for frame, share in self._stirred.items() if first <= frame <= last]
        return float(np.median(shares)) if shares else 0.0

    def _visit(self, frame: int, looked_at: list[int], known: Tracks) -> None:
        size = (self._shot.height, self._shot.width)
        masks = {i: rle.decode(s[frame].rle, *size) for i, s in known.items() if frame in s}
        count = np.zeros(size, np.int32)
        for mask in masks.values():
            count += mask
        lab = to_lab(self._shot.frame(frame))
        gradient, bins, residual = colour_gradient(lab), quantise(lab), self._residual(frame)
        if residual is not None:
            # The flow of flat surfaces, and of what is close to a moving thing, is made up.
            near = cv2.dilate((count > 0).astype(np.uint8), np.ones((15, 15), np.uint8)) > 0
            scene = ~near & (gradient > _TEXTURED)
            if scene.mean() > _SCENE_SHARE:
                moves = np.linalg.norm(residual[scene], axis=1) > _STIRRED_PX
                self._stirred[frame] = float(moves.mean())
        for i in looked_at:
            if masks[i].any():
                others = count - masks[i] > 0
                self._looks[i].append(look(masks[i], gradient, bins, residual, others))

    def _residual(self, frame: int) -> Floats | None:
        """Flow to a near frame of the same run without the camera's, (h, w, 2)."""
        first, last = next(r for r in self._shot.runs if r[0] <= frame <= r[1])
        other = frame + _FLOW_GAP if frame + _FLOW_GAP <= last else frame - _FLOW_GAP
        if other < first:
            return None
        by_camera = camera_flow(self._shot.between(frame, other), self._shot.height, self._shot.width)
        return np.asarray(self._flow(self._shot.frame(frame), self._shot.frame(other)) - by_camera)


def _sample(frames: list[int]) -> set[int]:
    """On a grid that tracks share (every 2nd, 4th, 8th.. frame); evenly where too few sights lie on it."""
    stride = 1
    while len(frames) // (2 * stride) >= _LOOKS:
        stride *= 2
    chosen = {f for f in frames if f % stride == 0}
    return chosen if len(chosen) >= _LOOKS // 2 else set(frames[::stride])


def look(
    mask: Mask, gradient: Floats, bins: npt.NDArray[np.int32], residual: Floats | None, others: Mask
) -> Look:
    """Measure a mask on its frame.

    Args:
        mask: (h, w), not empty.
        gradient: colour gradient of the frame, (h, w). bins: its colour bins, (h, w).
        residual: (h, w, 2) flow to a near frame without the camera's; null where there is none.
        others: (h, w) what other tracks cover; no surroundings to compare with.
    """
    diagonal = float(np.hypot(*mask.shape))
    small = mask.astype(np.uint8)
    points = cv2.findNonZero(small)
    hull = max(cv2.contourArea(cv2.convexHull(points)), 1.0)
    area = float(mask.sum())
    _, _, stats, _ = cv2.connectedComponentsWithStats(small, connectivity=8)
    gap = np.ones((2 * _GAP_PX + 1, 2 * _GAP_PX + 1), np.uint8)
    reach = _GAP_PX + max(3, round(_RING_SHARE * diagonal))
    wide = np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
    ring = (cv2.dilate(small, wide) > 0) & ~(cv2.dilate(small, gap) > 0) & ~others
    core = cv2.erode(small, gap, borderValue=1) > 0
    if core.sum() < 0.2 * area:
        core = mask
    inner = core & ~(cv2.erode(small, wide, borderValue=1) > 0)
    blend = overlap(histogram(bins[inner]), histogram(bins[ring])) if ring.any() and inner.any() else 1.0
    speed, agree, follow = 0.0, None, None
    if residual is not None and ring.any():
        own, around = residual[core], residual[ring]
        own_move, ring_move = np.median(own, axis=0), np.median(around, axis=0)
        speed = float(np.linalg.norm(own_move - ring_move))
        if speed >= _MOVES_PX:
            agree = float(_nearer(own, own_move, ring_move).mean())
            follow = float(_nearer(around, own_move, ring_move).mean())
    return Look(
        solidity=min(area / hull, 1.0),
        whole=float(stats[1:, cv2.CC_STAT_AREA].max()) / area,
        edge=_edge_lift(small, gradient, max(4, round(_SHIFT_SHARE * diagonal))),
        blend=blend,
        speed=speed,
        agree=agree,
        follow=follow,
    )


def _nearer(flow: Floats, to: Floats, than: Floats) -> Mask:
    return np.asarray(np.linalg.norm(flow - to, axis=1) < np.linalg.norm(flow - than, axis=1))


def colour_gradient(lab: Floats) -> Floats:
    """Over all channels, the largest within one pixel: an outline need not be exact to that."""
    blurred = cv2.GaussianBlur(lab, (3, 3), 0)
    steps = [cv2.Sobel(blurred, cv2.CV_32F, dx, dy) for dx, dy in ((1, 0), (0, 1))]
    norm = np.sqrt(np.square(steps).sum(axis=(0, 3))).astype(np.float32)
    return np.asarray(cv2.dilate(norm, np.ones((3, 3), np.uint8)))


def _edge_lift(mask: npt.NDArray[np.uint8], gradient: Floats, shift: int) -> float:
    """Gradient along the outline against the mean along copies of it shifted in eight directions."""
    outline = (mask > 0) & (cv2.erode(mask, np.ones((3, 3), np.uint8), borderValue=1) == 0)
    y, x = np.nonzero(outline)
    height, width = mask.shape
    shifted = []
    for dy, dx in ((a, b) for a in (-shift, 0, shift) for b in (-shift, 0, shift) if a or b):
        v, u = y + dy, x + dx
        inside = (v >= 0) & (v < height) & (u >= 0) & (u < width)
        if inside.any():
            shifted.append(gradient[v[inside], u[inside]].mean())
    return float(gradient[y, x].mean() / max(np.mean(shifted), 1e-3)) if shifted else 1.0
