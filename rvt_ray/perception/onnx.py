"""ONNX models of the CPU tier: where their files lie, whether they are whole, running them in `cv2.dnn`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.llm.models import cache_root

FOLDER_VARIABLE = "RVT_RAY_MODELS"


def models_folder(setting: str | None) -> Path:
    """The folder that model files are looked for in: the setting, else `$RVT_RAY_MODELS`, else `models` below
    the weights cache."""
    chosen = setting or os.environ.get(FOLDER_VARIABLE)
    return Path(chosen).expanduser() if chosen else cache_root() / "models"


def locate(setting: str | None, file: str, what: str, origin: str) -> Path:
    """The model's file, without reading it.

    Args:
        setting: the configured models folder; null: see `models_folder`.
        file: its name in the folder.
        what: the config field of the backend's options, for the error text (`perceive.depth.options`).
        origin: where people get the file.

    Raises:
        MissingDependencyError: not there; says how to get it.
    """
    folder = models_folder(setting)
    path = folder / file
    if not path.is_file():
        reason = "no such file" if folder.is_dir() else "no such folder"
        raise MissingDependencyError(
            f"{what}: {path}: {reason}. Get {file} from {origin} and put it there, or name the folder that "
            f"holds it in {what}.models or in ${FOLDER_VARIABLE}, or another file of it in {what}.file"
        )
    return path


class OnnxModel:
    """A network in `cv2.dnn`, on the CPU.

    Args:
        path: the `.onnx` file.
        what: the config field, for the error text.
        origin: where people get the file.

    Raises:
        ConfigError: OpenCV cannot read the file (cut short, not ONNX, operators that it lacks).
    """

    def __init__(self, path: Path, what: str, origin: str) -> None:
        self._path = path
        self._what = what
        self._origin = origin
        try:
            data = np.fromfile(path, np.uint8)
            # Given as bytes: OpenCV prints to standard error what it cannot open by name.
            self._net: Any = cv2.dnn.readNetFromONNX(data) if data.size else None
        except OSError as error:
            raise self.unusable(str(error.strerror)) from error
        except cv2.error as error:
            raise self.unusable(_reason(error)) from error
        if self._net is None or self._net.empty():
            raise self.unusable("it holds no network")

    def __call__(self, blob: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The first output for an input of shape (n, channels, height, width).

        Raises:
            ConfigError: the network does not take such an input.
        """
        try:
            self._net.setInput(blob)
            return np.asarray(self._net.forward(), np.float32)
        except cv2.error as error:
            raise self.unusable(
                f"it does not take an input of shape {blob.shape}: {_reason(error)}"
            ) from error

    def unusable(self, reason: str) -> ConfigError:
        """The error that says that this file is not what it should be, and the remedy."""
        return ConfigError(
            f"{self._what}: {self._path} cannot be used: {reason}. Delete it and get it again from "
            f"{self._origin}"
        )


def digest(path: Path) -> str:
    """16 hex digits of the file's sha256: what identifies the weights in the rows."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _reason(error: cv2.error) -> str:
    text = (getattr(error, "err", None) or str(error)).strip()
    return text.splitlines()[0] if text else "OpenCV cannot read it"
