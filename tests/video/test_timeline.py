"""Times and spans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rvt_ray.video.timeline import cut, ends_early, is_vfr, repair
from tests.video.helpers import index, read
from tests.video.media import number_of, write_video


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_variable_frame_rate_keeps_its_own_times(name: str, tmp_path: Path) -> None:
    times = [i * 40 for i in range(10)] + [400 + i * 100 for i in range(10)]
    (clip,) = index(write_video(tmp_path / name, times=times))
    assert "vfr" in clip.flags
    np.testing.assert_allclose(clip.pts_s, np.array(times) / 1000, atol=1e-4)


def test_times_start_at_zero_even_if_the_container_does_not(tmp_path: Path) -> None:
    times = [5000 + 40 * i for i in range(20)]
    first, second = index(write_video(tmp_path / "a.mkv", times=times), max_clip_frames=10)
    np.testing.assert_allclose(first.pts_s, np.arange(10) / 25, atol=1e-3)
    np.testing.assert_allclose(second.pts_s, np.arange(10, 20) / 25, atol=1e-3)
    assert [number_of(f) for f in read(second)] == list(range(10, 20))


def test_times_that_do_not_increase_are_repaired_and_flagged(tmp_path: Path) -> None:
    path = write_video(
        tmp_path / "a.mkv", codec="mpeg4", times=[40 * i for i in range(20)], options={"g": "1"}
    )
    data = bytearray(path.read_bytes())
    # A SimpleBlock: track number, time relative to its cluster (int16), flags. Frame 10 gets frame 9's time.
    at = data.index(b"\x81" + (400).to_bytes(2, "big"))
    data[at + 1 : at + 3] = (360).to_bytes(2, "big")
    path.write_bytes(data)
    clips = index(path, max_clip_frames=10)
    assert all("non_monotonic_pts" in c.flags for c in clips)
    np.testing.assert_allclose([t for c in clips for t in c.pts_s], np.arange(20) / 25, atol=1e-3)
    assert [number_of(f) for c in clips for f in read(c)] == list(range(20))


TIMES = st.lists(st.floats(-1e3, 1e4) | st.just(float("nan")), min_size=1, max_size=60)


@given(TIMES, st.none() | st.floats(1, 120))
@example([float("nan"), 0.0, 1e-54, 1.0], None)
def test_repaired_times_start_at_zero_and_strictly_increase(times: list[float], fps: float | None) -> None:
    repaired, _ = repair(np.array(times), fps)
    assert repaired[0] == 0
    assert len(repaired) == len(times)
    assert np.all(np.diff(repaired) > 0)


@given(st.lists(st.floats(1e-3, 10), min_size=1, max_size=60))
def test_good_times_are_left_alone(deltas: list[float]) -> None:
    times = np.cumsum(deltas)
    repaired, touched = repair(times, None)
    assert not touched
    np.testing.assert_array_equal(repaired, times - times[0])


def test_a_missing_time_lies_between_its_neighbours() -> None:
    repaired, touched = repair(np.array([1.0, np.nan, 1.2, 1.1, 1.4]), 25)
    assert touched
    np.testing.assert_allclose(repaired, [0, 0.1, 0.2, 0.3, 0.4])


def test_rounding_to_a_coarse_clock_is_not_a_variable_rate() -> None:
    assert not is_vfr(np.round(np.arange(500) * 1001 / 30000, 3), 1e-3)


def test_a_single_gap_is_a_variable_rate() -> None:
    times = np.arange(50) / 25
    times[30:] += 0.04
    assert is_vfr(times, 1e-3)


def test_a_slow_drift_is_a_variable_rate() -> None:
    assert is_vfr(np.cumsum(np.linspace(0.040, 0.046, 200)), 1e-3)


def test_a_last_frame_that_stays_is_not_an_early_end() -> None:
    slides = np.array([0.0, 5.0, 10.0, 15.0])
    assert not ends_early(slides, 20.0, None)
    assert not ends_early(np.zeros(1), 5.0, 0.2)
    assert ends_early(np.zeros(1), 5.0, 25.0)
    assert ends_early(np.arange(100) / 25, 8.0, 25.0)
    assert not ends_early(np.arange(100) / 25, 4.0, 25.0)


@given(
    st.integers(1, 500),
    st.data(),
    st.floats(0.2, 20),
    st.integers(1, 100),
    st.integers(1, 20),
    st.floats(1, 60),
)
def test_clips_hold_every_frame_once_and_keep_the_bounds(
    count: int, data: st.DataObject, max_s: float, max_frames: int, min_frames: int, fps: float
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, count - 1)), max_size=5)) - {count})
    times = np.arange(count) / fps
    spans = cut(times, cuts, max_s, max_frames, min_frames)
    assert [i for a, b in spans for i in range(a, b)] == list(range(count))
    starts = {a for a, _ in spans}
    assert set(cuts) <= starts
    for start, stop in spans:
        assert stop - start <= max_frames
        longest = times[stop - 1] - times[start]
        # One more piece would have been shorter than min_frames.
        assert longest <= max_s or stop - start < 2 * min_frames + 1
