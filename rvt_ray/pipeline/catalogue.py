"""What the sources offer, and what became of it: videos -> clips -> keys of each stage's ledger.

The catalogue (which videos belong to the corpus, as this run's sources say) is written down when the
sources were read, so that `generate` and `finalise` need no sources. Everything else is read off the ledgers.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from rvt_ray.config import Config, fingerprint
from rvt_ray.errors import ConfigError
from rvt_ray.pipeline.ledger import STAGING, Done, Ledger
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import BUILD_STAGES, ClipRecord, Failure, Stage
from rvt_ray.twin.build import asks_a_model
from rvt_ray.video.item import SourceItem

logger = logging.getLogger(__name__)

CATALOGUE = f"{STAGING}/catalogue.json"


@dataclass(frozen=True)
class Video:
    """A video of the catalogue. `key` names its file in the index ledger."""

    key: str
    item: SourceItem


@dataclass(frozen=True)
class Clip:
    """A clip to perceive or ask about: where its record lies, and its keys.

    Attributes:
        clip_id: its id in the tables.
        video: key of the index ledger whose file holds its `ClipRecord`.
        perceive: key of the perceive and caption ledgers: the id, and the annotation when there is one
            (another annotation gives another twin).
        generate: key of the generate ledger: also the licence, which stands in every sample.
    """

    clip_id: str
    video: str
    perceive: str
    generate: str


@dataclass(frozen=True)
class Duplicate:
    """The same content under another name: taken once, reported here."""

    video_id: str
    source: str
    name: str
    uri: str
    kept_source: str
    kept_name: str
    kept_uri: str


@dataclass
class Catalogue:
    """The videos of the corpus, in the order of the sources, and what the sources could not offer."""

    videos: list[Video] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    @property
    def offered(self) -> int:
        """How many videos the sources named, readable or not."""
        return len(self.videos) + len(self.failures)

    def save(self, storage: Storage) -> None:
        """Write the catalogue down, replacing an earlier one."""
        content = {
            "videos": [asdict(v) for v in self.videos],
            "failures": [f.model_dump(mode="json") for f in self.failures],
        }
        storage.write(CATALOGUE, json.dumps(content, indent=0).encode())

    @classmethod
    def load(cls, storage: Storage) -> Catalogue:
        """The catalogue of the last run here.

        Raises:
            ConfigError: there was none.
        """
        try:
            content = json.loads(storage.read(CATALOGUE))
        except FileNotFoundError as error:
            raise ConfigError(
                f"{storage.root}: nothing was staged here yet. Run `rvt-ray perceive` or `build` first"
            ) from error
        return cls(
            [Video(v["key"], SourceItem(**v["item"])) for v in content["videos"]],
            [Failure.model_validate(f) for f in content["failures"]],
        )


def read_sources(found: Iterable[SourceItem | Failure]) -> Catalogue:
    """A catalogue from what `rvt_ray.sources.open_sources` yields. A file that two sources name is one video
    per source here; the same bytes are found out after indexing."""
    catalogue = Catalogue()
    seen: set[str] = set()
    for item in found:
        if isinstance(item, Failure):
            catalogue.failures.append(item)
            continue
        key = video_key(item)
        if key in seen:
            continue
        seen.add(key)
        catalogue.videos.append(Video(key, item))
    return catalogue


def video_key(item: SourceItem) -> str:
    """Key of the index ledger: what the source says of the video, and a cheap token of its bytes (size and
    time of change), so that a replaced file is indexed again without reading every file on every run."""
    content = json.dumps([asdict(item), _token(item.uri)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _token(uri: str) -> Any:
    if "://" in uri and not uri.startswith("file://"):
        return _remote_token(uri)
    path = uri.removeprefix("file://")
    try:
        if not os.path.isdir(path):
            stat = os.stat(path)
            return [stat.st_size, stat.st_mtime_ns]
        entries = sorted((e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in os.scandir(path))
        return hashlib.sha256(json.dumps(entries).encode()).hexdigest()
    except OSError:
        return None  # indexing will say what is wrong with it


def _remote_token(uri: str) -> Any:
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(uri)
        info = fs.info(path)
    except Exception:  # noqa: BLE001  (drivers raise what they like; indexing will say what is wrong)
        return None
    return [info.get("size"), *(str(info.get(k)) for k in ("ETag", "etag", "mtime", "LastModified", "md5"))]


@dataclass
class Ledgers:
    """The ledgers of one config under one output root.

    Attributes:
        caption: None where no captioner asks a model.
    """

    index: Ledger
    perceive: Ledger
    caption: Ledger | None
    generate: Ledger

    @classmethod
    def of(cls, storage: Storage, config: Config) -> Ledgers:
        """The ledgers that this config's fingerprints name."""
        ledgers = {stage: Ledger(storage, stage, fingerprint(config, stage)) for stage in BUILD_STAGES}
        return cls(
            ledgers[Stage.INDEX],
            ledgers[Stage.PERCEIVE],
            ledgers[Stage.CAPTION] if asks_a_model(config) else None,
            ledgers[Stage.GENERATE],
        )

    @property
    def twins(self) -> Ledger:
        """Where finished twins are; keys are the clips' `perceive`."""
        return self.caption or self.perceive


