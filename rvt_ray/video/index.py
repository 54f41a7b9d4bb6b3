"""Video -> clips: one full, verified decode in the child; then flags, times, shots and spans."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np

from rvt_ray.backends import resolve
from rvt_ray.config.settings import IndexSettings
from rvt_ray.errors import ClipError
from rvt_ray.records.clip import ClipRecord, clip_id
from rvt_ray.records.enums import FailureCode, Stage, VideoFlag
from rvt_ray.video.decoders import BUILTIN
from rvt_ray.video.identity import content_sha256, video_id
from rvt_ray.video.item import SourceItem
from rvt_ray.video.local import local_path
from rvt_ray.video.probe import VideoProbe
from rvt_ray.video.process import lease
from rvt_ray.video.scan import Scan
from rvt_ray.video.timeline import Times, cut, ends_early, is_vfr, repair

log = logging.getLogger(__name__)


def check_decoder(name: str) -> None:
    """Refuse a decoder name that leads nowhere, before any work.

    Raises:
        ConfigError: unknown name, module or class.
    """
    if name != "auto":
        resolve(name, BUILTIN, "index.decoder")


def probe_video(item: SourceItem, settings: IndexSettings) -> VideoProbe:
    """Header and first frame of a video or folder of frames, read in the decode child.

    Raises:
        ClipError: it is not a video that can be decoded.
    """
    path = str(local_path(item.uri, folder=item.kind == "frames"))
    with lease() as child:
        found: VideoProbe = child.ask("probe", path, settings.decode_timeout_s, path=path, fps=item.fps)
    return found


def index_video(item: SourceItem, settings: IndexSettings) -> list[ClipRecord]:
    """Decode a video once, completely, and cut it into clips.

    Args:
        item: from a source; its `sha256` is computed when it is None.
        settings: decoder, bounds and shot detection.

    Returns:
        Clips in order; at least one; together they hold every decoded frame exactly once.

    Raises:
        ClipError: with stage `index` and a code that says what is wrong with this video.
        ConfigError: `index.decoder` names no decoder.
    """
    check_decoder(settings.decoder)
    try:
        return _index(item, settings)
    except ClipError as error:
        raise ClipError(error.code, error.message, error.stage or Stage.INDEX) from error


def _index(item: SourceItem, settings: IndexSettings) -> list[ClipRecord]:
    path = str(local_path(item.uri, folder=item.kind == "frames"))
    try:
        return _index_local(item, path, settings)
    except ClipError as error:
        # The user knows the URI, not where its copy lies.
        raise ClipError(error.code, error.message.replace(path, item.uri), error.stage) from error


def _index_local(item: SourceItem, path: str, settings: IndexSettings) -> list[ClipRecord]:
    if item.kind == "video" and Path(path).is_dir():
        raise ClipError(
            FailureCode.NOT_A_VIDEO, f"{path}: a folder, not a video. Use a source of type 'frames'"
        )
    seen = probe_video(item, settings)
    width, height = seen.upright_size()
    if width * height > settings.max_pixels:
        raise ClipError(
            FailureCode.TOO_LARGE,
            f"{path}: {width}x{height} is beyond index.max_pixels = {settings.max_pixels}. Scale it down, "
            "or raise the limit",
        )
    if seen.duration_s is not None and seen.duration_s > settings.max_duration_s:
        raise ClipError(
            FailureCode.TOO_LARGE,
            f"{path}: {seen.duration_s:.0f} s is beyond index.max_duration_s = {settings.max_duration_s:g}. "
            "Split it, or raise the limit",
        )
    sha256 = item.sha256 or content_sha256(item)
    scan, flags = _decode(path, seen, settings, item.kind == "frames")
    if not scan.pts_s:
        raise ClipError(FailureCode.CORRUPT, f"{path}: {scan.decoder} gives no frame at all. Drop it")
    pts_s, repaired = repair(np.array(scan.pts_s), seen.fps)
    flags |= _flags(seen, scan, pts_s, repaired, settings)
    width, height = seen.upright_size(settings.max_side)
    spans = cut(pts_s, scan.cuts, settings.max_clip_s, settings.max_clip_frames, settings.min_clip_frames)
    return [
        ClipRecord(
            clip_id=clip_id(video_id(sha256), start, stop - start),
            video_id=video_id(sha256),
            source=item.source,
            name=item.name,
            uri=item.uri,
            sha256=sha256,
            license=item.license,
            start_frame=start,
            num_frames=stop - start,
            pts_s=[float(t) for t in pts_s[start:stop]],
            fps_nominal=seen.fps,
            width=width,
            height=height,
            rotation=seen.rotation,
            decoder=scan.decoder,
            decoder_version=scan.version,
            num_frames_header=seen.header_frames,
            flags=sorted(f.value for f in flags),
            annotation_uri=item.annotation_uri,
            annotation_format=item.annotation_format,
            annotation_sha256=item.annotation_sha256,
        )
        for start, stop in spans
    ]


def _decode(
    path: str, seen: VideoProbe, settings: IndexSettings, frames: bool
) -> tuple[Scan, set[VideoFlag]]:
    """The full pass: with `auto` decord for small videos, PyAV for others and where decord fails."""
    if frames or settings.decoder != "auto":
        name = "images" if frames else settings.decoder
        scan = _scan(path, seen, settings, name)
        if scan.doubts:
            raise ClipError(
                FailureCode.CORRUPT,
                f"{path}: {name} cannot be trusted with it: {'; '.join(scan.doubts)}. Use index.decoder=auto",
            )
        return scan, set()
    if not _small_enough_for_decord(seen, seen.frames_estimate, settings):
        return _scan(path, seen, settings, "pyav"), set()
    first: Scan | None = None
    why = "the file is cut short, on which decord may hang" if seen.missing_bytes else ""
    if not why:
        try:
            first = _scan(path, seen, settings, "decord")
            why = "; ".join(first.doubts)
        except ClipError as error:
            why = error.message
    larger = first is not None and not _small_enough_for_decord(seen, len(first.pts_s), settings)
    if first is not None and not why and not first.identical and not larger:
        return first, set()
    second = _scan(path, seen, settings, "pyav")
    if larger and not why:
        # The header claimed fewer frames than there are.
        return second, set()
    if first is not None and not why:
        # decord repeats frames that it cannot decode. It is right only if the film itself stands still there.
        if first.identical == second.identical and len(first.pts_s) == len(second.pts_s):
            return first, set()
        why = f"{len(first.identical)} repeated frames"
    log.info("%s: decoded by PyAV, not decord: %s", path, why)
    return second, {VideoFlag.DECODER_FALLBACK}


def _small_enough_for_decord(seen: VideoProbe, frames: int | None, settings: IndexSettings) -> bool:
    """May decord hold all frames at once?

    It pushes packets as fast as it can read them for as long as no frame has come out, and then decodes them
    all, however slowly its reader takes them: 10 to 1,000 frames ahead, more on a busy machine.
    """
    if frames is None:
        return False
    return frames * seen.coded_width * seen.coded_height * 3 <= settings.decord_max_mib * 2**20


def _scan(path: str, seen: VideoProbe, settings: IndexSettings, decoder: str) -> Scan:
    with lease() as child:
        timeout = settings.decode_timeout_s
        scan: Scan = child.ask(
            "scan",
            path,
            timeout,
            path=path,
            probe=seen,
            decoder_name=decoder,
            shots=settings.shots,
            max_duration_s=settings.max_duration_s,
        )
        if scan.damaged_midway and seen.missing_bytes == 0:
            raise ClipError(
                FailureCode.CORRUPT,
                f"{path}: {len(scan.damage)} of {scan.packets} packets do not decode, the first is number "
                f"{scan.damage[0]}: frames are missing in its middle. Copy it again, or re-encode it",
            )
        if decoder == "decord" and not scan.doubts:
            times = np.array(scan.pts_s)
            spans = cut(
                times, scan.cuts, settings.max_clip_s, settings.max_clip_frames, settings.min_clip_frames
            )
            starts = [(start, float(times[start])) for start, _ in spans[1:]]
            digests = [scan.digests[start] for start, _ in starts]
            wrong = child.ask(
                "verify_seeks",
                path,
                timeout,
                path=path,
                probe=seen,
                decoder_name=decoder,
                starts=starts,
                digests=digests,
            )
            if wrong:
                scan = replace(scan, doubts=[f"seeking to frame {wrong[0]} gives another frame"])
    return scan


def _flags(
    seen: VideoProbe, scan: Scan, pts_s: Times, repaired: bool, settings: IndexSettings
) -> set[VideoFlag]:
    count = len(pts_s)
    width, height = seen.upright_size()
    short = scan.damaged_tail or seen.missing_bytes > 0 or ends_early(pts_s, seen.duration_s, seen.fps)
    tests = {
        VideoFlag.ROTATED: seen.rotation != 0 or seen.mirrored,
        VideoFlag.VFR: is_vfr(pts_s, float(seen.time_base)),
        VideoFlag.NON_SQUARE_PIXELS: seen.sar != 1,
        VideoFlag.HDR: seen.hdr,
        VideoFlag.HIGH_BIT_DEPTH: seen.bit_depth > 8,
        VideoFlag.ALPHA: seen.alpha,
        VideoFlag.ODD_SIZE: width % 2 == 1 or height % 2 == 1,
        VideoFlag.SINGLE_FRAME: count == 1,
        VideoFlag.TRUNCATED: short,
        VideoFlag.DUPLICATE_FRAMES: bool(scan.identical),
        VideoFlag.NON_MONOTONIC_PTS: repaired,
        VideoFlag.HEADER_FRAME_COUNT_WRONG: seen.header_frames not in (None, count),
        VideoFlag.RESCALED: (width, height) != seen.upright_size(settings.max_side),
    }
    return {flag for flag, true in tests.items() if true}
