"""Every odd or broken kind of file: a right clip with its flag, or a failure with its own code."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from rvt_ray.errors import ClipError
from rvt_ray.records import FailureCode, Stage
from tests.video.helpers import index, read
from tests.video.media import is_upright, moving, number_of, picture, write_audio, write_video

Make = Callable[[Path], object]

# file name, how it is made, flags, (width, height) of the upright frame
ODD: dict[str, tuple[str, Make, set[str], tuple[int, int]]] = {
    "plain": ("a.mp4", write_video, set(), (128, 96)),
    "quarter_turn": (
        "a.mp4",
        lambda p: write_video(p, size=(96, 128), stored=90),
        {"rotated", "decoder_fallback"},
        (96, 128),
    ),
    "half_turn": ("a.mp4", lambda p: write_video(p, stored=180), {"rotated", "decoder_fallback"}, (128, 96)),
    "three_quarter_turn": (
        "a.mp4",
        lambda p: write_video(p, size=(96, 128), stored=270),
        {"rotated", "decoder_fallback"},
        (96, 128),
    ),
    "wide_pixels": (
        "a.mp4",
        lambda p: write_video(p, sar=Fraction(3, 2)),
        {"non_square_pixels"},
        (192, 96),
    ),
    "high_pixels": (
        "a.mp4",
        lambda p: write_video(p, sar=Fraction(3, 4)),
        {"non_square_pixels"},
        (128, 128),
    ),
    "turned_wide_pixels": (
        # stored as 96x128; its pixels are half as high again as wide once it is turned
        "a.mp4",
        lambda p: write_video(p, sar=Fraction(3, 2), stored=90),
        {"non_square_pixels", "rotated", "decoder_fallback"},
        (128, 144),
    ),
    "ten_bit": (
        "a.mp4",
        lambda p: write_video(p, pix_fmt="yuv420p10le"),
        {"high_bit_depth"},
        (128, 96),
    ),
    "hdr": (
        "a.mp4",
        lambda p: write_video(p, pix_fmt="yuv420p10le", transfer=16),
        {"high_bit_depth", "hdr"},
        (128, 96),
    ),
    "alpha_mov": ("a.mov", lambda p: write_video(p, codec="qtrle", pix_fmt="argb"), {"alpha"}, (128, 96)),
    "alpha_webm": (
        "a.webm",
        lambda p: write_video(p, codec="libvpx-vp9", pix_fmt="yuva420p", options={"deadline": "realtime"}),
        {"alpha"},
        (128, 96),
    ),
    "odd_size": (
        "a.mp4",
        lambda p: write_video(p, size=(127, 95), pix_fmt="yuv444p"),
        {"odd_size"},
        (127, 95),
    ),
    "prores": (
        "a.mov",
        lambda p: write_video(p, codec="prores_ks", pix_fmt="yuv422p10le"),
        {"high_bit_depth"},
        (128, 96),
    ),
    "avi": ("a.avi", lambda p: write_video(p, codec="mpeg4", options={"b": "2000000"}), set(), (128, 96)),
    "fragmented": (
        "a.mp4",
        lambda p: write_video(p, container_options={"movflags": "frag_keyframe+empty_moov"}),
        set(),
        (128, 96),
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_video_is_upright_right_sized_right_timed_and_flagged(case: str, tmp_path: Path) -> None:
    name, make, flags, size = ODD[case]
    make(tmp_path / name)
    (clip,) = index(tmp_path / name)
    assert set(clip.flags) == flags
    assert (clip.width, clip.height) == size
    assert clip.num_frames == 20
    np.testing.assert_allclose(clip.pts_s, np.arange(20) / 25, atol=2e-3)
    frames = read(clip)
    assert frames.shape == (20, size[1], size[0], 3)
    assert [number_of(f) for f in frames] == list(range(20))
    assert all(is_upright(f) for f in frames)


def cut_short(path: Path, **how: object) -> None:
    write_video(path, moving(40), **how)  # type: ignore[arg-type]
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * 0.6)])


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("a.mp4", {"container_options": {"movflags": "faststart"}}),
        ("a.mkv", {}),
        ("a.webm", {"codec": "libvpx-vp9", "options": {"deadline": "realtime", "cpu-used": "8"}}),
        ("a.avi", {"codec": "mpeg4"}),
    ],
)
def test_a_truncated_file_is_flagged_and_keeps_the_frames_that_decode(
    name: str, how: dict[str, object], tmp_path: Path
) -> None:
    cut_short(tmp_path / name, **how)
    (clip,) = index(tmp_path / name)
    assert "truncated" in clip.flags
    assert 0 < clip.num_frames < 40
    assert len(read(clip)) == clip.num_frames


def test_a_demuxer_that_loses_its_way_is_flagged_as_truncated(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", moving(60))
    data = bytearray(path.read_bytes())
    third = len(data) // 3
    data[third:-4000] = bytes(len(data) - 4000 - third)
    path.write_bytes(data)
    (clip,) = index(path)
    assert "truncated" in clip.flags
    assert clip.num_frames < 60


def test_a_single_frame_is_a_clip(tmp_path: Path) -> None:
    (clip,) = index(write_video(tmp_path / "a.mp4", 1))
    assert clip.flags == ["single_frame"]
    assert clip.pts_s == [0.0]
    assert len(read(clip)) == 1


def test_repeated_frames_are_flagged_when_both_decoders_see_them(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", [picture(min(i, 9)) for i in range(20)], options={"crf": "0"})
    (clip,) = index(path)
    assert clip.flags == ["duplicate_frames"]
    assert clip.decoder == "decord"


def test_a_wrong_header_count_is_flagged(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.avi", codec="mpeg4")
    data = bytearray(path.read_bytes())
    at = data.index(b"strh") + 8 + 32  # dwLength of the AVI stream header
    assert int.from_bytes(data[at : at + 4], "little") == 20
    data[at : at + 4] = (33).to_bytes(4, "little")
    path.write_bytes(data)
    (clip,) = index(path)
    assert "header_frame_count_wrong" in clip.flags
    assert clip.num_frames_header == 33
    assert clip.num_frames == 20


def damaged(path: Path) -> None:
    write_video(path, moving(100), options={"g": "10"}, container_options={"movflags": "faststart"})
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    path.write_bytes(data)


def wrong_fourcc(path: Path) -> None:
    write_video(path)
    data = path.read_bytes()
    at = data.rindex(b"avc1")
    path.write_bytes(data[:at] + b"zzzz" + data[at + 4 :])


def without_index(path: Path) -> None:
    cut_short(path)


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere.mp4"))


BROKEN: dict[str, tuple[Make, FailureCode]] = {
    "zero_frames": (
        lambda p: write_video(p, 0, container_options={"movflags": "frag_keyframe+empty_moov"}),
        FailureCode.NO_FRAMES,
    ),
    "audio_only": (write_audio, FailureCode.NO_VIDEO_STREAM),
    "text": (lambda p: p.write_text("not a film\n" * 50), FailureCode.NOT_A_VIDEO),
    "noise": (lambda p: p.write_bytes(np.random.default_rng(0).bytes(9000)), FailureCode.NOT_A_VIDEO),
    "empty": (lambda p: p.touch(), FailureCode.NOT_A_VIDEO),
    "playlist": (
        lambda p: p.write_text("ffconcat version 1.0\nfile other.mp4\n"),
        FailureCode.NOT_A_VIDEO,
    ),
    "no_index": (without_index, FailureCode.CORRUPT),
    "damaged_midway": (damaged, FailureCode.CORRUPT),
    "unknown_codec": (wrong_fourcc, FailureCode.UNSUPPORTED_CODEC),
    "missing": (lambda p: None, FailureCode.UNREADABLE),
    "dangling_link": (dangling, FailureCode.UNREADABLE),
    "fifo": (os.mkfifo, FailureCode.UNREADABLE),
    "folder": (lambda p: p.mkdir(), FailureCode.NOT_A_VIDEO),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_fails_with_its_own_code_and_its_name(case: str, tmp_path: Path) -> None:
    make, code = BROKEN[case]
    path = tmp_path / "a.mp4"
    make(path)
    with pytest.raises(ClipError) as caught:
        index(path)
    assert caught.value.code is code
    assert caught.value.stage is Stage.INDEX
    assert str(path) in caught.value.message


def test_a_playlist_does_not_make_us_read_the_files_it_names(tmp_path: Path) -> None:
    write_video(tmp_path / "secret.mp4")
    (tmp_path / "a.mp4").write_text("ffconcat version 1.0\nfile secret.mp4\n")
    with pytest.raises(ClipError, match="holds no video of its own"):
        index(tmp_path / "a.mp4")


def test_too_large_and_too_long_videos_are_refused(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4")
    with pytest.raises(ClipError) as caught:
        index(path, max_pixels=100 * 96)
    assert caught.value.code is FailureCode.TOO_LARGE
    with pytest.raises(ClipError) as caught:
        index(path, max_duration_s=0.5)
    assert caught.value.code is FailureCode.TOO_LARGE


def test_a_video_longer_than_its_header_says_is_refused_while_it_is_decoded(tmp_path: Path) -> None:
    # A fragmented file's header is silent about the duration.
    path = write_video(tmp_path / "a.mp4", container_options={"movflags": "frag_keyframe+empty_moov"})
    with pytest.raises(ClipError) as caught:
        index(path, max_duration_s=0.5)
    assert caught.value.code is FailureCode.TOO_LARGE
