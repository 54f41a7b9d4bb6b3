"""What an object is remembered by, and which of it a frame attends to.

The choice is that of `SAM2Base`: the nearest prompted frames, the last six tracked ones, and the object
pointers of up to sixteen. What no later frame can attend to is forgotten at once, so that a clip of any
length needs the same memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  (its customary name)
from sam2.modeling.sam2_utils import get_1d_sine_pe, select_closest_cond_frames
from torch import Tensor

from rvt_ray.perception.segment.sam2.network import FrameFeatures, Network


@dataclass
class Memory:
    """One object on one frame.

    Attributes:
        spatial: (n, 64) in the network's memory precision; None once only the pointer can be attended to.
        pointer: (256,).
    """

    spatial: Tensor | None
    pointer: Tensor


@dataclass(frozen=True)
class Attended:
    """What one object attends to on one frame.

    Attributes:
        spatial: memories, and for each the row of the temporal encoding.
        pointers: memories, and for each the distance in frames.
    """

    spatial: list[tuple[Memory, int]]
    pointers: list[tuple[Memory, int]]

    @property
    def shape(self) -> tuple[int, int]:
        """Objects of equal shape can be computed together, whenever they were born."""
        return len(self.spatial), len(self.pointers)


@dataclass(frozen=True)
class Reach:
    """How far back a model remembers.

    Attributes:
        maps: spatial memories, the prompted frame's included.
        pointers: object pointers; never more than the clip has frames.
        prompted: prompted frames at most; -1: all.
    """

    maps: int
    pointers: int
    prompted: int

    @classmethod
    def of(cls, model: Any, num_frames: int) -> Reach:
        """The reach of a model on a clip."""
        pointers = min(num_frames, model.max_obj_ptrs_in_encoder)
        return cls(model.num_maskmem, pointers, model.max_cond_frames_in_attn)


class Slots:
    """Tensors of one shape, handed out and taken back: what an object needs is set aside at its birth, so
    that following it for longer scatters nothing over the heap."""

    def __init__(self, count: int, like: Tensor) -> None:
        self._free = list(like.new_empty(count, *like.shape).unbind())

    def keep(self, value: Tensor) -> Tensor:
        """A copy of `value` that does not hold on to the batch it came from."""
        slot = self._free.pop() if self._free else torch.empty_like(value)
        slot.copy_(value)
        return slot

    def release(self, slot: Tensor) -> None:
        """Take a tensor back; nobody may read it any more."""
        self._free.append(slot)


class ObjectMemory:
    """One object's memories by frame: of frames on which it was prompted, and of others.

    Args:
        spatial, pointer: examples of the two tensors of a `Memory`.
    """

    def __init__(self, reach: Reach, spatial: Tensor, pointer: Tensor) -> None:
        self._reach = reach
        self._spatial = Slots(reach.maps + 1, spatial)
        self._pointers = Slots(reach.pointers + 1, pointer)
        self.prompted: dict[int, Memory] = {}
        self.tracked: dict[int, Memory] = {}

    def add(self, frame: int, spatial: Tensor, pointer: Tensor, prompted: bool) -> None:
        """Remember a frame, in place of what was remembered of it."""
        for memories in (self.tracked, self.prompted) if prompted else (self.tracked,):
            if frame in memories:
                self._drop(memories.pop(frame))
        kept = Memory(self._spatial.keep(spatial), self._pointers.keep(pointer))
        (self.prompted if prompted else self.tracked)[frame] = kept

    def attended(self, frame: int, direction: int) -> Attended:
        """What `frame` attends to, `direction` being 1 (forwards) or -1."""
        reach = self._reach
        chosen, rest = select_closest_cond_frames(frame, self.prompted, reach.prompted)
        spatial = [(memory, reach.maps - 1) for memory in chosen.values()]
        for back in range(reach.maps - 1, 0, -1):
            memory = self._at(frame - direction * back, rest)
            if memory is not None:
                spatial.append((memory, back - 1))
        past = [(memory, (frame - t) * direction) for t, memory in chosen.items()]
        pointers = [(memory, distance) for memory, distance in past if distance >= 0]
        for back in range(1, reach.pointers):
            memory = self._at(frame - direction * back, rest)
            if memory is not None:
                pointers.append((memory, back))
        return Attended(spatial, pointers)

    def forget(self, frame: int, direction: int) -> None:
        """Drop what no frame after `frame` can attend to."""
        reach = self._reach
        for t in list(self.tracked):
            back = (frame - t) * direction + 1
            if back >= reach.pointers and back >= reach.maps:
                self._drop(self.tracked.pop(t))
            elif back >= reach.maps:
                self._drop_spatial(self.tracked[t])
        if reach.prompted > 0:
            # The nearest ones are always attended to; older ones only as if they had been tracked.
            nearest_first = sorted(self.prompted, key=lambda t: abs(frame - t))
            for t in nearest_first[reach.prompted :]:
                if (frame - t) * direction + 1 >= max(reach.pointers, reach.maps):
                    self._drop(self.prompted.pop(t))

    def _drop(self, memory: Memory) -> None:
        self._drop_spatial(memory)
        self._pointers.release(memory.pointer)

    def _drop_spatial(self, memory: Memory) -> None:
        if memory.spatial is not None:
            self._spatial.release(memory.spatial)
            memory.spatial = None

    def _at(self, t: int, rest: dict[int, Memory]) -> Memory | None:
        return self.tracked.get(t, rest.get(t))


class MemoryReader:
    """Gathers the memories of several objects into the tensors that memory attention takes."""

    def __init__(self, network: Network, reach: Reach) -> None:
        self._network = network
        self._reach = reach
        # (1, 64) per distance in time; the last one is the prompted frame's.
        self._temporal: Tensor = network.model.maskmem_tpos_enc[:, 0, 0]

    def gather(self, attended: Sequence[Attended]) -> tuple[Tensor, Tensor, int]:
        """Memories, their positions, and how many of the tokens are pointers.

        Args:
            attended: objects of equal `shape`.

        Returns:
            memory: (objects, m, 64); position: (objects or 1, m, 64); pointer tokens.
        """
        maps = [[memory.spatial for memory, _ in one.spatial] for one in attended]
        count = len(attended)
        spatial = torch.stack([m for row in maps for m in row]).view(count, -1, self._temporal.shape[-1])
        rows = _unique([[row for _, row in one.spatial] for one in attended])
        places = self._network.memory_position + self._temporal[torch.tensor(rows)][:, :, None]
        places = places.flatten(1, 2)
        split = self._network.model.hidden_dim // self._network.model.mem_dim
        pointers = torch.stack([memory.pointer for one in attended for memory, _ in one.pointers])
        pointers = pointers.view(count, -1, self._temporal.shape[-1])
        pointer_places = self._distances(_unique([[d for _, d in one.pointers] for one in attended]), split)
        both = max(len(places), len(pointer_places))
        position = torch.cat(
            (places.expand(both, -1, -1), pointer_places.expand(both, -1, -1).to(places.dtype)), dim=1
        )
        memory = torch.cat((spatial.to(places.dtype), pointers.to(places.dtype)), dim=1)
        return memory, position, pointers.shape[1]

    def _distances(self, distances: list[list[int]], split: int) -> Tensor:
        model = self._network.model
        away = torch.tensor(distances, device=self._network.device) / max(self._reach.pointers - 1, 1)
        dim = model.hidden_dim if model.proj_tpos_enc_in_obj_ptrs else model.mem_dim
        encoded = model.obj_ptr_tpos_proj(get_1d_sine_pe(away, dim=dim))
        return encoded.repeat_interleave(split, dim=1)


def _unique(rows: list[list[int]]) -> list[list[int]]:
    """One row for all when all are equal: what is added to every object's memories then has a batch of 1."""
    return rows[:1] if all(row == rows[0] for row in rows) else rows


