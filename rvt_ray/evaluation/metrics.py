"""Which numbers exist, and how a sample gets them: one row of the scores table per sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rvt_ray.evaluation import masks as mask_metrics
from rvt_ray.evaluation.bert import BertScorer
from rvt_ray.evaluation.boxes import score_boxes
from rvt_ray.evaluation.predictions import Prediction
from rvt_ray.evaluation.text import TextScorer
from rvt_ray.evaluation.vqa import exact_match
from rvt_ray.masks import rle
from rvt_ray.records import ClipRecord, DigitalTwin, Sample, Task


@dataclass(frozen=True)
class Metric:
    """A number of the report: the mean of a column, or the ratio of two columns' sums.

    Attributes:
        name: of the value and, for a mean, of the column.
        task: which task it belongs to.
        label: for people.
        weight: column of the denominator; null: the mean over samples where the column is not null.
        numerator: column of the numerator of a ratio.
        higher_is_better: false for false alarms.
    """

    name: str
    task: Task
    label: str
    numerator: str | None = None
    weight: str | None = None
    higher_is_better: bool = True

    @property
    def column(self) -> str:
        return self.numerator or self.name


_S, _G, _T, _V = Task.SEGMENTATION, Task.GROUNDING, Task.SUMMARY, Task.VQA
METRICS: tuple[Metric, ...] = (
    Metric("jf", _S, "J&F"),
    Metric("j", _S, "J"),
    Metric("f", _S, "F"),
    Metric("jf_visible", _S, "J&F, visible"),
    Metric("j_visible", _S, "J, visible"),
    Metric("f_visible", _S, "F, visible"),
    Metric("giou", _S, "gIoU"),
    Metric("ciou", _S, "cIoU", numerator="intersection", weight="union"),
    Metric("r", _S, "R"),
    Metric("false_alarm", _S, "false alarms", higher_is_better=False),
    Metric("box_f1", _G, "F1@0.5"),
    Metric("box_iou", _G, "mean IoU"),
    Metric("viou", _G, "vIoU"),
    Metric("viou_30", _G, "vIoU@0.3"),
    Metric("viou_50", _G, "vIoU@0.5"),
    Metric("tiou", _G, "tIoU"),
    Metric("box_false_alarm", _G, "false alarms", higher_is_better=False),
    Metric("bleu4", _T, "BLEU-4"),
    Metric("rouge_l", _T, "ROUGE-L"),
    Metric("cider", _T, "CIDEr"),
    Metric("bert_score", _T, "BERTScore"),
    Metric("exact_match", _V, "exact match"),
    Metric("judge_correct", _V, "judge: correct"),
    Metric("judge_score", _V, "judge: score / 5"),
)
HEADLINE = {_S: "jf", _G: "viou", _T: "rouge_l", _V: "accuracy"}
# Closed questions are matched, free ones judged where there is a judge: one number for both.
METRICS += (Metric("accuracy", _V, "accuracy"),)

VALUES = tuple(dict.fromkeys(c for m in METRICS for c in (m.column, m.weight) if c is not None))
SCORES_SCHEMA = pa.schema(
    [
        ("sample_id", pa.string()),
        ("clip_id", pa.string()),
        ("video_id", pa.string()),
        ("source", pa.string()),
        ("task", pa.string()),
        ("categories", pa.list_(pa.string())),
        ("level", pa.int32()),
        ("has_target", pa.bool_()),
        ("predicted", pa.bool_()),
        *((name, pa.float64()) for name in VALUES),
    ]
)


@dataclass
class Scorer:
    """Turns a sample and a prediction into numbers.

    Attributes:
        skip_ends: DAVIS' protocol for masks (first and last frame left out).
        text: null: texts are not scored (no summary in the corpus).
        bert: null: BERTScore is skipped, and the report says so.
    """

    skip_ends: bool = False
    text: TextScorer | None = None
    bert: BertScorer | None = None
    _foreground: dict[str, list[str]] = field(default_factory=dict)

    def score(
        self, sample: Sample, clip: ClipRecord, twin: DigitalTwin | None, prediction: Prediction
    ) -> dict[str, Any]:
        """A row of the scores table; values that the task does not have are null.

        The judge's values are filled in later, since its calls are made for a whole clip at once.
        """
        row: dict[str, Any] = dict.fromkeys(SCORES_SCHEMA.names)
        row |= {
            "sample_id": sample.sample_id,
            "clip_id": clip.clip_id,
            "video_id": clip.video_id,
            "source": clip.source,
            "task": str(sample.task),
            "categories": [str(c) for c in sample.categories],
            "level": sample.level,
            "has_target": bool(sample.target_ids),
        }
        if sample.task is Task.SEGMENTATION:
            row |= self._segmentation(sample, clip, twin, prediction.masks)
        elif sample.task is Task.GROUNDING:
            known = [i for i, boxes in enumerate(sample.boxes or []) if boxes is not None]
            if known:
                row |= score_boxes(
                    [[(b.x, b.y, b.w, b.h) for b in (sample.boxes or [])[i] or []] for i in known],
                    [prediction.boxes[i] for i in known],
                )
        elif sample.task is Task.SUMMARY:
            reference = sample.answer or ""
            if self.text is not None:
                row |= self.text.score(reference, prediction.answer)
            if self.bert is not None:
                row["bert_score"] = self.bert.score(reference, prediction.answer)
        else:
            match = float(exact_match(sample.answer or "", prediction.answer, sample.choices))
            row |= {"exact_match": match, "accuracy": match}
        return row

    def _segmentation(
        self, sample: Sample, clip: ClipRecord, twin: DigitalTwin | None, prediction: Sequence[str]
    ) -> dict[str, float | None]:
        # Frames on which a target is not annotated (null) have no truth, so nothing can be said about them.
        known = {i: text for i, text in enumerate(sample.masks or []) if text is not None}
        if not known:
            return {}
        truth, given = list(known.values()), [prediction[i] for i in known]
        size = clip.height, clip.width
        frames = mask_metrics.score_frames(truth, given, *size)
        values = mask_metrics.summarise(frames, self.skip_ends)
        if twin is not None:
            everything = self._all_instances(twin)
            r = mask_metrics.robustness(truth, given, [everything[i] for i in known], *size)
            values["r"] = float(r.mean())
        return values

    def _all_instances(self, twin: DigitalTwin) -> list[str]:
        """Per frame the union of everything annotated. Only the last clip's is kept."""
        if twin.clip_id not in self._foreground:
            per_frame: list[list[str]] = [[] for _ in range(twin.num_frames)]
            for instance in twin.instances:
                for frame, text in zip(instance.track.frame_idx, instance.track.rle, strict=True):
                    if text is not None:
                        per_frame[frame].append(text)
            unions = [rle.union(texts, twin.height, twin.width) for texts in per_frame]
            self._foreground = {twin.clip_id: unions}
        return self._foreground[twin.clip_id]
