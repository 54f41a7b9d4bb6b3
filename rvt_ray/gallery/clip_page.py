"""One clip's page: which frames are shown, which pictures are drawn, what the template gets."""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from rvt_ray.errors import ClipError
from rvt_ray.gallery import draw
from rvt_ray.gallery.graph import Graph, graph
from rvt_ray.gallery.palette import hex_colour
from rvt_ray.gallery.timeline import Timeline, timeline
from rvt_ray.masks import rle
from rvt_ray.reasoning.program import Program
from rvt_ray.records import ClipRecord, DigitalTwin, Instance, Reject, Sample
from rvt_ray.video.frames import FrameStream

log = logging.getLogger(__name__)

KEY_FRAMES, KEY_FRAME_SIDE = 6, 640
SAMPLE_FRAMES, SAMPLE_SIDE = 3, 480

FrameOpener = Callable[[ClipRecord], FrameStream]
Painter = Callable[[draw.Image], draw.Image]


@dataclass(frozen=True)
class Picture:
    """An image file beside the page."""

    file: str
    frame: int
    time_s: float
    alt: str


@dataclass(frozen=True)
class QueryView:
    """A sample and how it is shown."""

    sample: Sample
    pictures: list[Picture]
    graph: Graph | None


@dataclass
class ClipView:
    """Everything that the clip's template needs."""

    clip: ClipRecord
    twin: DigitalTwin | None
    timeline: Timeline | None
    key_frames: list[Picture] = field(default_factory=list)
    queries: list[QueryView] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    video_missing: str = ""

    def colour(self, instance_id: int) -> str:
        """CSS colour of an instance."""
        return hex_colour(instance_id)


class Album:
    """The pictures that a page wants; each frame is decoded once, and only one is held."""

    def __init__(self, clip: ClipRecord, folder: Path) -> None:
        self._clip = clip
        self._folder = folder
        self._wanted: dict[int, dict[str, Painter]] = defaultdict(dict)

    def want(self, frame: int, stem: str, painter: Painter, alt: str) -> Picture:
        """Ask for a picture of a frame; equal stems on a frame share a file."""
        name = f"{stem}-f{frame:05d}.jpg"
        self._wanted[frame].setdefault(name, painter)
        time = self._clip.pts_s[frame] if frame < len(self._clip.pts_s) else 0.0
        return Picture(f"{self._folder.name}/{name}", frame, time, alt)

    def paint(self, opener: FrameOpener) -> str:
        """Draw everything. Returns why frames are missing (grey canvases then), or an empty text."""
        if not self._wanted:
            return ""
        self._folder.mkdir(parents=True, exist_ok=True)
        missing = ""
        left = set(self._wanted)
        try:
            for index, frame in opener(self._clip).frames_at(sorted(self._wanted)):
                self._draw(index, frame)
                left.discard(index)
        except (ClipError, OSError) as error:
            missing = str(error)
            log.warning("gallery: %s: %s; its pictures are drawn on grey", self._clip.clip_id, error)
        for index in sorted(left):
            self._draw(index, draw.grey_canvas(self._clip.height, self._clip.width))
        if left and not missing:
            missing = f"the decoder gave no frame {min(left)}"
        return missing

    def _draw(self, index: int, frame: draw.Image) -> None:
        for name, painter in self._wanted[index].items():
            draw.save_jpeg(self._folder / name, painter(frame))


def clip_view(
    clip: ClipRecord,
    twin: DigitalTwin | None,
    samples: Sequence[Sample],
    rejects: Sequence[Reject],
    failures: Sequence[tuple[str, str, str]],
    opener: FrameOpener,
    folder: Path,
) -> ClipView:
    """Draw a clip's pictures into `folder` and collect what its page shows.

    Args:
        failures: (stage, code, message) of the clip's failures.
        opener: gives the clip's frames; a `ClipError` or `OSError` means grey canvases.
    """
    album = Album(clip, folder)
    view = ClipView(clip, twin, timeline(twin) if twin else None, failures=list(failures))
    view.rejects = list(rejects)
    if twin is not None:
        masks = MaskBook(twin)
        for frame in spread(twin.key_frames or [0], KEY_FRAMES):
            view.key_frames.append(key_frame(album, masks, frame))
        view.queries = [QueryView(s, query_pictures(album, masks, s), _graph(s)) for s in samples]
    view.video_missing = album.paint(opener)
    return view


