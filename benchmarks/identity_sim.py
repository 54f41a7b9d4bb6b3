"""A segmenter that makes mistakes at stated rates, from true masks: what a linker has to live with.

Everything that goes wrong follows from (seed, frame, object), never from what a linker did before: all
linkers get the same input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from benchmarks.identity_scenes import LEAST_SHARE, Tracks, TrueMasks
from rvt_ray.masks import rle
from rvt_ray.perception.linking.looks import colours
from rvt_ray.perception.proposals import Linker, Proposal, Sight

Mask = npt.NDArray[np.bool_]
Sights = dict[int, dict[int, Sight]]

_TOUCH_PX = 5  # only things this near to each other are taken for one


@dataclass(frozen=True)
class Rates:
    """How often what goes wrong.

    Attributes:
        drop: share of true masks that are not found; share of (object, key interval) in which propagation
            loses the object for good.
        split: share of objects that are found in two pieces.
        merge: share of touching pairs that are found as one.
        false: masks of nothing per frame.
        jitter: pixels by which masks are moved and grown or shrunk, at most; never more than a twentieth of
            the root of their area.
        forget: frames of absence after which propagation does not find an object again by itself.
    """

    drop: float = 0.1
    split: float = 0.05
    merge: float = 0.05
    false: float = 0.5
    jitter: float = 1.0
    forget: int = 7


class Simulated:
    """Proposals and propagation of one clip."""

    def __init__(self, truth: TrueMasks, rates: Rates, seed: int) -> None:
        self.truth, self.rates, self._seed = truth, rates, seed
        self.height, self.width = truth.size
        self._proposals: dict[int, list[Proposal]] = {}
        self._least = LEAST_SHARE * self.height * self.width

    def proposals(self, frame: int) -> list[Proposal]:
        """What is found on a frame, in no particular order."""
        if frame not in self._proposals:
            self._proposals[frame] = self._find(frame)
        return self._proposals[frame]

    def masks(self, frame: int) -> dict[int, Mask]:
        """The true masks of a frame."""
        texts = {i: track[frame] for i, track in self.truth.tracks.items() if frame in track}
        return {i: rle.decode(text, self.height, self.width) for i, text in texts.items()}

    def propagator(self, key_every: int, reverse: bool = False) -> Propagator:
        """Follows what it is given from frame to frame."""
        return Propagator(self, key_every, reverse)

    def jittered(self, mask: Mask, frame: int, i: int) -> Mask:
        """A propagated mask."""
        return self._jittered(mask, self._rng(2, frame, i))

    def is_lost(self, i: int, interval: int, reverse: bool) -> bool:
        """Whether propagation loses an object between two key frames."""
        return bool(self._rng(3, i, interval, int(reverse)).random() < self.rates.drop)

    def _find(self, frame: int) -> list[Proposal]:
        rng, rates = self._rng(1, frame), self.rates
        masks = self.masks(frame)
        groups = [[i] for i in masks]
        for a in masks:
            for b in masks:
                if a < b and _touch(masks[a], masks[b]) and rng.random() < rates.merge:
                    first = next(g for g in groups if a in g)
                    second = next(g for g in groups if b in g)
                    if first is not second:
                        first.extend(second)
                        groups.remove(second)
        found: list[tuple[Mask, float]] = []
        for group in groups:
            mask = np.any([masks[i] for i in group], axis=0)
            pieces = _cut(mask, rng) if rng.random() < rates.split else [mask]
            for piece in pieces:
                moved = self._jittered(piece, rng)
                if rng.random() >= rates.drop and moved.sum() >= self._least:
                    found.append((moved, float(rng.uniform(0.8, 1.0))))
        for _ in range(rng.poisson(rates.false)):
            found.append((self._blob(rng), float(rng.uniform(0.6, 0.95))))
        order = rng.permutation(len(found))
        looks = colours(self.truth.frames[frame], [m for m, _ in found])
        return [Proposal(frame, rle.encode(found[k][0]), found[k][1], colours=looks[k]) for k in order]

    def _jittered(self, mask: Mask, rng: np.random.Generator) -> Mask:
        most = min(self.rates.jitter, 0.05 * float(np.sqrt(mask.sum())))
        dx, dy, grow = (float(v) for v in rng.uniform(-most, most, 3))
        # Distance to the outline, positive inside: moved by parts of a pixel, cut at another level.
        depth = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 5)
        depth -= cv2.distanceTransform((~mask).astype(np.uint8), cv2.DIST_L2, 5)
        shift = np.array([[1, 0, dx], [0, 1, dy]], np.float32)
        moved = cv2.warpAffine(depth, shift, mask.shape[::-1], borderMode=cv2.BORDER_REPLICATE) > -grow
        return np.asarray(moved) if moved.any() else mask

    def _blob(self, rng: np.random.Generator) -> Mask:
        mask = np.zeros((self.height, self.width), np.uint8)
        centre = int(rng.integers(self.width)), int(rng.integers(self.height))
        axes = tuple(int(v) for v in rng.integers(6, max(8, self.height // 6), 2))
        cv2.ellipse(mask, centre, axes, float(rng.uniform(0, 180)), 0, 360, 1, -1)
        return np.asarray(mask > 0)

    def _rng(self, *what: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, *what])


@dataclass
class _Followed:
    """What a mask that was given is of: objects, a side of one, or a place in the picture."""

    objects: list[int]
    side: tuple[float, float] | None
    place: str
    absent: int = 0
    lost: bool = False


class Propagator:
    """Follows given masks through the truth as long as nothing goes wrong."""

    def __init__(self, sim: Simulated, key_every: int, reverse: bool) -> None:
        self._sim, self._every, self._reverse = sim, key_every, reverse
        self._followed: dict[int, _Followed] = {}

    @property
    def ids(self) -> list[int]:
        return list(self._followed)

    def prompt(self, frame: int, given: Mapping[int, Proposal]) -> None:
        """Follow a mask from here on."""
        masks = self._sim.masks(frame)
        for i, proposal in given.items():
            self._followed[i] = _what(proposal, masks, self._sim.height, self._sim.width)

    def drop(self, ids: Sequence[int]) -> None:
        for i in ids:
            self._followed.pop(i, None)

    def step(self, frame: int) -> dict[int, Sight]:
        """Where everything is on a frame."""
        masks = self._sim.masks(frame)
        sights = {}
        for i, one in self._followed.items():
            mask = self._follow(one, frame, masks)
            if mask is None or not mask.any():
                sights[i] = Sight(rle.empty(self._sim.height, self._sim.width), 0.1)
            else:
                sights[i] = Sight(rle.encode(mask), 0.9)
        return sights

    def _follow(self, one: _Followed, frame: int, masks: Mapping[int, Mask]) -> Mask | None:
        if not one.objects:
            return rle.decode(one.place, self._sim.height, self._sim.width)
        there = [masks[k] for k in one.objects if k in masks]
        one.absent = 0 if there else one.absent + 1
        begins = frame % self._every == (self._every - 1 if self._reverse else 1 % self._every)
        lost = begins and self._sim.is_lost(one.objects[0], frame // self._every, self._reverse)
        one.lost |= lost or one.absent >= self._sim.rates.forget
        if one.lost or not there:
            return None
        mask = np.any(there, axis=0)
        if one.side is not None:
            mask = mask & _half(mask, one.side)
        return self._sim.jittered(mask, frame, one.objects[0])


def by_masks(sim: Simulated, linker: Linker) -> Sights:
    """Every frame is a key frame and nothing is propagated: the masks alone tell who is who."""
    sights: Sights = {}
    for frame in range(sim.truth.num_frames):
        decision = linker.key_frame(frame, sim.proposals(frame), {})
        for i, proposal in {**decision.found, **decision.born}.items():
            sights.setdefault(i, {})[frame] = Sight(proposal.rle, None)
    return sights


def propagated(sim: Simulated, linker: Linker, key_every: int, reverse: bool = True) -> Sights:
    """As the sam2 segmenter works: found on key frames, propagated in between, and backwards."""
    sights: Sights = {}
    starts: dict[int, dict[int, Proposal]] = {}
    ahead = sim.propagator(key_every)
    for frame in range(sim.truth.num_frames):
        seen = ahead.step(frame)
        for i, sight in seen.items():
            sights[i][frame] = sight
        linker.observe(frame, seen)
        if frame % key_every:
            continue
        decision = linker.key_frame(frame, sim.proposals(frame), seen)
        given = {**decision.corrected, **decision.born}
        ahead.prompt(frame, given)
        ahead.drop(decision.ended)
        for i, proposal in given.items():
            sights.setdefault(i, {})[frame] = Sight(proposal.rle, None)
            starts.setdefault(frame, {})[i] = proposal
    if reverse:
        _backwards(sim, sights, starts, key_every)
    return sights


def _backwards(
    sim: Simulated, sights: Sights, starts: dict[int, dict[int, Proposal]], key_every: int
) -> None:
    back = sim.propagator(key_every, reverse=True)
    for frame in range(sim.truth.num_frames - 1, -1, -1):
        for i, sight in back.step(frame).items():
            known = sights[i].get(frame)
            if known is not None and rle.area(known.rle) > 0:
                back.drop([i])
            elif rle.area(sight.rle) > 0:
                sights[i][frame] = sight
        back.prompt(frame, starts.get(frame, {}))


def present(sights: Mapping[int, Mapping[int, Sight]]) -> Tracks:
    """The masks that have a pixel."""
    return {i: {t: s.rle for t, s in track.items() if rle.area(s.rle) > 0} for i, track in sights.items()}


def without(rates: Rates, *names: str) -> Rates:
    """The same rates, some of them zero."""
    return replace(rates, **dict.fromkeys(names, 0))


def _what(proposal: Proposal, masks: Mapping[int, Mask], height: int, width: int) -> _Followed:
    mask = rle.decode(proposal.rle, height, width)
    area = mask.sum()
    held = [i for i, m in masks.items() if (m & mask).sum() >= 0.6 * m.sum()]
    if held:
        union = np.any([masks[i] for i in held], axis=0)
        if (union & mask).sum() >= 0.4 * (union | mask).sum():
            return _Followed(held, None, proposal.rle)
    for i, m in masks.items():
        if (m & mask).sum() >= 0.6 * area:
            return _Followed([i], tuple(_centre(mask) - _centre(m)), proposal.rle)  # type: ignore[arg-type]
    return _Followed([], None, proposal.rle)


def _cut(mask: Mask, rng: np.random.Generator) -> list[Mask]:
    angle = rng.uniform(0, 2 * np.pi)
    half = _half(mask, (float(np.cos(angle)), float(np.sin(angle))))
    return [part for part in (mask & half, mask & ~half) if part.any()]


def _half(mask: Mask, side: tuple[float, float]) -> Mask:
    x, y = _centre(mask)
    v, u = np.mgrid[0 : mask.shape[0], 0 : mask.shape[1]]
    return np.asarray((u - x) * side[0] + (v - y) * side[1] > 0)


def _centre(mask: Mask) -> npt.NDArray[np.float64]:
    y, x = np.nonzero(mask)
    return np.array([x.mean(), y.mean()])


def _touch(a: Mask, b: Mask) -> bool:
    size = 2 * _TOUCH_PX + 1
    return bool((cv2.dilate(a.astype(np.uint8), np.ones((size, size), np.uint8)) > 0)[b].any())
