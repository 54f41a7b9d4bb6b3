"""A run must not take a user's files with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rvt_ray.cli import Exit, main
from rvt_ray.errors import ConfigError
from rvt_ray.pipeline import finalise as room
from rvt_ray.pipeline.manifest import MANIFEST
from rvt_ray.pipeline.ownership import check_answers_root, check_corpus_root
from rvt_ray.pipeline.storage import Storage
from tests.pipeline.conftest import config_for, make_videos, run_inline, shard_bytes


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("owned")
    run_inline(config_for(make_videos(root / "videos", 2)), root / "out")
    return root


@pytest.fixture
def corpus(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built / "out", tmp_path / "out"))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def put(path: Path, text: str = "years of work") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("command", ["build", "perceive", "generate", "finalise"])
@pytest.mark.parametrize(
    "name",
    ["samples/thesis.txt", "samples/x.parquet", "manifest.json", "samples/part-00000-of-00001.parquet"],
)
def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    put(out / name, '{"name": "my extension"}')
    before = everything(out)
    source = [] if command in ("generate", "finalise") else ["--source", str(make_videos(tmp_path / "v", 1))]
    for _ in range(2):  # the refusal itself leaves nothing that would let the next try in
        assert main([command, *source, "--out", str(out)]) == Exit.MISUSE
        said = capsys.readouterr().err
        assert str(out) in said
        assert "folder" in said
        assert everything(out) == before
        assert not (out / "_staging").exists()


@pytest.mark.parametrize("name", ["samples/thesis.txt", "clips/deep/er/notes.txt", "twins/x.parquet"])
@pytest.mark.parametrize("finished", [True, False])
def test_a_users_file_between_the_shards_is_not_deleted(
    name: str, finished: bool, built: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = put(corpus / name)
    if not finished:
        (corpus / MANIFEST).unlink()
    before = everything(corpus)
    with pytest.raises(ConfigError, match="Move away what is yours"):
        run_inline(config_for(built / "videos"), corpus)
    assert {k: v for k, v in everything(corpus).items() if "_staging" not in k} == {
        k: v for k, v in before.items() if "_staging" not in k
    }
    assert main(["finalise", "--out", str(corpus)]) == Exit.MISUSE
    assert name in capsys.readouterr().err
    assert mine.read_text() == "years of work"


def test_a_users_table_named_like_a_shard_is_not_taken_for_one(corpus: Path) -> None:
    (corpus / MANIFEST).unlink()
    pq.write_table(pa.table({"mine": [1]}), corpus / "samples" / "part-00007-of-00009.parquet")
    with pytest.raises(ConfigError, match="samples/part-00007-of-00009"):
        check_corpus_root(Storage(corpus))


def test_a_manifest_of_somebody_else_is_not_replaced_even_where_we_have_staged(corpus: Path) -> None:
    put(corpus / MANIFEST, json.dumps({"manifest_version": 3}))
    with pytest.raises(ConfigError, match="not one of rvt-ray's"):
        check_corpus_root(Storage(corpus))


def test_what_lies_beside_the_tables_neither_stops_a_run_nor_is_touched(built: Path, corpus: Path) -> None:
    beside = [corpus / "pages" / "index.html", corpus / "audit.html", corpus / "samples" / ".DS_Store"]
    for path in beside:
        put(path)
    run_inline(config_for(make_videos(built / "more", 3)), corpus)  # a grown corpus
    assert all(path.read_text() == "years of work" for path in beside)
    assert json.loads((corpus / MANIFEST).read_text())["counts"]["clips"] == 6


def test_without_its_staging_a_finished_corpus_is_still_ours(corpus: Path) -> None:
    shutil.rmtree(corpus / "_staging")
    check_corpus_root(Storage(corpus))


def test_a_run_killed_while_it_replaces_the_shards_goes_on(
    built: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = shard_bytes(corpus)
    config = config_for(built / "videos", ["run.rows_per_shard=2"])
    publish, calls = Storage.publish, [0]

    def dies(self: Storage, local: Path, name: str) -> None:
        calls[0] += 1
        if calls[0] == 4:
            raise KeyboardInterrupt
        publish(self, local, name)

    monkeypatch.setattr(Storage, "publish", dies)
    with pytest.raises(KeyboardInterrupt):
        run_inline(config, corpus)
    assert not (corpus / MANIFEST).exists()
    monkeypatch.undo()
    run_inline(config_for(built / "videos"), corpus)
    assert shard_bytes(corpus) == expected


def test_a_file_put_there_during_the_run_survives_it(
    built: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, mine = room._write, corpus / "samples" / "thesis.txt"

    def slow(*args: object) -> object:
        put(mine)
        return write(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(room, "_write", slow)
    with pytest.raises(ConfigError, match=r"samples/thesis\.txt"):
        run_inline(config_for(built / "videos"), corpus)
    assert mine.exists()
    assert (corpus / MANIFEST).exists()


def test_a_users_file_among_the_predictions_stops_solve(tmp_path: Path) -> None:
    put(tmp_path / "notes.txt")
    check_answers_root(Storage(tmp_path))
    put(tmp_path / "predictions" / "other-model.jsonl")
    with pytest.raises(ConfigError, match=r"predictions/other-model\.jsonl"):
        check_answers_root(Storage(tmp_path))


def test_a_bucket_of_somebody_else_is_refused() -> None:
    storage = Storage("memory://ownership/out")
    check_corpus_root(storage)
    storage.write("samples/thesis.txt", b"years of work")
    with pytest.raises(ConfigError, match="not empty"):
        check_corpus_root(storage)
    storage.write("_staging/x", b"")
    with pytest.raises(ConfigError, match=r"samples/thesis\.txt"):
        check_corpus_root(storage)