@dataclass
class Indexed:
    """What the index ledger knows of a catalogue.

    Attributes:
        kept: videos that count, by video id.
        duplicates: videos whose bytes were already there under another name.
        failed, missing: videos whose indexing failed, or has not been done.
        clips: all clips of the kept videos, by clip id.
    """

    kept: dict[str, Video] = field(default_factory=dict)
    duplicates: list[Duplicate] = field(default_factory=list)
    failed: list[Video] = field(default_factory=list)
    missing: list[Video] = field(default_factory=list)
    clips: list[Clip] = field(default_factory=list)


def index_meta(clips: list[ClipRecord]) -> dict[str, Any]:
    """What the driver needs to know of an indexed video without reading its rows."""
    return {
        "video_id": clips[0].video_id,
        "annotation": clips[0].annotation_sha256,
        "license": clips[0].license,
        "clips": [clip.clip_id for clip in clips],
    }


def read_index(catalogue: Catalogue, ledger: Ledger) -> Indexed:
    """Anti-join the catalogue with the index ledger, and take the same content once.

    Of several names for the same bytes the one with an annotation is kept, then the first in the order of the
    sources.
    """
    found = Indexed()
    staged = ledger.scan()
    by_content: dict[str, list[tuple[Video, dict[str, Any]]]] = {}
    for video in catalogue.videos:
        done = staged.get(video.key)
        if done is None:
            found.missing.append(video)
        elif done is Done.FAILED:
            found.failed.append(video)
        else:
            meta = ledger.read_meta(video.key)
            by_content.setdefault(meta["video_id"], []).append((video, meta))
    for video_id in sorted(by_content):
        names = by_content[video_id]
        kept, meta = next((n for n in names if n[1]["annotation"]), names[0])
        found.kept[video_id] = kept
        for other, _ in names:
            if other.key != kept.key:
                o, k = other.item, kept.item
                found.duplicates.append(Duplicate(video_id, o.source, o.name, o.uri, k.source, k.name, k.uri))
        for clip_id in meta["clips"]:
            found.clips.append(_clip(clip_id, kept.key, meta))
    found.clips.sort(key=lambda clip: clip.clip_id)
    return found


def _clip(clip_id: str, video: str, meta: dict[str, Any]) -> Clip:
    perceive = clip_id if meta["annotation"] is None else f"{clip_id}-{meta['annotation'][:16]}"
    license_tag = hashlib.sha256(meta["license"].encode()).hexdigest()[:8]
    return Clip(clip_id, video, perceive, f"{perceive}-{license_tag}")


def log_duplicates(duplicates: Iterable[Duplicate]) -> None:
    """One line per video that was left out because its bytes were already there."""
    for d in duplicates:
        logger.warning(
            "duplicate: %s has the same content as %s (video %s); taken once", d.uri, d.kept_uri, d.video_id
        )
