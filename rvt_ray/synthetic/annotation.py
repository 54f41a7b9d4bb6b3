"""The file beside a synthetic video: masks, kinds, attributes, camera, events, and where the depth lies."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, model_validator

from rvt_ray.records import Absence, CameraStep
from rvt_ray.synthetic.spec import SceneSpec
from rvt_ray.synthetic.truth import Event


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ObjectAnnotation(_Part):
    """One object; lists have one entry per frame of the video.

    Attributes:
        rle: COCO compressed RLE of the visible pixels; of the empty mask where it cannot be seen.
        absence: why not; null where it is visible.
        amodal_area: pixels it would cover if it were alone.
        visible_fraction: visible pixels / amodal_area.
        depth: median metres over the visible pixels; null where it is not visible.
        position: base centre in the world, metres, [x, y, z].
    """

    instance_id: int
    category: str
    colour: str
    material: str
    size: str
    rle: list[str]
    absence: list[Absence | None]
    amodal_area: list[int]
    visible_fraction: list[float]
    depth: list[float | None]
    position: list[tuple[float, float, float]]


class DepthFiles(_Part):
    """16-bit PNG files `<frame, five digits>.png` in `folder`, relative to the annotation file.

    metres = value * scale.
    """

    folder: str
    scale: float
    frames: list[int]


class ClipAnnotation(_Part):
    """The whole file. `camera`: exact motion of the image content, as in a twin's scene."""

    format: Literal["rvt-ray-synthetic"] = "rvt-ray-synthetic"
    version: Literal[1] = 1
    name: str
    width: int
    height: int
    num_frames: int
    fps: float
    objects: list[ObjectAnnotation]
    camera: list[CameraStep]
    events: list[Event]
    depth: DepthFiles | None
    spec: SceneSpec

    @model_validator(mode="after")
    def _lengths(self) -> Self:
        for item in self.objects:
            for name in ("rle", "absence", "amodal_area", "visible_fraction", "depth", "position"):
                if len(getattr(item, name)) != self.num_frames:
                    raise ValueError(
                        f"objects[id {item.instance_id}].{name}: {len(getattr(item, name))} entries for "
                        f"{self.num_frames} frames"
                    )
        if len(self.camera) != self.num_frames:
            raise ValueError(f"camera: {len(self.camera)} entries for {self.num_frames} frames")
        return self


def depth_file(folder: Path, frame: int) -> Path:
    """Where the depth of a frame lies."""
    return folder / f"{frame:05d}.png"


def quantise_depth(depth: npt.NDArray[np.floating], scale: float) -> npt.NDArray[np.uint16]:
    """Metres to 16-bit steps of `scale` metres.

    Raises:
        ValueError: a depth is beyond what 16 bits hold at this scale.
    """
    steps = np.round(depth / scale)
    if steps.size and float(steps.max()) > 65535:
        raise ValueError(f"depth {float(depth.max()):.1f} m is beyond 16 bits at scale {scale} m; raise it")
    return np.asarray(steps, np.uint16)
