"""Everything on a frame: masks from a grid of points, or from a detector's boxes.

The raw stage gives what `sam2`'s automatic mask generator gives before its box NMS (tested); it is faster
since a mask is drawn and enlarged only after its predicted quality is known to suffice. Then duplicates are
removed by mask overlap, before masks are cleaned at video size and once more after it; parts are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812  (its customary name)
from torch import Tensor

from rvt_ray.masks import clean as cleaning
from rvt_ray.masks import rle
from rvt_ray.masks.rle import Box, Mask
from rvt_ray.perception.proposals import Proposal
from rvt_ray.perception.segment.sam2.decoder import Decoded, decode, draw
from rvt_ray.perception.segment.sam2.dedupe import Candidate, dedupe, distinct
from rvt_ray.perception.segment.sam2.network import FrameFeatures, Network

# Image tokens of all prompts that are computed at a time.
_TOKENS_AT_ONCE = {"cpu": 2**14, "cuda": 2**20}


@dataclass(frozen=True)
class GridSettings:
    """How to look for masks.

    Attributes:
        points_per_side: the grid has this many points squared.
        min_quality: predicted IoU above which a mask counts.
        min_stability: least IoU of the mask drawn a little too large with it drawn a little too small ...
        stability_offset: ... by this much in logits.
        min_area_share, max_area_share: of the frame's pixels; outside it is noise, or the background.
        min_fragment_share, max_hole_share: see `rvt_ray.masks.clean.clean`.
        same_iou, inside_share: see `dedupe`.
        max_masks: best ones that are kept per frame.
    """

    points_per_side: int = 32
    min_quality: float = 0.8
    min_stability: float = 0.95
    stability_offset: float = 1.0
    min_area_share: float = 0.0005
    max_area_share: float = 0.95
    min_fragment_share: float = 0.1
    max_hole_share: float = 0.02
    same_iou: float = 0.8
    inside_share: float = 0.9
    max_masks: int = 128


@dataclass(frozen=True)
class RawMask:
    """A mask as the network draws it.

    Attributes:
        point: x, y of its prompt, 0..1.
        quality, stability: 0..1.
        mask: bool, shape (height, width) of the video.
    """

    point: tuple[float, float]
    quality: float
    stability: float
    mask: Mask


class AutomaticMasks:
    """Finds masks on frames whose features are given.

    Args:
        prompts_at_once: null: as many as suit the device.
    """

    def __init__(
        self, network: Network, settings: GridSettings | None = None, prompts_at_once: int | None = None
    ) -> None:
        self._network = network
        self._settings = settings or GridSettings()
        budget = _TOKENS_AT_ONCE.get(network.device.type, _TOKENS_AT_ONCE["cuda"])
        self._at_once = prompts_at_once or max(1, budget // (network.side * network.side))
        side = self._settings.points_per_side
        ticks = (np.arange(side) + 0.5) / side
        self._grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2).astype(np.float32)

    def find(self, frames: Sequence[FrameFeatures], height: int, width: int) -> list[list[Proposal]]:
        """Proposals of each frame, best first."""
        drawn: list[list[Candidate]] = [[] for _ in frames]
        for place, raw in self.raw(frames, height, width):
            drawn[place].append(Candidate.of(raw.mask, raw.quality))
        found = []
        for features, candidates in zip(frames, drawn, strict=True):
            # Most points of an object draw the same mask: only one of them need be cleaned.
            whole: list[Candidate] = []
            for i in distinct(candidates, self._settings.same_iou):
                self._collect(whole, candidates[i].mask(height, width), candidates[i].score, source=0)
            found.append(self._proposals(features.frame, whole, height, width))
        return found

    def raw(self, frames: Sequence[FrameFeatures], height: int, width: int) -> Iterator[tuple[int, RawMask]]:
        """(position of the frame, mask) of every good mask, in the order of the grid."""
        points = self._grid
        if self._at_once >= 2 * len(points) and len(frames) > 1:
            # Several frames at a time: a small grid alone would leave a GPU idle.
            step = self._at_once // len(points)
            for start in range(0, len(frames), step):
                part = frames[start : start + step]
                yield from ((start + i, raw) for i, raw in self._decode(part, points, height, width))
            return
        for place, features in enumerate(frames):
            for start in range(0, len(points), self._at_once):
                part_points = points[start : start + self._at_once]
                yield from ((place, raw) for _, raw in self._decode([features], part_points, height, width))

    def from_boxes(
        self,
        features: FrameFeatures,
        boxes: Sequence[Box],
        labels: Sequence[str],
        scores: Sequence[float],
        height: int,
        width: int,
    ) -> list[Proposal]:
        """The masks in a detector's boxes (x, y, w, h in video pixels), with its labels and scores."""
        if not boxes:
            return []
        network, decoder = self._network, self._network.model.sam_mask_decoder
        corners = np.array([[(x, y), (x + w, y + h)] for x, y, w, h in boxes], np.float32)
        scale = np.array([width, height], np.float32)
        coords = torch.tensor(corners / scale * network.image_size, device=network.device)
        kinds = torch.tensor([[2, 3]] * len(boxes), dtype=torch.int32, device=network.device)
        found: list[Candidate] = []
        for start in range(0, len(boxes), self._at_once):
            part = slice(start, start + self._at_once)
            with network.computing():
                decoded = self._ask([features], coords[part], kinds[part])
                rows = torch.arange(len(decoded.quality), device=network.device)
                columns = torch.arange(4, device=network.device).expand(len(rows), 4)
                four = draw(decoder, decoded, features.fine, rows, columns).float()
                # One mask is asked for; where it is not stable, the best of the alternatives stands in.
                one, _ = decoder._dynamic_multimask_via_stability(four, decoded.quality)
                for i, mask in enumerate(network.masks_at(one[:, 0], height, width), start):
                    self._collect(found, mask, scores[i], source=i)
        return self._proposals(features.frame, found, height, width, labels)

    def _decode(
        self, frames: Sequence[FrameFeatures], points: npt.NDArray[np.float32], height: int, width: int
    ) -> Iterator[tuple[int, RawMask]]:
        network, settings = self._network, self._settings
        coords = torch.tensor(points, device=network.device)[:, None] * network.image_size
        coords = coords.repeat(len(frames), 1, 1)
        kinds = torch.ones(len(coords), 1, dtype=torch.int32, device=network.device)
        with network.computing():
            decoded = self._ask(frames, coords, kinds)
            quality = decoded.quality[:, 1:].float()
            good = (
                quality > settings.min_quality if settings.min_quality > 0 else torch.ones_like(quality) > 0
            )
            rows = good.any(dim=1).nonzero()[:, 0]
            drawn = self._draw(frames, decoded, rows, good)
            sizes = good[rows].nonzero()
            for start, stability, masks in self._enlarged(drawn, height, width):
                for i, (stable, mask) in enumerate(zip(stability, masks, strict=True), start):
                    # An empty mask has no stability: NaN is not at least anything.
                    if settings.min_stability > 0 and not stable >= settings.min_stability:
                        continue
                    row, column = int(rows[sizes[i, 0]]), int(sizes[i, 1])
                    place, at = divmod(row, len(points))
                    x, y = points[at].tolist()
                    yield place, RawMask((x, y), float(quality[row, column]), float(stable), mask)

    def _ask(self, frames: Sequence[FrameFeatures], coords: Tensor, kinds: Tensor) -> Decoded:
        network, model = self._network, self._network.model
        # Without memories, the network expects this much added to the image.
        image = torch.cat([f.image for f in frames]) + model.no_mem_embed.view(1, -1, 1, 1)
        sparse, _ = model.sam_prompt_encoder(points=(coords, kinds), boxes=None, masks=None)
        return decode(model.sam_mask_decoder, image, network.decoder_position, sparse, network.no_prompt[1])

    def _draw(self, frames: Sequence[FrameFeatures], decoded: Decoded, rows: Tensor, good: Tensor) -> Tensor:
        """Logits of the good masks of the prompts that have one, (masks, h, w)."""
        network = self._network
        if not len(rows):
            return torch.zeros(0, 1, 1, device=network.device)
        fine = (torch.cat([f.fine[0] for f in frames]), torch.cat([f.fine[1] for f in frames]))
        columns = torch.arange(1, 4, device=network.device)
        parts = [
            draw(network.model.sam_mask_decoder, decoded, fine, part, columns.expand(len(part), 3))[
                good[part]
            ]
            for part in rows.split(64)
        ]
        return torch.cat(parts)

    def _enlarged(
        self, logits: Tensor, height: int, width: int
    ) -> Iterator[tuple[int, npt.NDArray[np.float64], npt.NDArray[np.bool_]]]:
        """Start, stability and masks at video size, a few at a time."""
        offset = self._settings.stability_offset
        step = max(1, 2**24 // (height * width))
        for start in range(0, len(logits), step):
            part = logits[start : start + step, None].float()
            large = F.interpolate(part, (height, width), mode="bilinear", align_corners=False)[:, 0]
            # In 64 bits a CPU needs three times as long to count.
            inner = (large > offset).flatten(1).sum(dim=1, dtype=torch.int32)
            outer = (large > -offset).flatten(1).sum(dim=1, dtype=torch.int32)
            stability = (inner.float() / outer.float()).cpu().numpy().astype(np.float64)
            yield start, stability, (large > 0).cpu().numpy()

    def _collect(self, into: list[Candidate], mask: Mask, score: float, source: int) -> None:
        """Clean a mask and keep it, packed, if it is neither noise nor the background."""
        settings = self._settings
        whole = cleaning.clean(mask, settings.min_fragment_share, settings.max_hole_share)
        if settings.min_area_share <= np.count_nonzero(whole) / whole.size <= settings.max_area_share:
            into.append(Candidate.of(whole, score, source))

    def _proposals(
        self,
        frame: int,
        candidates: list[Candidate],
        height: int,
        width: int,
        labels: Sequence[str] | None = None,
    ) -> list[Proposal]:
        settings = self._settings
        kept, parents = dedupe(candidates, settings.same_iou, settings.inside_share)
        kept, parents = kept[: settings.max_masks], parents[: settings.max_masks]
        return [
            Proposal(
                frame=frame,
                rle=rle.encode(candidates[i].mask(height, width)),
                score=float(np.clip(candidates[i].score, 0, 1)),
                label=labels[candidates[i].source] if labels is not None else None,
                parent=parent if parent is None or parent < len(kept) else None,
            )
            for i, parent in zip(kept, parents, strict=True)
        ]
