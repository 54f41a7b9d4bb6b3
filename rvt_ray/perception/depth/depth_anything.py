"""The `depth_anything` depth: Depth Anything V2 through transformers, in batches.

Its numbers are relative inverse depth: bigger is nearer, comparable inside one frame only; scale and shift
change from frame to frame (see `align`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from rvt_ray.backends import Options
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.llm import models
from rvt_ray.perception.depth import checkpoints
from rvt_ray.perception.device import choose
from rvt_ray.records import ClipRecord, FailureCode
from rvt_ray.video.frames import FrameArray, FrameStream

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

DepthMap = npt.NDArray[np.float32]
_INSTALL = "pip install transformers (see docs/install.md)"
_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_PATCH = 14


class DepthAnythingOptions(Options):
    """How to estimate depth.

    Attributes:
        checkpoint: folder in the layout of transformers; null: the small weights, free for any use, that
            `rvt-ray models pull` put here. The published base and large weights are CC BY-NC 4.0.
        license: of the weights in `checkpoint`, where the folder does not say; stands in every twin.
        frames: `all` of the clip, or its `key` frames only (cheaper; relations in depth then hold for key
            frames, and motion in depth is mostly unknown).
        frames_per_batch: null: 8 on a GPU, 1 on a CPU.
        input_side: what frames are scaled to, about; null: the model's own (518).
        device: `auto` (a GPU if there is one), `cpu`, `cuda`, `cuda:1`.
        dtype: `auto`: float16 on a GPU, float32 on a CPU.
    """

    checkpoint: str | None = None
    license: str | None = None
    frames: Literal["all", "key"] = "all"
    frames_per_batch: int | None = Field(default=None, ge=1)
    input_side: int | None = Field(default=None, ge=_PATCH)
    device: str = Field(default="auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"


class DepthAnything:
    """One network for many clips.

    Raises:
        MissingDependencyError: torch or transformers is not installed, or the weights are not here.
        ConfigError: the weights are corrupt or foreign, or the device is not there.
    """

    Options = DepthAnythingOptions

    def __init__(self, options: DepthAnythingOptions | None = None) -> None:
        self._options = o = options or DepthAnythingOptions()
        checkpoint = self.preflight(o)
        import torch

        device, dtype = choose(o.device, o.dtype, "float16", checkpoints.WHAT)
        self._device, self._dtype = torch.device(device), getattr(torch, dtype)
        self._batch = o.frames_per_batch or (1 if device == "cpu" else 8)
        self._model = _load(checkpoint, self._dtype).to(self._device)
        self._prepare = Preparation.of(checkpoint.preprocessing, o.input_side)
        self.kind = checkpoint.kind
        self.name = f"depth_anything:{checkpoint.model}"
        self.weights = (checkpoint.weights,)
        log.info("depth_anything: %s on %s in %s", checkpoint.folder, device, dtype)

    @classmethod
    def preflight(cls, options: DepthAnythingOptions) -> checkpoints.Checkpoint:
        """Whether packages and weights are there, without loading them; gives the checkpoint.

        Raises:
            MissingDependencyError, ConfigError: as the constructor.
        """
        for package in ("torch", "transformers"):
            models.require_package(package, "depth backend 'depth_anything'", _INSTALL)
        return checkpoints.find(options.checkpoint, options.license)

    def depth(
        self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]
    ) -> Iterator[tuple[int, DepthMap]]:
        """See `rvt_ray.perception.base.DepthEstimator`.

        Raises:
            ClipError: BACKEND_ERROR: the network gave no numbers.
        """
        for indices, images in self._batches(frames, key_frames):
            for index, depth in zip(indices, self._estimate(images), strict=True):
                if not np.isfinite(depth).all():
                    raise ClipError(
                        FailureCode.BACKEND_ERROR,
                        f"{clip.uri} (clip {clip.clip_id}): depth of frame {index} is not finite; with "
                        f"{self._dtype} try --set perceive.depth.options.dtype=float32",
                    )
                yield index, depth

    def _batches(
        self, frames: FrameStream, key_frames: Sequence[int]
    ) -> Iterator[tuple[list[int], FrameArray]]:
        if self._options.frames == "all":
            for window in frames.windows(self._batch):
                yield [int(i) for i in window.indices], window.frames
            return
        indices: list[int] = []
        images: list[FrameArray] = []
        for index, image in frames.frames_at(sorted(key_frames)):
            indices.append(index)
            images.append(image.copy())
            if len(images) == self._batch:
                yield indices, np.stack(images)
                indices, images = [], []
        if images:
            yield indices, np.stack(images)

    def _estimate(self, images: FrameArray) -> npt.NDArray[np.float32]:
        """Depth of frames uint8 (n, height, width, 3): float32 (n, height, width)."""
        import torch
        from torch.nn import functional

        with torch.inference_mode():
            pixels = torch.from_numpy(np.ascontiguousarray(images)).to(self._device)
            inputs = self._prepare(pixels).to(self._dtype)
            found = self._model(pixel_values=inputs).predicted_depth.float()
            # As the reference does it; a map keeps its order, and edges stay where they are.
            full = functional.interpolate(found[:, None], images.shape[1:3], mode="bicubic")
            return np.asarray(full[:, 0].cpu().numpy(), np.float32)


class Preparation:
    """Frames to the network's input, as the checkpoint's own image processor does it, but on the device."""

    def __init__(
        self, side: tuple[int, int], multiple: int, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        self.side, self.multiple, self.mean, self.std = side, multiple, tuple(mean), tuple(std)

    @classmethod
    def of(cls, config: dict[str, Any], input_side: int | None) -> Preparation:
        """From a preprocessor_config.json."""
        size = config.get("size") or {}
        side = (int(size.get("height", 518)), int(size.get("width", 518)))
        return cls(
            (input_side, input_side) if input_side else side,
            int(config.get("ensure_multiple_of") or _PATCH),
            config.get("image_mean") or _IMAGENET["image_mean"],
            config.get("image_std") or _IMAGENET["image_std"],
        )

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the input: the aspect is kept, by whichever scale changes the size less, and
        both are rounded to what the network takes."""
        by_height, by_width = self.side[0] / height, self.side[1] / width
        scale = by_width if abs(1 - by_width) < abs(1 - by_height) else by_height
        step = self.multiple
        return max(round(scale * height / step), 1) * step, max(round(scale * width / step), 1) * step

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """uint8 (n, height, width, 3) to float32 (n, 3, h, w)."""
        import torch
        from torch.nn import functional

        pixels = images.permute(0, 3, 1, 2).float()
        scaled = functional.interpolate(pixels, self.size(*images.shape[1:3]), mode="bicubic", antialias=True)
        mean, std = (torch.tensor(v, device=pixels.device)[:, None, None] for v in (self.mean, self.std))
        out: torch.Tensor = (scaled.round().clamp(0, 255) / 255 - mean) / std
        return out


def _load(checkpoint: checkpoints.Checkpoint, dtype: torch.dtype) -> Any:
    """The network in evaluation mode, on the CPU; every one of its weights comes from the file."""
    from transformers import DepthAnythingForDepthEstimation

    try:
        model, info = DepthAnythingForDepthEstimation.from_pretrained(
            checkpoint.folder, local_files_only=True, output_loading_info=True, dtype=dtype
        )
    except (OSError, RuntimeError, ValueError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f"{checkpoints.WHAT}.checkpoint: {checkpoint.folder} cannot be loaded: {first}"
        ) from error
    # transformers fills what is missing with random numbers, and only warns.
    wrong = sorted({*map(str, info["missing_keys"]), *map(str, info.get("mismatched_keys", ()))})
    if wrong:
        raise ConfigError(
            f"{checkpoints.WHAT}.checkpoint: {checkpoint.folder} lacks {len(wrong)} of the network's weights "
            f"({', '.join(wrong[:3])}); get it again"
        )
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model
