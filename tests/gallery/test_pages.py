"""The pages as files: complete, escaped, honest about what is missing, and bounded."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import cv2
import pytest

from rvt_ray.corpus import CorpusError
from rvt_ray.gallery import write_gallery
from tests.corpora import write_corpus
from tests.gallery.conftest import HOSTILE, N


class Links(HTMLParser):
    """Collects what a page refers to, and which elements it has."""

    def __init__(self) -> None:
        super().__init__()
        self.refs: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        self.refs += [found[k] for k in ("src", "href") if found.get(k)]


def parse(path):
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


@pytest.fixture(scope="module")
def pages(corpus, opener, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_gallery(corpus, folder, frames=opener)
    return folder


def clip_page(pages):
    return next(pages.glob(f"*-{N:05d}.html"))


def test_every_link_and_image_exists_and_nothing_leaves_the_folder(pages):
    for page in pages.glob("*.html"):
        for ref in parse(page).refs:
            if not ref.startswith("#"):
                assert "://" not in ref
                assert (pages / ref).resolve().is_relative_to(pages.resolve())
                assert (pages / ref).is_file(), f"{page.name} refers to {ref}"


def test_text_from_models_and_files_is_never_markup(pages):
    page = clip_page(pages)
    text = page.read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert "&lt;script&gt;document.title" in text
    tags = parse(page).tags
    assert [a.get("src") for t, a in tags if t == "script"] == ["gallery.js"]
    assert not [t for t, _ in tags if t == "b"]
    assert not [a for _, a in tags if any(k.startswith("on") for k in a)]


def test_every_image_says_what_it_shows(pages):
    for page in pages.glob("*.html"):
        for tag, attrs in parse(page).tags:
            if tag == "img":
                assert len(attrs["alt"]) > 10
            if tag == "svg":
                assert attrs.get("aria-hidden") == "true" or attrs.get("aria-label")


def test_the_clip_page_shows_queries_gates_programs_rejects_and_events(pages):
    text = clip_page(pages).read_text(encoding="utf-8")
    for expected in (
        "level 4", "shortcut: fail", "faithful: not run", "hidden by", "appears before", "x (target): #1, #3",
        "nothing in the clip fits" .capitalize(), "Refused candidates (2)", "hidden at frame",
        "occluded, frames", "not annotated, frames 20 to 20", "✓ answer",
    ):  # fmt: skip
        assert expected in text, expected


def test_the_index_counts_what_the_tables_hold(pages):
    text = re.sub(r"<[^>]+>|\s+", " ", (pages / "index.html").read_text(encoding="utf-8"))
    text = re.sub(r" +", " ", text)
    assert "6 queries with proven truth over 3 clips of 3 videos" in text
    assert "twins 2 67% of clips" in text
    assert "samples 6 75% of candidates" in text
    assert "perceive clip timeout 1" in text
    assert "segmentation 1 1 0 1 1 1 0 1 0 0 0 1" in text


def test_a_target_is_lit_and_the_rest_is_grey(pages):
    folder = clip_page(pages).with_suffix("")
    lit = 0
    for path in folder.glob("q*-f00005.jpg"):  # the ball is red and whole on frame 5
        image = cv2.imread(str(path)).astype(int)
        height, width = image.shape[:2]
        blue, _, red = image[int(height * (94 / 180)), int(width * 46 / 320)]
        lit += red - blue > 90
        corner = image[5, 5]
        assert corner.max() - corner.min() < 30
    assert lit


def test_a_video_that_is_gone_gives_masks_on_grey_and_a_word(pages):
    page = next(pages.glob("ffff*.html"))
    assert "masks are drawn on grey" in page.read_text(encoding="utf-8")
    image = cv2.imread(str(next(page.with_suffix("").glob("key*.jpg"))))
    assert abs(image[2, 2].astype(int) - 118).max() < 6


def test_a_failed_clip_has_a_page_that_says_why(pages):
    text = next(pages.glob("aaaa*.html")).read_text(encoding="utf-8")
    assert "Failed in perceive: clip timeout." in text
    assert "took too long" in text


def test_a_limit_bounds_the_pages_not_the_counts(corpus, opener, tmp_path):
    index = write_gallery(corpus, tmp_path / "few", limit=1, frames=opener)
    assert len(list(index.parent.glob("*.html"))) == 2
    assert "3 clips" in index.read_text(encoding="utf-8")


def test_a_folder_that_is_no_finished_corpus_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="not a finished corpus"):
        write_gallery(tmp_path)


def test_a_clip_id_cannot_write_outside_the_folder(tmp_path):
    from tests.corpora import make_clip

    evil = make_clip("b" * 16, 4, 8, 8, clip_id="../../evil")
    index = write_gallery(write_corpus(tmp_path / "c", [evil]), tmp_path / "deep" / "pages")
    assert not list(tmp_path.glob("*.html"))
    assert len(list(index.parent.glob("*evil.html"))) == 1


def test_only_the_row_groups_of_a_clip_are_read(corpus, monkeypatch):
    import pyarrow.parquet as pq

    from rvt_ray.corpus import Corpus

    reads = []
    original = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_group",
        lambda self, i, columns=None, **k: (
            reads.append((i, columns)), original(self, i, columns=columns, **k)
        )[1],
    )  # fmt: skip
    opened = Corpus(corpus)
    gone = next(c for c in opened.clips() if c.name == "gone")
    assert [s.sample_id for s in opened.samples(gone.clip_id)] == ["s6"]
    assert [i for i, columns in reads if columns is None] == [2]  # 6 samples in groups of 2


def test_frames_come_from_the_video_itself_without_an_opener(corpus, tmp_path):
    index = write_gallery(corpus, tmp_path / "real", limit=1)
    page = next(index.parent.glob(f"*-{N:05d}.html"))
    assert "drawn on grey" not in page.read_text(encoding="utf-8")
    image = cv2.imread(str(page.with_suffix("") / "key-f00000.jpg")).astype(int)
    sky, ground = image[3, image.shape[1] // 2], image[-4, image.shape[1] // 2]
    assert sky[0] > sky[2] + 20  # bluish above
    assert ground[1] > ground[0]  # greenish below
