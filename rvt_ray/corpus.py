"""Reading a finalised corpus clip by clip, in bounded memory.

Evaluation, gallery, exporters and agent all need "this clip with its twin, samples and rejects". A corpus
can be far larger than memory, so nothing here reads a whole table: only the `clip_id` column is scanned
(once per table, to learn which row groups hold which clip), then single row groups are read as clips are
asked for. Since finalised tables are sorted by clip, walking the clips in order reads every row group once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rvt_ray.errors import ConfigError, RvtError
from rvt_ray.records import TABLES, ClipRecord, DigitalTwin, Failure, Record, Reject, Sample

R = TypeVar("R", bound=Record)


class CorpusError(RvtError):
    """A folder is not a finished corpus, or one of its files cannot be read; the message names the file."""


class NoCorpusError(CorpusError, ConfigError):
    """The given folder is not there, or has no manifest: it is the path that is wrong, for the user to mend.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            super().__init__(f"{root}: no such folder. Give the folder of a finished corpus")
        else:
            super().__init__(
                f"{root}: no manifest.json, so this is not a finished corpus. "
                "Run `rvt-ray finalise` (or `rvt-ray build`) on it first"
            )


class TableReader:
    """One table of a corpus: its part files, and which row group holds which clip.

    Args:
        root: the corpus folder.
        name: the table's name, a key of `rvt_ray.records.TABLES`.

    Raises:
        CorpusError: a part file is not Parquet or lacks a column of the schema.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.record = TABLES[name]
        self.files = sorted((root / name).glob("part-*.parquet"))
        self._index: dict[str, list[tuple[int, int]]] | None = None
        self._cached: tuple[tuple[int, int], pa.Table, dict[str, list[int]]] | None = None
        for path in self.files:
            present = set(self._open(path).schema_arrow.names)
            missing = set(self.record.SCHEMA.names) - self.record.ADDED - present
            if missing:
                raise CorpusError(
                    f"{path}: no column {', '.join(sorted(missing))}: written by another schema version? "
                    "`rvt-ray validate` says more"
                )

    def _open(self, path: Path) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise CorpusError(f"{path}: not a readable Parquet file ({error})") from error

    def __len__(self) -> int:
        return sum(self._open(path).metadata.num_rows for path in self.files)

    def scan(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """All rows in order, with the given (light) columns only."""
        for path in self.files:
            for batch in self._open(path).iter_batches(batch_size=4096, columns=list(columns)):
                yield from batch.to_pylist()

    def records(self) -> Iterator[Record]:
        """All rows in order, parsed, a few at a time."""
        for path in self.files:
            for batch in self._open(path).iter_batches(batch_size=16):
                for row in batch.to_pylist():
                    yield self.record.from_row(row)

    def of_clip(self, clip_id: str) -> Iterator[Record]:
        """The rows of one clip, in file order."""
        if self._index is None:
            self._index = self._build_index()
        for place in self._index.get(clip_id, ()):
            group, rows = self._row_group(place)
            for number in rows[clip_id]:
                yield self.record.from_row(group.slice(number, 1).to_pylist()[0])

    def _build_index(self) -> dict[str, list[tuple[int, int]]]:
        index: dict[str, list[tuple[int, int]]] = {}
        for f, path in enumerate(self.files):
            parquet = self._open(path)
            for g in range(parquet.num_row_groups):
                ids = parquet.read_row_group(g, columns=["clip_id"])["clip_id"]
                for clip_id in pc.unique(ids).to_pylist():
                    index.setdefault(clip_id, []).append((f, g))
        return index

    def _row_group(self, place: tuple[int, int]) -> tuple[pa.Table, dict[str, list[int]]]:
        """A row group, and which of its rows belong to which clip."""
        if self._cached is None or self._cached[0] != place:
            self._cached = None  # let the old group go before the new one comes
            group = self._open(self.files[place[0]]).read_row_group(place[1])
            rows: dict[str, list[int]] = {}
            for number, clip_id in enumerate(group["clip_id"].to_pylist()):
                rows.setdefault(clip_id, []).append(number)
            self._cached = (place, group, rows)
        return self._cached[1], self._cached[2]


class Corpus:
    """A finalised corpus folder.

    Attributes:
        root: the folder.
        manifest: the content of manifest.json.

    Raises:
        NoCorpusError: no folder, or no manifest in it (the run has not finished, or this is another folder).
        CorpusError: broken files.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        path = self.root / "manifest.json"
        try:
            self.manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoCorpusError(self.root) from error
        except (OSError, ValueError) as error:
            raise CorpusError(f"{path}: cannot read the manifest: {error}") from error
        self.tables = {name: TableReader(self.root, name) for name in TABLES}

    def clips(self) -> Iterator[ClipRecord]:
        """All clips, in the corpus's order."""
        return _typed(self.tables["clips"].records(), ClipRecord)

    def twin(self, clip_id: str) -> DigitalTwin | None:
        """The clip's twin; None where the clip failed."""
        return next(_typed(self.tables["twins"].of_clip(clip_id), DigitalTwin), None)

    def samples(self, clip_id: str) -> Iterator[Sample]:
        """The clip's samples."""
        return _typed(self.tables["samples"].of_clip(clip_id), Sample)

    def rejects(self, clip_id: str) -> Iterator[Reject]:
        """The clip's refused candidates."""
        return _typed(self.tables["rejects"].of_clip(clip_id), Reject)

    def failures(self) -> Iterator[Failure]:
        """Every failure of the run."""
        return _typed(self.tables["failures"].records(), Failure)


def _typed(records: Iterator[Record], kind: type[R]) -> Iterator[R]:
    for record in records:
        assert isinstance(record, kind)
        yield record
