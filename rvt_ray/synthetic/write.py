"""A scene to files: the video, and its exact truth beside it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np

from rvt_ray.masks import rle
from rvt_ray.synthetic.annotation import (
    ClipAnnotation,
    DepthFiles,
    ObjectAnnotation,
    depth_file,
    quantise_depth,
)
from rvt_ray.synthetic.render import Frame, render
from rvt_ray.synthetic.spec import Camera, SceneSpec
from rvt_ray.synthetic.truth import SceneTruth

_DEPTH_SCALE = 0.001  # metres per step: up to 65 m


@dataclass(frozen=True)
class ClipPaths:
    """What `write_clip` wrote; `depth` is None when it was not asked for."""

    video: Path
    annotation: Path
    depth: Path | None


def write_clip(spec: SceneSpec, folder: str | Path, name: str, depth_every: int = 1) -> ClipPaths:
    """Render a scene to `<folder>/<name>.mp4` and `<folder>/annotations/<name>.json` (format `synthetic`).

    The video is lossy, the truth is not: masks and depth are the renderer's own.

    Args:
        depth_every: a depth map for every so many frames, as 16-bit PNG in
            `<folder>/annotations/<name>.depth/`; 0: none.

    Raises:
        ValueError: `depth_every` is negative.
        OSError: the folder cannot be written.
    """
    if depth_every < 0:
        raise ValueError(f"depth_every is >= 0, not {depth_every}")
    folder = Path(folder)
    video = folder / f"{name}.mp4"
    writer = TruthWriter(spec, folder / "annotations", name, depth_every)
    # A half-written file never has the final name.
    partial = video.with_suffix(".partial.mp4")
    write_video(partial, spec, writer.watch(render(spec)))
    os.replace(partial, video)
    return ClipPaths(video, writer.close(), writer.depth_folder)


class TruthWriter:
    """Takes a scene's rendered frames and writes the truth that goes beside its video.

    Attributes:
        truth: of the frames taken so far.
        depth_folder: where depth maps go; None when they were not asked for.

    Args:
        folder: for `<name>.json` and `<name>.depth/`; made if need be.
        depth_every: as for `write_clip`.
    """

    def __init__(self, spec: SceneSpec, folder: Path, name: str, depth_every: int = 1) -> None:
        self.truth = SceneTruth(spec)
        self.depth_folder = folder / f"{name}.depth" if depth_every else None
        (self.depth_folder or folder).mkdir(parents=True, exist_ok=True)
        self._spec = spec
        self._file = folder / f"{name}.json"
        self._every = depth_every
        self._masks: dict[int, list[str]] = {o.instance_id: [] for o in spec.objects}
        self._depth_frames: list[int] = []

    def watch(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Pass frames on, each taken into account."""
        for frame in frames:
            self.add(frame)
            yield frame

    def add(self, frame: Frame) -> None:
        """Take the next frame into account.

        Raises:
            OSError: its depth map cannot be written.
        """
        self.truth.add(frame)
        ids = list(self._masks)
        if ids:
            stack = frame.instances[None] == np.array(ids)[:, None, None]
            for instance_id, text in zip(ids, rle.encode_batch(stack), strict=True):
                self._masks[instance_id].append(text)
        if self.depth_folder is not None and frame.index % self._every == 0:
            path = depth_file(self.depth_folder, frame.index)
            steps = quantise_depth(frame.depth, _DEPTH_SCALE)
            if not cv2.imwrite(str(path), steps, [cv2.IMWRITE_PNG_COMPRESSION, 2]):
                raise OSError(f"cannot write {path}")
            self._depth_frames.append(frame.index)

    def close(self) -> Path:
        """Write the annotation file; every frame must have been added. Returns its path."""
        depth = (
            None
            if self.depth_folder is None
            else DepthFiles(folder=self.depth_folder.name, scale=_DEPTH_SCALE, frames=self._depth_frames)
        )
        annotation = _annotation(self._spec, self._file.stem, self.truth, self._masks, depth)
        draft = self._file.with_suffix(".partial")
        draft.write_text(annotation.model_dump_json(), encoding="utf-8")
        os.replace(draft, self._file)
        return self._file


def write_video(path: Path, spec: SceneSpec, frames: Iterator[Frame]) -> None:
    """Encode frames as H.264 in mp4, near lossless to the eye, one thread (the same bytes each time)."""
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(spec.fps).limit_denominator(30030))
        stream.width, stream.height = spec.width, spec.height
        even = spec.width % 2 == 0 and spec.height % 2 == 0
        # Halved chroma needs even sizes.
        stream.pix_fmt = "yuv420p" if even else "yuv444p"
        # x264's macroblock tree was seen to give other bytes on every run, even in one thread.
        stream.options = {"crf": "14", "preset": "veryfast", "threads": "1", "x264-params": "mbtree=0"}
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame.rgb, format="rgb24")))
        container.mux(stream.encode(None))


def _annotation(
    spec: SceneSpec, name: str, truth: SceneTruth, masks: dict[int, list[str]], depth: DepthFiles | None
) -> ClipAnnotation:
    objects = []
    for instance_id, item in truth.objects.items():
        o = item.spec
        objects.append(
            ObjectAnnotation(
                instance_id=instance_id,
                category=o.kind,
                colour=o.colour,
                material=o.material,
                size=o.size,
                rle=masks[instance_id],
                absence=item.absence(),
                amodal_area=item.amodal.tolist(),
                visible_fraction=[round(float(v), 4) for v in item.visible_fraction()],
                depth=[None if np.isnan(d) else round(float(d), 4) for d in item.depth],
                position=[tuple(round(float(v), 4) for v in p) for p in item.position],  # type: ignore[misc]
            )
        )
    return ClipAnnotation(
        name=name,
        width=spec.width,
        height=spec.height,
        num_frames=spec.num_frames,
        fps=spec.fps,
        objects=objects,
        camera=Camera(spec).steps(),
        events=truth.events(),
        depth=depth,
        spec=spec,
    )
