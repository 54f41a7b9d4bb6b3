"""The audit page: a fair draw, nothing given away, and verdicts that come out as they went in."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rvt_ray.cli import main
from rvt_ray.corpus import CorpusError
from rvt_ray.evaluation.audit_report import read_verdicts
from rvt_ray.gallery.audit import MOMENTS, draw_samples, moments, write_audit
from tests.corpora import write_corpus
from tests.gallery.conftest import N
from tests.gallery.test_browser import CHROMIUM, browse, console_errors


def test_tasks_and_levels_are_drawn_evenly() -> None:
    rows = [(f"v{i}", "vqa", 1) for i in range(900)]
    rows += [(f"s{i}", "summary", 4) for i in range(40)] + [(f"g{i}", "grounding", 2) for i in range(3)]
    drawn = draw_samples(rows, 30, 0)
    assert len(set(drawn)) == 30
    counts = Counter(i[0] for i in drawn)
    assert counts["g"] == 3, "all of a small stratum"
    assert abs(counts["v"] - counts["s"]) <= 1
    assert draw_samples(rows[::-1], 30, 0) == drawn
    assert set(draw_samples(rows, 30, 1)) != set(drawn)
    assert len(draw_samples(rows, 5000, 0)) == 943


@pytest.fixture(scope="module")
def page(corpus, opener, tmp_path_factory):
    return write_audit(corpus, 200, 0, tmp_path_factory.mktemp("audit"), opener)


class Visible(HTMLParser):
    """The text and pictures of a page outside of hidden elements."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[bool] = []
        self.text: list[str] = []
        self.images: list[str] = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "img" and not any(self.stack):
            self.images.append(f"{given['src']} {given['alt']}")
        if tag not in ("img", "input", "link", "meta"):
            self.stack.append("hidden" in given)

    def handle_endtag(self, tag):
        self.stack.pop()

    def handle_data(self, data):
        if not any(self.stack):
            self.text.append(data)


def test_the_truth_is_out_of_sight_until_asked_for(page) -> None:
    seen = Visible()
    seen.feed(page.read_text())
    text = " ".join(seen.text)
    assert "Find everything that moves." in text
    assert "moves to the right behind the support" not in text, "an answer"
    assert not re.search(r"Target|x is left of a", text)
    assert len(seen.images) >= 6
    assert not any("highlighted" in image for image in seen.images)
    hidden = page.read_text()
    assert "moves to the right behind the support" in hidden
    assert "highlighted" in hidden


def test_the_end_of_a_clip_is_shown_since_queries_speak_of_it(page) -> None:
    seen = Visible()
    seen.feed(page.read_text())
    (ball,) = {image.split("/")[0] for image in seen.images if f"f{N - 1:05d}.jpg" in image}
    frames = {int(m[1]) for i in seen.images if (m := re.match(rf"{ball}/moment-f(\d+)\.jpg", i))}
    assert len(frames) == MOMENTS
    assert {0, N - 1} < frames
    assert max(b - a for a, b in zip(sorted(frames), sorted(frames)[1:], strict=False)) <= N // MOMENTS + 2
    assert any("crate" in image for image in seen.images if f"f{N - 1:05d}.jpg" in image), "all outlines"
    files = list((page.parent / ball).glob("moment-*.jpg"))
    assert len(files) == MOMENTS
    assert sum(f.stat().st_size for f in files) < 400_000


@pytest.mark.parametrize("count", [1, 2, MOMENTS, MOMENTS + 1, 5000])
def test_no_moment_is_shown_twice_however_short_the_clip(count: int) -> None:
    shown = moments(count)
    assert shown == sorted(set(shown))
    assert (shown[0], shown[-1], len(shown)) == (0, count - 1, min(count, MOMENTS))


def test_untrusted_text_stays_text(page) -> None:
    assert "<script>document.title" not in page.read_text()


def test_a_corpus_without_samples_says_so(tmp_path) -> None:
    with pytest.raises(CorpusError, match="no samples"):
        write_audit(write_corpus(tmp_path / "empty", []))


