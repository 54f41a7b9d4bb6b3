"""Rendered scenes as the whole of perception sees them: the renderer's annotation files, its own pixels
(never encoded, never decoded), and the truth to hold the results against."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rvt_ray.config import Config
from rvt_ray.records import ClipRecord, DigitalTwin
from rvt_ray.synthetic import Frame, SceneSpec, SceneTruth, TruthWriter, random_scene, render
from rvt_ray.twin.build import Perception
from rvt_ray.video.frames import ArrayFrames
from tests.corpora import make_clip

EXACT = Config.model_validate(
    {"perceive": {part: {"backend": "annotations"} for part in ("segment", "depth", "caption")}}
)
"""Masks, depth and words from the annotation; the camera is estimated from pixels, as always."""


@dataclass(frozen=True)
class Seen:
    """A scene, what perception made of it, and what is true.

    Attributes:
        frames: the renderer's own: instance maps, depth maps, amodal masks.
    """

    spec: SceneSpec
    clip: ClipRecord
    twin: DigitalTwin
    truth: SceneTruth
    frames: tuple[Frame, ...]


def small_scene(seed: int, num_objects: int | None = None, num_frames: int | None = None) -> SceneSpec:
    """A scene that renders in about a second: small pictures, few per second; 5 to 9 objects, 20 to 32
    frames, any camera."""
    count = 5 + seed % 5 if num_objects is None else num_objects
    length = 20 + 4 * (seed % 4) if num_frames is None else num_frames
    return random_scene(seed, count, length, width=176, height=132, fps=8.0)


def perceived(spec: SceneSpec, folder: Path) -> Seen:
    """Render a scene and perceive it. `folder` gets its annotation and depth files."""
    name = f"scene{spec.seed:04d}"
    writer = TruthWriter(spec, folder, name)
    frames: list[Frame] = list(writer.watch(render(spec)))
    times = [i / spec.fps for i in range(spec.num_frames)]
    clip = make_clip(
        f"{spec.seed + 1:016x}",
        spec.num_frames,
        spec.height,
        spec.width,
        name=name,
        pts_s=times,
        fps_nominal=spec.fps,
        annotation_uri=str(writer.close()),
        annotation_format="synthetic",
    )
    pixels = ArrayFrames(np.stack([f.rgb for f in frames]), np.array(times))
    twin = Perception.from_config(EXACT).twin(clip, pixels)
    return Seen(spec, clip, twin, writer.truth, tuple(frames))
