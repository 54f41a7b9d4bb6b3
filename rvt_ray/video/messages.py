"""What goes over the socket between a reader and its decode child."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OpenRequest:
    """A span of frames that the parent wants to read.

    Attributes:
        path: local file or folder of frames.
        decoder: name of the decoder that indexed it.
        start, num_frames: span in decoded frames.
        pts_s: expected times of the span's frames, from the video's first frame; empty: do not check and do
            not seek.
        size: (width, height) of upright frames, as indexed.
        slot_frames: frames that fit into one of the buffer's two slots.
    """

    path: str
    decoder: str
    start: int
    num_frames: int
    pts_s: tuple[float, ...]
    size: tuple[int, int]
    slot_frames: int
