"""Writing the gallery: an index and one page per clip."""

from __future__ import annotations

import logging
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from pydantic import ValidationError

from rvt_ray.config.settings import IndexSettings
from rvt_ray.corpus import Corpus
from rvt_ray.gallery.clip_page import ClipView, FrameOpener, Picture, clip_view
from rvt_ray.gallery.summary import LEVELS, summarise
from rvt_ray.gallery.yield_plot import yield_plots
from rvt_ray.records import Category, ClipRecord, Failure, Task
from rvt_ray.video.frames import FrameStream

log = logging.getLogger(__name__)

TEMPLATES = Path(__file__).parent / "templates"
ASSETS = ("gallery.css", "gallery.js")


@dataclass(frozen=True)
class Card:
    """A clip on the index page. `search` is what the filter box looks through."""

    page: str
    title: str
    source: str
    clip_id: str
    picture: Picture | None
    duration_s: float
    size: str
    instances: int
    samples: int
    rejects: int
    failed: bool
    tasks: list[str]
    search: str


def write_gallery(
    out: Path, pages: Path | None = None, limit: int | None = None, frames: FrameOpener | None = None
) -> Path:
    """Write static pages for a finished corpus. One clip is in memory at a time.

    Args:
        out: the corpus folder.
        pages: folder for the pages; default `out/gallery`. Files of the same name are replaced.
        limit: only the first so many clips get a page; the index still counts all.
        frames: gives a clip's frames; default: decode its `uri` as the run did. Where that raises
            `ClipError` or `OSError` the masks are drawn on grey, and the page says so.

    Returns:
        The index page.

    Raises:
        CorpusError: `out` is not a finished corpus.
        OSError: a page cannot be written.
    """
    corpus = Corpus(out)
    target = pages if pages is not None else Path(out) / "gallery"
    target.mkdir(parents=True, exist_ok=True)
    for name in ASSETS:
        shutil.copyfile(TEMPLATES / name, target / name)
    opener = frames if frames is not None else clip_opener(corpus)
    environment = page_environment()
    summary = summarise(corpus)
    cards = []
    for number, clip in enumerate(corpus.clips()):
        if limit is not None and number >= limit:
            break
        view = _view(corpus, clip, opener, target)
        card = _card(view)
        html = environment.get_template("clip.html.j2").render(view=view, clip=clip, twin=view.twin)
        (target / card.page).write_text(html, encoding="utf-8")
        cards.append(card)
    index = target / "index.html"
    index.write_text(
        environment.get_template("index.html.j2").render(
            name=Path(out).resolve().name,
            summary=summary,
            plots=yield_plots(summary.yields, list(Task), LEVELS),
            cards=cards,
            tasks=list(Task),
            categories=list(Category),
            levels=LEVELS,
        ),
        encoding="utf-8",
    )
    log.info("gallery: %d clip pages, index at %s", len(cards), index)
    return index


def _view(corpus: Corpus, clip: ClipRecord, opener: FrameOpener, target: Path) -> ClipView:
    failures = [f for f in corpus.tables["failures"].of_clip(clip.clip_id) if isinstance(f, Failure)]
    return clip_view(
        clip,
        corpus.twin(clip.clip_id),
        list(corpus.samples(clip.clip_id)),
        list(corpus.rejects(clip.clip_id)),
        [(str(f.stage), str(f.code), f.message) for f in failures],
        opener,
        target / file_stem(clip.clip_id),
    )


def clip_opener(corpus: Corpus) -> FrameOpener:
    """Decode clips with the index settings that the corpus was made with."""
    raw = corpus.manifest.get("config")
    raw = raw.get("index") if isinstance(raw, dict) else None
    try:
        settings = IndexSettings.model_validate(raw or {})
    except ValidationError:
        log.warning("gallery: the manifest's index settings are of another version; decoding with defaults")
        settings = IndexSettings()

    def opener(clip: ClipRecord) -> FrameStream:
        from rvt_ray.video import open_clip

        stream: FrameStream = open_clip(clip, settings)
        return stream

    return opener


def _card(view: ClipView) -> Card:
    clip = view.clip
    categories = sorted({i.category for i in view.twin.instances}) if view.twin else []
    queries = [q.sample.query for q in view.queries]
    return Card(
        file_stem(clip.clip_id) + ".html",
        clip.name or clip.clip_id,
        clip.source,
        clip.clip_id,
        view.key_frames[len(view.key_frames) // 2] if view.key_frames else None,
        _duration(clip.pts_s),
        f"{clip.width}×{clip.height}",
        len(view.twin.instances) if view.twin else 0,
        len(view.queries),
        len(view.rejects),
        view.twin is None,
        sorted({str(q.sample.task) for q in view.queries}),
        " ".join([clip.name, clip.source, clip.clip_id, *categories, *queries]).lower(),
    )


def _duration(pts_s: list[float]) -> float:
    if len(pts_s) < 2:
        return 0.0
    return pts_s[-1] - pts_s[0] + (pts_s[-1] - pts_s[-2])


def file_stem(clip_id: str) -> str:
    """A clip id as a file name; ids come from a file, so nothing in them may leave the folder."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", clip_id)
    return safe if safe and safe != "index" else f"clip_{safe}"


def page_environment() -> jinja2.Environment:
    """Templates of this room; everything is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,  # captions and queries are other people's (and models') text
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "percent": lambda share: f"{share:.0%}",
        "seconds": lambda value: f"{value:.2f} s",
        "words": lambda text: str(text).replace("_", " "),
    }
    environment.filters.update(filters)
    return environment
