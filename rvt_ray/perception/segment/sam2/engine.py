"""Follows all objects of a clip together, frame by frame, in either direction.

Results are those of `sam2`'s video predictor (tests/perception/segment/sam2 holds both against each other);
what differs is the order of work: image features are computed once per frame in batches, objects run as a
batch whenever they have equally many memories (whenever they were born), and only what a later frame can
still attend to is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812  (its customary name)
from torch import Tensor

from rvt_ray.perception.segment.sam2.decoder import decode, draw
from rvt_ray.perception.segment.sam2.memory import (
    MemoryReader,
    ObjectMemory,
    Reach,
    point,
    remember,
)
from rvt_ray.perception.segment.sam2.network import FrameFeatures, Network

ABSENT = -1024.0  # the logit everywhere on a frame that the object is not on, as sam2 has it

# Tokens of all objects that are computed at a time. On a CPU a bigger batch gains nothing and needs memory.
_TOKENS_AT_ONCE = {"cpu": 512, "cuda": 64 * 4096}


@dataclass(frozen=True)
class Tracked:
    """Some objects on one frame.

    Attributes:
        frame: clip frame index.
        ids: the objects.
        logits: of their masks at a quarter of the network's size, (objects, h, w); > 0 is inside.
        presence: logit of "the object is on this frame", (objects,).
    """

    frame: int
    ids: list[int]
    logits: Tensor
    presence: Tensor

    def confidence(self) -> npt.NDArray[np.float64]:
        """The paper's beta: sigmoid of the presence logit, 0..1, shape (objects,)."""
        return np.asarray(torch.sigmoid(self.presence.float()).cpu().numpy(), np.float64)


