"""Index a file and read all of it back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rvt_ray.config.settings import IndexSettings, ShotSettings
from rvt_ray.records import ClipRecord
from rvt_ray.video import SourceItem, index_video, open_clip


def settings(**changes: Any) -> IndexSettings:
    """Without shot detection, which takes the numbered pictures for cuts."""
    return IndexSettings(**{"shots": ShotSettings(detector="none"), "decode_timeout_s": 20.0, **changes})


def item(path: Path, **changes: Any) -> SourceItem:
    return SourceItem(**{"source": "test", "name": path.stem, "uri": str(path), **changes})


def index(path: Path, **changes: Any) -> list[ClipRecord]:
    return index_video(item(path), settings(**changes))


def read(clip: ClipRecord, **changes: Any) -> npt.NDArray[np.uint8]:
    return np.concatenate([w.frames for w in open_clip(clip, settings(**changes)).windows(7)])
