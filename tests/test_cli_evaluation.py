"""solve, evaluate and compare on the command line: real files, exit codes, words."""

from __future__ import annotations

import json
from pathlib import Path

import av
import numpy as np
import pytest

from rvt_ray.cli import Exit, main
from rvt_ray.masks import rle
from rvt_ray.synthetic import random_scene, write_clip
from tests.agent.scenes import ask
from tests.corpora import write_corpus

QUICK = ["--no-plots", "--draws", "20", "--baselines", "", "-q"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenes = [ask(seed) for seed in (30, 31)]
    samples = [a.sample for s in scenes for a in s.asked]
    root = tmp_path_factory.mktemp("cli") / "corpus"
    return write_corpus(root, [s.clip for s in scenes], [s.twin for s in scenes], samples)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("video")
    spec = random_scene(3, num_objects=4, num_frames=24, width=160, height=120, fps=12.0, camera="still")
    return write_clip(spec, folder, "scene", depth_every=6).video


def solve(video: Path, tmp_path: Path, query: str, *more: str) -> list[str]:
    return [
        *("solve", "--video", str(video), "--query", query, "--cache", str(tmp_path / "cache")),
        *("--annotations", f"synthetic:{video.parent / 'annotations'}", "--out", str(tmp_path / "sol")),
        *more,
    ]


def test_a_video_is_answered_with_page_json_and_overlay(
    video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(solve(video, tmp_path, "Segment everything")) == Exit.OK
    out = capsys.readouterr().out
    assert "segmentation: " in out
    (record,) = json.loads((tmp_path / "sol" / "solution.json").read_text())
    solution, (height, width) = record["solution"], record["size"]
    assert len(solution["target_ids"]) == 4
    assert len(solution["masks"]) == record["num_frames"] == 24
    found = rle.decode(solution["masks"][0], height, width)
    assert found.any()
    (overlay,) = (tmp_path / "sol").glob("*.mp4")
    with av.open(str(overlay)) as container:
        frames = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]
    assert len(frames) == 24
    # What was found keeps its colours; the rest is dimmed.
    scale = frames[0].shape[0] / height
    ys, xs = (np.argwhere(~found) * scale).astype(int).T
    saturation = np.ptp(frames[0].astype(int), axis=2)
    assert np.median(saturation[ys, xs]) < 20
    page = (tmp_path / "sol" / "index.html").read_text()
    assert "Segment everything" in page
    assert overlay.name in page
    assert len(list((tmp_path / "sol").glob("*.jpg"))) == 4


def test_the_twin_is_perceived_once_per_content_and_settings(video: Path, tmp_path: Path) -> None:
    def kept() -> dict[str, int]:
        return {str(p): p.stat().st_mtime_ns for p in (tmp_path / "cache").rglob("*.parquet")}

    assert main(solve(video, tmp_path, "Where is the largest thing?")) == Exit.OK
    first = kept()
    assert len(first) == 1
    assert main(solve(video, tmp_path, "How many things are there?")) == Exit.OK
    assert kept() == first
    changed = ["--set", "perceive.key_frame_interval_s=0.5"]
    assert main(solve(video, tmp_path, "How many things are there?", *changed)) == Exit.OK
    assert len(kept()) == 2


def test_a_closed_question_is_answered_by_one_of_its_choices(
    video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choices = [word for n in "2345" for word in ("--choice", n)]
    assert main(solve(video, tmp_path, "How many things are there?", *choices)) == Exit.OK
    assert "vqa: 4" in capsys.readouterr().out


def test_choices_of_which_none_fits_are_not_answered_with_an_empty_line(
    video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query, choices = "What colour is the zeppelin?", ["--choice", "sour", "--choice", "sweet"]
    assert main(solve(video, tmp_path, query, *choices)) == Exit.OK
    assert "vqa: none of the choices fits" in capsys.readouterr().out
    (record,) = json.loads((tmp_path / "sol" / "solution.json").read_text())
    assert record["solution"]["answer"] == "", "the record keeps what was found out"


def test_words_that_were_ignored_are_told(
    video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(solve(video, tmp_path, "Segment the frobnicated thing")) == Exit.OK
    assert "ignored: frobnicated" in capsys.readouterr().out
    assert main(solve(video, tmp_path, "Segment everything")) == Exit.OK
    assert "ignored:" not in capsys.readouterr().out


def test_a_query_of_thousands_of_words_is_answered_without_a_traceback(
    video: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(solve(video, tmp_path, "the purple one that is near " * 600)) == Exit.OK
    out = capsys.readouterr().out
    assert "nothing found" in out
    assert "not understood: 3600 words" in out


def test_a_hostile_query_is_text_on_the_page(video: Path, tmp_path: Path) -> None:
    assert main(solve(video, tmp_path, "<script>alert(1)</script> the ball")) == Exit.OK
    assert "<script>" not in (tmp_path / "sol" / "index.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["solve"], "give --video and --query"),
        (["solve", "--video", "v.mp4", "--query", ""], "--query is empty; say what is to be found"),
        (["solve", "--video", "v.mp4", "--query", " \t\n"], "--query is empty; say what is to be found"),
        (["solve", "--corpus", "c", "--query", "x"], "--corpus brings its own questions; leave --query out"),
        (["solve", "--video", "nowhere.mp4", "--query", "x"], "nowhere.mp4"),
        (["solve", "--corpus", "nowhere"], "nowhere"),
        (["evaluate", "nowhere", "p.jsonl"], "nowhere: no such folder"),
        (["compare", "a.json", "b.json"], "a.json: cannot read the report"),
    ],
)
def test_misuse_is_told_and_nothing_is_written(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RVT_RAY_CACHE", str(tmp_path / "cache"))
    assert main([*words, "-q"]) in (Exit.MISUSE, Exit.ERROR)
    assert said in capsys.readouterr().err


def test_predictions_are_scored_and_two_reports_compared(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "bad"):
        rows = []
        for seed in (30, 31):
            for asked in ask(seed).asked:
                s = asked.sample
                row = {"sample_id": s.sample_id, "masks": s.masks, "answer": s.answer}
                row["boxes"] = [[b.model_dump() for b in f or []] for f in s.boxes or []]
                rows.append(json.dumps(row))
        text = "\n".join(rows[:: 1 if name == "good" else 2])
        (tmp_path / f"{name}.jsonl").write_text(text)
        words = ["evaluate", str(corpus), str(tmp_path / f"{name}.jsonl"), "--out", str(tmp_path / name)]
        assert main([*words, *QUICK]) == Exit.OK
    out = capsys.readouterr().out
    assert "# good on corpus" in out
    assert "missing" in out
    reports = [str(tmp_path / name / "report.json") for name in ("bad", "good")]
    assert main(["compare", *reports, "--out", str(tmp_path / "cmp.json"), "--draws", "50"]) == Exit.OK
    out = capsys.readouterr().out
    assert "a: bad; b: good" in out
    groups = json.loads((tmp_path / "cmp.json").read_text())["groups"]
    assert all(m["difference"] >= 0 for g in groups for n, m in g["metrics"].items() if n == "jf")
    with_typo = ["evaluate", str(corpus), str(tmp_path / "good.jsonl"), "--baselines", "larges"]
    assert main(with_typo) == Exit.MISUSE
    assert "no baseline 'larges'; there are empty" in capsys.readouterr().err


@pytest.mark.ray
def test_a_corpus_is_answered_and_scored_in_one_command(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "agent"
    words = ["solve", "--corpus", str(corpus), "--out", str(out), "--set", "run.num_cpus=1", *QUICK]
    assert main(words) == Exit.OK
    assert capsys.readouterr().out.strip() == str(out / "report" / "report.json")
    report = json.loads((out / "report" / "report.json").read_text())
    assert report["name"] == "RVTagent auto, corpus twins"
    assert not any(report["issues"].values())
