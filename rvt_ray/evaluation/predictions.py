"""Reading predictions: one documented row form (Parquet or JSONL) and folders of mask images.

docs/evaluation.md describes the format. Nothing in a predictions file can stop an evaluation: what cannot be
used is reported as an `Issue` and counts as if it had not been predicted.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rvt_ray.errors import ConfigError
from rvt_ray.evaluation import runs as run_masks
from rvt_ray.masks import coco, rle
from rvt_ray.records import ClipRecord, Sample, Task

_GROUPS_HELD = 4


class IssueKind(StrEnum):
    """What can be wrong with a prediction. The values stand in reports."""

    MISSING = "missing"  # no prediction for a sample: counts as empty
    UNKNOWN_ID = "unknown_id"  # a prediction for no sample of the corpus: ignored
    DUPLICATE = "duplicate"  # a second row for a sample: the first one counts
    WRONG_FIELD = "wrong_field"  # the field of this task is absent: counts as empty
    WRONG_LENGTH = "wrong_length"  # not one entry per frame: missing ones are empty, further ones ignored
    WRONG_SIZE = "wrong_size"  # a mask of another size than the clip: this frame counts as empty
    BAD_MASK = "bad_mask"  # not a mask: this frame counts as empty
    BAD_BOX = "bad_box"  # not four numbers, not finite, or without area: this box is ignored
    BAD_ROW = "bad_row"  # not JSON, no sample_id: ignored


@dataclass(frozen=True)
class Issue:
    """One thing that is wrong, and where.

    Attributes:
        detail: the first such thing of this sample, in words.
        times: how often it is so (frames, boxes, rows).
    """

    kind: IssueKind
    sample_id: str | None
    detail: str
    times: int = 1


@dataclass(frozen=True)
class Prediction:
    """What a model said about one sample, cleaned: one entry per frame, everything of the clip's size."""

    masks: list[str] = field(default_factory=list)
    boxes: list[list[tuple[float, float, float, float]]] = field(default_factory=list)
    answer: str = ""


