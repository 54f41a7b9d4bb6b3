"""Sources: what they offer, in which order, and what they refuse."""

from __future__ import annotations

import json
import os
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rvt_ray.backends import Options
from rvt_ray.config.settings import IndexSettings, SourceSettings
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.records import Failure, FailureCode
from rvt_ray.sources import SourceItem, open_sources, source_name
from rvt_ray.video import index_video, open_clip
from rvt_ray.video.local import cache_folder, local_path
from tests.video.media import write_video


def items(*sources: SourceSettings | dict[str, Any]) -> list[SourceItem | Failure]:
    return list(open_sources([s if isinstance(s, SourceSettings) else SourceSettings(**s) for s in sources]))


def names(*sources: dict[str, Any]) -> list[str]:
    found = items(*sources)
    assert all(isinstance(i, SourceItem) for i in found)
    return [i.name for i in found if isinstance(i, SourceItem)]


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def frames(folder: Path, count: int = 3) -> Path:
    folder.mkdir(parents=True)
    for i in range(count):
        cv2.imwrite(str(folder / f"{i:05d}.jpg"), np.full((32, 32, 3), i * 20, np.uint8))
    return folder


# --- videos


def test_videos_are_found_below_folders_in_order_of_their_names(tmp_path: Path) -> None:
    touch(tmp_path / "b.mp4", tmp_path / "a" / "z.MOV", tmp_path / "a" / "c.webm", tmp_path / "notes.txt")
    touch(tmp_path / ".hidden.mp4", tmp_path / ".trash" / "d.mp4")
    found = items({"type": "videos", "path": str(tmp_path), "name": "mine", "license": "CC0-1.0"})
    assert [(i.name, i.source, i.license) for i in found if isinstance(i, SourceItem)] == [
        ("a/c", "mine", "CC0-1.0"),
        ("a/z", "mine", "CC0-1.0"),
        ("b", "mine", "CC0-1.0"),
    ]
    assert all(os.path.isabs(i.uri) for i in found)


def test_a_relative_path_is_made_absolute_since_workers_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path / "in" / "a.mp4")
    monkeypatch.chdir(tmp_path)
    (found,) = items({"path": "in"})
    assert found.uri == str(tmp_path / "in" / "a.mp4")
    assert found.source == "in"


def test_a_single_file_is_a_source_whatever_its_ending(tmp_path: Path) -> None:
    touch(tmp_path / "clip.mpg")
    assert names({"path": str(tmp_path / "clip.mpg")}) == ["clip"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"path": "nowhere"}, "nowhere does not exist"),
        ({"path": "empty"}, "holds neither videos"),
        ({"path": "empty", "type": "videos"}, "no video"),
        ({"path": "empty", "type": "frames"}, "no images"),
        ({"path": "a.mp4", "type": "frames"}, "is a file"),
        ({"path": "a.mp4", "type": "manifest"}, "a manifest ends in"),
        ({"path": "s4://bucket/x"}, "no file system driver"),
        ({"path": "a.mp4", "type": "video"}, "did you mean 'videos'"),
        ({"path": "a.mp4", "type": "videos", "options": {"sufixes": []}}, "did you mean 'suffixes'"),
        ({"path": "a.mp4", "annotations": "empty"}, "annotation_format is missing"),
        ({"path": "a.mp4", "annotations": "empty", "annotation_format": "coco"}, "'coco' is unknown"),
        ({"path": "a.mp4", "annotations": "none", "annotation_format": "davis"}, "does not exist"),
        ({"path": "a.mp4", "annotation_format": "davis"}, "annotations is not"),
        ({"path": "a.mp4", "type": "rvt_ray.sources.videos:Video"}, "has no class 'Video'"),
    ],
)
def test_a_wrong_source_is_refused_with_its_name_and_the_reason(
    settings: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path / "a.mp4")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=says):
        items(settings)


def test_a_source_is_named_by_the_last_part_of_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = {".": tmp_path.name, "set/v1.2/": "v1.2", "a/b.mp4": "b", "l.jsonl": "l", "s3://box/x.csv": "x"}
    assert {p: source_name(SourceSettings(path=p)) for p in paths} == paths
    assert source_name(SourceSettings(path="a/b.mp4", name="mine")) == "mine"


def test_no_source_and_two_sources_of_one_name_are_refused(tmp_path: Path) -> None:
    touch(tmp_path / "x" / "v" / "a.mp4", tmp_path / "y" / "v" / "a.mp4")
    with pytest.raises(ConfigError, match="no sources"):
        items()
    with pytest.raises(ConfigError, match="two sources are named 'v'"):
        items({"path": str(tmp_path / "x" / "v")}, {"path": str(tmp_path / "y" / "v")})


