"""Options of the `sam2` segmenter."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rvt_ray.backends import BackendSpec, Options

Precision = Literal["auto", "float32", "bfloat16", "float16"]


class Sam2Options(Options):
    """How to find and follow objects with SAM 2.1.

    Attributes:
        model: which size's weights to take when `checkpoint` is not given.
        checkpoint: `.pt` or `.safetensors` file, or folder that holds one; null: what `rvt-ray models pull`
            put on this machine.
        image_size: side of the square that frames are scaled to; the models were trained at 1024. Smaller is
            faster and coarser.
        device: `auto` (a GPU if there is one), `cpu`, `cuda`, `cuda:1`.
        dtype: precision of the arithmetic; `auto`: bfloat16 on a GPU, float32 on a CPU.
        memory_dtype: precision of remembered masks.
        compile: run the network through torch.compile: slow start, faster frames.
        frames_per_batch: whose features are computed at a time; null: 8 on a GPU, 1 on a CPU.
        objects_per_batch, prompts_per_batch: computed at a time; null: what suits the device.
        window: frames that are decoded at a time.
        max_cond_frames: prompted frames that a frame attends to, at most.
        detector: look for objects with a detector's boxes, labels come along: `backend` (`yolox`,
            or a class like `rvt_ray.perception.detect.Detector`), `options`. Null: with a grid of points.
        min_box_score: boxes scored below are not asked about: what is found once is a track here already.
        points_per_side: of that grid.
        min_quality, min_stability: least predicted IoU and stability of a mask that counts.
        min_area_share, max_area_share: of the frame; masks outside are noise, or the background.
        same_iou: masks of a key frame that overlap at least this much are one.
        max_objects: tracks that are followed at a time.
        min_fragment_share, max_hole_share: see `rvt_ray.masks.clean.clean`; every mask is cleaned by it.
        reverse: follow each object backwards from where it was found, too.
        lost_frames: the backward pass ends after an object was absent for this many frames.
        correct: give a track that is found again, but has drifted, its new mask.
    """

    model: Literal["tiny", "small", "base-plus", "large"] = "large"
    checkpoint: str | None = None
    image_size: int = Field(default=1024, ge=64, le=2048, multiple_of=32)
    device: str = Field(default="auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$")
    dtype: Precision = "auto"
    memory_dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    compile: bool = False
    frames_per_batch: int | None = Field(default=None, ge=1)
    objects_per_batch: int | None = Field(default=None, ge=1)
    prompts_per_batch: int | None = Field(default=None, ge=1)
    window: int = Field(default=16, ge=1)
    max_cond_frames: int = Field(default=4, ge=2)
    detector: BackendSpec | None = None
    min_box_score: float = Field(default=0.3, ge=0, le=1)
    points_per_side: int = Field(default=32, ge=1, le=128)
    min_quality: float = Field(default=0.8, ge=0, le=1)
    min_stability: float = Field(default=0.92, ge=0, le=1)
    min_area_share: float = Field(default=0.0005, ge=0, le=1)
    max_area_share: float = Field(default=0.95, gt=0, le=1)
    same_iou: float = Field(default=0.8, gt=0, le=1)
    max_objects: int = Field(default=64, ge=1)
    min_fragment_share: float = Field(default=0.1, ge=0, le=1)
    max_hole_share: float = Field(default=0.02, ge=0, le=1)
    reverse: bool = True
    lost_frames: int = Field(default=8, ge=1)
    correct: bool = False
