"""Depth Anything weights: where they lie, whether they are whole, what they are and under which licence."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.llm import models
from rvt_ray.records import DepthKind, ModelWeights

log = logging.getLogger(__name__)

WHAT = "perceive.depth.options"
NAME = "depth-anything-v2-small"
"""As `rvt-ray models` knows them. Larger ones are not for commercial use: they are the user's own choice."""
FREE = "Apache-2.0"
NON_COMMERCIAL = "CC-BY-NC-4.0"
_WEIGHTS = "model.safetensors"
_NON_COMMERCIAL_WIDTHS = (768, 1024)  # of the backbones that only the base and large weights have
_LICENSE_LINE = re.compile(r"^license:\s*['\"]?([\w.+-]+)", re.MULTILINE)
_SPDX = {"apache-2.0": "Apache-2.0", "cc-by-nc-4.0": NON_COMMERCIAL, "mit": "MIT"}


@dataclass(frozen=True)
class Checkpoint:
    """A model folder in Hugging Face layout that was looked at, but not loaded.

    Attributes:
        model: short name and digest, as it stands in the rows.
        kind: what its numbers mean.
        preprocessing: content of its preprocessor_config.json; empty without one.
    """

    folder: Path
    model: str
    license: str
    kind: DepthKind
    preprocessing: dict[str, Any]

    @property
    def weights(self) -> ModelWeights:
        """For the twin."""
        return ModelWeights(part="depth", model=self.model, license=self.license)


def find(checkpoint: str | None, license_given: str | None) -> Checkpoint:
    """The weights, without loading them.

    Args:
        checkpoint: folder; None takes the small weights from the catalogue's places.
        license_given: what the user says; goes before what the folder says.

    Raises:
        MissingDependencyError: they are not on this machine; says how to get them.
        ConfigError: the folder holds something else, or a file that is cut short.
    """
    name = NAME
    known = models.KNOWN[name]
    if checkpoint is None:
        folder = models.where(name)
        if folder is None:
            raise MissingDependencyError(
                f"{WHAT}: the weights of {name} ({known.license}) are not on this machine: run "
                f"`rvt-ray models pull {name}`, or copy {', '.join(known.files)} into "
                f"{models.cache_root() / 'models' / name}, or name a folder in `checkpoint`; "
                "without depth: --set perceive.depth.backend=none"
            )
        label = name
    else:
        folder = Path(checkpoint).expanduser()
        if not folder.is_dir():
            raise MissingDependencyError(
                f"{WHAT}.checkpoint: {folder}: no such folder; it should hold config.json and {_WEIGHTS} "
                f"(the layout of transformers, not a .pth file). Run `rvt-ray models pull {name}` and "
                "leave `checkpoint` out"
            )
        label = folder.name
    config = _read_json(folder / "config.json")
    if config.get("model_type") != "depth_anything":
        raise ConfigError(
            f"{WHAT}.checkpoint: {folder / 'config.json'} is of a {config.get('model_type')!r} model, not of "
            f"depth_anything; get one by `rvt-ray models pull {name}`"
        )
    check_safetensors(folder / _WEIGHTS, f"`rvt-ray models pull {name}`")
    preprocessing = folder / "preprocessor_config.json"
    found = Checkpoint(
        folder,
        f"{label}@{models.folder_digest(folder)[:16]}",
        license_given or (known.license if checkpoint is None else license_of(folder, config)),
        DepthKind.METRIC if config.get("depth_estimation_type") == "metric" else DepthKind.RELATIVE_INVERSE,
        _read_json(preprocessing) if preprocessing.is_file() else {},
    )
    if found.license != FREE:
        log.warning(
            "depth weights %s: the licence is %s; it is written into every twin", label, found.license
        )
    return found


def license_of(folder: Path, config: dict[str, Any]) -> str:
    """What the folder's model card says; without one the cautious answer for the larger sizes, whose
    published weights are not for commercial use, else `unknown`."""
    card = folder / "README.md"
    if card.is_file():
        found = _LICENSE_LINE.search(card.read_text(encoding="utf-8", errors="replace"))
        if found:
            return _SPDX.get(found.group(1).lower(), found.group(1))
    backbone = config.get("backbone_config") or {}
    return NON_COMMERCIAL if backbone.get("hidden_size") in _NON_COMMERCIAL_WIDTHS else "unknown"


def check_safetensors(path: Path, pull: str) -> None:
    """Whether a safetensors file is there and whole, by its header alone.

    Raises:
        ConfigError: missing, not of this format, or cut short.
    """
    if not path.is_file():
        raise ConfigError(f"{WHAT}.checkpoint: {path} is not there; get it by {pull}")
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= size - 8:
                raise ValueError("its header is cut off")
            header = json.loads(file.read(length))
        end = max(
            (entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"), default=0
        )
        if size < 8 + length + end:
            raise ValueError(f"{size} bytes, but its header names {8 + length + end}")
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise ConfigError(
            f"{WHAT}.checkpoint: {path} cannot be used: {error}. Delete it and get it again: {pull}"
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            f"{WHAT}.checkpoint: {path} is not there; give a folder in the layout of transformers"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{WHAT}.checkpoint: {path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{WHAT}.checkpoint: {path} holds no JSON object")
    return content
