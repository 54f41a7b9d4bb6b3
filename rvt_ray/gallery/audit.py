"""A static page on which people judge a stratified draw of samples, without seeing the truth first."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from rvt_ray.corpus import Corpus, CorpusError
from rvt_ray.gallery import clip_page
from rvt_ray.gallery.clip_page import Album, FrameOpener, MaskBook, Picture
from rvt_ray.gallery.write import ASSETS, TEMPLATES, clip_opener, file_stem, page_environment
from rvt_ray.records import AuditWord, ClipRecord, Sample

log = logging.getLogger(__name__)

AUDIT_ASSETS = (*ASSETS, "audit.js", "audit.css")
MOMENTS, MOMENT_SIDE = 8, 400
"""Frames shown of a clip, both ends among them, and their longer side in pixels: some 200 kB a clip."""


@dataclass(frozen=True)
class Item:
    """A sample to be judged. `moments` show everything, `truth` the target."""

    number: int
    sample: Sample
    clip: ClipRecord
    moments: list[Picture]
    truth: list[Picture]
    video_missing: str


def draw_samples(rows: Iterable[tuple[str, str, int]], count: int, seed: int) -> list[str]:
    """Sample ids, stratified: task and level take turns until `count` are drawn or none is left.

    Args:
        rows: (sample id, task, level) of every sample, in any order.

    Returns:
        Ids in an order that does not tell the stratum.
    """

    def dice(sample_id: str) -> str:
        return hashlib.sha256(f"{seed}:{sample_id}".encode()).hexdigest()

    strata: dict[tuple[str, int], list[str]] = defaultdict(list)
    for sample_id, task, level in rows:
        strata[task, level].append(sample_id)
    queues = [sorted(ids, key=dice, reverse=True) for _, ids in sorted(strata.items())]
    drawn: list[str] = []
    while len(drawn) < count and any(queues):
        for queue in queues:
            if queue and len(drawn) < count:
                drawn.append(queue.pop())
    return sorted(drawn, key=dice)


def moments(num_frames: int, count: int = MOMENTS) -> list[int]:
    """Frames to judge a clip by: the first, the last, and others evenly between them.

    "At the end" and "the whole time" are said of queries, so both ends have to be seen.
    """
    if num_frames <= count:
        return list(range(num_frames))
    return [round(i * (num_frames - 1) / (count - 1)) for i in range(count)]


def write_audit(
    out: Path,
    count: int = 200,
    seed: int = 0,
    pages: Path | None = None,
    frames: FrameOpener | None = None,
) -> Path:
    """Write the audit page of a finished corpus. One clip is decoded at a time.

    Args:
        out: the corpus folder.
        count: samples to judge.
        seed: of the draw; raters who are to be compared need the same one.
        pages: folder for the page; default `out/audit`. Files of the same name are replaced.
        frames: gives a clip's frames; default: decode its `uri` as the run did.

    Returns:
        The page.

    Raises:
        CorpusError: `out` is not a finished corpus, or it has no samples.
        OSError: the page cannot be written.
    """
    corpus = Corpus(out)
    clips: dict[str, dict[str, int]] = defaultdict(dict)
    rows = list(corpus.tables["samples"].scan(["sample_id", "clip_id", "task", "level"]))
    ids = draw_samples(((r["sample_id"], r["task"], r["level"]) for r in rows), count, seed)
    if not ids:
        raise CorpusError(f"{out}: the corpus has no samples to judge")
    numbers = {sample_id: n for n, sample_id in enumerate(ids, start=1)}
    for row in rows:
        if row["sample_id"] in numbers:
            clips[row["clip_id"]][row["sample_id"]] = numbers[row["sample_id"]]
    target = pages if pages is not None else Path(out) / "audit"
    target.mkdir(parents=True, exist_ok=True)
    for name in AUDIT_ASSETS:
        shutil.copyfile(TEMPLATES / name, target / name)
    opener = frames if frames is not None else clip_opener(corpus)
    items: list[Item] = []
    for clip in corpus.clips():
        if clip.clip_id in clips:
            items += _items(corpus, clip, clips[clip.clip_id], opener, target)
    items.sort(key=lambda item: item.number)
    key = hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16]
    page = target / "index.html"
    page.write_text(
        page_environment()
        .get_template("audit.html.j2")
        .render(name=Path(out).resolve().name, items=items, verdicts=get_args(AuditWord), key=key, seed=seed),
        encoding="utf-8",
    )
    log.info("audit: %d samples of %d clips, page at %s", len(items), len(clips), page)
    return page


def _items(
    corpus: Corpus, clip: ClipRecord, numbers: dict[str, int], opener: FrameOpener, target: Path
) -> list[Item]:
    twin = corpus.twin(clip.clip_id)
    if twin is None:
        raise CorpusError(
            f"{corpus.root}: clip {clip.clip_id} has samples but no twin; run `rvt-ray validate`"
        )
    album, masks = Album(clip, target / file_stem(clip.clip_id)), MaskBook(twin)
    shown = [
        clip_page.outlined_frame(album, masks, frame, "moment", MOMENT_SIDE, f"Frame {frame}")
        for frame in moments(clip.num_frames)
    ]
    picked = [s for s in corpus.samples(clip.clip_id) if s.sample_id in numbers]
    truth = [clip_page.query_pictures(album, masks, s) for s in picked]
    missing = album.paint(opener)
    return [
        Item(numbers[s.sample_id], s, clip, shown, pictures, missing)
        for s, pictures in zip(picked, truth, strict=True)
    ]
