"""Source `manifest`: a table of videos (JSONL, CSV or Parquet), anywhere fsspec reaches.

Columns: `uri` (required; relative paths are relative to the manifest), and optionally `name`, `license`,
`fps` (the row is then a folder of frames), `annotation_uri`, `annotation_format`. What a row leaves out comes
from the source's settings. Other columns are refused unless `extra_columns: ignore`.
"""

from __future__ import annotations

import csv
import json
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from rvt_ray import backends
from rvt_ray.config.settings import SourceSettings
from rvt_ray.errors import ConfigError
from rvt_ray.records.failure import Failure
from rvt_ray.sources.annotations import FORMATS, Annotations
from rvt_ray.sources.base import MANIFEST_SUFFIXES, absolute, refuse_missing, source_name, unreadable
from rvt_ray.video.item import SourceItem
from rvt_ray.video.local import is_remote

COLUMNS = ("uri", "name", "license", "fps", "annotation_uri", "annotation_format")


class ManifestSource:
    """Rows become items in the manifest's order; a bad row becomes a failure that names its line."""

    class Options(backends.Options):
        """`extra_columns`: `refuse` catches a mistyped column, `ignore` lets a larger table through."""

        extra_columns: Literal["refuse", "ignore"] = "refuse"

    def __init__(self, settings: SourceSettings, options: Options) -> None:
        self._settings = settings
        self._ignore = options.extra_columns == "ignore"

    def items(self) -> Iterator[SourceItem | Failure]:
        """See `Source.items`."""
        settings = self._settings
        fs, path = refuse_missing(settings)
        annotations = Annotations(settings)
        empty = True
        for line, row in self._rows(fs, path):
            empty = False
            if isinstance(row, str):
                yield self._bad(line, settings.path, row)
                continue
            unknown = sorted(set(row) - set(COLUMNS))
            if unknown and not self._ignore:
                hint = backends.nearest(unknown[0], list(COLUMNS))
                raise ConfigError(
                    f"{settings.path}: line {line}: unknown column {unknown[0]!r}; {hint} "
                    "To pass over further columns set options.extra_columns: ignore"
                )
            yield self._item(line, row, annotations)
        if empty:
            raise ConfigError(f"{settings.path}: the manifest has no rows; each needs a 'uri'")

    def _rows(self, fs: Any, path: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
        """(line number from 1, row or what is wrong with it)."""
        suffix = posixpath.splitext(path)[1].lower()
        try:
            if suffix in (".jsonl", ".ndjson"):
                with fs.open(path, "rt", encoding="utf-8") as file:
                    for line, text in enumerate(file, 1):
                        if text.strip():
                            yield line, _json_row(text)
            elif suffix == ".csv":
                with fs.open(path, "rt", encoding="utf-8-sig", newline="") as file:
                    reader = csv.DictReader(file)
                    if "uri" not in (reader.fieldnames or ()):
                        raise ConfigError(f"{self._settings.path}: the header has no column 'uri'")
                    for row in reader:
                        if None in row:
                            yield reader.line_num, "more fields than the header has columns"
                        else:
                            yield reader.line_num, {k: v for k, v in row.items() if v not in ("", None)}
            elif suffix == ".parquet":
                yield from self._parquet_rows(fs, path)
            else:
                raise ConfigError(
                    f"{self._settings.path}: a manifest ends in {', '.join(MANIFEST_SUFFIXES)}, "
                    f"not {suffix!r}"
                )
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self._settings.path}: not UTF-8 text: {error}") from error

    def _parquet_rows(self, fs: Any, path: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with fs.open(path, "rb") as file:
            try:
                table = pq.ParquetFile(file)
            except pa.ArrowInvalid as error:
                raise ConfigError(f"{self._settings.path}: not a Parquet file: {error}") from error
            if "uri" not in table.schema_arrow.names:
                raise ConfigError(f"{self._settings.path}: the table has no column 'uri'")
            line = 0
            for batch in table.iter_batches():
                for row in batch.to_pylist():
                    line += 1
                    yield line, {k: v for k, v in row.items() if v is not None}

    def _item(self, line: int, row: dict[str, Any], annotations: Annotations) -> SourceItem | Failure:
        settings = self._settings
        for column, value in row.items():
            if column in COLUMNS and column != "fps" and not isinstance(value, str):
                return self._bad(line, str(row.get("uri", "")), f"{column!r} must be text, not {value!r}")
        uri = row.get("uri", "").strip()
        if not uri:
            return self._bad(line, settings.path, "no 'uri'")
        folder = absolute(settings.path)
        uri = absolute(uri, posixpath.dirname(folder))
        name = row.get("name") or posixpath.splitext(posixpath.basename(uri.rstrip("/")))[0]
        fps = None
        if "fps" in row:
            try:
                fps = float(row["fps"])
            except (TypeError, ValueError):
                return self._bad(line, uri, f"'fps' is not a number: {row['fps']!r}")
            if not 0 < fps < 1e6:
                return self._bad(line, uri, f"'fps' must be above 0, not {fps:g}")
        annotation: tuple[str | None, str | None, str | None] = annotations.of(name)
        if row.get("annotation_uri"):
            form = row.get("annotation_format") or settings.annotation_format
            if form not in FORMATS:
                return self._bad(line, uri, f"annotation_format {form!r}; valid: {', '.join(FORMATS)}")
            where = absolute(row["annotation_uri"], posixpath.dirname(folder))
            if is_remote(where) or not Path(where).exists():
                return self._bad(line, uri, f"annotation_uri {where} is not an existing local path")
            annotation = (where, form, annotations.hash(Path(where)))
        return SourceItem(
            source=source_name(settings),
            name=name,
            uri=uri,
            kind="frames" if fps is not None or (not is_remote(uri) and Path(uri).is_dir()) else "video",
            license=row.get("license") or settings.license,
            fps=fps,
            annotation_uri=annotation[0],
            annotation_format=annotation[1],
            annotation_sha256=annotation[2],
        )

    def _bad(self, line: int, uri: str, why: str) -> Failure:
        return unreadable(self._settings, uri, f"{self._settings.path}: line {line}: {why}")


def _json_row(text: str) -> dict[str, Any] | str:
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        return f"not valid JSON: {error}"
    if not isinstance(row, dict):
        return f"a row is an object with a 'uri', not {type(row).__name__}"
    return {k: v for k, v in row.items() if v is not None}
