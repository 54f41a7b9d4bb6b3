"""True masks for the identity benchmark: rendered scenes, and the schoolgirls clip where it is at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.masks import rle
from rvt_ray.synthetic import random_scene, render

LEAST_SHARE = 0.0005
"""Of the frame's pixels: smaller specks of an object count as not visible, in truth and prediction."""

Tracks = dict[int, dict[int, str]]


@dataclass(frozen=True)
class TrueMasks:
    """A clip with its truth.

    Attributes:
        tracks: object -> frame -> RLE of its visible pixels; frames on which it is not visible are left out.
        frames: uint8 RGB, shape (n, height, width, 3).
    """

    name: str
    tracks: Tracks
    frames: npt.NDArray[np.uint8]

    @property
    def num_frames(self) -> int:
        return len(self.frames)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return int(self.frames.shape[1]), int(self.frames.shape[2])


def rendered(seed: int, num_objects: int = 8, num_frames: int = 60, cache: Path | None = None) -> TrueMasks:
    """A rendered scene; of eight objects one crosses, one hides for long, one enters, one leaves.

    Args:
        cache: folder in which rendered scenes are kept.
    """
    file = cache / f"scene-{seed}-{num_objects}-{num_frames}.npz" if cache is not None else None
    if file is not None and file.exists():
        with np.load(file) as kept:
            labels, frames = kept["labels"], kept["frames"]
    else:
        spec = random_scene(seed, num_objects, num_frames, width=240, height=180)
        pictures = list(render(spec))
        labels = np.stack([p.instances for p in pictures]).astype(np.uint8)
        frames = np.stack([p.rgb for p in pictures])
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(file, labels=labels, frames=frames)
    return TrueMasks(f"scene {seed}", _tracks(labels), frames)


def schoolgirls() -> TrueMasks | None:
    """The schoolgirls clip of DAVIS with its masks; null where it is not at hand."""
    shared = Path(os.environ.get("RVT_SHARED", Path(__file__).parents[2] / "shared"))
    folder = shared / "videos" / "schoolgirls"
    files = sorted((folder / "masks").glob("*.png"))
    if not files or not (folder / "schoolgirls.mp4").exists():
        return None
    from PIL import Image

    labels = np.stack([np.asarray(Image.open(file)) for file in files])
    with av.open(str(folder / "schoolgirls.mp4")) as video:
        frames = np.stack([f.to_ndarray(format="rgb24") for f in video.decode(video=0)])
    if len(frames) != len(labels):
        raise ValueError(f"{folder}: {len(frames)} frames but {len(labels)} masks; get the clip anew")
    if frames.shape[1:3] != labels.shape[1:]:
        height, width = frames.shape[1:3]
        labels = np.stack([cv2.resize(m, (width, height), interpolation=cv2.INTER_NEAREST) for m in labels])
    return TrueMasks("schoolgirls", _tracks(labels), frames)


def _tracks(labels: npt.NDArray[np.uint8]) -> Tracks:
    tracks: Tracks = {}
    for t, i, mask in _masks(labels):
        if mask.mean() >= LEAST_SHARE:
            tracks.setdefault(i, {})[t] = rle.encode(mask)
    return tracks


def _masks(labels: npt.NDArray[np.uint8]) -> Iterator[tuple[int, int, npt.NDArray[np.bool_]]]:
    for t, frame in enumerate(labels):
        for i in np.unique(frame):
            if i not in (0, 255):
                yield t, int(i), frame == i
