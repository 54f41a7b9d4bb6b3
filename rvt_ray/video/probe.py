"""What a video says about itself: header, and first frame for what only a decoder can tell (PyAV).

Runs in the decode child (`rvt_ray.video.child`): native parsers can crash on hostile bytes.
"""

from __future__ import annotations

import math
import os
import re
import stat
import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rvt_ray.errors import ClipError
from rvt_ray.records.enums import FailureCode
from rvt_ray.video.container import looks_like_video, missing_bytes

# Demuxers that are lists of other files or URLs, or that turn any text or binary into "video".
_REFUSED_FORMATS = {"hls", "concat", "concatf", "dash", "sdp", "rtsp", "tty", "lavfi", "image2", "webvtt"}
# FFmpeg's numbers of the PQ and HLG transfer functions (ITU-T H.273, table 3).
_HDR_TRANSFERS = {16: "pq", 18: "hlg"}
OPEN_OPTIONS = {"protocol_whitelist": "file"}


@dataclass(frozen=True)
class VideoProbe:
    """A video as its header and its first frame describe it.

    Attributes:
        container, codec, pix_fmt: FFmpeg's names.
        stream_index: of the video stream that is decoded.
        coded_width, coded_height: pixels as stored, before rotation and pixel aspect.
        rotation: clockwise degrees that make the frame upright: 0, 90, 180, 270.
        mirrored: the display matrix also flips the frame (left-right, before the rotation).
        sar: pixel aspect (width : height of one pixel).
        bit_depth: bits per component.
        alpha: an alpha plane exists; it is dropped.
        transfer: `pq`, `hlg` or `sdr`.
        header_frames: frame count that the header claims; None when it is silent.
        fps: nominal; None when the header is silent.
        duration_s: of the video stream, as the header claims; None when it is silent.
        first_pts: presentation time of the first decoded frame, in `time_base` units.
        missing_bytes: by how much the file is shorter than its container claims.
        video_streams, audio_streams: how many there are.
    """

    container: str
    codec: str
    stream_index: int
    coded_width: int
    coded_height: int
    rotation: int = 0
    mirrored: bool = False
    sar: Fraction = Fraction(1)
    pix_fmt: str = "rgb24"
    bit_depth: int = 8
    alpha: bool = False
    transfer: str = "sdr"
    header_frames: int | None = None
    fps: float | None = None
    duration_s: float | None = None
    time_base: Fraction = Fraction(1, 1000)
    first_pts: int | None = None
    missing_bytes: int = 0
    video_streams: int = 1
    audio_streams: int = 0

    @property
    def hdr(self) -> bool:
        """A high-dynamic-range transfer function."""
        return self.transfer != "sdr"

    @property
    def frames_estimate(self) -> int | None:
        """How many frames the header speaks of, if it speaks of any."""
        if self.header_frames is not None:
            return self.header_frames
        if self.duration_s is None or self.fps is None:
            return None
        return round(self.duration_s * self.fps)

    def upright_size(self, max_side: int | None = None) -> tuple[int, int]:
        """(width, height) of the upright frame with square pixels, longer side at most `max_side`.

        Pixel aspect stretches the side that is too short, so that no stored pixel is lost.
        """
        width, height = Fraction(self.coded_width), Fraction(self.coded_height)
        if self.sar > 1:
            width *= self.sar
        elif self.sar < 1:
            height /= self.sar
        if self.rotation in (90, 270):
            width, height = height, width
        longer = max(width, height)
        if max_side is not None and longer > max_side:
            width, height = width * max_side / longer, height * max_side / longer
        return max(1, round(width)), max(1, round(height))


def probe(path: str) -> VideoProbe:
    """Read the header and decode one frame.

    Raises:
        ClipError: `unreadable`, `not_a_video`, `no_video_stream`, `unsupported_codec`, `no_frames` or
            `corrupt`.
    """
    import av

    readable(path)
    try:
        container = av.open(path, options=OPEN_OPTIONS)
    except (av.error.FFmpegError, OSError, ValueError, UnicodeDecodeError) as error:
        if looks_like_video(path):
            raise ClipError(
                FailureCode.CORRUPT,
                f"{path}: the container cannot be opened ({reason(error)}); an upload or download that "
                "stopped early leaves an mp4 without its index. Copy it again, or drop it",
            ) from error
        raise ClipError(
            FailureCode.NOT_A_VIDEO, f"{path}: no video format is recognised ({reason(error)}). Drop it"
        ) from error
    with container:
        if container.format.name.endswith("_pipe"):
            raise ClipError(
                FailureCode.NOT_A_VIDEO,
                f"{path}: a single image. Folders of images want a source of type 'frames'",
            )
        if set(container.format.name.split(",")) & _REFUSED_FORMATS:
            raise ClipError(
                FailureCode.NOT_A_VIDEO,
                f"{path}: a {container.format.name} file holds no video of its own; give what it points to",
            )
        streams = [s for s in container.streams.video if not _is_cover(s)]
        if not streams:
            raise ClipError(
                FailureCode.NO_VIDEO_STREAM,
                f"{path}: no video stream ({len(container.streams.audio)} audio). Drop it from the source",
            )
        best = container.streams.best("video")
        stream = best if best in streams else streams[0]
        context = stream.codec_context
        if context is None:
            raise ClipError(
                FailureCode.UNSUPPORTED_CODEC, f"{path}: no decoder for its video codec. Re-encode it"
            )
        frame = _first_frame(path, container, stream)
        matrix = _display_matrix(frame)
        rotation, mirrored = matrix if matrix is not None else (0, False)
        component = frame.format.components[0]
        return VideoProbe(
            container=container.format.name,
            codec=context.name,
            stream_index=stream.index,
            coded_width=frame.width,
            coded_height=frame.height,
            rotation=rotation,
            mirrored=mirrored,
            sar=_sar(stream),
            pix_fmt=frame.format.name,
            bit_depth=int(component.bits),
            alpha=_has_alpha(frame, stream),
            transfer=_HDR_TRANSFERS.get(int(frame.color_trc or 0), "sdr"),
            header_frames=stream.frames or None,
            fps=float(stream.average_rate) if stream.average_rate else None,
            duration_s=_duration(container, stream),
            time_base=stream.time_base or Fraction(1, 1000),
            first_pts=frame.pts,
            missing_bytes=missing_bytes(path),
            video_streams=len(streams),
            audio_streams=len(container.streams.audio),
        )