def remember(
    network: Network, features: FrameFeatures, logits: Tensor, presence: Tensor, given: bool
) -> Tensor:
    """The spatial memories of masks on a frame.

    Args:
        logits: (b, 1, h, w), a quarter of the network's size.
        presence: object logits, (b, 1).
        given: the masks were prompted, not predicted: they are remembered hard-edged.

    Returns:
        (b, n, 64) in the memory precision.
    """
    model = network.model
    encoder = model.memory_encoder
    size = (network.image_size, network.image_size)
    large = F.interpolate(logits.float(), size, mode="bilinear", align_corners=False)
    masks = (large > 0).float() if given else large.sigmoid_()
    masks = masks.mul_(model.sigmoid_scale_for_mem_enc).add_(model.sigmoid_bias_for_mem_enc)
    # The image's part is the same for all objects.
    mixed = encoder.pix_feat_proj(features.image) + encoder.mask_downsampler(masks)
    memory = encoder.out_proj(encoder.fuser(mixed)).flatten(2).transpose(1, 2)
    absent = 1 - (presence > 0).float()
    return (memory + absent[:, :, None] * model.no_obj_embed_spatial).to(network.memory_dtype)


def point(network: Network, token: Tensor, present: Tensor) -> Tensor:
    """Object pointers from the decoder's mask tokens; (b, 256) and 0 / 1 of (b, 1) -> (b, 256)."""
    model = network.model
    return present * model.obj_ptr_proj(token) + (1 - present) * model.no_obj_ptr
