"""SAM 2.1 weights: where they lie, whether they are whole, and the model they make.

Reads the official `.pt` files (`{"model": state_dict}`) and the hub's folders (a `.pt`, or safetensors with
the same names). The size of the model is read off the weights, so that a file need not be named after it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.llm import models

log = logging.getLogger(__name__)

_EDGE_BYTES = 2**20
_INSTALL = "SAM2_BUILD_CUDA=0 pip install --no-build-isolation sam2==1.1.0 (after torch; see docs/install.md)"
_TRUNK = "image_encoder.trunk."


@dataclass(frozen=True)
class Variant:
    """One of the four released sizes.

    Attributes:
        name: as the catalogue of `rvt-ray models` has it, without the `sam2.1-`.
        config: name of the package's own model description.
        width, blocks: channels after the patch embedding and number of transformer blocks of the image
            encoder; together they tell the sizes apart.
    """

    name: str
    config: str
    width: int
    blocks: int


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("tiny", "configs/sam2.1/sam2.1_hiera_t.yaml", 96, 12),
        Variant("small", "configs/sam2.1/sam2.1_hiera_s.yaml", 96, 16),
        Variant("base-plus", "configs/sam2.1/sam2.1_hiera_b+.yaml", 112, 24),
        Variant("large", "configs/sam2.1/sam2.1_hiera_l.yaml", 144, 48),
    )
}


def catalogue_name(size: str) -> str:
    """The name that `rvt-ray models pull` knows."""
    return f"sam2.1-{size}"


def require_packages() -> None:
    """Refuse where torch or sam2 is not installed; imports neither.

    Raises:
        MissingDependencyError: with the command that installs it.
    """
    models.require_package("torch", "segment backend 'sam2'", "see docs/install.md")
    models.require_package("sam2", "segment backend 'sam2'", _INSTALL)


def locate(checkpoint: str | None, size: str) -> Path:
    """The weights file, without loading it.

    Args:
        checkpoint: file, or folder that holds one; None takes `size` from the catalogue's places.
        size: `tiny`, `small`, `base-plus` or `large`.

    Raises:
        MissingDependencyError: the weights are not on this machine; says how to get them.
        ConfigError: the path holds no weights, or a file that is cut short.
    """
    name = catalogue_name(size)
    pull = f"`rvt-ray models pull {name}`"
    if checkpoint is None:
        folder = models.where(name)
        if folder is None:
            files = ", ".join(models.KNOWN[name].files)
            raise MissingDependencyError(
                f"perceive.segment.options: the weights of {name} are not on this machine: run {pull}, or "
                f"copy {files} into {models.cache_root() / 'models' / name}, or name a file in `checkpoint`"
            )
        path = _in_folder(folder, name)
    else:
        path = Path(checkpoint).expanduser()
        if path.is_dir():
            path = _in_folder(path, name)
        elif not path.is_file():
            raise MissingDependencyError(
                f"perceive.segment.options.checkpoint: {path}: no such file or folder; run {pull} and leave "
                "`checkpoint` out, or give the path of a sam2.1 `.pt` file"
            )
    _check_whole(path, pull)
    return path


def _in_folder(folder: Path, name: str) -> Path:
    preferred = models.KNOWN[name].files[0]
    found = sorted(folder.glob("*.pt")) or sorted(folder.glob("*.safetensors"))
    exact = [path for path in found if path.name == preferred]
    if exact:
        return exact[0]
    if len(found) == 1:
        return found[0]
    what = "several weights files" if found else "no `.pt` and no `.safetensors` file"
    raise ConfigError(f"perceive.segment.options.checkpoint: {folder} holds {what}; name the file itself")


def _check_whole(path: Path, pull: str) -> None:
    """A `.pt` is a zip whose directory stands at its end: what was cut off while copying has none."""
    if path.suffix == ".safetensors":
        return
    if not zipfile.is_zipfile(path):
        raise _corrupt(path, "not a PyTorch checkpoint, or cut short", pull)


def _corrupt(path: Path, reason: str, pull: str) -> ConfigError:
    return ConfigError(
        f"perceive.segment.options.checkpoint: {path} cannot be used: {reason}. Delete it and get it again: "
        f"{pull}"
    )


def read(path: Path, size: str) -> dict[str, Any]:
    """The weights, name -> tensor on the CPU.

    Raises:
        ConfigError: the file is corrupt or holds something else.
    """
    import torch

    pull = f"`rvt-ray models pull {catalogue_name(size)}`"
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            content: Any = load_file(str(path))
        else:
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (RuntimeError, OSError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise _corrupt(path, _first_line(error), pull) from error
    except Exception as error:  # safetensors raises an own class that is not worth importing to name
        if type(error).__name__ != "SafetensorError":
            raise
        raise _corrupt(path, _first_line(error), pull) from error
    if isinstance(content, Mapping) and isinstance(content.get("model"), Mapping):
        content = content["model"]
    if not isinstance(content, Mapping) or f"{_TRUNK}patch_embed.proj.weight" not in content:
        hint = ""
        if isinstance(content, Mapping) and any(str(key).startswith("vision_encoder.") for key in content):
            hint = " (it is in the layout of transformers; take the `.pt` file of the same hub folder)"
        raise ConfigError(
            f"perceive.segment.options.checkpoint: {path} holds no SAM 2 weights{hint}; get them by {pull}"
        )
    return dict(content)


def variant_of(weights: Mapping[str, Any], path: Path) -> Variant:
    """Which of the released sizes the weights are.

    Raises:
        ConfigError: none of them.
    """
    width = int(weights[f"{_TRUNK}patch_embed.proj.weight"].shape[0])
    numbers = {key.split(".")[3] for key in weights if key.startswith(f"{_TRUNK}blocks.")}
    for variant in VARIANTS.values():
        if (variant.width, variant.blocks) == (width, len(numbers)):
            return variant
    raise ConfigError(
        f"perceive.segment.options.checkpoint: {path} has an image encoder of {len(numbers)} blocks from "
        f"{width} channels, which is none of sam2.1 {', '.join(VARIANTS)}"
    )


def build(variant: Variant, image_size: int, max_cond_frames: int) -> Any:
    """An untrained `SAM2Base` on the CPU, in evaluation mode, as `sam2.build_sam` describes it.

    Args:
        image_size: side of the square that frames are scaled to; a multiple of 32.
        max_cond_frames: most prompted frames that a frame attends to; -1: all.

    Raises:
        MissingDependencyError: sam2 is not installed or cannot be imported.
    """
    require_packages()
    try:
        from sam2.build_sam import build_sam2
    except (ImportError, RuntimeError) as error:
        raise MissingDependencyError(
            f"segment backend 'sam2' cannot import sam2: {error}; {_INSTALL}"
        ) from error
    return build_sam2(
        variant.config,
        ckpt_path=None,
        device="cpu",
        hydra_overrides_extra=[
            f"++model.image_size={image_size}",
            f"++model.max_cond_frames_in_attn={max_cond_frames}",
            # The memory of a prompted frame is made from the mask that was given, not from a softened one;
            # the video predictor sets this too.
            "++model.binarize_mask_from_pts_for_mem_enc=true",
        ],
    )


def load(path: Path, size: str, image_size: int, max_cond_frames: int) -> tuple[Any, Variant]:
    """The model with its weights, on the CPU.

    Raises:
        ConfigError: corrupt or foreign weights; names what is missing or in excess.
        MissingDependencyError: sam2 is not installed.
    """
    weights = read(path, size)
    variant = variant_of(weights, path)
    model = build(variant, image_size, max_cond_frames)
    try:
        missing, unexpected = model.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise ConfigError(
            f"perceive.segment.options.checkpoint: {path} does not fit sam2.1 {variant.name}: "
            f"{_first_line(error)}"
        ) from error
    if missing or unexpected:
        old = " (SAM 2.0 weights? this engine runs the 2.1 models)" if _looks_old(missing) else ""
        raise ConfigError(
            f"perceive.segment.options.checkpoint: {path} does not fit sam2.1 {variant.name}{old}: "
            f"{len(missing)} weights missing ({', '.join(sorted(missing)[:3])}), "
            f"{len(unexpected)} unknown ({', '.join(sorted(unexpected)[:3])})"
        )
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model, variant


def digest(path: Path) -> str:
    """What identifies a weights file in the rows: 16 hex digits over its size, first and last MiB."""
    size = path.stat().st_size
    summary = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        summary.update(file.read(_EDGE_BYTES))
        if size > 2 * _EDGE_BYTES:
            file.seek(-_EDGE_BYTES, os.SEEK_END)
        summary.update(file.read(_EDGE_BYTES))
    return summary.hexdigest()[:16]


def _looks_old(missing: list[str]) -> bool:
    return any(key.startswith(("obj_ptr_tpos_proj", "no_obj_embed_spatial")) for key in missing)


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
