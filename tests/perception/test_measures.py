"""Guards the frame operators: each oddity is flagged where it is, and ordinary frames are left alone."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from rvt_ray.perception.operators import flags_of, look_through
from rvt_ray.records import FrameFlag, FrameMeasure
from rvt_ray.video.frames import ArrayFrames
from tests.perception.scenes import camera_clip, disc_clip, similarity, texture

HEIGHT, WIDTH, FRAMES = 120, 160, 20
GREEN = (40, 160, 60)


def shaky(frames: int = FRAMES, seed: int = 0) -> np.ndarray:
    """A textured picture under sensor noise, seen by a camera that pans slowly."""
    clip = camera_clip(
        [similarity(0.5 * t, 0, 1, 0, HEIGHT, WIDTH)[:2] for t in range(frames)], HEIGHT, WIDTH
    )
    pictures = next(clip.windows(frames)).frames.astype(np.float32)
    noise = np.random.default_rng(seed).normal(0, 2, pictures.shape)
    return np.clip(pictures + noise, 0, 255).astype(np.uint8)


def measured(frames: np.ndarray, fps: float = 25.0) -> list[FrameMeasure]:
    return look_through(ArrayFrames(frames, np.arange(len(frames)) / fps))[1]


def flagged(frames: np.ndarray, flag: FrameFlag, fps: float = 25.0) -> list[int]:
    return [i for i, measure in enumerate(measured(frames, fps)) if flag in measure.flags]


def test_an_ordinary_clip_has_no_flags() -> None:
    measures = measured(shaky())
    assert flags_of(measures) == []
    assert [m.change is None for m in measures] == [True] + [False] * (FRAMES - 1)
    assert all(0.2 < m.brightness < 0.8 for m in measures)


def test_black_frames_are_black_and_not_dark_or_blurred() -> None:
    frames = shaky()
    frames[7:10] = np.random.default_rng(0).integers(0, 6, frames[7:10].shape, np.uint8)
    measures = measured(frames)
    assert [i for i, m in enumerate(measures) if m.flags] == [7, 8, 9]
    assert all(m.flags == [FrameFlag.BLACK] for m in measures[7:10])


def test_night_is_dark_and_not_black() -> None:
    night = (shaky() * 0.2).astype(np.uint8)
    assert flagged(night, FrameFlag.DARK) == list(range(FRAMES))
    assert flagged(night, FrameFlag.BLACK) == []


def test_a_burnt_out_frame_is_overexposed() -> None:
    frames = shaky()
    frames[4] = np.clip(frames[4].astype(int) * 3, 0, 255).astype(np.uint8)
    assert flagged(frames, FrameFlag.OVEREXPOSED) == [4]


def test_blurred_frames_are_told_by_the_clips_own_sharp_ones() -> None:
    frames = shaky()
    for t in (5, 6):
        frames[t] = cv2.GaussianBlur(frames[t], (0, 0), 4)
    assert flagged(frames, FrameFlag.BLURRED) == [5, 6]


def test_low_contrast_is_no_blur() -> None:
    frames = shaky()
    frames[5] = (frames[5].astype(float) * 0.4 + 80).astype(np.uint8)
    assert 5 not in flagged(frames, FrameFlag.BLURRED)


def test_a_long_repeat_is_frozen_and_a_single_one_is_not() -> None:
    frames = shaky()
    frames[4] = frames[3]  # frame rate conversion
    frames[8:18] = frames[8]
    assert flagged(frames, FrameFlag.FROZEN) == list(range(9, 18))
    assert flagged(frames[:4].repeat(2, axis=0), FrameFlag.FROZEN) == []


def test_a_few_slow_repeats_are_frozen_by_the_clock_not_by_their_number() -> None:
    frames = shaky()
    frames[8:12] = frames[8]
    assert flagged(frames, FrameFlag.FROZEN, fps=25.0) == []
    assert flagged(frames, FrameFlag.FROZEN, fps=8.0) == [9, 10, 11]


def test_a_cut_that_the_index_missed_is_flagged_once() -> None:
    frames = shaky()
    other = np.clip(texture(HEIGHT, WIDTH, 9).astype(int) * [0.4, 0.7, 1.4], 0, 255).astype(np.uint8)
    frames[11:] = other
    assert flagged(frames, FrameFlag.CUT) == [11]


def test_a_flash_is_no_cut() -> None:
    frames = shaky()
    frames[9] = 255
    assert flagged(frames, FrameFlag.CUT) == []
    assert flagged(frames, FrameFlag.OVEREXPOSED) == [9]


@pytest.mark.parametrize("pan", [0.0, 6.0])
def test_a_large_thing_that_crosses_and_a_fast_pan_are_no_cut(pan: float) -> None:
    path = np.stack([np.linspace(-60, 220, FRAMES), np.full(FRAMES, 60.0)], axis=1)
    frames, _ = disc_clip([path], [GREEN], radius=45, height=HEIGHT, width=WIDTH, pan=pan)
    assert FrameFlag.CUT not in flags_of(look_through(frames)[1])


@pytest.mark.parametrize("frames", [np.zeros((1, 40, 40, 3), np.uint8), np.full((3, 2, 2, 3), 90, np.uint8)])
def test_one_frame_and_tiny_frames_are_measured(frames: np.ndarray) -> None:
    measures = measured(frames)
    assert len(measures) == len(frames)
    assert all(np.isfinite(m.sharpness) for m in measures)
