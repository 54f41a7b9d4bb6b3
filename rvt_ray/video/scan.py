"""The full decode of a video at indexing: count, times, identical frames, shots. Runs in the decode child."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np

from rvt_ray.config.settings import ShotSettings
from rvt_ray.errors import ClipError
from rvt_ray.records.enums import FailureCode
from rvt_ray.video.decoders import Decoder, make_decoder
from rvt_ray.video.frames import FrameArray
from rvt_ray.video.probe import OPEN_OPTIONS, VideoProbe

# Shot detection looks at frames of this width at most: cuts are global, and detection must not cost more
# than decoding.
_SHOT_WIDTH = 256
# Reordering: a refused packet this close to the end has frames after it that were sent before it.
_DECODER_DELAY = 8


@dataclass
class Scan:
    """What a decoder really gave.

    Attributes:
        decoder, version: who decoded.
        pts_s: seconds from the first frame, as the decoder says; NaN where it does not.
        digests: of every frame as stored; equal frames have equal digests.
        identical: indices of frames that equal the frame before, bit by bit.
        cuts: first frames of new shots.
        packets, damage: how many packets there were, and the numbers of those that were refused.
        doubts: why the result should not be trusted; empty when verified.
    """

    decoder: str
    version: str
    pts_s: list[float] = field(default_factory=list)
    digests: list[int] = field(default_factory=list)
    identical: list[int] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    packets: int = 0
    damage: list[int] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    @property
    def damaged_midway(self) -> bool:
        """A packet was refused after the film had begun, and the film went on after it.

        A cut that does not begin at a key frame loses its first packets; that harms nothing.
        """
        return any(_DECODER_DELAY < at < self.packets - _DECODER_DELAY for at in self.damage)

    @property
    def damaged_tail(self) -> bool:
        """The last packets were refused: the film was longer once."""
        return any(at >= self.packets - _DECODER_DELAY for at in self.damage)


def scan(
    path: str,
    probe: VideoProbe,
    decoder_name: str,
    shots: ShotSettings,
    max_duration_s: float,
    tick: Callable[[], None],
) -> Scan:
    """Decode everything once; memory does not grow with the frames' size times their number.

    Args:
        tick: called after every frame: the sign of life that the deadline waits for.

    Raises:
        ClipError: the decoder gave up, or the video is longer than allowed.
    """
    decoder = make_decoder(decoder_name)
    result = Scan(decoder_name, decoder.version)
    detect = shot_detector(shots, probe.fps)
    previous: FrameArray | None = None
    for i, (pts_s, image) in enumerate(decoder.frames(path, probe)):
        if i == 0 and decoder_name != "pyav":
            _check_first_frame(result, path, probe, image)
        if pts_s is not None and pts_s > max_duration_s:
            raise ClipError(
                FailureCode.TOO_LARGE,
                f"{path}: longer than index.max_duration_s = {max_duration_s:g}. Split it, or raise that",
            )
        result.pts_s.append(float("nan") if pts_s is None else pts_s)
        digest = frame_digest(image)
        if previous is not None and digest == result.digests[-1] and np.array_equal(image, previous):
            result.identical.append(i)
        result.digests.append(digest)
        # Decoders may reuse their buffer.
        previous = image if image.base is None else image.copy()
        result.cuts += detect(i, image)
        tick()
    result.cuts = sorted({c for c in result.cuts if 0 < c < len(result.pts_s)})
    result.packets, result.damage = decoder.packets, list(decoder.damage)
    if decoder_name == "decord":
        _check_against_packets(result, path, probe)
    return result


def verify_seeks(
    path: str,
    probe: VideoProbe,
    decoder_name: str,
    starts: list[tuple[int, float]],
    digests: list[int],
    tick: Callable[[], None],
) -> list[int]:
    """Clips are decoded from their start, not from 0: which starts give another frame than the full pass did?

    Args:
        starts: (frame index, its pts_s) of each clip.
        digests: of those frames, from the full pass.

    Returns:
        The frame indices that fail.
    """
    wrong = []
    decoder = make_decoder(decoder_name)
    for (start, pts_s), digest in zip(starts, digests, strict=True):
        frames = decoder.frames(path, probe, start, pts_s)
        got = next(iter(frames), None)
        if got is None or frame_digest(got.image) != digest:
            wrong.append(start)
        tick()
    return wrong


def frame_digest(image: FrameArray) -> int:
    """A cheap fingerprint: CRC-32 of every third pixel of every third row."""
    return zlib.crc32(np.ascontiguousarray(image[::3, ::3]).tobytes())


def shot_detector(shots: ShotSettings, fps: float | None) -> Callable[[int, FrameArray], list[int]]:
    """A function that takes frames in order and returns the first frames of new shots, once known."""
    if shots.detector == "none":
        return lambda index, image: []
    from scenedetect import AdaptiveDetector, ContentDetector, FrameTimecode

    rate = fps if fps and 0.1 <= fps <= 1000 else 25.0
    options: dict[str, Any] = {"min_scene_len": max(1, round(shots.min_shot_s * rate))}
    detector: Any
    if shots.detector == "adaptive":
        if shots.threshold is not None:
            options["adaptive_threshold"] = shots.threshold
        detector = AdaptiveDetector(**options)
    else:
        if shots.threshold is not None:
            options["threshold"] = shots.threshold
        detector = ContentDetector(**options)

    def detect(index: int, image: FrameArray) -> list[int]:
        height, width = image.shape[:2]
        if width > _SHOT_WIDTH:
            size = (_SHOT_WIDTH, max(1, round(height * _SHOT_WIDTH / width)))
            # Every second or third pixel would alias; AREA averages and is still cheap.
            image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
        return [int(cut.frame_num) for cut in detector.process_frame(FrameTimecode(index, rate), bgr)]

    return detect


def _check_first_frame(result: Scan, path: str, probe: VideoProbe, image: FrameArray) -> None:
    """Another decoder's first frame must look the same: catches turned, torn and miscoloured pictures."""
    reference = _reference(probe)
    if reference is None:
        return
    expected = next(iter(reference.frames(path, probe)), None)
    if expected is None:
        return
    if image.shape != expected.image.shape:
        result.doubts.append(f"first frame has shape {image.shape}, expected {expected.image.shape}")
        return
    difference = float(np.abs(image.astype(np.int16) - expected.image.astype(np.int16)).mean())
    # Colour conversions of two FFmpeg versions differ by a few grey levels (matrix, range, rounding).
    if difference > 16:
        result.doubts.append(f"first frame differs by {difference:.0f} grey levels from PyAV's")


