"""Reading clips again: exact frames, several passes, bounded memory, changed files."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from rvt_ray.errors import ClipError
from rvt_ray.records import FailureCode
from rvt_ray.video import FrameStream, close_idle, open_clip, process
from tests.video.helpers import index, read, settings
from tests.video.media import moving, number_of, picture, write_video


@pytest.fixture(scope="module")
def long_gop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One key frame, B-frames: every clip but the first needs a seek to before its start."""
    return write_video(
        tmp_path_factory.mktemp("video") / "a.mp4", 60, options={"g": "250", "bf": "3", "preset": "medium"}
    )


@pytest.mark.parametrize("decoder", ["decord", "pyav"])
def test_each_clip_of_a_long_group_of_pictures_starts_at_its_own_frame(decoder: str, long_gop: Path) -> None:
    clips = index(long_gop, decoder=decoder, max_clip_frames=13)
    assert sum(c.num_frames for c in clips) == 60
    for clip in clips:
        numbers = [number_of(f) for f in read(clip)]
        assert numbers == list(range(clip.start_frame, clip.start_frame + clip.num_frames))


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.avi"])
def test_open_groups_of_pictures_and_short_ones_are_sought_exactly(name: str, tmp_path: Path) -> None:
    options = {"g": "8", "bf": "2"} if name == "a.avi" else {"x264-params": "open-gop=1:keyint=8:bframes=3"}
    codec = "mpeg4" if name == "a.avi" else "libx264"
    path = write_video(tmp_path / name, 40, codec=codec, options=options)
    for decoder in ("pyav", "auto"):
        clips = index(path, decoder=decoder, max_clip_frames=9)
        assert [number_of(f) for clip in clips for f in read(clip)] == list(range(40))


def test_a_stream_can_be_read_again_and_inside_itself(long_gop: Path) -> None:
    (clip,) = index(long_gop)
    stream: FrameStream = open_clip(clip, settings())
    assert (stream.num_frames, stream.height, stream.width) == (60, 96, 128)
    np.testing.assert_array_equal(stream.pts_s, clip.pts_s)
    for outer in stream.windows(25):
        inner = [number_of(f) for w in stream.windows(16) for f in w.frames]
        assert inner == list(range(60))
        assert [number_of(f) for f in outer.frames] == outer.indices.tolist()


def test_windows_have_the_asked_size_and_stay_valid(long_gop: Path) -> None:
    (clip,) = index(long_gop)
    windows = list(open_clip(clip, settings()).windows(25))
    assert [len(w.indices) for w in windows] == [25, 25, 10]
    assert [number_of(f) for w in windows for f in w.frames] == list(range(60))
    with pytest.raises(ValueError, match="read-only"):
        windows[0].frames[0] = 0


def test_a_reader_that_stops_early_leaves_the_child_usable(long_gop: Path) -> None:
    (clip,) = index(long_gop)
    for _ in range(3):
        for _window in open_clip(clip, settings()).windows(4):
            break
    assert [number_of(f) for f in read(clip)] == list(range(60))


def test_single_frames_come_in_order(long_gop: Path) -> None:
    (clip,) = index(long_gop)
    stream = open_clip(clip, settings())
    assert [(i, number_of(f)) for i, f in stream.frames_at([0, 1, 33, 59])] == [
        (0, 0),
        (1, 1),
        (33, 33),
        (59, 59),
    ]
    assert list(stream.frames_at([])) == []
    with pytest.raises(ValueError, match=r"ascend inside 0\.\.59"):
        list(stream.frames_at([3, 2]))


def test_a_file_that_changed_since_it_was_indexed_is_refused(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4")
    (clip,) = index(path)
    write_video(path, 21)
    with pytest.raises(ClipError) as caught:
        open_clip(clip, settings())
    assert caught.value.code is FailureCode.CHANGED_SINCE_INDEX
    path.unlink()
    with pytest.raises(ClipError) as caught:
        open_clip(clip, settings())
    assert caught.value.code is FailureCode.UNREADABLE


def test_frames_are_scaled_down_to_max_side_and_flagged(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", size=(96, 128), stored=90)
    (clip,) = index(path, max_side=64)
    assert (clip.width, clip.height) == (48, 64)
    assert "rescaled" in clip.flags
    frames = read(clip)
    assert frames.shape == (20, 64, 48, 3)
    assert [number_of(f) for f in frames] == list(range(20))


def test_shots_become_clips_and_hold_every_frame_once(tmp_path: Path) -> None:
    images = [i for seed in (1, 2, 3) for i in moving(30, seed=seed)]
    images[30:60] = [255 - i // 2 for i in images[30:60]]
    path = write_video(tmp_path / "a.mp4", images)
    clips = index(path, shots={"detector": "adaptive"})
    assert [(c.start_frame, c.num_frames) for c in clips] == [(0, 30), (30, 30), (60, 30)]
    clips = index(path, shots={"detector": "content"}, max_clip_frames=20)
    assert [(c.start_frame, c.num_frames) for c in clips] == [(i * 15, 15) for i in range(6)]
    assert np.all(np.diff([t for c in clips for t in c.pts_s]) > 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_the_length_of_the_clip(tmp_path: Path) -> None:
    def peak(frames: int) -> tuple[int, int]:
        """(parent's arrays, child's resident set) in bytes."""
        close_idle()
        path = write_video(tmp_path / f"{frames}.mp4", frames, size=(320, 240))
        (clip,) = index(path, max_clip_frames=frames, max_clip_s=1000)
        tracemalloc.start()
        for window in open_clip(clip, settings()).windows(8):
            assert window.frames.shape[1:] == (240, 320, 3)
        parent = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        with process.lease() as child:
            status = Path(f"/proc/{child.pid}/status").read_text()
        child_peak = int(next(line for line in status.splitlines() if "VmHWM" in line).split()[1]) * 1024
        return parent, child_peak

    # What decord reads ahead of us, a busy machine's slow reader, is held below `decord_max_mib`.
    short, long = peak(250), peak(3000)
    assert long[0] < 1.3 * short[0]
    assert long[1] < short[1] + 40 * 2**20
    assert long[0] < 3 * 8 * 320 * 240 * 3


def test_decord_is_not_given_what_it_must_not_hold_at_once(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", 40, size=(320, 240))  # 40 frames of 225 KiB: 8.8 MiB
    (small,) = index(path, decord_max_mib=9)
    (large,) = index(path, decord_max_mib=8)
    assert (small.decoder, large.decoder) == ("decord", "pyav")
    assert "decoder_fallback" not in large.flags
    assert small.pts_s == pytest.approx(large.pts_s, abs=1e-6)
    assert (
        index(path, decoder="decord", decord_max_mib=0)[0].decoder == "decord"
    )  # whoever asks for it gets it


def test_indexing_twice_gives_the_same_rows(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", [picture(i % 200) for i in range(40)])
    assert index(path, max_clip_frames=7) == index(path, max_clip_frames=7)
