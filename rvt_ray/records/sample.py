"""The samples and rejects tables: one row is one query with its proof (paper: the tuple D)."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from rvt_ray.records.base import Part, Record, schema
from rvt_ray.records.enums import Category, Task, Verdict, Wording


class Box(Part):
    """Pixels; width = xmax - xmin + 1."""

    x: float
    y: float
    w: float
    h: float


class TreeNode(Part):
    """An object of the reasoning tree; `level` is the first level whose program uses it."""

    node: str
    instance_ids: list[int]
    role: str  # target | anchor
    level: int


class TreeEdge(Part):
    """A constraint or relation of the reasoning tree. `object` is null for a unary fact."""

    subject: str
    predicate: str
    object: str | None
    level: int
    fact_ids: list[str]


class Tree(Part):
    """The reasoning tree (a DAG) of a target, up to this sample's level."""

    tree_id: str
    nodes: list[TreeNode]
    edges: list[TreeEdge]


class Evidence(Part):
    """A fact that the proof uses: its margin over the threshold (>= 0, in the predicate's unit) and the
    frames that show it."""

    fact_id: str
    statement: str
    margin: float
    frames: list[int]


class GateVerdict(Part):
    """What one gate said about this candidate, and why."""

    gate: str
    verdict: Verdict
    detail: str


class SampleProvenance(Part):
    """Who made the sample."""

    model: str
    prompt_version: str
    seed: int
    settings: str


class Sample(Record):
    """One query with exact truth.

    Attributes:
        masks: for segmentation: per frame of the clip the RLE of the union of the targets (empty mask
            where absent, null entry where a target is not annotated); null for other tasks.
        boxes: for grounding: per frame of the clip one box per visible target (null entry where a target
            is not annotated); null for other tasks.
        answer: text, for summary and vqa; null for segmentation and grounding.
        choices: closed-answer choices (vqa); empty when the answer is free.
        program: canonical JSON of the program whose execution on the twin is the truth.
        target_ids: empty for a no-target query, whose masks are then empty and boxes lists empty.
    """

    TABLE: ClassVar[str] = "samples"

    sample_id: str
    clip_id: str
    task: Task
    query: str
    paraphrases: list[str]
    categories: list[Category]
    level: int
    target_ids: list[int]
    answer: str | None
    choices: list[str]
    masks: list[str | None] | None
    boxes: list[list[Box] | None] | None
    program: str
    tree: Tree
    evidence: list[Evidence]
    gates: list[GateVerdict]
    wording: Wording
    provenance: SampleProvenance
    source_license: str

    _COLUMNS: ClassVar[tuple[tuple[str, pa.DataType], ...]] = (
        ("sample_id", pa.string()),
        ("clip_id", pa.string()),
        ("task", pa.string()),
        ("query", pa.string()),
        ("paraphrases", pa.list_(pa.string())),
        ("categories", pa.list_(pa.string())),
        ("level", pa.int32()),
        ("target_ids", pa.list_(pa.int32())),
        ("answer", pa.string()),
        ("choices", pa.list_(pa.string())),
        ("masks", pa.list_(pa.large_string())),
        ("boxes", pa.list_(pa.list_(pa.struct([(n, pa.float64()) for n in ("x", "y", "w", "h")])))),
        ("program", pa.string()),
        (
            "tree",
            pa.struct(
                [
                    ("tree_id", pa.string()),
                    (
                        "nodes",
                        pa.list_(
                            pa.struct(
                                [
                                    ("node", pa.string()),
                                    ("instance_ids", pa.list_(pa.int32())),
                                    ("role", pa.string()),
                                    ("level", pa.int32()),
                                ]
                            )
                        ),
                    ),
                    (
                        "edges",
                        pa.list_(
                            pa.struct(
                                [
                                    ("subject", pa.string()),
                                    ("predicate", pa.string()),
                                    ("object", pa.string()),
                                    ("level", pa.int32()),
                                    ("fact_ids", pa.list_(pa.string())),
                                ]
                            )
                        ),
                    ),
                ]
            ),
        ),
        (
            "evidence",
            pa.list_(
                pa.struct(
                    [
                        ("fact_id", pa.string()),
                        ("statement", pa.string()),
                        ("margin", pa.float64()),
                        ("frames", pa.list_(pa.int32())),
                    ]
                )
            ),
        ),
        (
            "gates",
            pa.list_(pa.struct([("gate", pa.string()), ("verdict", pa.string()), ("detail", pa.string())])),
        ),
        ("wording", pa.string()),
        (
            "provenance",
            pa.struct(
                [
                    ("model", pa.string()),
                    ("prompt_version", pa.string()),
                    ("seed", pa.int64()),
                    ("settings", pa.string()),
                ]
            ),
        ),
        ("source_license", pa.string()),
    )

    SCHEMA: ClassVar[pa.Schema] = schema(*_COLUMNS)


class Reject(Sample):
    """A refused candidate: a sample as it would have been, and the gate that refused it."""

    TABLE: ClassVar[str] = "rejects"

    gate: str
    reason: str

    SCHEMA: ClassVar[pa.Schema] = schema(*Sample._COLUMNS, ("gate", pa.string()), ("reason", pa.string()))
