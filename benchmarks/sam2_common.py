"""What the SAM2 benchmarks and the parity tests share: random weights in the real format, moving test
pictures, and `sam2`'s own predictors on them.

Random weights give meaningless masks. What is compared is arithmetic: the same weights and pictures must
give the same masks. `random_checkpoint` makes weights whose masks depend on the prompt and are neither empty
nor full, and whose objects stay present, so that a comparison can fail.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

from rvt_ray.perception.segment.sam2 import checkpoints


def random_checkpoint(path: Path, size: str = "tiny", seed: int = 0, image_size: int = 256) -> Path:
    """Random weights as an official `.pt` file: `{"model": state_dict}`."""
    torch.manual_seed(seed)
    model = checkpoints.build(checkpoints.VARIANTS[size], image_size, 4)
    decoder = model.sam_mask_decoder
    with torch.no_grad():
        # Untrained, every object is "absent" or "present" by the luck of one bias, and the masks of all
        # prompts are alike: lift the presence and let tokens and memories speak louder.
        decoder.pred_obj_score_head.layers[-1].bias.fill_(2.0)
        for mlp in decoder.output_hypernetworks_mlps:
            for layer in mlp.layers:
                layer.weight.mul_(3.0)
        for layer in model.memory_attention.layers:
            cross = layer.cross_attn_image
            for projection, gain in ((cross.q_proj, 6.0), (cross.k_proj, 6.0), (cross.v_proj, 8.0)):
                projection.weight.mul_(gain)
            cross.out_proj.weight.mul_(8.0)
        for layer in model.memory_encoder.fuser.layers:
            layer.gamma.fill_(0.1)
    torch.save({"model": model.state_dict()}, path)
    return path


def moving_pictures(num_frames: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """uint8 RGB frames, shape (n, height, width, 3): coloured discs over a drifting pattern."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    phases = rng.uniform(0, 6, (3, 2))
    discs = [
        (rng.uniform(0, 1, 2), rng.uniform(-0.01, 0.01, 2), rng.uniform(0.05, 0.2), rng.integers(0, 255, 3))
        for _ in range(12)
    ]
    frames = np.empty((num_frames, height, width, 3), np.uint8)
    for t in range(num_frames):
        for c in range(3):
            wave = np.sin(x / 9 + phases[c, 0] + 0.1 * t) * np.cos(y / 7 + phases[c, 1])
            frames[t, ..., c] = 110 + 60 * wave
        for place, speed, radius, colour in discs:
            cy, cx = (place + t * speed) % 1.0
            inside = (y / height - cy) ** 2 + (x / width - cx) ** 2 < radius**2
            frames[t][inside] = colour
    return frames


def first_masks(count: int, height: int, width: int, seed: int = 0) -> list[np.ndarray]:
    """Masks of different places and sizes, bool (height, width)."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    masks = []
    for _ in range(count):
        cy, cx = rng.uniform(0.2, 0.8, 2)
        ry, rx = rng.uniform(0.08, 0.3, 2)
        masks.append(((y / height - cy) / ry) ** 2 + ((x / width - cx) / rx) ** 2 < 1)
    return masks


def stock_predictor(path: Path, size: str, image_size: int, max_cond_frames: int, device: str = "cpu") -> Any:
    """`sam2`'s video predictor on the same weights, corrections enabled (trap 1 of sam2)."""
    from sam2.build_sam import build_sam2_video_predictor

    return build_sam2_video_predictor(
        checkpoints.VARIANTS[size].config,
        str(path),
        device=device,
        hydra_overrides_extra=[
            f"++model.image_size={image_size}",
            f"++model.max_cond_frames_in_attn={max_cond_frames}",
            "++model.add_all_frames_to_correct_as_cond=true",
        ],
    )


def stock_state(predictor: Any, images: torch.Tensor, height: int, width: int) -> Any:
    """The predictor's state over frames that are already scaled: both sides then see the same pixels."""
    import sam2.sam2_video_predictor as module

    original = module.load_video_frames
    module.load_video_frames = lambda **_: (images, height, width)
    try:
        return predictor.init_state("in memory")
    finally:
        module.load_video_frames = original


@contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars and warnings of the stock predictors."""
    import sam2.sam2_video_predictor as module

    original = module.tqdm
    module.tqdm = lambda items, **_: items
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        module.tqdm = original


@contextmanager
def torchvision_or_stub(keep_all: bool = False) -> Iterator[None]:
    """Let `sam2.automatic_mask_generator` be imported where torchvision is not (a CPU set).

    Args:
        keep_all: replace box NMS by one that keeps every mask in order, to see the raw stage.
    """
    import importlib.machinery
    import importlib.util

    present = importlib.util.find_spec("torchvision") is not None
    names = ("torchvision", "torchvision.ops", "torchvision.ops.boxes", "torchvision.transforms")
    ours = ("sam2.automatic_mask_generator", "sam2.sam2_image_predictor", "sam2.utils.transforms")
    before = {name: sys.modules.get(name) for name in (*names, *ours)}
    if not present or keep_all:
        for name in ours:
            sys.modules.pop(name, None)
        for name in names:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
        boxes = sys.modules["torchvision.ops.boxes"]
        boxes.batched_nms = _keep_all if keep_all else _box_nms  # type: ignore[attr-defined]
        boxes.box_area = _box_area  # type: ignore[attr-defined]
        for cls in (ToTensor, Resize, Normalize):
            setattr(sys.modules["torchvision.transforms"], cls.__name__, cls)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def _keep_all(boxes: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return torch.arange(len(boxes))


def _box_area(boxes: torch.Tensor) -> torch.Tensor:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def _box_nms(
    boxes: torch.Tensor, scores: torch.Tensor, _: torch.Tensor, iou_threshold: float
) -> torch.Tensor:
    order = scores.argsort(descending=True)
    kept: list[int] = []
    alive = torch.ones(len(boxes), dtype=torch.bool)
    area = _box_area(boxes)
    for i in order.tolist():
        if not alive[i]:
            continue
        kept.append(i)
        low, high = torch.maximum(boxes[i, :2], boxes[:, :2]), torch.minimum(boxes[i, 2:], boxes[:, 2:])
        shared = (high - low).clamp(min=0).prod(dim=1)
        alive &= shared / (area[i] + area - shared).clamp(min=1e-6) <= iou_threshold
    return torch.tensor(kept, dtype=torch.long)


class ToTensor:
    """uint8 (h, w, 3) -> float (3, h, w), 0..1."""

    def __call__(self, image: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


class Resize(torch.nn.Module):
    """Anti-aliased bilinear, as torchvision's on tensors."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self.height: int = size[0]
        self.width: int = size[1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = [self.height, self.width]
        return F.interpolate(x[None], size, mode="bilinear", align_corners=False, antialias=True)[0]


class Normalize(torch.nn.Module):
    """(x - mean) / std per channel."""

    def __init__(self, mean: list[float], std: list[float]) -> None:
        super().__init__()
        self.mean: torch.Tensor = torch.tensor(mean).view(3, 1, 1)
        self.std: torch.Tensor = torch.tensor(std).view(3, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.mean) / self.std