def readable(path: str) -> None:
    """Fail early, with the right code, where the operating system already says no.

    Raises:
        ClipError: `unreadable` or, for an empty file, `not_a_video`.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ClipError(FailureCode.UNREADABLE, f"{path}: not a regular file. Drop it from the source")
        with open(path, "rb"):
            pass
    except OSError as error:
        raise ClipError(
            FailureCode.UNREADABLE, f"{path}: {error.strerror}. Check the path and its permissions"
        ) from error
    if os.path.getsize(path) == 0:
        raise ClipError(FailureCode.NOT_A_VIDEO, f"{path}: the file is empty. Copy it again, or drop it")


def reason(error: Exception) -> str:
    """FFmpeg's reason in words, without error numbers and paths."""
    return str(getattr(error, "strerror", None) or error)


def _first_frame(path: str, container: Any, stream: Any) -> Any:
    import av

    refused = None
    packets = 0
    try:
        for packet in container.demux(stream):
            packets += packet.size > 0
            try:
                for frame in packet.decode():
                    return frame
            except av.error.FFmpegError as error:
                refused = error
            if packets > 600:
                break
    except av.error.FFmpegError as error:
        refused = error
    if refused is None and packets == 0 and missing_bytes(path) == 0:
        raise ClipError(FailureCode.NO_FRAMES, f"{path}: its video stream holds no frame. Drop it")
    if isinstance(refused, (av.error.PatchWelcomeError, av.error.DecoderNotFoundError)):
        raise ClipError(
            FailureCode.UNSUPPORTED_CODEC,
            f"{path}: this {stream.codec_context.name} variant cannot be decoded ({reason(refused)}). "
            "Re-encode it",
        )
    raise ClipError(
        FailureCode.CORRUPT,
        f"{path}: none of its first {packets} packets can be decoded "
        f"({reason(refused) if refused else 'no frame came'}). Copy it again, or drop it",
    )


def _is_cover(stream: Any) -> bool:
    """Cover art of an audio file is a `video` stream to FFmpeg."""
    import av

    return bool(stream.disposition & av.stream.Disposition.attached_pic)


def _sar(stream: Any) -> Fraction:
    sar = stream.sample_aspect_ratio
    # Nonsense (0:1, or a pixel 20 times wider than high) is treated as unset, as players do.
    return Fraction(sar) if sar and Fraction(1, 20) <= sar <= 20 else Fraction(1)


def _has_alpha(frame: Any, stream: Any) -> bool:
    # VP8/VP9 keep alpha as a second stream in the block additions: only the container's tag tells.
    tags = {k.lower(): v for k, v in stream.metadata.items()}
    return any(c.is_alpha for c in frame.format.components) or tags.get("alpha_mode") == "1"


def _duration(container: Any, stream: Any) -> float | None:
    """The video stream's own; the container's, which is its longest stream's, only if it has just one."""
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    tag = {k.lower(): v for k, v in stream.metadata.items()}.get("duration", "")
    match = re.fullmatch(r"(\d+):(\d+):(\d+(?:\.\d+)?)", tag)  # Matroska keeps it as a tag
    if match:
        return int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3])
    alone = len(container.streams) == 1
    return container.duration / 1_000_000 if container.duration and alone else None


def _display_matrix(frame: Any) -> tuple[int, bool] | None:
    """(clockwise rotation, mirrored) of the frame's display matrix, or None when there is none.

    The nine int32 are a b u, c d v, x y w of ISO/IEC 14496-12: x' = a·x + c·y, y' = b·x + d·y, y downwards.
    """
    for side in frame.side_data:
        if "DISPLAYMATRIX" not in str(side.type):
            continue
        a, b, _, c, d = struct.unpack("=5i", bytes(side)[:20])
        if a * d - b * c < 0:
            # Undo the left-right flip that is applied first, to read the rotation that follows.
            return _quarter(-a, -b), True
        return _quarter(a, b), False
    return None


def _quarter(a: int, b: int) -> int:
    return round(math.degrees(math.atan2(b, a)) / 90) % 4 * 90
