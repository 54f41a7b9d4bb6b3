"""`rvt_ray.load`: a finished corpus as a sequence of samples, for training loops and notebooks.

Works as a PyTorch map-style dataset (`__len__`, `__getitem__`) without importing torch; docs/loading.md
says how, and how to read the same files without this package.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rvt_ray.config.settings import IndexSettings
from rvt_ray.corpus import Corpus, CorpusError
from rvt_ray.errors import ConfigError
from rvt_ray.masks import rle
from rvt_ray.records import Box, ClipRecord, DigitalTwin, Sample, Task
from rvt_ray.video import open_clip

T = TypeVar("T")

SPLITS: dict[str, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}
_GROUPS_HELD = 8
_CLIPS_HELD = 16


def split_of(video_id: str, seed: int = 0, fractions: Mapping[str, float] = SPLITS) -> str:
    """The split of a video: by a hash of its id and the seed, so that it depends on nothing else; a corpus
    that grows keeps its splits, and all clips of a video are in one.

    Raises:
        ConfigError: the fractions do not add up to 1.
    """
    if abs(sum(fractions.values()) - 1) > 1e-9 or any(f < 0 for f in fractions.values()):
        raise ConfigError(f"split fractions must be >= 0 and add up to 1, not {dict(fractions)}")
    digest = hashlib.sha256(f"{seed}:{video_id}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    for name, fraction in fractions.items():
        if place < fraction:
            return name
        place -= fraction
    return next(reversed(list(fractions)))


class Item:
    """One sample with its clip and its twin; what is heavy is read or decoded when it is asked for.

    Attributes:
        sample: the row of the samples table.
    """

    def __init__(self, sample: Sample, corpus: _Files, index: IndexSettings) -> None:
        self.sample = sample
        self._corpus = corpus
        self._index = index

    @cached_property
    def clip(self) -> ClipRecord:
        """The clip's row."""
        return self._corpus.clip(self.sample.clip_id)

    @cached_property
    def twin(self) -> DigitalTwin:
        """The clip's digital twin."""
        return self._corpus.twin(self.sample.clip_id)

    @property
    def query(self) -> str:
        """The question."""
        return self.sample.query

    @property
    def answer(self) -> str | None:
        """The text answer of vqa and summary."""
        return self.sample.answer

    def mask(self, frame: int) -> npt.NDArray[np.bool_] | None:
        """The target's mask on one frame, bool (height, width); null where it is not annotated, and for tasks
        that have no masks."""
        text = self.sample.masks[frame] if self.sample.masks is not None else None
        return None if text is None else rle.decode(text, self.clip.height, self.clip.width)

    def masks(self, frames: Sequence[int] | None = None) -> npt.NDArray[np.bool_]:
        """Masks of some frames (default: all), bool (n, height, width); what is not annotated is empty.

        Raises:
            ValueError: the sample's task has no masks.
        """
        if self.sample.masks is None:
            raise ValueError(
                f"sample {self.sample.sample_id} is a {self.sample.task} sample: it has no masks"
            )
        chosen = range(len(self.sample.masks)) if frames is None else frames
        empty = rle.empty(self.clip.height, self.clip.width)
        texts = [self.sample.masks[i] or empty for i in chosen]
        return rle.decode_batch(texts, self.clip.height, self.clip.width)

    def boxes(self, frame: int) -> list[Box]:
        """The targets' boxes on one frame; empty where none is visible or annotated."""
        found = self.sample.boxes[frame] if self.sample.boxes is not None else None
        return found or []

    def frames(self, indices: Sequence[int] | None = None) -> npt.NDArray[np.uint8]:
        """Decoded frames (default: all), uint8 RGB (n, height, width, 3), in the order of `indices`.

        Raises:
            ClipError: the video is gone, changed or cannot be decoded.
        """
        clip = self.clip
        wanted = list(range(clip.num_frames)) if indices is None else [int(i) for i in indices]
        ordered = sorted(set(wanted))
        stream = open_clip(clip, self._index)
        try:
            found = {i: frame.copy() for i, frame in stream.frames_at(ordered)}
        finally:
            stream.close()
        return (
            np.stack([found[i] for i in wanted])
            if wanted
            else np.zeros((0, clip.height, clip.width, 3), np.uint8)
        )


@dataclass(frozen=True)
class _Place:
    """Where a row is: file, row group, row."""

    file: int
    group: int
    row: int


