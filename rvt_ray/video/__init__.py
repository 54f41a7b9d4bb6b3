"""Probe, decode, shots, clips. Native decoders run in a killable child process only; no Ray, no torch."""

from rvt_ray.video.capabilities import Capability, decoder_capabilities
from rvt_ray.video.frames import ArrayFrames, FrameArray, FrameStream, FrameWindow
from rvt_ray.video.identity import content_sha256, video_id
from rvt_ray.video.index import check_decoder, index_video, probe_video
from rvt_ray.video.item import SourceItem
from rvt_ray.video.process import close_idle
from rvt_ray.video.stream import ClipFrames, open_clip

__all__ = [
    "ArrayFrames",
    "Capability",
    "ClipFrames",
    "FrameArray",
    "FrameStream",
    "FrameWindow",
    "SourceItem",
    "check_decoder",
    "close_idle",
    "content_sha256",
    "decoder_capabilities",
    "index_video",
    "open_clip",
    "probe_video",
    "video_id",
]
