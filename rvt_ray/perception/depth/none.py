"""No depth: the twin says so, and no depth is ever made up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rvt_ray.backends import Options
from rvt_ray.records import ClipRecord, DepthKind
from rvt_ray.video.frames import FrameStream


class NoDepthOptions(Options):
    """It takes none."""


class NoDepth:
    """Yields nothing."""

    name = "none"
    kind = DepthKind.NONE
    Options = NoDepthOptions

    def __init__(self, options: NoDepthOptions | None = None) -> None:
        del options

    def depth(
        self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]
    ) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """Nothing, for any clip."""
        return iter(())