class Predictions:
    """A model's predictions, read by sample.

    Args:
        path: a .jsonl or .parquet file, or a folder with such files (`*.jsonl`, `*.parquet`) and / or
            `masks/<sample_id>/<frame>.png`.

    Raises:
        ConfigError: the path is missing or holds no predictions at all.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._issues: dict[tuple[IssueKind, str | None], Issue] = {}
        self._places: dict[str, tuple[Path, int, int]] = {}  # file, offset or row group, row in it
        self._groups: OrderedDict[tuple[Path, int], pa.Table] = OrderedDict()
        self._folders: dict[str, Path] = {}
        self._asked: set[str] = set()
        if not self.path.exists():
            raise ConfigError(f"{self.path}: no such predictions file or folder")
        files = [self.path] if self.path.is_file() else sorted(self.path.iterdir())
        readers = {".jsonl": self._index_jsonl, ".parquet": self._index_parquet}
        found = False
        for file in files:
            if file.suffix in readers:
                found = True
                readers[file.suffix](file)
        images = self.path / "masks"
        if images.is_dir():
            found = True
            for folder in sorted(p for p in images.iterdir() if p.is_dir()):
                self._folders[folder.name] = folder
                if folder.name in self._places:
                    self._add(IssueKind.DUPLICATE, folder.name, f"{folder}: the row for it counts")
        if not found:
            raise ConfigError(
                f"{self.path}: no predictions here; expected .jsonl or .parquet files, or a folder 'masks'"
            )

    def of(self, sample: Sample, clip: ClipRecord) -> Prediction:
        """The cleaned prediction for a sample; an empty one (and an issue) where there is none."""
        sample_id = sample.sample_id
        self._asked.add(sample_id)
        raw: dict[str, Any] = {}
        if sample_id in self._places:
            raw = self._row(self._places[sample_id])
        elif sample_id in self._folders and sample.task is Task.SEGMENTATION:
            return Prediction(masks=self._read_images(self._folders[sample_id], sample_id, clip))
        else:
            self._add(IssueKind.MISSING, sample_id, "no prediction; counts as empty")
            return _empty(sample.task, clip)
        name = {Task.SEGMENTATION: "masks", Task.GROUNDING: "boxes"}.get(sample.task, "answer")
        value = raw.get(name)
        if value is None:
            if name == "masks" and sample_id in self._folders:
                return Prediction(masks=self._read_images(self._folders[sample_id], sample_id, clip))
            self._add(IssueKind.WRONG_FIELD, sample_id, f"{sample.task} needs the field {name!r}")
            return _empty(sample.task, clip)
        if name == "answer":
            return Prediction(answer=str(value))
        if not isinstance(value, list):
            self._add(IssueKind.WRONG_FIELD, sample_id, f"{name!r} must be a list with one entry per frame")
            return _empty(sample.task, clip)
        if len(value) != clip.num_frames:
            self._add(IssueKind.WRONG_LENGTH, sample_id, f"{len(value)} entries for {clip.num_frames} frames")
        value = value[: clip.num_frames] + [None] * (clip.num_frames - len(value))
        if name == "masks":
            return Prediction(masks=self._masks(value, sample_id, clip))
        return Prediction(boxes=[self._boxes(v, i, sample_id) for i, v in enumerate(value)])

    def has(self, sample_id: str) -> bool:
        """Whether anything was predicted for the sample, usable or not."""
        return sample_id in self._places or sample_id in self._folders

    def finish(self) -> list[Issue]:
        """All issues, once every sample of the corpus was asked for: what is left is unknown."""
        for sample_id in sorted((self._places.keys() | self._folders.keys()) - self._asked):
            self._add(IssueKind.UNKNOWN_ID, sample_id, "the corpus has no such sample; ignored")
        return list(self._issues.values())

    def _add(self, kind: IssueKind, sample_id: str | None, detail: str) -> None:
        # One entry per kind and sample, or one broken model would fill the memory with frames.
        known = self._issues.get((kind, sample_id))
        self._issues[kind, sample_id] = (
            Issue(kind, sample_id, detail) if known is None else replace(known, times=known.times + 1)
        )

    def _place(self, sample_id: Any, place: tuple[Path, int, int], where: str) -> None:
        if not isinstance(sample_id, str) or not sample_id:
            self._add(IssueKind.BAD_ROW, None, f"{where}: sample_id must be a text, not {sample_id!r}")
        elif sample_id in self._places:
            self._add(IssueKind.DUPLICATE, sample_id, f"{where}: second prediction; the first one counts")
        else:
            self._places[sample_id] = place

    def _index_jsonl(self, path: Path) -> None:
        with path.open("rb") as file:
            offset = 0
            for number, line in enumerate(file, 1):
                where = f"{path.name}, line {number}"
                if line.strip():
                    try:
                        row = json.loads(line)
                        self._place(row["sample_id"], (path, offset, -1), where)
                    except (ValueError, TypeError, KeyError) as error:
                        self._add(IssueKind.BAD_ROW, None, f"{where}: not an object with sample_id ({error})")
                offset += len(line)

    def _index_parquet(self, path: Path) -> None:
        try:
            parquet = pq.ParquetFile(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise ConfigError(f"{path}: not a readable Parquet file ({error})") from error
        if "sample_id" not in parquet.schema_arrow.names:
            raise ConfigError(f"{path}: no column sample_id; the columns are sample_id, masks, boxes, answer")
        for g in range(parquet.num_row_groups):
            ids = parquet.read_row_group(g, columns=["sample_id"])["sample_id"]
            for i, sample_id in enumerate(pc.cast(ids, pa.string()).to_pylist()):
                self._place(sample_id, (path, g, i), f"{path.name}, row group {g}, row {i}")

    def _row(self, place: tuple[Path, int, int]) -> dict[str, Any]:
        path, position, row = place
        if path.suffix == ".jsonl":
            with path.open("rb") as file:
                file.seek(position)
                found: dict[str, Any] = json.loads(file.readline())
                return found
        key = (path, position)
        if key not in self._groups:
            self._groups[key] = pq.ParquetFile(path).read_row_group(position)
            while len(self._groups) > _GROUPS_HELD:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        result: dict[str, Any] = self._groups[key].slice(row, 1).to_pylist()[0]
        return result

    def _masks(self, values: list[Any], sample_id: str, clip: ClipRecord) -> list[str]:
        if all(isinstance(v, str) for v in values):
            try:  # the usual case: all is well, and one call proves it
                run_masks.parse(values, clip.height, clip.width)
                return values
            except ValueError:
                pass
        return [self._mask(v, i, sample_id, clip) for i, v in enumerate(values)]

    def _mask(self, value: Any, frame: int, sample_id: str, clip: ClipRecord) -> str:
        """A frame's mask as the RLE of the clip's size; null is the empty mask."""
        nothing = rle.empty(clip.height, clip.width)
        if value is None:
            return nothing
        try:
            if isinstance(value, str):
                text, height, width = value, clip.height, clip.width
            else:
                text, height, width = coco.from_segmentation(value)
            if (height, width) != (clip.height, clip.width):
                self._add(
                    IssueKind.WRONG_SIZE,
                    sample_id,
                    f"frame {frame}: {width}x{height}, the clip has {clip.width}x{clip.height}",
                )
                return nothing
            counts = rle.counts(text)
            if int(counts.sum()) != height * width and counts.min() >= 0:
                detail = f"frame {frame}: the RLE fills {counts.sum()} pixels, the clip has {height * width}"
                self._add(IssueKind.WRONG_SIZE, sample_id, detail)
                return nothing
            run_masks.parse([text], height, width)
        except (ValueError, TypeError) as error:
            self._add(IssueKind.BAD_MASK, sample_id, f"frame {frame}: {error}")
            return nothing
        return text

    def _boxes(self, value: Any, frame: int, sample_id: str) -> list[tuple[float, float, float, float]]:
        boxes = []
        for item in value if isinstance(value, list) else []:
            numbers: Any = [item.get(k) for k in "xywh"] if isinstance(item, dict) else item
            try:
                x, y, w, h = (float(v) for v in numbers)
            except (TypeError, ValueError):
                self._add(IssueKind.BAD_BOX, sample_id, f"frame {frame}: {item!r} is not x, y, w, h")
                continue
            if not all(math.isfinite(v) for v in (x, y, w, h)) or w <= 0 or h <= 0:
                self._add(IssueKind.BAD_BOX, sample_id, f"frame {frame}: {item!r} has no finite area")
                continue
            boxes.append((x, y, w, h))
        if value is not None and not isinstance(value, list):
            self._add(IssueKind.BAD_BOX, sample_id, f"frame {frame}: not a list of boxes")
        return boxes

    def _read_images(self, folder: Path, sample_id: str, clip: ClipRecord) -> list[str]:
        from PIL import Image

        masks = [rle.empty(clip.height, clip.width)] * clip.num_frames
        for path in sorted(folder.glob("*.png")):
            if not path.stem.isdigit() or int(path.stem) >= clip.num_frames:
                detail = f"{path.name}: the clip has frames 0 to {clip.num_frames - 1}"
                self._add(IssueKind.WRONG_LENGTH, sample_id, detail)
                continue
            try:
                with Image.open(path) as image:
                    pixels = np.asarray(image)
            except (OSError, ValueError, Image.DecompressionBombError) as error:
                self._add(IssueKind.BAD_MASK, sample_id, f"{path.name}: {error}")
                continue
            if pixels.shape != (clip.height, clip.width):
                size = "x".join(map(str, pixels.shape[1::-1]))
                kind = "" if pixels.ndim == 2 else " in colour (one channel is expected)"
                detail = f"{path.name}: {size}{kind}, the clip has {clip.width}x{clip.height}"
                self._add(IssueKind.WRONG_SIZE, sample_id, detail)
                continue
            masks[int(path.stem)] = rle.encode(pixels)
        return masks


def _empty(task: Task, clip: ClipRecord) -> Prediction:
    if task is Task.SEGMENTATION:
        return Prediction(masks=[rle.empty(clip.height, clip.width)] * clip.num_frames)
    if task is Task.GROUNDING:
        return Prediction(boxes=[[] for _ in range(clip.num_frames)])
    return Prediction()


def count_issues(issues: Iterable[Issue]) -> dict[str, int]:
    """Samples (rows, where there is no sample) with an issue per kind, every kind named."""
    counts = {str(kind): 0 for kind in IssueKind}
    for issue in issues:
        counts[str(issue.kind)] += 1
    return counts