class _Table:
    """Random access to one table: places by key, row groups kept for a while."""

    def __init__(self, files: Sequence[Path], held: int) -> None:
        self._files = [str(f) for f in files]
        self._held = held
        self._groups: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        # A worker process of a data loader reads for itself.
        return {"_files": self._files, "_held": self._held, "_groups": OrderedDict()}

    def scan(self, columns: Sequence[str]) -> Iterator[tuple[_Place, dict[str, Any]]]:
        """Every row's place and light columns."""
        for f, path in enumerate(self._files):
            parquet = pq.ParquetFile(path)
            for g in range(parquet.num_row_groups):
                rows = parquet.read_row_group(g, columns=list(columns)).to_pylist()
                for r, row in enumerate(rows):
                    yield _Place(f, g, r), row

    def row(self, place: _Place) -> dict[str, Any]:
        """One whole row."""
        key = (place.file, place.group)
        if key not in self._groups:
            self._groups[key] = pq.ParquetFile(self._files[place.file]).read_row_group(place.group)
            while len(self._groups) > self._held:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        found: dict[str, Any] = self._groups[key].slice(place.row, 1).to_pylist()[0]
        return found


class _Files:
    """The three tables of a corpus that belong together."""

    def __init__(self, corpus: Corpus) -> None:
        self.root = str(corpus.root)
        self.samples = _Table(corpus.tables["samples"].files, _GROUPS_HELD)
        self._tables = {name: _Table(corpus.tables[name].files, 2) for name in ("clips", "twins")}
        self._places = {
            name: {row["clip_id"]: place for place, row in table.scan(["clip_id"])}
            for name, table in self._tables.items()
        }
        self._parsed: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parsed": OrderedDict()}

    def clip(self, clip_id: str) -> ClipRecord:
        """A clip's row, kept for a while."""
        found: ClipRecord = self._get("clips", clip_id, ClipRecord)
        return found

    def twin(self, clip_id: str) -> DigitalTwin:
        """A clip's twin, kept for a while."""
        found: DigitalTwin = self._get("twins", clip_id, DigitalTwin)
        return found

    def _get(self, name: str, clip_id: str, kind: Any) -> Any:
        key = (name, clip_id)
        if key not in self._parsed:
            place = self._places[name].get(clip_id)
            if place is None:
                raise CorpusError(f"{self.root}: no row in {name} for clip {clip_id}; see `rvt-ray validate`")
            self._parsed[key] = kind.from_row(self._tables[name].row(place))
            while len(self._parsed) > _CLIPS_HELD:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(key)
        return self._parsed[key]


class Samples(Sequence[T], Generic[T]):
    """The samples of a corpus, in its order. Items are read when they are asked for; picklable."""

    def __init__(
        self,
        files: _Files,
        places: Sequence[_Place],
        ids: Sequence[str],
        index: IndexSettings,
        transform: Callable[[Item], T] | None,
    ) -> None:
        self._files = files
        self._places = list(places)
        self._index = index
        self._transform = transform
        self.sample_ids = list(ids)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Samples[T]: ...
    def __getitem__(self, index: int | slice) -> T | Samples[T]:
        if isinstance(index, slice):
            return Samples(
                self._files, self._places[index], self.sample_ids[index], self._index, self._transform
            )
        row = self._files.samples.row(self._places[index])
        item = Item(Sample.from_row(row), self._files, self._index)
        return item if self._transform is None else self._transform(item)  # type: ignore[return-value]


def load(
    root: str | Path,
    split: str | None = None,
    task: Task | str | None = None,
    *,
    seed: int = 0,
    fractions: Mapping[str, float] = SPLITS,
    transform: Callable[[Item], T] | None = None,
) -> Samples[T]:
    """Open a finished corpus as a dataset.

    Args:
        root: folder of the corpus.
        split: a name in `fractions` (`train`, `validation`, `test`); null: everything. Splits are by video.
        task: `segmentation`, `grounding`, `summary` or `vqa`; null: all.
        seed, fractions: of the splits, see `split_of`.
        transform: what a training loop wants of an `Item`; applied in `__getitem__`. Give a module-level
            function when worker processes load the data.

    Returns:
        A sequence of `Item`s, or of what `transform` makes of them.

    Raises:
        CorpusError: `root` is not a finished corpus.
        ConfigError: no such split or task.
    """
    if split is not None and split not in fractions:
        raise ConfigError(f"no split {split!r}; there are {', '.join(fractions)}")
    if task is not None and task not in list(Task):
        raise ConfigError(f"no task {task!r}; there are {', '.join(Task)}")
    corpus = Corpus(root)
    videos = {r["clip_id"]: r["video_id"] for r in corpus.tables["clips"].scan(["clip_id", "video_id"])}
    files = _Files(corpus)
    places, ids = [], []
    for place, row in files.samples.scan(["sample_id", "clip_id", "task"]):
        if task is not None and row["task"] != task:
            continue
        video = videos.get(row["clip_id"], row["clip_id"])
        if split is not None and split_of(video, seed, fractions) != split:
            continue
        places.append(place)
        ids.append(row["sample_id"])
    index = corpus.manifest.get("config", {}).get("index") or {}
    return Samples(files, places, ids, IndexSettings.model_validate(index), transform)
