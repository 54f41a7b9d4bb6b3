"""The passes over a clip: find on key frames, follow forwards, follow back from where things were found.

Frames are decoded in windows and encoded in batches; nothing of a pass but run-length masks outlives it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rvt_ray.masks import clean as cleaning
from rvt_ray.masks import geometry, rle
from rvt_ray.masks.rle import Mask
from rvt_ray.perception.detect import Detection, Detector
from rvt_ray.perception.linking.looks import colours_of
from rvt_ray.perception.proposals import Linker, Proposal, Sight
from rvt_ray.perception.segment.sam2.automatic import AutomaticMasks
from rvt_ray.perception.segment.sam2.engine import Propagator, Tracked
from rvt_ray.perception.segment.sam2.network import FrameFeatures, Network
from rvt_ray.video.frames import FrameArray, FrameStream

log = logging.getLogger(__name__)

Sights = dict[int, dict[int, Sight]]


@dataclass(frozen=True)
class PassSettings:
    """Attributes: see `Sam2Options`."""

    frames_per_batch: int
    objects_per_batch: int | None
    window: int
    lost_frames: int
    min_fragment_share: float
    max_hole_share: float
    min_box_score: float = 0.0


class Passes:
    """All passes over one clip."""

    def __init__(self, network: Network, frames: FrameStream, settings: PassSettings) -> None:
        self._network = network
        self._frames = frames
        self._settings = settings

    def find(
        self, automatic: AutomaticMasks, key_frames: Sequence[int], detector: Detector | None = None
    ) -> dict[int, list[Proposal]]:
        """Proposals on every key frame: everything, or what lies in a detector's boxes."""
        height, width = self._frames.height, self._frames.width
        found: dict[int, list[Proposal]] = {}
        for batch in _batches(self._frames.frames_at(list(key_frames)), self._settings.frames_per_batch):
            features = self._encode(batch)
            if detector is None:
                lists = automatic.find(features, height, width)
            else:
                lists = [
                    _in_boxes(automatic, one, self._sure(detector.detect(frame)), height, width)
                    for one, (_, frame) in zip(features, batch, strict=True)
                ]
            for (index, frame), proposals in zip(batch, lists, strict=True):
                looks = colours_of(frame, [p.rle for p in proposals])
                found[index] = [replace(p, colours=look) for p, look in zip(proposals, looks, strict=True)]
        return found

    def _sure(self, detected: Sequence[Detection]) -> list[Detection]:
        return [d for d in detected if d.score >= self._settings.min_box_score]

    def forward(self, linker: Linker, proposals: Mapping[int, Sequence[Proposal]]) -> tuple[Sights, Starts]:
        """Follow every track from its birth to the clip's end, linking on key frames."""
        propagator = self._propagator(reverse=False)
        sights: Sights = {}
        starts: Starts = {}
        for batch in _batches(self._in_order(), self._settings.frames_per_batch):
            if not propagator.ids and not any(index in proposals for index, _ in batch):
                continue
            for features in self._encode(batch):
                seen = self._see(propagator.step(features))
                for i, sight in seen.items():
                    sights[i][features.frame] = sight
                linker.observe(features.frame, seen)
                if features.frame not in proposals:
                    continue
                decision = linker.key_frame(features.frame, proposals[features.frame], seen)
                given = {**decision.corrected, **decision.born}
                for i, sight in self._prompt(propagator, features, given).items():
                    sights.setdefault(i, {})[features.frame] = sight
                for i, proposal in given.items():
                    starts.setdefault(features.frame, {})[i] = proposal
                propagator.drop(decision.ended)
        return sights, starts

    def backward(self, sights: Sights, starts: Starts) -> None:
        """Follow every track back from where it was given a mask; adds to `sights`.

        A track is followed until it has been gone for a while, or until the forward pass knew it: what it
        was lost on in between is filled.
        """
        waiting = {frame: dict(given) for frame, given in starts.items() if frame > 0}
        if not waiting:
            return
        propagator = self._propagator(reverse=True)
        gone: dict[int, int] = {}
        for batch in self._backwards(max(waiting), propagator, waiting):
            for features in reversed(self._encode(batch)):
                done: list[int] = []
                for i, sight in self._see(propagator.step(features)).items():
                    known = sights[i].get(features.frame)
                    if known is not None and rle.area(known.rle) > 0:
                        done.append(i)
                        continue
                    gone[i] = gone.get(i, 0) + 1
                    if rle.area(sight.rle) > 0:
                        gone[i] = 0
                        sights[i][features.frame] = sight
                    elif gone[i] >= self._settings.lost_frames:
                        done.append(i)
                propagator.drop(done)
                for i in done:
                    gone.pop(i, None)
                now = waiting.pop(features.frame, {})
                propagator.drop(now)  # a later start of the same track ends where an earlier one begins
                self._prompt(propagator, features, now)
                gone.update(dict.fromkeys(now, 0))

    def _propagator(self, reverse: bool) -> Propagator:
        return Propagator(self._network, self._frames.num_frames, reverse, self._settings.objects_per_batch)

    def _encode(self, batch: Sequence[tuple[int, FrameArray]]) -> list[FrameFeatures]:
        return self._network.encode([index for index, _ in batch], np.stack([frame for _, frame in batch]))

    def _in_order(self) -> Iterator[tuple[int, FrameArray]]:
        for window in self._frames.windows(self._settings.window):
            for index, frame in zip(window.indices, window.frames, strict=True):
                yield int(index), frame

    def _backwards(
        self, start: int, propagator: Propagator, waiting: Mapping[int, object]
    ) -> Iterator[list[tuple[int, FrameArray]]]:
        """Batches of frames, the last batch first, each in ascending order; skips what nobody needs."""
        last = start
        while last >= 0:
            if not propagator.ids:
                if not waiting:
                    return
                last = max(waiting)
            first = max(0, last - self._settings.window + 1)
            block = list(self._frames.frames_at(list(range(first, last + 1))))
            step = self._settings.frames_per_batch
            for stop in range(len(block), 0, -step):
                yield block[max(0, stop - step) : stop]
            last = first - 1

    def _prompt(
        self, propagator: Propagator, features: FrameFeatures, given: Mapping[int, Proposal]
    ) -> dict[int, Sight]:
        if not given:
            return {}
        height, width = self._frames.height, self._frames.width
        masks = rle.decode_batch([proposal.rle for proposal in given.values()], height, width)
        propagator.prompt(features, dict(zip(given, masks, strict=True)))
        # The given mask is the sight: what the network would draw of it is only a coarser copy.
        return {i: Sight(proposal.rle, None) for i, proposal in given.items()}

    def _see(self, tracked: Tracked) -> dict[int, Sight]:
        if not tracked.ids:
            return {}
        height, width = self._frames.height, self._frames.width
        masks = self._network.masks_at(tracked.logits, height, width)
        for mask in masks:
            self._clean(mask)
        texts = rle.encode_batch(masks)
        scores = tracked.confidence()
        return {
            i: Sight(text, float(score)) for i, text, score in zip(tracked.ids, texts, scores, strict=True)
        }

    def _clean(self, mask: Mask) -> None:
        box = geometry.box(mask)
        if box is None:
            return
        x, y, w, h = (int(v) for v in box)
        part = mask[y : y + h, x : x + w]
        # One pixel of margin, or a hole at the box's edge would be taken for the outside by luck of the crop.
        padded = np.pad(part, 1)
        cleaned = cleaning.clean(padded, self._settings.min_fragment_share, self._settings.max_hole_share)
        part[...] = cleaned[1:-1, 1:-1]


Starts = dict[int, dict[int, Proposal]]
"""Frame -> track -> the mask that it was given there: births, and returns of what was lost."""


def _in_boxes(
    automatic: AutomaticMasks,
    features: FrameFeatures,
    detected: Sequence[Detection],
    height: int,
    width: int,
) -> list[Proposal]:
    boxes, labels, scores = (
        [d.box for d in detected],
        [d.label for d in detected],
        [d.score for d in detected],
    )
    return automatic.from_boxes(features, boxes, labels, scores, height, width)


def _batches(
    items: Iterator[tuple[int, npt.NDArray[np.uint8]]], size: int
) -> Iterator[list[tuple[int, FrameArray]]]:
    batch: list[tuple[int, FrameArray]] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
