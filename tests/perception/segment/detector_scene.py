"""A rendered clip with exact truth, and a detector that knows it: tests of the segmenter without weights."""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks import geometry
from rvt_ray.masks.rle import Mask
from rvt_ray.perception.detect import Detection
from rvt_ray.records import ClipRecord
from rvt_ray.video.frames import ArrayFrames, FrameArray
from tests.twin.helpers import make_clip

H, W = 144, 216


@dataclass
class Actor:
    """An ellipse that moves in a straight line; later actors hide earlier ones."""

    label: str
    colour: tuple[int, int, int]
    start: tuple[float, float]
    step: tuple[float, float]
    radii: tuple[int, int] = (14, 20)

    def mask(self, t: int) -> Mask:
        canvas = np.zeros((H, W), np.uint8)
        x, y = self.start[0] + self.step[0] * t, self.start[1] + self.step[1] * t
        cv2.ellipse(canvas, (round(x), round(y)), self.radii, 0, 0, 360, 1, -1)
        return canvas > 0


@dataclass
class Stage:
    """Frames, truth and the detector's answers."""

    actors: list[Actor]
    num_frames: int
    truth: dict[int, list[Mask]] = field(init=False)
    frames: ArrayFrames = field(init=False)

    def __post_init__(self) -> None:
        random = np.random.default_rng(7)
        wall = cv2.resize(random.integers(90, 150, (H // 6, W // 6, 3), np.uint8), (W, H))
        images = []
        self.truth = {i: [] for i in range(len(self.actors))}
        for t in range(self.num_frames):
            image = wall.copy()
            masks = [actor.mask(t) for actor in self.actors]
            for actor, mask in zip(self.actors, masks, strict=True):
                texture = random.integers(-12, 13, (H, W, 1))
                image[mask] = np.clip(np.array(actor.colour) + texture, 0, 255).astype(np.uint8)[mask]
            for i, mask in enumerate(masks):
                hidden = np.logical_or.reduce(masks[i + 1 :]) if masks[i + 1 :] else np.zeros_like(mask)
                self.truth[i].append(mask & ~hidden)
            images.append(image)
        self.frames = ArrayFrames(np.stack(images), np.arange(self.num_frames) / 25)

    def clip(self) -> ClipRecord:
        return make_clip(self.num_frames, W, H, pts=[i / 25 for i in range(self.num_frames)])


class OracleDetector:
    """Boxes of what can be seen, shaken by a pixel or two.

    Args:
        missed: (actor, frames) that it overlooks.
        phantom: frame -> a box of nothing that it reports there.
        names: (actor, frame) -> a wrong name.
    """

    name = "oracle"

    def __init__(
        self,
        stage: Stage,
        missed: dict[int, range] | None = None,
        phantom: dict[int, Detection] | None = None,
        names: dict[tuple[int, int], str] | None = None,
    ) -> None:
        self._stage, self._missed, self._phantom = stage, missed or {}, phantom or {}
        self._names = names or {}
        self._by_bytes = {
            frame.tobytes(): int(t)
            for window in stage.frames.windows()
            for t, frame in zip(window.indices, window.frames, strict=True)
        }
        self.looks: list[int] = []

    def detect(self, frame: FrameArray) -> list[Detection]:
        t = self._by_bytes[np.ascontiguousarray(frame).tobytes()]
        self.looks.append(int(t))
        random = np.random.default_rng(int(t))
        found = []
        for i, actor in enumerate(self._stage.actors):
            whole, seen = actor.mask(int(t)), self._stage.truth[i][int(t)]
            box = geometry.box(seen)
            if box is None or seen.sum() < 0.3 * whole.sum() or t in self._missed.get(i, ()):
                continue
            shake: npt.NDArray[np.float64] = random.uniform(-1.5, 1.5, 4)
            x, y, w, h = np.array(box) + shake
            label = self._names.get((i, int(t)), actor.label)
            found.append(Detection(max(x, 0), max(y, 0), min(w, W - x), min(h, H - y), label, 0.8))
        if t in self._phantom:
            found.append(self._phantom[int(t)])
        return found
