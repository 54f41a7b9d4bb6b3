"""Guards the whole of perception: key frames by time, failing backends named, every clip shape survived."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from rvt_ray.config import Config
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.perception.base import Segmentation
from rvt_ray.perception.segment.motion import MotionSegmenter
from rvt_ray.records import CameraMotion, ClipRecord, DigitalTwin, FailureCode
from rvt_ray.twin.build import Perception, choose_key_frames, objects_mask
from rvt_ray.video.frames import ArrayFrames, FrameStream
from tests.perception.scenes import RED, disc_clip, line
from tests.twin.helpers import box_masks, make_clip, make_draft


def perception(**perceive: object) -> Perception:
    return Perception.from_config(Config.model_validate({"perceive": perceive}))


def test_key_frames_follow_time_not_frame_numbers() -> None:
    assert choose_key_frames([i / 30 for i in range(61)], 1.0) == [0, 30, 60]
    assert choose_key_frames([0.0, 0.1, 1.5, 1.6, 2.4, 2.6], 1.0) == [0, 2, 5]
    assert choose_key_frames([0.0], 1.0) == [0]


def test_a_clip_becomes_a_twin_with_the_default_backends() -> None:
    frames, _ = disc_clip([line((20, 35), (140, 35), 40)], [RED])
    clip = make_clip(40, 160, 120, list(frames.pts_s))
    seconds: dict[str, float] = {}
    twin = perception().twin(clip, frames, seconds)
    assert set(seconds) == {"segment", "camera", "caption", "depth", "assemble", "decode"}
    assert twin.scene.camera_motion is CameraMotion.STILL
    assert twin.key_frames == [0, 25]
    thing = twin.instances[0]
    assert ("colour", "red") in {(a.name, a.value) for a in thing.attributes}
    assert np.nanmedian([v for v in thing.track.velocity_x if v is not None]) == pytest.approx(77, rel=0.2)
    assert twin.provenance.segment == "motion"
    assert "numpy" in json.loads(twin.provenance.versions)
    assert DigitalTwin.from_table(DigitalTwin.to_table([twin])) == [twin]


def test_a_one_frame_clip_becomes_a_twin() -> None:
    frames = ArrayFrames(np.full((1, 60, 80, 3), 120, np.uint8), np.zeros(1))
    twin = perception().twin(make_clip(1, 80, 60, [0.0]), frames)
    assert twin.instances == []
    assert twin.scene.camera_motion is CameraMotion.UNKNOWN


def test_a_backend_that_raises_fails_the_clip_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, clip: ClipRecord, frames: FrameStream, keys: Sequence[int]) -> Segmentation:
        raise ZeroDivisionError("no pixels")

    monkeypatch.setattr(MotionSegmenter, "segment", broken)
    frames = ArrayFrames(np.zeros((2, 60, 80, 3), np.uint8), np.array([0.0, 0.1]))
    with pytest.raises(ClipError, match=r"'motion' failed: ZeroDivisionError: no pixels") as error:
        perception().twin(make_clip(2, 80, 60), frames)
    assert error.value.code is FailureCode.BACKEND_ERROR


def test_a_clip_error_of_a_backend_keeps_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, clip: ClipRecord, frames: FrameStream, keys: Sequence[int]) -> Segmentation:
        raise ClipError(FailureCode.DECODE_TIMEOUT, "hung")

    monkeypatch.setattr(MotionSegmenter, "segment", broken)
    frames = ArrayFrames(np.zeros((2, 60, 80, 3), np.uint8), np.array([0.0, 0.1]))
    with pytest.raises(ClipError) as error:
        perception().twin(make_clip(2, 80, 60), frames)
    assert error.value.code is FailureCode.DECODE_TIMEOUT


def test_a_mistyped_backend_or_option_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'motion'"):
        perception(segment={"backend": "motoin"})
    with pytest.raises(ConfigError, match="working_side"):
        perception(segment={"backend": "motion", "options": {"working_sid": 320}})


def test_the_camera_is_not_blinded_by_masks_that_cover_everything() -> None:
    full = make_draft(1, box_masks([(0, 0, 40, 30)] * 2))
    half = make_draft(1, box_masks([(0, 0, 20, 30)] * 2))
    assert objects_mask(Segmentation([full], [0]), 30, 40)(0) is None
    mask = objects_mask(Segmentation([half], [0]), 30, 40)(0)
    assert mask is not None
    assert mask.sum() == 600
    assert objects_mask(Segmentation([], [0]), 30, 40)(0) is None
