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
from rvt_ray.gallery.audit import draw_samples, write_audit
from tests.corpora import write_corpus
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


# Judges two samples in the page under test, reloads it, exports, and writes down what happened.
PROBE = """<!doctype html><meta charset=utf-8>
<iframe id=f width="%(width)d" height=900></iframe><pre id=r></pre>
<script>
const f = document.getElementById("f"), r = {};
let turn = 0;
f.onload = async () => {
  const d = f.contentDocument, w = f.contentWindow;
  const articles = [...d.querySelectorAll("article[data-sample]")];
  turn += 1;
  if (turn === 1) {
    r.overflow = d.documentElement.scrollWidth - d.documentElement.clientWidth;
    r.hidden = articles.every((a) => a.querySelector(".truth").offsetParent === null);
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
  document.getElementById("r").textContent = JSON.stringify(r);
};
f.src = "index.html";
</script>"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)")
@pytest.mark.parametrize("width", [1280, 390])
def test_verdicts_are_kept_and_exported(page: Path, tmp_path: Path, width: int, serve) -> None:
    probe = page.parent / f"probe-{width}.html"
    probe.write_text(PROBE % {"width": width}, encoding="utf-8")
    result = browse(
        tmp_path, "--virtual-time-budget=8000", "--dump-dom", f"{serve(page.parent)}/{probe.name}"
    )
    found = re.search(r'<pre id="r">(.+?)</pre>', result.stdout, re.S)
    assert found, result.stdout[-500:] + result.stderr[-1500:]
    report = json.loads(unescape(found[1]))
    assert report["overflow"] <= 0
    assert report["hidden"]
    assert report["shown"]
    assert "name first" in report["unnamed"]
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
