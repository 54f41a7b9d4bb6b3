"""Keys that change when they must and only then; the same content taken once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rvt_ray.errors import ConfigError
from rvt_ray.pipeline.catalogue import Catalogue, index_meta, read_index, read_sources, video_key
from rvt_ray.pipeline.ledger import Ledger
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import ClipRecord, Failure, FailureCode, Stage
from rvt_ray.video.item import SourceItem
from tests.pipeline.fakes import fake_clips


def item(path: Path, content: bytes = b"a", **more: str) -> SourceItem:
    path.write_bytes(content)
    return SourceItem("src", path.stem, str(path), **more)  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Storage(tmp_path / "out"), Stage.INDEX, "f")


def stage(ledger: Ledger, item: SourceItem) -> None:
    clips = fake_clips(item)
    ledger.write_ok(video_key(item), ClipRecord.to_table(clips), index_meta(clips))


def test_a_replaced_file_is_another_video_and_a_touched_source_name_too(tmp_path: Path) -> None:
    first = item(tmp_path / "v.mp4")
    key = video_key(first)
    assert video_key(first) == key
    assert video_key(replace(first, license="MIT")) != key
    os.utime(tmp_path / "v.mp4", ns=(1, 1))
    assert video_key(first) != key


def test_a_changed_image_in_a_folder_of_frames_changes_its_key(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "0.jpg").write_bytes(b"a")
    frames = SourceItem("src", "frames", str(tmp_path / "frames"), kind="frames")
    key = video_key(frames)
    (tmp_path / "frames" / "0.jpg").write_bytes(b"ab")
    assert video_key(frames) != key


def test_a_missing_file_still_has_a_key(tmp_path: Path) -> None:
    assert video_key(SourceItem("src", "gone", str(tmp_path / "gone.mp4")))


def test_of_two_names_the_annotated_one_is_kept(tmp_path: Path, ledger: Ledger) -> None:
    plain = item(tmp_path / "a.mp4")
    annotated = item(tmp_path / "b.mp4", annotation_uri="masks", annotation_sha256="0" * 64)
    catalogue = read_sources([plain, annotated])
    for one in (plain, annotated):
        stage(ledger, one)
    found = read_index(catalogue, ledger)
    assert [v.item for v in found.kept.values()] == [annotated]
    assert [d.uri for d in found.duplicates] == [plain.uri]
    assert all(clip.perceive.endswith("-" + "0" * 16) for clip in found.clips)


def test_of_two_equal_names_the_first_source_is_kept(tmp_path: Path, ledger: Ledger) -> None:
    one, two = item(tmp_path / "z.mp4"), item(tmp_path / "a.mp4")
    for each in (one, two):
        stage(ledger, each)
    assert [v.item for v in read_index(read_sources([one, two]), ledger).kept.values()] == [one]
    assert [v.item for v in read_index(read_sources([two, one]), ledger).kept.values()] == [two]


def test_a_new_licence_asks_again_but_does_not_perceive_again(tmp_path: Path, ledger: Ledger) -> None:
    keys = []
    for name in ("MIT", "CC0-1.0"):
        one = item(tmp_path / "v.mp4", license=name)
        stage(ledger, one)
        keys.append(read_index(read_sources([one]), ledger).clips[0])
    assert keys[0].perceive == keys[1].perceive
    assert keys[0].generate != keys[1].generate


def test_the_catalogue_reads_back(tmp_path: Path) -> None:
    failure = Failure(
        clip_id=None,
        video_id=None,
        source="s",
        uri="u",
        stage=Stage.INDEX,
        code=FailureCode.UNREADABLE,
        message="m",
        attempt=1,
    )
    one = item(tmp_path / "v.mp4")
    catalogue = read_sources([one, failure, one])
    assert catalogue.offered == 2, "one item twice is one video"
    storage = Storage(tmp_path / "out")
    catalogue.save(storage)
    assert Catalogue.load(storage) == catalogue


def test_an_empty_root_is_told_what_to_do_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rvt-ray perceive"):
        Catalogue.load(Storage(tmp_path))
