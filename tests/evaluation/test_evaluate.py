"""From corpus and predictions to report: right numbers, right groups, honest intervals, all of it bounded."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pyarrow.parquet as pq
import pytest

from rvt_ray.corpus import Corpus, CorpusError
from rvt_ray.errors import ConfigError
from rvt_ray.evaluation import BASELINES, EvaluationOptions, compare, evaluate, write_baseline
from rvt_ray.evaluation.report import find
from rvt_ray.llm.base import Finish, LlmReply
from rvt_ray.masks import rle
from rvt_ray.records import Task
from tests.evaluation.conftest import H, N, W, perfect_row, write_jsonl

QUICK = EvaluationOptions(baselines=(), plots=False, draws=200)


def run(corpus, folder, rows, options=QUICK):
    folder.mkdir(exist_ok=True)
    path = evaluate(corpus, write_jsonl(folder / "p.jsonl", rows), folder / "out", options)
    return json.loads(path.read_text(encoding="utf-8")), path


@pytest.fixture(scope="module")
def perfect(corpus, truth, tmp_path_factory):
    options = EvaluationOptions(draws=200, name="perfect & <b>bold</b>")
    return run(corpus, tmp_path_factory.mktemp("perfect"), [perfect_row(s) for s in truth[2]], options)


def value(report, task, metric, **axes):
    return find(report["groups"], task, **axes)["metrics"][metric]["value"]


def test_a_perfect_prediction_scores_one_everywhere(perfect):
    report, _ = perfect
    assert report["corpus"]["samples"] == 42
    seen = set()
    for group in report["groups"]:
        for name, estimate in group["metrics"].items():
            expected = 0.0 if "false_alarm" in name else 1.0
            assert estimate["value"] == pytest.approx(expected), (group["group"], name)
            seen.add(name)
    assert len(seen) == 22  # all but BERTScore and the judge's two
    assert not any(report["issues"].values())


def test_an_empty_prediction_scores_what_the_definition_says(corpus, tmp_path):
    report, _ = run(corpus, tmp_path, [])
    assert report["issues"]["missing"] == 42
    # The target is absent on 2 of 12 frames, where an empty mask is right.
    assert value(report, Task.SEGMENTATION, "j") == pytest.approx(2 / 12)
    assert value(report, Task.SEGMENTATION, "f") == pytest.approx(2 / 12)
    for name in ("j_visible", "f_visible", "giou", "ciou", "false_alarm"):
        assert value(report, Task.SEGMENTATION, name) == 0.0
    assert value(report, Task.SEGMENTATION, "r") == 1.0
    assert value(report, Task.SEGMENTATION, "jf", has_target=False) == 1.0
    assert value(report, Task.GROUNDING, "viou") == 0.0
    assert value(report, Task.GROUNDING, "viou", has_target=False) == 1.0
    assert value(report, Task.SUMMARY, "rouge_l") == 0.0
    assert value(report, Task.VQA, "accuracy") == 0.0


def test_groups_average_their_own_samples(corpus, truth, tmp_path):
    # Right only for the videos 0 and 4, whose level is 1 and whose categories are all three.
    rows = [perfect_row(s) for s in truth[2] if s.sample_id[:2] in ("v0", "v4")]
    report, _ = run(corpus, tmp_path, rows)
    assert value(report, Task.VQA, "accuracy") == pytest.approx(2 / 6)
    assert value(report, Task.VQA, "accuracy", level=1) == 1.0
    assert value(report, Task.VQA, "accuracy", level=2) == 0.0
    assert value(report, Task.VQA, "accuracy", category="temporal") == pytest.approx(2 / 3)
    assert value(report, Task.VQA, "accuracy", category="semantic") == pytest.approx(2 / 6)
    assert value(report, Task.VQA, "accuracy", source="left") == pytest.approx(1 / 3)
    assert value(report, Task.VQA, "accuracy", source="left", level=1, category="spatial") == 1.0
    whole = find(report["groups"], Task.VQA)
    assert (whole["samples"], whole["metrics"]["accuracy"]["videos"]) == (12, 6)


def test_ciou_weighs_pixels_and_giou_samples(corpus, truth, tmp_path):
    rows = []
    for sample in truth[2]:
        row = perfect_row(sample)
        if sample.sample_id == "v0-seg":
            row["masks"] = [rle.from_counts([0, H * W], H, W)] * N
        rows.append(row)
    report, _ = run(corpus, tmp_path, rows)
    pixels = 12 * 14 * (N - 2)
    assert value(report, Task.SEGMENTATION, "giou") == pytest.approx((5 + pixels / (H * W * N)) / 6)
    assert value(report, Task.SEGMENTATION, "ciou") == pytest.approx(6 * pixels / (5 * pixels + H * W * N))


def test_intervals_resample_videos_not_samples_and_are_seeded(corpus, truth, tmp_path):
    rows = [perfect_row(s) for s in truth[2] if int(s.sample_id[1]) < 3]
    options = replace(QUICK, draws=4000)
    first, path = run(corpus, tmp_path / "a", rows, options)
    again, _ = run(corpus, tmp_path / "b", rows, options)
    assert first == again
    accuracy = find(first["groups"], Task.VQA)["metrics"]["accuracy"]
    assert accuracy["value"] == 0.5
    # Six all-or-nothing videos: two samples a video add nothing. Binomial(6, 1/2) / 6 has these quantiles.
    assert (accuracy["low"], accuracy["high"]) == (pytest.approx(1 / 6), pytest.approx(5 / 6))
    other, _ = run(corpus, tmp_path / "c", rows, replace(QUICK, seed=1))
    assert other["groups"] != first["groups"]
    one_video = find(first["groups"], Task.VQA, level=3)  # only video 2
    assert one_video["metrics"]["accuracy"]["low"] is None
    assert path.parent.joinpath("report.md").read_text().count("|") > 50


def test_broken_predictions_give_the_right_score_and_a_clear_report(corpus, truth, tmp_path):
    rows = []
    for sample in truth[2]:
        row = perfect_row(sample)
        if sample.sample_id == "v1-seg":
            row["masks"] = [{"size": [W, H], "counts": rle.empty(W, H)}] * N
        if sample.sample_id == "v1-two":
            row["boxes"] = [[[float("nan"), 0, 1, 1]]] * N
        rows.append(row)
    rows += [{"sample_id": "ghost", "answer": "x"}, {"sample_id": "v2-vqa", "answer": "wrong"}]
    random.Random(0).shuffle(rows[:-2])
    report, path = run(corpus, tmp_path, rows)
    assert value(report, Task.SEGMENTATION, "j") == pytest.approx((5 + 2 / 12) / 6)
    assert value(report, Task.GROUNDING, "viou") == pytest.approx(5 / 6)
    assert value(report, Task.VQA, "accuracy") == 1.0
    assert {k: n for k, n in report["issues"].items() if n} == {
        "wrong_size": 1, "bad_box": 1, "unknown_id": 1, "duplicate": 1,
    }  # fmt: skip
    lines = [json.loads(line) for line in (path.parent / "issues.jsonl").read_text().splitlines()]
    assert next(i for i in lines if i["kind"] == "wrong_size")["times"] == N


def test_frames_without_annotation_are_not_scored(truth, tmp_path):
    from tests.corpora import write_corpus

    clips, twins, samples = truth
    seg = samples[0].model_copy(update={"masks": [None] * 6 + samples[0].masks[6:]})
    two = samples[1].model_copy(update={"boxes": [None] * 6 + samples[1].boxes[6:]})
    unknown = samples[0].model_copy(update={"sample_id": "blank", "masks": [None] * N})
    corpus = write_corpus(tmp_path / "c", clips[:1], twins[:1], [seg, two, unknown])
    rows = [perfect_row(samples[0]), perfect_row(samples[1]), {"sample_id": "blank", "masks": [None] * N}]
    whole = rle.from_counts([0, H * W], H, W)
    rows[0]["masks"] = [whole] * 6 + rows[0]["masks"][6:]
    report, _ = run(corpus, tmp_path, rows)
    assert value(report, Task.SEGMENTATION, "jf") == 1.0
    assert find(report["groups"], Task.SEGMENTATION)["metrics"]["jf"]["samples"] == 1
    assert value(report, Task.GROUNDING, "viou") == 1.0


def test_baselines_stand_beside_the_predictions(perfect):
    report, _ = perfect
    assert set(report["baselines"]) == set(BASELINES)

    def of(name, task, metric, **axes):
        return find(report["baselines"][name], task, **axes)["metrics"][metric]["value"]

    assert of("empty", Task.SEGMENTATION, "j") == pytest.approx(2 / 12)
    assert of("full_frame", Task.SEGMENTATION, "false_alarm") == 1.0
    assert of("full_frame", Task.SEGMENTATION, "jf", has_target=False) < 1
    assert of("largest_track", Task.SEGMENTATION, "j") == 0.0  # the target is the small one
    assert of("largest_track", Task.GROUNDING, "viou") == pytest.approx((10 * 0.5 + 2) / 12)
    assert of("text_only", Task.VQA, "accuracy") == 0.5  # closed ones are all "red" in the other videos


def test_the_text_baseline_never_looks_at_its_own_video(corpus, truth, tmp_path):
    path = write_baseline(Corpus(corpus), "text_only", tmp_path / "t.jsonl")
    answers = {r["sample_id"]: r.get("answer") for r in map(json.loads, path.read_text().splitlines())}
    own = {s.sample_id: s.answer for s in truth[2] if s.task is Task.SUMMARY}
    assert all(answers[k] != v for k, v in own.items())


def test_the_random_baseline_follows_its_seed_only(corpus, tmp_path):
    texts = [
        write_baseline(Corpus(corpus), "random_track", tmp_path / f"{i}.jsonl", seed).read_text()
        for i, seed in enumerate((0, 0, 1))
    ]
    assert texts[0] == texts[1] != texts[2]
    with pytest.raises(ConfigError, match="there are empty"):
        write_baseline(Corpus(corpus), "best", tmp_path / "x.jsonl")


def test_the_judge_grades_free_answers_only_and_failures_are_counted(corpus, truth, tmp_path):
    class Judge:
        model_id = "judge-1"
        seen: list[str] = []  # noqa: RUF012 - one instance

        async def complete(self, request):
            text = request.messages[1].content
            self.seen.append(text)
            if "'v3'" in text:
                return LlmReply(text="", finish=Finish.LENGTH)
            return LlmReply(text="", finish=Finish.STOP, data={"correct": "yes", "score": 4})

        async def close(self):
            pass

    rows = [perfect_row(s) | ({"answer": s.sample_id[:2]} if s.task is Task.VQA else {}) for s in truth[2]]
    report, _ = run(corpus, tmp_path, rows, replace(QUICK, judge=Judge()))
    assert len(Judge.seen) == 6
    assert (report["judge"]["model"], report["judge"]["asked"], report["judge"]["failed"]) == (
        "judge-1",
        6,
        1,
    )
    assert value(report, Task.VQA, "judge_correct") == 1.0
    assert value(report, Task.VQA, "judge_score") == pytest.approx(0.8)
    assert value(report, Task.VQA, "accuracy") == pytest.approx(5 / 12)


def test_a_frozen_idf_table_is_kept_and_reused(corpus, truth, tmp_path):
    rows = [{**perfect_row(s), "answer": "A ball rolls."} for s in truth[2] if s.task is Task.SUMMARY]
    first, path = run(corpus, tmp_path / "a", rows)
    table = path.parent / "cider_idf.json"
    half = rows[:3]
    options = replace(QUICK, idf=table)
    second, _ = run(corpus, tmp_path / "b", half, options)
    assert first["cider_idf"] == second["cider_idf"]
    scores = [pq.read_table(tmp_path / k / "out" / "scores.parquet").to_pylist() for k in "ab"]
    values = [{r["sample_id"]: r["cider"] for r in s if r["task"] == "summary"} for s in scores]
    assert all(values[0][r["sample_id"]] == values[1][r["sample_id"]] > 0 for r in half)


def test_compare_pairs_videos(corpus, truth, tmp_path):
    good = [perfect_row(s) for s in truth[2]]
    bad = [r for r in good if r["sample_id"][:2] not in ("v1", "v5")]
    _, a = run(corpus, tmp_path / "a", bad)
    _, b = run(corpus, tmp_path / "b", good)
    result = compare(a, b, tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == result
    accuracy = find(result["groups"], Task.VQA)["metrics"]["accuracy"]
    assert (accuracy["a"], accuracy["b"]) == (pytest.approx(4 / 6), 1.0)
    assert accuracy["difference"] == pytest.approx(2 / 6)
    assert 0 <= accuracy["low"] <= accuracy["difference"] <= accuracy["high"] < 1
    same = find(compare(a, a)["groups"], Task.VQA)["metrics"]["accuracy"]
    assert (same["difference"], same["low"], same["high"], same["p"]) == (0, 0, 0, 1)
    assert result["warnings"] == []


def test_compare_says_what_cannot_be_compared(corpus, truth, tmp_path):
    from tests.corpora import write_corpus

    clips, twins, samples = truth
    half = write_corpus(tmp_path / "half", clips[:3], twins[:3], samples[:21])
    _, a = run(corpus, tmp_path / "a", [])
    _, b = run(half, tmp_path / "b", [], replace(QUICK, skip_ends=True))
    warnings = " ".join(compare(a, b)["warnings"])
    assert "IDF tables" in warnings
    assert "skip_ends" in warnings
    assert "only in the first report" in warnings
    (b.parent / "scores.parquet").unlink()
    with pytest.raises(ConfigError, match=r"scores\.parquet is not beside it"):
        compare(a, b)
    with pytest.raises(ConfigError, match="cannot read the report"):
        compare(a, tmp_path / "nothing.json")


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_the_page_is_whole_escaped_and_needs_no_network(perfect):
    folder = perfect[1].parent
    text = (folder / "index.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    images = [a for t, a in page.tags if t == "img"]
    assert len(images) == 4
    for image in images:
        assert "<svg" in (folder / image["src"]).read_text(encoding="utf-8")
        assert "level 1" in image["alt"]
    assert not [t for t, _ in page.tags if t in ("script", "link", "b")]
    assert "http" not in text
    assert "baseline: largest track" in text


def test_plots_are_the_same_bytes_for_the_same_scores(corpus, truth, tmp_path):
    rows = [perfect_row(s) for s in truth[2]]
    options = EvaluationOptions(baselines=(), draws=50)
    folders = [run(corpus, tmp_path / k, rows, options)[1].parent for k in "ab"]
    for file in ("levels-vqa.svg", "report.json", "report.md", "index.html"):
        assert (folders[0] / file).read_bytes() == (folders[1] / file).read_bytes()


def test_one_clip_is_read_at_a_time(corpus, truth, tmp_path, monkeypatch):
    held = []
    original = Corpus.twin

    def twin(self, clip_id):
        held.append(clip_id)
        return original(self, clip_id)

    monkeypatch.setattr(Corpus, "twin", twin)
    run(corpus, tmp_path, [])
    assert held == [c.clip_id for c in truth[0]]  # each once, in order


def test_a_folder_that_is_no_corpus_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="not a finished corpus"):
        evaluate(tmp_path, tmp_path, tmp_path / "out")


def test_a_run_that_breaks_leaves_no_scores_behind(corpus, truth, tmp_path, monkeypatch):
    from rvt_ray.evaluation.metrics import Scorer

    def broken(*args, **kwargs):
        raise RuntimeError("boom")

    monkeypatch.setattr(Scorer, "score", broken)
    with pytest.raises(RuntimeError, match="boom"):
        run(corpus, tmp_path, [])
    assert list((tmp_path / "out").iterdir()) == []


def test_bootstrap_intervals_cover_the_truth_about_as_often_as_they_say():
    from rvt_ray.evaluation.bootstrap import estimate_all

    rng = np.random.default_rng(5)
    covered = 0
    for trial in range(200):
        videos = np.repeat(np.arange(40), 3)
        means = rng.normal(0.5, 0.2, 40)[videos]  # samples of a video share its difficulty
        values = (means + rng.normal(0, 0.05, 120))[:, None]
        ones = np.ones_like(values)
        (found,) = estimate_all(videos, values, ones, ones > 0, seed=trial, draws=300)
        covered += found.low <= 0.5 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_known_masks_round_trip_through_png_folders(corpus, truth, tmp_path):
    from PIL import Image

    rows = []
    for sample in truth[2]:
        if sample.task is not Task.SEGMENTATION:
            rows.append(perfect_row(sample))
            continue
        folder = tmp_path / "p" / "masks" / sample.sample_id
        folder.mkdir(parents=True)
        for frame, text in enumerate(sample.masks):
            Image.fromarray(rle.decode(text, H, W).astype(np.uint8)).save(folder / f"{frame:05d}.png")
    write_jsonl(tmp_path / "p" / "rest.jsonl", rows)
    report = json.loads(evaluate(corpus, tmp_path / "p", tmp_path / "out", QUICK).read_text(encoding="utf-8"))
    assert value(report, Task.SEGMENTATION, "jf") == 1.0
    assert value(report, Task.SEGMENTATION, "jf", has_target=False) == 1.0
    assert not any(report["issues"].values())
