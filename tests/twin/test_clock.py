"""Guards where seconds are booked: a wait for frames is the decoder's, whoever waits."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from rvt_ray.twin.clock import Clock, ClockedFrames
from rvt_ray.video.frames import ArrayFrames, FrameWindow

TICK = 0.02


class SlowFrames(ArrayFrames):
    """Takes its time over each window; says when it was let go."""

    closed = 0

    def windows(self, size: int = 16) -> Iterator[FrameWindow]:
        try:
            for window in super().windows(size):
                time.sleep(TICK)
                yield window
        finally:
            SlowFrames.closed += 1


def slow() -> SlowFrames:
    return SlowFrames(np.zeros((4, 8, 8, 3), np.uint8), np.arange(4.0))


def test_a_step_is_without_its_waits_for_frames() -> None:
    seconds: dict[str, float] = {"segment": 1.0}
    clock = Clock(seconds)
    frames = ClockedFrames(slow(), clock)
    start = time.perf_counter()
    with clock.step("segment"):
        for _ in frames.windows(1):
            time.sleep(TICK / 2)
    wall = time.perf_counter() - start
    # A busy machine sleeps longer than it was told, never shorter.
    assert seconds["decode"] >= 4 * TICK
    assert seconds["segment"] - 1.0 >= 2 * TICK
    assert sum(seconds.values()) - 1.0 == pytest.approx(wall, abs=TICK / 4)
    assert set(seconds) == {"segment", "decode"}


def test_what_is_made_one_by_one_is_booked_where_it_is_made() -> None:
    seconds: dict[str, float] = {}
    clock = Clock(seconds)

    def maps() -> Iterator[int]:
        for i in range(3):
            time.sleep(TICK)
            yield i

    start = time.perf_counter()
    with clock.step("assemble"):
        assert list(clock.over("depth", maps())) == [0, 1, 2]
    wall = time.perf_counter() - start
    assert seconds["depth"] >= 3 * TICK
    assert sum(seconds.values()) == pytest.approx(wall, abs=TICK / 4)


def test_an_error_is_booked_and_passes() -> None:
    seconds: dict[str, float] = {}
    clock = Clock(seconds)
    with pytest.raises(ZeroDivisionError), clock.step("segment"):
        raise ZeroDivisionError
    with clock.step("camera"):
        pass
    assert set(seconds) == {"segment", "camera"}


def test_a_reader_that_stops_early_lets_the_decoder_go() -> None:
    before = SlowFrames.closed
    for _ in ClockedFrames(slow(), Clock({})).windows(1):
        break
    assert SlowFrames.closed == before + 1


def test_the_clip_is_the_same_through_the_clock() -> None:
    plain, clocked = slow(), ClockedFrames(slow(), Clock({}))
    assert (clocked.num_frames, clocked.height, clocked.width) == (4, 8, 8)
    np.testing.assert_array_equal(clocked.pts_s, plain.pts_s)
    assert [i for i, _ in clocked.frames_at([1, 3])] == [1, 3]
