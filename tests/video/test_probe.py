"""What the header says, and what the container claims."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvt_ray.video import probe_video
from rvt_ray.video.container import looks_like_video, missing_bytes
from rvt_ray.video.probe import VideoProbe
from tests.video.helpers import index, item, read, settings
from tests.video.media import picture, write_video

NAMES = ["a.mp4", "a.mov", "a.mkv", "a.avi"]


def test_the_probe_says_what_the_header_says(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", size=(96, 128), stored=90, sar=Fraction(4, 3))
    found = probe_video(item(path), settings())
    assert (found.codec, found.pix_fmt, found.bit_depth) == ("h264", "yuv420p", 8)
    assert (found.coded_width, found.coded_height, found.rotation) == (128, 96, 90)
    assert found.sar == Fraction(4, 3)
    assert found.header_frames == 20
    assert found.fps == pytest.approx(25)
    assert found.duration_s == pytest.approx(0.8)
    assert (found.video_streams, found.audio_streams) == (1, 0)
    assert not found.hdr


def test_a_mirrored_video_is_unmirrored(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", [picture(5)[:, ::-1] for _ in range(3)])
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 40
    data[at : at + 36] = struct.pack(">9i", -1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    (clip,) = index(path)
    assert clip.rotation == 0
    assert "rotated" in clip.flags
    frame = read(clip)[0].astype(int)
    assert abs(frame - picture(5)).mean() < 12


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_file_misses_nothing_and_a_cut_one_exactly_what_was_cut(name: str, tmp_path: Path) -> None:
    path = write_video(
        tmp_path / name,
        codec="mpeg4",
        container_options={"movflags": "faststart"} if name in ("a.mp4", "a.mov") else {},
    )
    assert looks_like_video(path)
    assert missing_bytes(path) == 0
    path.write_bytes(path.read_bytes()[:-777])
    assert missing_bytes(path) == 777


@given(
    tail=st.binary(max_size=400),
    head=st.sampled_from([b"", b"\0\0\0\x18ftyp", b"\x1a\x45\xdf\xa3", b"RIFF\0\0\1\0AVI "]),
)
def test_no_bytes_break_the_look_at_the_container(
    tail: bytes, head: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.bin"
    path.write_bytes(head + tail)
    assert missing_bytes(path) >= 0
    looks_like_video(path)


@given(
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.sampled_from([0, 90, 180, 270]),
    st.fractions(Fraction(1, 4), 4, max_denominator=50),
    st.none() | st.integers(16, 2000),
)
def test_the_upright_size_keeps_every_stored_pixel_and_the_bound(
    width: int, height: int, rotation: int, sar: Fraction, max_side: int | None
) -> None:
    probe = VideoProbe("mp4", "h264", 0, width, height, rotation=rotation, sar=sar)
    full = probe.upright_size()
    stored = (width, height) if rotation in (0, 180) else (height, width)
    assert full[0] >= stored[0]
    assert full[1] >= stored[1]
    small = probe.upright_size(max_side)
    if max_side is not None:
        assert max(small) <= max_side
    # Indexing with a size and asking for that size again must agree, or the clip would look changed.
    again = probe.upright_size(max(small))
    assert abs(again[0] - small[0]) <= 1
    assert abs(again[1] - small[1]) <= 1