def test_the_command_writes_the_page_and_the_report_reads_verdicts(corpus, tmp_path, capsys) -> None:
    assert main(["audit", str(corpus), "--n", "3", "--pages", str(tmp_path / "audit")]) == 0
    html = (tmp_path / "audit" / "index.html").read_text()
    assert html.count("<article") == 3
    verdict = {"audit": "k", "sample_id": "s1", "clip_id": "c", "task": "vqa", "level": 1, "rater": "ann",
               "verdict": "wrong"}  # fmt: skip
    (tmp_path / "v.jsonl").write_text(json.dumps(verdict))
    capsys.readouterr()
    assert main(["audit-report", str(tmp_path / "v.jsonl")]) == 0
    assert re.search(r"vqa/L1 +1 +100\.0 %", capsys.readouterr().out)
    assert main(["audit-report", str(tmp_path / "v.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["wrong"]["all"]["faults"] == 1
    assert main(["audit-report", str(tmp_path / "none.jsonl")]) == 2
    assert main(["audit", str(corpus), "--n", "0"]) == 2


# Opens the page under test in a frame, takes steps in it at every load, and writes down what it saw.
PROBE = """<!doctype html><meta charset=utf-8>
<iframe id=f width="@WIDTH@" height=900></iframe><pre id=r></pre>
<script>
const f = document.getElementById("f"), r = {};
let turn = 0;
f.onload = async () => {
  const d = f.contentDocument, w = f.contentWindow;
  const articles = [...d.querySelectorAll("article[data-sample]")];
  turn += 1;
@STEPS@
  document.getElementById("r").textContent = JSON.stringify(r);
};
f.src = "index.html";
</script>"""


# Judges two samples, reloads, and exports.
JUDGE = """
  if (turn === 1) {
    r.overflow = d.documentElement.scrollWidth - d.documentElement.clientWidth;
    r.hidden = articles.every((a) => a.querySelector(".truth").offsetParent === null);
    articles[0].querySelector('[data-verdict="wrong"]').click();
    articles[0].querySelector(".reveal").click();
    r.unnamedVerdicts = d.querySelectorAll('.verdict[aria-pressed="true"]').length;
    r.unnamedTruth = articles[0].querySelector(".truth").offsetParent !== null;
    d.getElementById("export").click();
    r.unnamed = d.getElementById("progress").textContent;
    const name = d.getElementById("rater");
    name.value = "ann & co"; name.dispatchEvent(new Event("input"));
    articles[0].querySelector('[data-verdict="correct"]').click();
    articles[1].querySelector(".reveal").click();
    r.shown = articles[1].querySelector(".truth").offsetParent !== null;
    articles[1].querySelector('[data-verdict="wrong"]').click();
    const note = articles[1].querySelector(".note");
    note.value = 'the "other" one'; note.dispatchEvent(new Event("input"));
    articles[2].querySelector('[data-verdict="leaks"]').click();
    articles[2].querySelector('[data-verdict="leaks"]').click();
    f.contentWindow.location.reload();
    return;
  }
  r.progress = d.getElementById("progress").textContent;
  r.pressed = d.querySelectorAll('.verdict[aria-pressed="true"]').length;
  d.getElementById("download").addEventListener("click", (e) => e.preventDefault());
  d.getElementById("export").click();
  r.file = d.getElementById("download").download;
  r.lines = await (await w.fetch(d.getElementById("download").href).catch(() => fetch(
    d.getElementById("download").href))).text();
  const only = d.getElementById("only-open");
  only.checked = true; only.dispatchEvent(new Event("change"));
  r.open = articles.filter((a) => !a.hidden).length;
"""


# Two raters at one browser, in turn: what each of them sees and exports.
TWO_RATERS = """
  const call = (name) => {
    const box = d.getElementById("rater");
    box.value = name; box.dispatchEvent(new Event("input"));
  };
  const seen = () => ({
    pressed: [...d.querySelectorAll('.verdict[aria-pressed="true"]')].map((b) => b.dataset.verdict),
    notes: articles.map((a) => a.querySelector(".note").value).filter(Boolean),
    truths: articles.filter((a) => !a.querySelector(".truth").hidden).length,
    progress: d.getElementById("progress").textContent,
  });
  if (turn === 1) {
    call("ann");
    articles[0].querySelector(".reveal").click();
    articles[0].querySelector('[data-verdict="wrong"]').click();
    const note = articles[0].querySelector(".note");
    note.value = "anns own"; note.dispatchEvent(new Event("input"));
    call("bob");
    r.bobFirst = seen();
    articles[1].querySelector('[data-verdict="correct"]').click();
    d.getElementById("download").addEventListener("click", (e) => e.preventDefault());
    d.getElementById("export").click();
    r.bobLines = await (await fetch(d.getElementById("download").href)).text();
    call("ann");
    r.annAgain = seen();
    call("bob");
    f.contentWindow.location.reload();
    return;
  }
  r.bobReloaded = seen();
  r.name = d.getElementById("rater").value;
  call("ann");
  r.annReloaded = seen();
"""


def probed(page: Path, profile: Path, serve, name: str, steps: str, width: int = 1280):
    """What a probe beside the page wrote down, with the browser's own output."""
    probe = PROBE.replace("@WIDTH@", str(width)).replace("@STEPS@", steps)
    (page.parent / name).write_text(probe, encoding="utf-8")
    result = browse(profile, "--virtual-time-budget=8000", "--dump-dom", f"{serve(page.parent)}/{name}")
    found = re.search(r'<pre id="r">(.+?)</pre>', result.stdout, re.S)
    assert found, result.stdout[-500:] + result.stderr[-1500:]
    return result, json.loads(unescape(found[1]))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)")
def test_a_second_rater_neither_sees_nor_exports_the_first_ones_verdicts(
    page: Path, tmp_path: Path, serve
) -> None:
    _, report = probed(page, tmp_path, serve, "probe-raters.html", TWO_RATERS)
    assert report["bobFirst"] == {"pressed": [], "notes": [], "truths": 0, "progress": "0 of 6 judged"}
    (line,) = report["bobLines"].splitlines()
    exported = json.loads(line)
    assert (exported["rater"], exported["verdict"], exported["note"]) == ("bob", "correct", "")
    assert exported["saw_truth"] is False
    for seen in (report["annAgain"], report["annReloaded"]):
        assert (seen["pressed"], seen["notes"]) == (["wrong"], ["anns own"])
    assert report["name"] == "bob"
    assert (report["bobReloaded"]["pressed"], report["bobReloaded"]["notes"]) == (["correct"], [])


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)")
@pytest.mark.parametrize("width", [1280, 390])
def test_verdicts_are_kept_and_exported(page: Path, tmp_path: Path, width: int, serve) -> None:
    result, report = probed(page, tmp_path, serve, f"probe-{width}.html", JUDGE, width)
    assert report["overflow"] <= 0
    assert report["hidden"]
    assert report["shown"]
    assert "name first" in report["unnamed"]
    assert (report["unnamedVerdicts"], report["unnamedTruth"]) == (0, False), "nobody's verdicts"
    assert report["progress"] == "2 of 6 judged"
    assert report["pressed"] == 2
    assert report["open"] == 4
    (tmp_path / "verdicts.jsonl").write_text(report["lines"], encoding="utf-8")
    verdicts = read_verdicts([tmp_path / "verdicts.jsonl"])
    assert sorted((v.verdict, v.note, v.saw_truth) for v in verdicts) == [
        ("correct", "", False),
        ("wrong", 'the "other" one', True),
    ]
    assert {v.rater for v in verdicts} == {"ann & co"}
    assert report["file"].endswith("-ann_co.jsonl")
    assert not [line for line in console_errors(result) if "Content Security Policy" not in line]
