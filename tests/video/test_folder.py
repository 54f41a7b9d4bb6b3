"""Folders of frames."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from rvt_ray.errors import ClipError
from rvt_ray.records import FailureCode
from rvt_ray.video import index_video, open_clip
from rvt_ray.video.folder import frame_files
from tests.video.helpers import item, read, settings
from tests.video.media import number_of, picture


def write_frames(folder: Path, count: int = 12, ending: str = "jpg", pattern: str = "{:05d}") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        cv2.imwrite(str(folder / f"{pattern.format(i)}.{ending}"), picture(i)[..., ::-1])
    return folder


@pytest.mark.parametrize("ending", ["jpg", "png"])
def test_a_folder_is_a_video_with_the_stated_rate(ending: str, tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "bear", ending=ending)
    first, second = index_video(item(folder, kind="frames", fps=10.0), settings(max_clip_frames=6))
    assert first.decoder == "images"
    assert first.flags == []
    np.testing.assert_allclose(second.pts_s, np.arange(6, 12) / 10)
    assert [number_of(f) for c in (first, second) for f in read(c)] == list(range(12))


def test_numbers_without_leading_zeros_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "a", pattern="frame{}")
    assert [p.stem for p in frame_files(folder)] == [f"frame{i}" for i in range(12)]


def test_frames_of_different_sizes_are_refused_by_name(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "a")
    cv2.imwrite(str(folder / "00007.jpg"), np.zeros((50, 60, 3), np.uint8))
    with pytest.raises(ClipError, match=r"00007\.jpg: 60x50, but .* first frame is 128x96") as caught:
        index_video(item(folder, kind="frames"), settings())
    assert caught.value.code is FailureCode.CORRUPT


def test_an_unreadable_image_is_refused_by_name(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "a")
    (folder / "00003.jpg").write_bytes(b"\xff\xd8nonsense")
    with pytest.raises(ClipError, match=r"00003\.jpg: not a readable image"):
        index_video(item(folder, kind="frames"), settings())


@pytest.mark.parametrize(
    ("make", "code"),
    [(lambda p: p.mkdir(), FailureCode.NO_FRAMES), (lambda p: None, FailureCode.UNREADABLE)],
)
def test_an_empty_or_missing_folder_has_its_own_code(make, code: FailureCode, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "a")
    with pytest.raises(ClipError) as caught:
        index_video(item(tmp_path / "a", kind="frames"), settings())
    assert caught.value.code is code


def test_a_changed_frame_is_noticed(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "a")
    (clip,) = index_video(item(folder, kind="frames"), settings())
    cv2.imwrite(str(folder / "00003.jpg"), picture(99))
    with pytest.raises(ClipError) as caught:
        open_clip(clip, settings())
    assert caught.value.code is FailureCode.CHANGED_SINCE_INDEX


def test_deep_and_transparent_images_become_eight_bit_colour(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    for i in range(3):
        image = np.dstack([picture(i)[..., ::-1], np.full((96, 128), 9, np.uint8)]).astype(np.uint16) * 257
        cv2.imwrite(str(folder / f"{i}.png"), image)
    (clip,) = index_video(item(folder, kind="frames"), settings())
    assert set(clip.flags) == {"alpha", "high_bit_depth"}
    assert [number_of(f) for f in read(clip)] == [0, 1, 2]