# --- frames


def test_each_folder_of_images_is_a_video(tmp_path: Path) -> None:
    frames(tmp_path / "JPEGImages" / "bear")
    frames(tmp_path / "JPEGImages" / "swan")
    found = items({"path": str(tmp_path / "JPEGImages"), "options": {"fps": 12}, "type": "frames"})
    assert [(i.name, i.kind, i.fps) for i in found if isinstance(i, SourceItem)] == [
        ("bear", "frames", 12.0),
        ("swan", "frames", 12.0),
    ]
    (only,) = items({"path": str(tmp_path / "JPEGImages" / "bear")})
    assert isinstance(only, SourceItem)
    assert (only.name, only.kind) == ("bear", "frames")
    (clip,) = index_video(only, IndexSettings())
    assert sum(len(w.indices) for w in open_clip(clip, IndexSettings()).windows()) == 3


# --- annotations


def test_annotations_are_found_by_the_name_of_the_video(tmp_path: Path) -> None:
    touch(tmp_path / "v" / "bear.mp4", tmp_path / "v" / "swan.mp4")
    touch(tmp_path / "davis" / "bear" / "00000.png")
    touch(tmp_path / "sav" / "bear_auto.json", tmp_path / "sav" / "swan_auto.json")
    touch(tmp_path / "sav" / "swan_manual.json", tmp_path / "syn" / "bear.json", tmp_path / "all.json")

    def found(folder: str, form: str) -> list[str | None]:
        return [
            i.annotation_uri and str(Path(i.annotation_uri).relative_to(tmp_path))
            for i in items(
                {
                    "path": str(tmp_path / "v"),
                    "annotations": str(tmp_path / folder),
                    "annotation_format": form,
                }
            )
            if isinstance(i, SourceItem)
        ]

    assert found("davis", "davis") == ["davis/bear", None]
    assert found("sav", "sav") == ["sav/bear_auto.json", "sav/swan_manual.json"]
    assert found("syn", "synthetic") == ["syn/bear.json", None]
    assert found("all.json", "youtube_vis") == ["all.json", "all.json"]


@pytest.mark.parametrize(
    ("form", "looked"),
    [
        ("davis", "the folder {tmp}/ann/bear/"),
        ("sav", "bear_manual.json or bear_auto.json or bear.json"),
        ("synthetic", "bear.json"),
    ],
)
def test_a_folder_of_masks_that_fits_no_video_is_refused(form: str, looked: str, tmp_path: Path) -> None:
    touch(
        tmp_path / "v" / "bear.mp4", tmp_path / "v" / "swan.mp4", tmp_path / "ann" / "Annotations" / "x.png"
    )
    source = {"path": str(tmp_path / "v"), "annotations": str(tmp_path / "ann"), "annotation_format": form}
    said = (
        f"source 'v': 0 of 2 videos have masks in {tmp_path}/ann (looked for {looked.format(tmp=tmp_path)})"
    )
    with pytest.raises(ConfigError, match=re.escape(said)):
        items(source)


def test_videos_that_masks_are_lacking_for_are_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    touch(tmp_path / "v" / "bear.mp4", tmp_path / "v" / "swan.mp4", tmp_path / "ann" / "bear" / "00000.png")
    source = {"path": str(tmp_path / "v"), "annotations": str(tmp_path / "ann"), "annotation_format": "davis"}
    assert len(items(source)) == 2
    assert "source 'v': 1 of 2 videos have masks in" in caplog.text
    assert "swan has none" in caplog.text
    caplog.clear()
    touch(tmp_path / "ann" / "swan" / "00000.png")
    assert len(items(source)) == 2
    assert not caplog.text


def test_the_annotation_hash_follows_its_content(tmp_path: Path) -> None:
    touch(tmp_path / "bear.mp4", tmp_path / "ann" / "bear" / "00000.png")
    source = {"path": str(tmp_path / "bear.mp4"), "annotations": str(tmp_path / "ann")}
    source["annotation_format"] = "davis"
    (before,) = items(source)
    (again,) = items(source)
    (tmp_path / "ann" / "bear" / "00000.png").write_bytes(b"other")
    (after,) = items(source)
    assert isinstance(before, SourceItem)
    assert isinstance(after, SourceItem)
    assert before == again
    assert before.annotation_sha256 != after.annotation_sha256
    assert after.annotation_format == "davis"


# --- manifests


