"""The job over real Ray, with fake stages: hostile rows, resume, growth, retries."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rvt_ray.errors import ConfigError
from rvt_ray.pipeline import run as job
from rvt_ray.pipeline.graph import StageError
from rvt_ray.pipeline.validate import validate_corpus
from rvt_ray.records import Stage
from tests.pipeline.conftest import config_for, make_videos, run_fakes, run_inline, shard_bytes
from tests.pipeline.fakes import CLIPS_PER_VIDEO, Plan

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]


def failures(out: Path) -> dict[str, tuple[str, str]]:
    """File name -> (stage, code) of the failures table."""
    rows = pq.read_table(out / "failures").to_pylist()
    return {Path(row["uri"]).name: (row["stage"], row["code"]) for row in rows}


def test_hostile_rows_end_as_failures_and_their_neighbours_live(tmp_path: Path) -> None:
    videos = make_videos(tmp_path / "videos", 9)
    out = tmp_path / "out"
    Plan(out).write(
        index={"v00": "segfault", "v01": "clip_error"},
        perceive={"v02": "segfault", "v03": "hang", "v04": "raise", "v05": "sysexit"},
        generate={"v06": "exit", "v07": "sleep"},
    )
    config = config_for(videos, ["run.clip_timeout_s=4", "run.max_attempts=2", "run.max_failed_share=0.5"])
    result = run_fakes(config, out)

    assert failures(out) == {
        "v00.mp4": ("index", "worker_died"),
        "v01.mp4": ("index", "corrupt"),
        "v02.mp4": ("perceive", "worker_died"),
        "v03.mp4": ("perceive", "clip_timeout"),
        "v04.mp4": ("perceive", "backend_error"),
        "v05.mp4": ("perceive", "backend_error"),
        "v06.mp4": ("generate", "worker_died"),
        "v07.mp4": ("generate", "clip_timeout"),
    }
    assert result.manifest is not None
    counts = result.manifest["counts"]
    assert (counts["videos"], counts["clips"], counts["twins"], counts["asked"]) == (9, 14, 6, 2)
    assert counts["samples"] == 2 * counts["asked"]
    assert validate_corpus(out).problems == []
    assert result.too_many_failed(0.5)  # 8 of 14 clips failed in perceive
    # A hang is given one start, a crash the configured number; nobody else was started twice.
    perceive = Plan(out).calls("perceive")
    starts = {key: perceive.count(key) for key in perceive}
    assert sorted(starts.values()) == [1] * 12 + [2] * 2
    assert list((out / "_staging" / "attempts").rglob("*.json")) == []
    message = next(r["message"] for r in pq.read_table(out / "failures").to_pylist() if "v04" in r["uri"])
    assert "ZeroDivisionError: no luck" in message
    assert "fakes.py" in message
    progress = json.loads((out / "progress.json").read_text())
    assert progress["state"] == "finished"
    assert progress["stages"]["perceive"]["failures"]["worker_died"] == CLIPS_PER_VIDEO


def test_a_second_run_calls_nothing_and_writes_the_same_bytes(tmp_path: Path) -> None:
    videos, out = make_videos(tmp_path / "videos", 3), tmp_path / "out"
    config = config_for(videos)
    run_fakes(config, out)
    first, calls = shard_bytes(out), Plan(out).log.read_text()
    run_fakes(config, out)
    assert shard_bytes(out) == first
    assert Plan(out).log.read_text() == calls
    assert "close" in calls, "the engine was not shut down"


def test_ray_writes_what_a_loop_in_one_process_writes(tmp_path: Path) -> None:
    videos = make_videos(tmp_path / "videos", 3)
    config = config_for(videos, ["run.index.actors=2", "run.perceive.actors=2", "run.in_flight=3"])
    run_fakes(config, tmp_path / "ray")
    run_inline(config, tmp_path / "inline")
    assert shard_bytes(tmp_path / "ray") == shard_bytes(tmp_path / "inline")


def test_growing_the_corpus_does_only_the_new_videos(tmp_path: Path) -> None:
    videos, out = make_videos(tmp_path / "videos", 2), tmp_path / "out"
    config = config_for(videos)
    run_inline(config, out)
    before = Plan(out).calls("perceive")
    make_videos(videos, 3)
    run_fakes(config, out)
    assert len(before) == 2 * CLIPS_PER_VIDEO
    assert len(Plan(out).calls("perceive")) == 3 * CLIPS_PER_VIDEO
    assert len(Plan(out).calls("index")) == 3
    run_inline(config, tmp_path / "at_once")
    assert shard_bytes(out) == shard_bytes(tmp_path / "at_once")
    assert validate_corpus(out).problems == []


def test_another_llm_redoes_generate_only(tmp_path: Path) -> None:
    videos, out = make_videos(tmp_path / "videos", 2), tmp_path / "out"
    run_inline(config_for(videos), out)
    run_fakes(config_for(videos, ["generate.llm.temperature=0.1"]), out)
    assert len(Plan(out).calls("index")) == 2
    assert len(Plan(out).calls("perceive")) == 2 * CLIPS_PER_VIDEO
    assert len(Plan(out).calls("generate")) == 2 * 2 * CLIPS_PER_VIDEO


def test_retry_failed_tries_only_what_failed(tmp_path: Path) -> None:
    videos, out = make_videos(tmp_path / "videos", 3), tmp_path / "out"
    Plan(out).write(index={"v00": "clip_error"}, perceive={"v01": "raise"})
    config = config_for(videos)
    run_inline(config, out)
    assert set(failures(out)) == {"v00.mp4", "v01.mp4"}
    Plan(out).write()
    run_fakes(config, out)
    assert set(failures(out)) == {"v00.mp4", "v01.mp4"}, "without --retry-failed a failure is final"
    run_fakes(config, out, retry_failed=True)
    assert failures(out) == {}
    assert len(Plan(out).calls("index")) == 4
    run_inline(config, tmp_path / "undisturbed")
    assert shard_bytes(out) == shard_bytes(tmp_path / "undisturbed")


def test_the_same_content_under_two_names_is_taken_once_and_reported(tmp_path: Path) -> None:
    videos, out = make_videos(tmp_path / "videos", 2), tmp_path / "out"
    shutil.copy(videos / "v01.mp4", videos / "copy_of_v01.mp4")
    result = run_fakes(config_for(videos), out)
    assert result.manifest is not None
    (duplicate,) = result.manifest["duplicates"]
    assert (Path(duplicate["uri"]).name, Path(duplicate["kept_uri"]).name) == ("v01.mp4", "copy_of_v01.mp4")
    assert result.manifest["counts"]["indexed"] == 2
    assert len(Plan(out).calls("perceive")) == 2 * CLIPS_PER_VIDEO
    assert validate_corpus(out).problems == []


def test_workers_that_die_while_starting_end_the_run_instead_of_looping(tmp_path: Path) -> None:
    videos, out = make_videos(tmp_path / "videos", 1), tmp_path / "out"
    Plan(out).write(index={"init_segfault": "yes"})
    with pytest.raises(StageError, match="3 worker processes died while they loaded"):
        run_fakes(config_for(videos), out)
    assert json.loads((out / "progress.json").read_text())["state"] == "failed"


def test_a_stage_whose_every_row_kills_its_worker_ends_early(tmp_path: Path) -> None:
    videos, out = make_videos(tmp_path / "videos", 11), tmp_path / "out"
    Plan(out).write(index={"v": "exit"})
    with pytest.raises(StageError, match="10 rows all killed their workers"):
        run_fakes(config_for(videos, ["run.max_attempts=1", "run.index.actors=2"]), out)


def test_a_backend_that_refuses_to_be_built_is_the_users_error(tmp_path: Path) -> None:
    videos, out = make_videos(tmp_path / "videos", 1), tmp_path / "out"
    config = config_for(videos)
    with job.open_run(config, out, list(Stage), bar=False) as run:
        run.workers[Stage.INDEX] = "tests.pipeline.fakes:Unbuildable"
        with pytest.raises(ConfigError, match="weights are not here"):
            run.index()


def test_a_pool_that_cannot_start_is_refused_at_once(tmp_path: Path) -> None:
    config = config_for(make_videos(tmp_path / "videos", 1), ["run.perceive.num_gpus=1"])
    with pytest.raises(ConfigError, match=r"perceive: 1 actor.*num_gpus 1 = 1.*Ray has 0"):
        run_fakes(config, tmp_path / "out")


def test_a_half_done_run_cannot_be_finalised(tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = config_for(make_videos(tmp_path / "videos", 2))
    run_fakes(config, out, "index")
    with pytest.raises(ConfigError, match="4 clips have no twin"):
        job.finalise(config, out)
    assert not (out / "manifest.json").exists()


def test_generate_without_twins_of_these_settings_says_so(tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = config_for(make_videos(tmp_path / "videos", 1))
    run_fakes(config, out, "index")
    with pytest.raises(ConfigError, match="no twin is staged under these settings"):
        job.generate(config, out, bar=False)


def test_twins_alone_make_a_corpus_without_samples(tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = config_for(make_videos(tmp_path / "videos", 1))
    run_fakes(config, out, "perceive")
    manifest = job.finalise(config, out).manifest
    assert manifest is not None
    assert manifest["stages"] == ["index", "perceive"]
    assert validate_corpus(out).problems == []


def test_a_failed_finalise_leaves_no_manifest_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    config = config_for(make_videos(tmp_path / "videos", 2))
    run_inline(config, out)
    want = shard_bytes(out)

    def crash(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("rvt_ray.pipeline.finalise.write_manifest", crash)
        with pytest.raises(OSError, match="disk full"):
            job.finalise(config, out)
    assert not (out / "manifest.json").exists()
    job.finalise(config, out)
    assert shard_bytes(out) == want