class Propagator:
    """The objects of one clip in one direction.

    Call `step` for each frame in order, then `prompt` for objects that are born or corrected on it.

    Args:
        network: shared by all clips.
        num_frames: of the clip; short clips scale time differently.
        reverse: from late frames to early ones.
        objects_at_once: how many objects are computed together; null: as many as suit the device.
    """

    def __init__(
        self, network: Network, num_frames: int, reverse: bool = False, objects_at_once: int | None = None
    ) -> None:
        self.network = network
        self._direction = -1 if reverse else 1
        self._reach = Reach.of(network.model, num_frames)
        self._objects: dict[int, ObjectMemory] = {}
        self._reader = MemoryReader(network, self._reach)
        tokens = network.side * network.side
        budget = _TOKENS_AT_ONCE.get(network.device.type, _TOKENS_AT_ONCE["cuda"])
        self._at_once = objects_at_once or max(1, budget // tokens)

    @property
    def ids(self) -> list[int]:
        """The objects that are followed, in the order of their birth."""
        return list(self._objects)

    def state_bytes(self) -> int:
        """Bytes held between frames: all memories of all objects, each storage counted once."""
        held: dict[int, int] = {}
        for memory in self._objects.values():
            for one in (*memory.prompted.values(), *memory.tracked.values()):
                for tensor in (one.spatial, one.pointer):
                    if tensor is not None:
                        storage = tensor.untyped_storage()
                        held[storage.data_ptr()] = storage.nbytes()
        return sum(held.values())

    def prompt(self, features: FrameFeatures, masks: Mapping[int, npt.NDArray[np.bool_]]) -> Tracked:
        """Give objects their mask on a frame: a birth, or a correction of a tracked one.

        A corrected frame is attended to like the frame of birth from then on.

        Args:
            masks: object id -> bool mask at video size.
        """
        ids = list(masks)
        parts = [self._prompt(features, [masks[i] for i in part], part) for part in self._parts(ids)]
        return _joined(features.frame, parts)

    def step(self, features: FrameFeatures) -> Tracked:
        """Follow every object to the next frame."""
        if not self._objects:
            return _joined(features.frame, [])
        groups: dict[tuple[int, int], list[int]] = {}
        attended = {
            i: memory.attended(features.frame, self._direction) for i, memory in self._objects.items()
        }
        for i, one in attended.items():
            groups.setdefault(one.shape, []).append(i)
        parts: list[Tracked] = []
        with self.network.computing():
            image = features.image.flatten(2).transpose(1, 2)
            begun = self.network.begin_memory(image, self.network.image_position)
            for group in groups.values():
                for ids in self._parts(group):
                    memory, position, pointers = self._reader.gather([attended[i] for i in ids])
                    seen = self.network.attend_memory(
                        begun, self.network.image_position, memory, position, pointers
                    )
                    parts.append(self._follow(features, ids, seen))
        for memory_of_one in self._objects.values():
            memory_of_one.forget(features.frame, self._direction)
        return _joined(features.frame, parts, order=list(self._objects))

    def drop(self, ids: Iterable[int]) -> None:
        """Stop following objects."""
        for i in list(ids):
            self._objects.pop(i, None)

    def _parts(self, ids: list[int]) -> list[list[int]]:
        return [ids[i : i + self._at_once] for i in range(0, len(ids), self._at_once)]

    def _follow(self, features: FrameFeatures, ids: list[int], seen: Tensor) -> Tracked:
        """Masks, pointers and memories of objects, from the image as their memories show it."""
        network = self.network
        side = network.side
        seen = seen.transpose(1, 2).reshape(len(ids), -1, side, side)
        decoder = network.model.sam_mask_decoder
        decoded = decode(decoder, seen, network.decoder_position, *network.no_prompt)
        best = decoded.quality[:, 1:].argmax(dim=1, keepdim=True) + 1
        rows = torch.arange(len(ids), device=network.device)
        logits = draw(decoder, decoded, features.fine, rows, best)
        present = (decoded.presence > 0).float()
        logits = torch.where(present[:, :, None, None] > 0, logits.float(), ABSENT)
        token = decoded.tokens[rows, best[:, 0]]
        pointer = point(network, token, present)
        spatial = remember(network, features, logits, decoded.presence, given=False)
        for row, i in enumerate(ids):
            self._objects[i].add(features.frame, spatial[row], pointer[row], prompted=False)
        return Tracked(features.frame, ids, logits[:, 0], decoded.presence[:, 0])

    def _prompt(self, features: FrameFeatures, masks: list[npt.NDArray[np.bool_]], ids: list[int]) -> Tracked:
        network, model = self.network, self.network.model
        with network.computing():
            given = network.masks_in(np.stack(masks))
            # The logits of certainty that sam2 uses: +10 inside, -10 outside.
            sure = given * 20.0 - 10.0
            quarter = (network.image_size // 4, network.image_size // 4)
            logits = F.interpolate(sure, quarter, mode="bilinear", align_corners=False, antialias=True)
            sparse, dense = model.sam_prompt_encoder(
                points=_no_points(len(ids), network.device), boxes=None, masks=model.mask_downsample(given)
            )
            decoded = decode(model.sam_mask_decoder, features.image, network.decoder_position, sparse, dense)
            pointer = point(network, decoded.tokens[:, 0], (decoded.presence > 0).float())
            present = given.flatten(1).amax(dim=1, keepdim=True)
            pointer = present * pointer + (1 - present) * model.no_obj_ptr
            presence = present * 20.0 - 10.0
            spatial = remember(network, features, logits, presence, given=True)
            for row, i in enumerate(ids):
                if i not in self._objects:
                    self._objects[i] = ObjectMemory(self._reach, spatial[row], pointer[row])
                self._objects[i].add(features.frame, spatial[row], pointer[row], prompted=True)
        return Tracked(features.frame, ids, logits[:, 0], presence[:, 0])


def _no_points(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    points = torch.zeros(count, 1, 2, device=device)
    return points, -torch.ones(count, 1, dtype=torch.int32, device=device)


def _joined(frame: int, parts: list[Tracked], order: list[int] | None = None) -> Tracked:
    ids = [i for part in parts for i in part.ids]
    if not parts:
        return Tracked(frame, [], torch.zeros(0, 1, 1), torch.zeros(0))
    logits, presence = torch.cat([p.logits for p in parts]), torch.cat([p.presence for p in parts])
    if order is not None and order != ids:
        row = {i: n for n, i in enumerate(ids)}
        rows = torch.tensor([row[i] for i in order], device=logits.device)
        ids, logits, presence = order, logits[rows], presence[rows]
    return Tracked(frame, ids, logits, presence)