ROWS = [
    {"uri": "v/a.mp4"},
    {"uri": "v/b.mp4", "name": "second", "license": "CC-BY-4.0"},
    {"uri": "v/f", "fps": 10},
]


def write_manifest(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(r) for r in rows) + "\n\n")
    elif path.suffix == ".csv":
        columns = list(dict.fromkeys(k for r in rows for k in r))
        lines = [",".join(str(r.get(c, "")) for c in columns) for r in rows]
        path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    else:
        pq.write_table(
            pa.Table.from_pylist([{**dict.fromkeys(["name", "license", "fps"]), **r} for r in rows]), path
        )
    return path


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_manifest_gives_its_rows_relative_to_itself(ending: str, tmp_path: Path) -> None:
    touch(tmp_path / "v" / "a.mp4", tmp_path / "v" / "b.mp4", tmp_path / "v" / "f" / "0.jpg")
    path = write_manifest(tmp_path / f"list.{ending}", ROWS)
    found = items({"path": str(path), "license": "MIT"})
    assert [
        (i.source, i.name, Path(i.uri).relative_to(tmp_path).as_posix(), i.license, i.kind, i.fps)
        for i in found
        if isinstance(i, SourceItem)
    ] == [
        ("list", "a", "v/a.mp4", "MIT", "video", None),
        ("list", "second", "v/b.mp4", "CC-BY-4.0", "video", None),
        ("list", "f", "v/f", "MIT", "frames", 10.0),
    ]


def test_a_bad_row_is_one_failure_that_names_its_line(tmp_path: Path) -> None:
    touch(tmp_path / "a.mp4", tmp_path / "m.json")
    rows = [
        '{"uri": "a.mp4"}',
        '{"name": "lost"}',
        '{"uri": ',
        "[1]",
        '{"uri": 7}',
        '{"uri": "a.mp4", "fps": "fast"}',
        '{"uri": "a.mp4", "annotation_uri": "m.json", "annotation_format": "xml"}',
        '{"uri": "a.mp4", "annotation_uri": "gone.json", "annotation_format": "sav"}',
        '{"uri": "a.mp4", "name": "b", "annotation_uri": "m.json", "annotation_format": "sav"}',
    ]
    (tmp_path / "list.jsonl").write_text("\n".join(rows))
    found = items({"path": str(tmp_path / "list.jsonl")})
    good = [i for i in found if isinstance(i, SourceItem)]
    bad = [i for i in found if isinstance(i, Failure)]
    assert [i.name for i in good] == ["a", "b"]
    assert good[1].annotation_uri == str(tmp_path / "m.json")
    assert {f.code for f in bad} == {FailureCode.UNREADABLE}
    says = ["no 'uri'", "not valid JSON", "not list", "must be text", "not a number", "'xml'", "gone.json"]
    for line, (failure, text) in enumerate(zip(bad, says, strict=True), 2):
        assert f"list.jsonl: line {line}: " in failure.message
        assert text in failure.message


