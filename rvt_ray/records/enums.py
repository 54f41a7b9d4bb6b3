"""Closed vocabularies of the tables. The string values are contract."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class Task(StrEnum):
    """The four reasoning visual tasks (paper, section 2.1)."""

    SEGMENTATION = "segmentation"
    GROUNDING = "grounding"
    SUMMARY = "summary"
    VQA = "vqa"


class Category(StrEnum):
    """The reasoning categories; a query may have several."""

    SEMANTIC = "semantic"
    SPATIAL = "spatial"
    TEMPORAL = "temporal"


class Verdict(StrEnum):
    """What a gate said. A gate that could not run says `not_run`, never `pass`."""

    PASS = "pass"
    FAIL = "fail"
    NOT_RUN = "not_run"


class Wording(StrEnum):
    """Who wrote the query's words."""

    LLM = "llm"
    TEMPLATE = "template"


class TrackStatus(StrEnum):
    """Uncertain tracks stay in the domain of every program, but are never targets."""

    CONFIRMED = "confirmed"
    UNCERTAIN = "uncertain"


class Absence(StrEnum):
    """Why an instance cannot be seen on a frame."""

    OCCLUDED = "occluded"
    OUT = "out"
    UNKNOWN = "unknown"


class Coverage(StrEnum):
    """Which things of the picture a twin holds, by its segmenter's claim.

    `everything`: every thing that one could ask about, so what is not in the twin is not there. `some`: those
    that it found, or that somebody chose; that there is no other thing cannot be known from the twin.
    """

    EVERYTHING = "everything"
    SOME = "some"


class DepthKind(StrEnum):
    """What a depth number means.

    `relative_inverse`: bigger is nearer, comparable inside one frame only. `metric`: metres from the
    camera plane, smaller is nearer, comparable everywhere. `none`: there is no depth.
    """

    RELATIVE_INVERSE = "relative_inverse"
    METRIC = "metric"
    NONE = "none"


class CameraMotion(StrEnum):
    """The clip as a whole."""

    STILL = "still"
    MOVING = "moving"
    UNKNOWN = "unknown"


class Stage(StrEnum):
    """The stages of the jobs: four build a corpus, in this order (`caption` only where a model captions);
    `solve` answers a corpus's questions."""

    INDEX = "index"
    PERCEIVE = "perceive"
    CAPTION = "caption"
    GENERATE = "generate"
    SOLVE = "solve"


BUILD_STAGES = (Stage.INDEX, Stage.PERCEIVE, Stage.CAPTION, Stage.GENERATE)
"""What `rvt-ray build` runs, in order."""


class VideoFlag(StrEnum):
    """What is odd, but usable, about a video."""

    ROTATED = "rotated"
    VFR = "vfr"
    NON_SQUARE_PIXELS = "non_square_pixels"
    HDR = "hdr"
    HIGH_BIT_DEPTH = "high_bit_depth"
    ALPHA = "alpha"
    ODD_SIZE = "odd_size"
    SINGLE_FRAME = "single_frame"
    TRUNCATED = "truncated"
    DUPLICATE_FRAMES = "duplicate_frames"
    NON_MONOTONIC_PTS = "non_monotonic_pts"
    HEADER_FRAME_COUNT_WRONG = "header_frame_count_wrong"
    DECODER_FALLBACK = "decoder_fallback"
    RESCALED = "rescaled"


class FrameFlag(StrEnum):
    """What is odd about single frames."""

    BLACK = "black"
    FROZEN = "frozen"  # nothing changed since the frame before, and for some frames on end
    BLURRED = "blurred"  # against the clip's own sharp frames
    DARK = "dark"
    OVEREXPOSED = "overexposed"
    CUT = "cut"  # a shot begins here that the index stage did not split off


class FailureCode(StrEnum):
    """One code per kind of trouble, so that a thousand failures can be counted and understood."""

    UNREADABLE = "unreadable"  # missing, no permission, URI scheme without a driver
    NOT_A_VIDEO = "not_a_video"  # no demuxer knows these bytes
    NO_VIDEO_STREAM = "no_video_stream"  # audio only
    NO_FRAMES = "no_frames"  # a video stream with zero frames
    UNSUPPORTED_CODEC = "unsupported_codec"
    CORRUPT = "corrupt"  # neither decoder gives a single verified frame, or frames vanish mid-way
    DECODE_TIMEOUT = "decode_timeout"  # the decoder hung and was killed
    DECODER_CRASH = "decoder_crash"  # the decoder's process died (segfault, abort)
    TOO_LARGE = "too_large"  # beyond the configured pixels or duration
    CHANGED_SINCE_INDEX = "changed_since_index"  # the bytes are not those that were indexed
    BAD_ANNOTATION = "bad_annotation"
    BACKEND_ERROR = "backend_error"  # a backend raised
    CLIP_TIMEOUT = "clip_timeout"  # the per-clip deadline passed
    WORKER_DIED = "worker_died"  # the clip killed its worker on every attempt
    LLM_ERROR = "llm_error"
    INTERNAL = "internal"


AuditWord = Literal["correct", "wrong", "ambiguous", "ungrammatical", "leaks"]
"""What a person says of a sample on the audit page."""
