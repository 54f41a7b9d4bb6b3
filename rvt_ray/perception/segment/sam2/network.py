"""The network behind the engine: image features of frames, and the constants that every frame shares.

Frames are scaled to a square by anti-aliased bilinear interpolation, as `sam2`'s image predictor does, on
the device that computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812  (its customary name)
from torch import Tensor

from rvt_ray.perception.segment.sam2.attention import MemoryAttention
from rvt_ray.video.frames import FrameArray

_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)

# What the released 2.1 models have in common and the engine's arithmetic rests on.
_EXPECTED: dict[str, object] = {
    "num_feature_levels": 3,
    "use_mask_input_as_output_without_sam": True,
    "directly_add_no_mem_embed": True,
    "multimask_output_for_tracking": True,
    "use_multimask_token_for_obj_ptr": True,
    "use_obj_ptrs_in_encoder": True,
    "add_tpos_enc_to_obj_ptrs": True,
    "only_obj_ptrs_in_the_past_for_eval": True,
    "use_signed_tpos_enc_to_obj_ptrs": True,
    "pred_obj_scores": True,
    "fixed_no_obj_ptr": True,
    "soft_no_obj_ptr": False,
    "memory_temporal_stride_for_eval": 1,
    "non_overlap_masks_for_mem_enc": False,
}


@dataclass(frozen=True)
class FrameFeatures:
    """What the image encoder says about one frame; computed once, used by every object and prompt.

    Attributes:
        frame: clip frame index.
        image: stride 16, shape (1, 256, n, n).
        fine: strides 4 and 8, already projected for the mask decoder: (1, 32, 4n, 4n) and (1, 64, 2n, 2n).
    """

    frame: int
    image: Tensor
    fine: tuple[Tensor, Tensor]


class Network:
    """A `SAM2Base` with what the engine adds: batched frames, shared constants, precision, compilation.

    Args:
        model: from `checkpoints.load`; moved to the device.
        device: `cpu`, `cuda`, `cuda:1`.
        dtype: `float32`, or `bfloat16` / `float16` for autocast.
        memory_dtype: of the stored memories; `bfloat16` is what the stock predictor stores.
        compiled: run encoder, memory attention and mask decoder through `torch.compile`.
    """

    def __init__(
        self,
        model: Any,
        device: str = "cpu",
        dtype: str = "float32",
        memory_dtype: str = "bfloat16",
        compiled: bool = False,
    ) -> None:
        wrong = {
            name: getattr(model, name) for name, value in _EXPECTED.items() if getattr(model, name) != value
        }
        if wrong:
            raise ValueError(f"the engine runs the sam2.1 models; this one differs in {wrong}")
        self.device = torch.device(device)
        self.dtype = getattr(torch, dtype)
        self.memory_dtype = getattr(torch, memory_dtype)
        self.model = model.to(self.device).eval()
        self.image_size: int = model.image_size
        self.side: int = model.image_size // model.backbone_stride
        with torch.inference_mode():
            self._make_constants()
        attention = MemoryAttention(model.memory_attention, self.side, self.device)
        self.begin_memory: Callable[..., Tensor] = attention.begin
        self.attend_memory: Callable[..., Tensor] = attention.forward
        self._encode: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]] = self._encode_batch
        if compiled:
            self._encode = torch.compile(self._encode_batch)
            # Lengths of memories and numbers of objects vary: one program for all of them.
            self.attend_memory = torch.compile(self.attend_memory, dynamic=True)

    def computing(self) -> AbstractContextManager[object]:
        """The context for every computation: no gradients, autocast where the precision asks for it."""
        stack = ExitStack()
        stack.enter_context(torch.inference_mode())
        if self.dtype != torch.float32:
            stack.enter_context(torch.autocast(self.device.type, dtype=self.dtype))
        return stack

    def encode(self, indices: Sequence[int], frames: FrameArray) -> list[FrameFeatures]:
        """Features of some frames, in one batch.

        Args:
            indices: clip frame index of each.
            frames: uint8 RGB, shape (n, height, width, 3).
        """
        with self.computing():
            image, fine, finer = self._encode(self.prepare(frames))
        return [
            FrameFeatures(int(index), image[i : i + 1], (finer[i : i + 1], fine[i : i + 1]))
            for i, index in enumerate(indices)
        ]

    def prepare(self, frames: FrameArray) -> Tensor:
        """Frames as the encoder wants them: float32, shape (n, 3, image_size, image_size)."""
        pixels = torch.tensor(np.ascontiguousarray(frames)).to(self.device)
        images = pixels.permute(0, 3, 1, 2).float().div_(255)
        size = (self.image_size, self.image_size)
        if images.shape[-2:] != size:
            images = F.interpolate(images, size, mode="bilinear", align_corners=False, antialias=True)
        mean = images.new_tensor(_MEAN).view(1, 3, 1, 1)
        std = images.new_tensor(_STD).view(1, 3, 1, 1)
        return images.sub_(mean).div_(std)

    def masks_at(self, logits: Tensor, height: int, width: int) -> npt.NDArray[np.bool_]:
        """Masks at video size.

        Args:
            logits: shape (n, h, w), any size.

        Returns:
            bool, shape (n, height, width), on the CPU.
        """
        masks = np.empty((len(logits), height, width), np.bool_)
        # A few at a time: n float masks of a large video would be the peak of the whole engine.
        step = max(1, 2**24 // (height * width))
        for start in range(0, len(logits), step):
            part = logits[start : start + step, None].float()
            large = F.interpolate(part, (height, width), mode="bilinear", align_corners=False)
            masks[start : start + step] = (large[:, 0] > 0).cpu().numpy()
        return masks

    def masks_in(self, masks: npt.NDArray[np.bool_]) -> Tensor:
        """Masks of video size at the network's, as it was trained to be prompted with.

        Args:
            masks: bool, shape (n, height, width).

        Returns:
            0.0 / 1.0, shape (n, 1, image_size, image_size).
        """
        given = torch.tensor(np.ascontiguousarray(masks))[:, None].to(self.device).float()
        size = (self.image_size, self.image_size)
        if given.shape[-2:] == size:
            return given
        scaled = F.interpolate(given, size, mode="bilinear", align_corners=False, antialias=True)
        return (scaled >= 0.5).float()

    def _make_constants(self) -> None:
        model = self.model
        neck = model.image_encoder.neck
        blank = torch.zeros(1, model.hidden_dim, self.side, self.side, device=self.device)
        self.image_position: Tensor = neck.position_encoding(blank).flatten(2).transpose(1, 2)
        memory_blank = torch.zeros(1, model.mem_dim, self.side, self.side, device=self.device)
        position = model.memory_encoder.position_encoding(memory_blank)
        self.memory_position: Tensor = position.flatten(2).transpose(1, 2)[0]
        self.decoder_position: Tensor = model.sam_prompt_encoder.get_dense_pe()
        # A tracked frame has no prompt: the decoder's two empty tokens are the same for every object.
        points = torch.zeros(1, 1, 2, device=self.device)
        labels = -torch.ones(1, 1, dtype=torch.int32, device=self.device)
        sparse, dense = model.sam_prompt_encoder(points=(points, labels), boxes=None, masks=None)
        self.no_prompt: tuple[Tensor, Tensor] = (sparse, dense)
        decoder = model.sam_mask_decoder
        levels = len(neck.convs)
        self._finer = _joined(neck.convs[levels - 1].conv, decoder.conv_s0)
        self._fine = _joined(neck.convs[levels - 2].conv, decoder.conv_s1)

    def _encode_batch(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Trunk and neck. The released necks merge only the two coarsest levels; the fine ones go through
        two 1x1 convolutions in a row, which are one, without a 256-channel map at stride 4 in between."""
        neck = self.model.image_encoder.neck
        finest, fine, coarse, coarsest = self.model.image_encoder.trunk(images)
        top = neck.convs[0](coarsest).float()
        image = neck.convs[1](coarse) + F.interpolate(top, scale_factor=2.0, mode="nearest")
        return image, F.conv2d(fine, *self._fine), F.conv2d(finest, *self._finer)


def _joined(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Weight and bias of the 1x1 convolution that does `first`, then `second`."""
    a, b = first.weight[:, :, 0, 0], second.weight[:, :, 0, 0]
    weight = (b @ a)[:, :, None, None]
    return weight.contiguous(), b @ first.bias + second.bias