def _reference(probe: VideoProbe) -> Decoder | None:
    return None if probe.container == "folder" else make_decoder("pyav")


def _check_against_packets(result: Scan, path: str, probe: VideoProbe) -> None:
    """decord over-reports, repeats and drops without a word; the container's packets are counted instead.

    Where they agree the packets' times replace decord's, which are single precision.
    """
    times = packet_times(path, probe)
    if len(times) != len(result.pts_s):
        result.doubts.append(f"{len(result.pts_s)} frames from {len(times)} packets")
        return
    if any(t is None for t in times):
        result.doubts.append("the container gives no times")
        return
    exact = np.array([float((t - times[0]) * probe.time_base) for t in times if t is not None])
    tolerance = 1e-3 + 1e-6 * exact
    if np.any(np.abs(exact - np.array(result.pts_s)) > tolerance):
        result.doubts.append("frame times are not those of the container")
        return
    if len(exact) > 1 and np.any(np.diff(exact) <= 0):
        result.doubts.append("frame times do not increase")
    result.pts_s = [float(t) for t in exact]


def packet_times(path: str, probe: VideoProbe) -> list[Any]:
    """Presentation times of all shown packets in `time_base` units, ascending; read without decoding."""
    import av

    times: list[int | None] = []
    with av.open(path, options=OPEN_OPTIONS) as container:
        try:
            for packet in container.demux(container.streams[probe.stream_index]):
                if packet.size and not packet.is_discard:
                    times.append(packet.pts)
        except av.error.FFmpegError:
            # The demuxer gives up where the file ends too early; the count so far is what exists.
            times = list(times)
    if any(t is None for t in times):
        return times
    return sorted(t for t in times if t is not None)
