"""A clip's frames, decoded again in the child as they are needed: `ClipFrames` is a `FrameStream`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rvt_ray.config.settings import IndexSettings
from rvt_ray.errors import ClipError
from rvt_ray.records.clip import ClipRecord
from rvt_ray.records.enums import FailureCode, VideoFlag
from rvt_ray.video.frames import FrameArray, FrameWindow
from rvt_ray.video.identity import path_sha256
from rvt_ray.video.local import local_path
from rvt_ray.video.messages import OpenRequest
from rvt_ray.video.process import DecodeProcess, lease


class ClipFrames:
    """The frames of one clip. Each pass decodes again, in a child of its own while it lasts, so passes may
    be nested. While the consumer works on a window the child decodes the next one.

    Args:
        clip: what was indexed.
        settings: gives the deadline.

    Raises:
        ClipError: `unreadable` or `changed_since_index`.
    """

    def __init__(self, clip: ClipRecord, settings: IndexSettings) -> None:
        self._clip = clip
        self._timeout_s = settings.decode_timeout_s
        self._path = local_path(clip.uri, folder=clip.decoder == "images")
        self._pts_s = np.array(clip.pts_s, dtype=np.float64)
        self._pts_s.flags.writeable = False
        if path_sha256(self._path) != clip.sha256:
            raise ClipError(
                FailureCode.CHANGED_SINCE_INDEX,
                f"{clip.uri}: its bytes are not those that were indexed as {clip.video_id}. Index it again",
            )

    @property
    def num_frames(self) -> int:
        return self._clip.num_frames

    @property
    def height(self) -> int:
        return self._clip.height

    @property
    def width(self) -> int:
        return self._clip.width

    @property
    def pts_s(self) -> npt.NDArray[np.float64]:
        return self._pts_s

    def windows(self, size: int = 16) -> Iterator[FrameWindow]:
        """See `FrameStream.windows`."""
        if size < 1:
            raise ValueError(f"a window holds at least one frame, not {size}")
        size = min(size, self.num_frames)
        with lease() as child:
            frame_bytes = self.height * self.width * 3
            child.map_buffer(2 * size * frame_bytes)
            try:
                self._ask(child, "open", request=self._request(size))
                slot = 0
                child.send("read", count=size, slot=slot)
                for start in range(0, self.num_frames, size):
                    count = self._receive(child)
                    if start + count < self.num_frames:
                        child.send("read", count=size, slot=1 - slot)
                    shape = (count, self.height, self.width, 3)
                    frames = child.copy_frames(slot * size * frame_bytes, shape)
                    slot = 1 - slot
                    yield FrameWindow(np.arange(start, start + count), frames)
            finally:
                self._finish(child)

    def frames_at(self, indices: list[int]) -> Iterator[tuple[int, FrameArray]]:
        """See `FrameStream.frames_at`."""
        wanted = sorted(set(indices))
        if wanted != list(indices) or (wanted and not 0 <= wanted[0] <= wanted[-1] < self.num_frames):
            raise ValueError(f"indices must ascend inside 0..{self.num_frames - 1}, not {indices}")
        position = 0
        if not wanted:
            return
        for window in self.windows():
            last = int(window.indices[-1])
            while position < len(wanted) and wanted[position] <= last:
                index = wanted[position]
                yield index, window.frames[index - int(window.indices[0])]
                position += 1
            if position == len(wanted):
                return

    def close(self) -> None:
        """Nothing stays open between passes; here so that callers can treat streams alike."""

    def _request(self, size: int) -> OpenRequest:
        clip = self._clip
        # Repaired times are not what the decoder will say.
        trusted = VideoFlag.NON_MONOTONIC_PTS not in clip.flags and clip.decoder != "images"
        return OpenRequest(
            path=str(self._path),
            decoder=clip.decoder,
            start=clip.start_frame,
            num_frames=clip.num_frames,
            pts_s=tuple(clip.pts_s) if trusted else (),
            size=(clip.width, clip.height),
            slot_frames=size,
        )

    def _ask(self, child: DecodeProcess, operation: str, **arguments: object) -> None:
        child.ask(operation, self._clip.uri, self._timeout_s, **arguments)

    def _receive(self, child: DecodeProcess) -> int:
        return int(child.receive(self._clip.uri, self._timeout_s))

    def _finish(self, child: DecodeProcess) -> None:
        """Leave the child clean for its next reader, or dead."""
        try:
            while child.alive and child.owed:
                child.receive(self._clip.uri, self._timeout_s)
            if child.alive:
                self._ask(child, "close")
                child.unmap_buffer()
        except ClipError:
            child.kill()


def open_clip(clip: ClipRecord, settings: IndexSettings) -> ClipFrames:
    """The frames of a clip.

    Raises:
        ClipError: `unreadable` or `changed_since_index`; iterating raises the decoder's errors.
    """
    return ClipFrames(clip, settings)
