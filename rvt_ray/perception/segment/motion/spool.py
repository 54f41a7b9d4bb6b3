"""The clip at working size, on disk: every pass after the first reads it from here, in any direction, while
memory holds one frame at a time, however long the clip is."""

from __future__ import annotations

import tempfile
from types import TracebackType

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.video.frames import FrameArray


class Spool:
    """Frames by index, kept as high-quality JPEG in an unnamed temporary file.

    Use as a context manager: the file is gone at the end, also when the process is killed.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._spans: list[tuple[int, int]] = []

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._spans)

    def append(self, frame: FrameArray) -> None:
        """Add the next RGB frame.

        Raises:
            OSError: the temporary folder is full.
        """
        ok, data = cv2.imencode(".jpg", frame[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, 95])
        if not ok:
            raise ValueError(f"cannot encode a frame of shape {frame.shape}")
        start = self._file.seek(0, 2)
        self._file.write(data.tobytes())
        self._spans.append((start, len(data)))

    def __getitem__(self, index: int) -> FrameArray:
        start, length = self._spans[index]
        self._file.seek(start)
        data: npt.NDArray[np.uint8] = np.frombuffer(self._file.read(length), np.uint8)
        bgr = np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR))
        return np.ascontiguousarray(bgr[:, :, ::-1])


def to_lab(frame: FrameArray) -> npt.NDArray[np.float32]:
    """CIELAB of an RGB frame, float32 (h, w, 3): L 0..100, a and b about -127..127."""
    lab: npt.NDArray[np.float32] = np.asarray(cv2.cvtColor(frame, cv2.COLOR_RGB2LAB)).astype(np.float32)
    lab[..., 0] *= 100.0 / 255.0
    lab[..., 1:] -= 128.0
    return lab