def test_a_mistyped_column_is_refused_and_further_ones_only_on_request(tmp_path: Path) -> None:
    touch(tmp_path / "a.mp4")
    path = write_manifest(tmp_path / "list.csv", [{"uri": "a.mp4", "licence": "MIT"}])
    with pytest.raises(ConfigError, match="line 2: unknown column 'licence'; did you mean 'license'"):
        items({"path": str(path)})
    assert len(items({"path": str(path), "options": {"extra_columns": "ignore"}})) == 1


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", b"", "has no rows"),
        ("a.csv", b"path,name\na.mp4,x\n", "no column 'uri'"),
        ("a.csv", b"uri,name\n\xff\xfe\n", "not UTF-8"),
        ("a.parquet", b"not parquet", "not a Parquet file"),
    ],
)
def test_a_manifest_that_is_wrong_as_a_whole_is_refused(
    name: str, content: bytes, says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        items({"path": str(tmp_path / name)})


# --- remote


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An fsspec file system that is not the local one, and an own cache folder."""
    monkeypatch.setenv("RVT_RAY_CACHE", str(tmp_path / "cache"))
    fs = fsspec.filesystem("memory")
    yield fs
    if fs.exists("/rvt"):
        fs.rm("/rvt", recursive=True)


def test_a_remote_folder_is_listed_fetched_once_and_indexed(remote: Any, tmp_path: Path) -> None:
    local = write_video(tmp_path / "a.mp4")
    remote.makedirs("/rvt/v")
    remote.put_file(str(local), "/rvt/v/a.mp4")
    (found,) = items({"path": "memory://rvt/v"})
    assert isinstance(found, SourceItem)
    assert found.uri == "memory:///rvt/v/a.mp4"
    (clip,) = index_video(found, IndexSettings(shots={"detector": "none"}))
    assert clip.uri == found.uri
    copies = list(cache_folder().iterdir())
    assert [c.suffix for c in copies] == [".mp4"]
    before = copies[0].stat().st_ino
    assert sum(len(w.indices) for w in open_clip(clip, IndexSettings()).windows()) == 20
    assert [c.stat().st_ino for c in cache_folder().iterdir()] == [before]


def test_a_broken_remote_video_is_reported_by_its_uri(remote: Any, tmp_path: Path) -> None:
    remote.pipe_file("/rvt/v/a.mp4", b"not a film")
    (found,) = items({"path": "memory://rvt/v"})
    assert isinstance(found, SourceItem)
    with pytest.raises(ClipError) as caught:
        index_video(found, IndexSettings())
    assert "memory:///rvt/v/a.mp4" in caught.value.message
    assert str(cache_folder()) not in caught.value.message


def test_a_remote_object_that_changed_is_fetched_again(remote: Any) -> None:
    remote.pipe_file("/rvt/x.bin", b"one")
    first = local_path("memory://rvt/x.bin")
    remote.pipe_file("/rvt/x.bin", b"three")
    second = local_path("memory://rvt/x.bin")
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"three")


def test_remote_folders_of_frames_and_manifests_work(remote: Any, tmp_path: Path) -> None:
    remote.put(str(frames(tmp_path / "bear")) + "/", "/rvt/J/bear/", recursive=True)
    remote.pipe_file("/rvt/list.jsonl", b'{"uri": "J/bear", "fps": 5}\n{"uri": "memory://rvt/gone.mp4"}\n')
    (by_folder,) = items({"path": "memory://rvt/J"})
    by_row, gone = items({"path": "memory://rvt/list.jsonl"})
    for found in (by_folder, by_row):
        assert isinstance(found, SourceItem)
        (clip,) = index_video(found, IndexSettings())
        assert clip.num_frames == 3
    assert isinstance(gone, SourceItem)
    with pytest.raises(ClipError, match=r"gone\.mp4") as caught:
        index_video(gone, IndexSettings())
    assert caught.value.code is FailureCode.UNREADABLE


def test_the_cache_stays_within_its_bound(remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVT_RAY_CACHE_GB", "0.000002")  # 2 kB
    for i in range(5):
        remote.pipe_file(f"/rvt/{i}.bin", bytes([i]) * 900)
        path = local_path(f"memory://rvt/{i}.bin")
        assert path.exists()
        os.utime(path, (i, i))  # long ago
    assert sum(p.stat().st_size for p in cache_folder().iterdir()) <= 2000


def test_a_failed_fetch_leaves_nothing_behind(remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.pipe_file("/rvt/x.bin", b"content")

    def broken(source: str, target: str, **_: Any) -> None:
        Path(target).write_bytes(b"half")
        raise OSError("connection reset")

    monkeypatch.setattr(type(remote), "get", lambda self, *a, **k: broken(*a, **k))
    with pytest.raises(ClipError, match="connection reset"):
        local_path("memory://rvt/x.bin")
    assert list(cache_folder().iterdir()) == []


# --- an own source


class ListedSource:
    """A source of a user, as docs/sources.md shows it."""

    class Options(Options):
        files: list[str]

    def __init__(self, settings: SourceSettings, options: Options) -> None:
        self._settings = settings
        self._options = options

    def items(self) -> Iterator[SourceItem | Failure]:
        for file in self._options.files:  # type: ignore[attr-defined]
            yield SourceItem(source="listed", name=file, uri=f"{self._settings.path}/{file}")


def test_the_own_source_of_the_documentation_works(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    module = types.ModuleType("my_package_archive")
    exec(re.findall(r"```python\n(.*?)```", text, re.S)[0], module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    settings = {"type": "my_package_archive:ShelfSource", "path": "s3://archive", "options": {"shelf": 7}}
    found = items(settings)
    assert len(found) == 100
    assert isinstance(found[3], SourceItem)
    assert (found[3].source, found[3].uri) == ("archive", "s3://archive/7/003.mp4")
    with pytest.raises(ConfigError, match="did you mean 'shelf'"):
        items({**settings, "options": {"shelv": 7}})


def test_an_own_source_is_named_by_a_dotted_path() -> None:
    own = "tests.sources.test_sources:ListedSource"
    assert names({"type": own, "path": "/videos", "options": {"files": ["a", "b"]}}) == ["a", "b"]
    with pytest.raises(ConfigError, match="files"):
        items({"type": own, "path": "/videos"})