class MaskBook:
    """The twin's masks by instance and frame, decoded when asked for."""

    def __init__(self, twin: DigitalTwin) -> None:
        self.twin = twin
        self._rle = {
            i.instance_id: dict(zip(i.track.frame_idx, i.track.rle, strict=True)) for i in twin.instances
        }
        self._instances = {i.instance_id: i for i in twin.instances}

    def instance(self, instance_id: int) -> Instance | None:
        """An instance of the twin; None where there is none."""
        return self._instances.get(instance_id)

    def visible_frames(self, instance_id: int) -> set[int]:
        """Frames on which it can be seen."""
        instance = self._instances.get(instance_id)
        if instance is None:
            return set()
        return {f for f, v in zip(instance.track.frame_idx, instance.track.visible, strict=True) if v}

    def shapes(self, frame: int, ids: Sequence[int]) -> list[draw.Shape]:
        """The visible masks of these instances on a frame."""
        shapes = []
        for instance_id in ids:
            text = self._rle.get(instance_id, {}).get(frame)
            if text is not None:
                mask = rle.decode(text, self.twin.height, self.twin.width)
                if mask.any():
                    shapes.append(draw.Shape(instance_id, mask))
        # The largest first, so that small things in front keep their outline.
        return sorted(shapes, key=lambda s: -int(np.count_nonzero(s.mask)))

    def names(self, ids: Sequence[int]) -> str:
        """Ids and kinds in words."""
        return ", ".join(f"{i} ({instance.category})" for i in ids if (instance := self._instances.get(i)))


def key_frame(album: Album, masks: MaskBook, frame: int) -> Picture:
    """A key frame with every instance's outline."""
    return outlined_frame(album, masks, frame, "key", KEY_FRAME_SIDE, f"Key frame {frame}")


def outlined_frame(album: Album, masks: MaskBook, frame: int, stem: str, max_side: int, name: str) -> Picture:
    """A frame with every instance's outline.

    Args:
        stem: of the file; one per size.
        max_side: of the picture, in pixels.
        name: what the frame is called in the text that stands for the picture.
    """
    ids = [i.instance_id for i in masks.twin.instances]
    shown = [i for i in ids if frame in masks.visible_frames(i)]
    alt = f"{name} with outlines of " + (masks.names(shown) or "no visible instance")
    return album.want(
        frame, stem, lambda image: draw.outlined(image, masks.shapes(frame, ids), max_side), alt
    )


def query_pictures(album: Album, masks: MaskBook, sample: Sample) -> list[Picture]:
    """A few frames on which the target is lit."""
    sets = [masks.visible_frames(i) for i in sample.target_ids]
    if not sets:
        return []
    frames = sorted(set.intersection(*sets) or set.union(*sets))
    return [_query_picture(album, masks, sample, frame) for frame in spread(frames, SAMPLE_FRAMES)]


def _query_picture(album: Album, masks: MaskBook, sample: Sample, frame: int) -> Picture:
    truth = sample.masks[frame] if sample.masks and frame < len(sample.masks) else None
    boxes = (sample.boxes[frame] or []) if sample.boxes and frame < len(sample.boxes) else []
    # Samples that show the same thing share a file.
    content = repr((sample.target_ids, truth, [(b.x, b.y, b.w, b.h) for b in boxes]))
    stem = "q" + hashlib.sha256(content.encode()).hexdigest()[:10]

    def paint(image: draw.Image) -> draw.Image:
        mask = None if truth is None else rle.decode(truth, masks.twin.height, masks.twin.width)
        return draw.highlighted(image, masks.shapes(frame, sample.target_ids), mask, boxes, SAMPLE_SIDE)

    alt = f"Frame {frame}, target {masks.names(sample.target_ids)} highlighted"
    return album.want(frame, stem, paint, alt)


def _graph(sample: Sample) -> Graph | None:
    try:
        return graph(Program.from_json(sample.program), sample.tree, sample.target_ids)
    except ValidationError as error:
        log.warning("gallery: sample %s: its program cannot be parsed: %s", sample.sample_id, error)
        return None


def spread(frames: Sequence[int], count: int) -> list[int]:
    """At most `count` of the frames, evenly spread, the middle of each stretch."""
    if len(frames) <= count:
        return list(frames)
    return [frames[int((i + 0.5) * len(frames) / count)] for i in range(count)]
