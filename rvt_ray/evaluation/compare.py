"""`compare`: two reports on the same corpus, sample by sample, with a paired bootstrap over videos."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rvt_ray.errors import ConfigError
from rvt_ray.evaluation import bootstrap
from rvt_ray.evaluation.breakdown import Columns
from rvt_ray.evaluation.metrics import METRICS, Metric
from rvt_ray.records import Task

log = logging.getLogger(__name__)


def compare(a: str | Path, b: str | Path, out: str | Path | None = None, draws: int = 2000) -> dict[str, Any]:
    """How much better `b` is than `a`, on the samples that both have.

    The same videos are drawn for both in each draw, so what makes a video hard cancels out.

    Args:
        a, b: report.json of two evaluations (each with its scores.parquet beside it).
        out: where to write the comparison as JSON; null: nowhere.

    Returns:
        `{"a", "b", "warnings", "groups": [{"group", "samples", "metrics": {name: {"a", "b", "difference",
        "low", "high", "p"}}}]}`. `low` to `high` is the 95 % interval of b - a, `p` the two-sided bootstrap
        p-value; all three are null with fewer than two videos.

    Raises:
        ConfigError: a report or its scores are missing or of another version, or nothing is common.
    """
    first, second = _load(Path(a)), _load(Path(b))
    warnings = _warnings(first, second)
    groups = []
    common = 0
    for task in Task:
        pair = tuple(_columns(path, report, task) for path, report in ((a, first), (b, second)))
        rows = _common(pair[0], pair[1])
        common += len(rows[0])
        only = [len(side.sample_ids) - len(rows[0]) for side in pair]
        if any(only):
            warnings.append(
                f"{task}: {only[0]} samples are only in the first report and {only[1]} only in the second; "
                "they are left out"
            )
        groups += _compare_task(task, pair[0], pair[1], rows, int(first["options"]["seed"]), draws)
    if common == 0:
        raise ConfigError(f"{a} and {b} have no sample in common: were they made from one corpus?")
    result = {
        "a": {"name": first["name"], "report": str(a)},
        "b": {"name": second["name"], "report": str(b)},
        "warnings": warnings,
        "groups": groups,
    }
    if out is not None:
        Path(out).write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return result


def _compare_task(
    task: Task,
    a: Columns,
    b: Columns,
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    seed: int,
    draws: int,
) -> list[dict[str, Any]]:
    metrics = [m for m in METRICS if m.task is task]
    chosen = np.zeros(len(a.sample_ids), np.bool_)
    chosen[rows[0]] = True
    other = np.full(len(a.sample_ids), -1)
    other[rows[0]] = rows[1]
    groups = []
    for group, where in a.groups():
        members = np.flatnonzero(where & chosen)
        if len(members) == 0:
            continue
        found = {}
        for metric in metrics:
            value = _paired(metric, a, b, members, other[members], seed, draws)
            if value is not None:
                found[metric.name] = value
        groups.append({"group": group.to_json(), "samples": len(members), "metrics": found})
    return groups


def _paired(
    metric: Metric,
    a: Columns,
    b: Columns,
    rows_a: npt.NDArray[np.int64],
    rows_b: npt.NDArray[np.int64],
    seed: int,
    draws: int,
) -> dict[str, float | int | None] | None:
    top_a, bottom_a, has_a = a.fraction(metric)
    top_b, bottom_b, has_b = b.fraction(metric)
    both = has_a[rows_a] & has_b[rows_b]
    if not both.any():
        return None
    top = np.stack([top_a[rows_a], top_b[rows_b]], axis=1)[both]
    bottom = np.stack([bottom_a[rows_a], bottom_b[rows_b]], axis=1)[both]
    videos = a.videos[rows_a][both]
    codes, tops = bootstrap.per_video(videos, top)
    _, bottoms = bootstrap.per_video(videos, bottom)
    one = np.ones(1)  # every video here has the metric
    value_a, value_b = bootstrap.ratio(tops.sum(axis=0), bottoms.sum(axis=0), one).tolist()
    result: dict[str, float | int | None] = {
        "a": value_a, "b": value_b, "difference": value_b - value_a, "low": None, "high": None, "p": None,
        "samples": int(both.sum()), "videos": len(codes),
    }  # fmt: skip
    if len(codes) > 1:
        pairs = [
            bootstrap.ratio(w @ tops, w @ bottoms, one) for w in bootstrap.weights(len(codes), seed, draws)
        ]
        all_draws = np.diff(np.concatenate(pairs), axis=1)[:, 0]
        low, high = np.percentile(all_draws, [2.5, 97.5])
        # One draw is added on each side, so that p is never 0: so many draws cannot prove that.
        below, above = (all_draws <= 0).sum() + 1, (all_draws >= 0).sum() + 1
        p = min(1.0, 2 * min(below, above) / (len(all_draws) + 1))
        result |= {"low": float(low), "high": float(high), "p": float(p)}
    return result


def _common(a: Columns, b: Columns) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    place = {sample_id: i for i, sample_id in enumerate(b.sample_ids)}
    pairs = [(i, place[s]) for i, s in enumerate(a.sample_ids) if s in place]
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def _columns(path: str | Path, report: dict[str, Any], task: Task) -> Columns:
    scores = Path(path).parent / report["scores"]
    if not scores.is_file():
        raise ConfigError(f"{path}: its scores file {scores.name} is not beside it; copy the whole folder")
    metrics = [m for m in METRICS if m.task is task]
    names = list(dict.fromkeys(c for m in metrics for c in (m.column, m.weight) if c is not None))
    return Columns.read(scores, task, names)


def _load(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot read the report: {error}") from error
    if not isinstance(report, dict) or not {"scores", "options", "name", "report_version"} <= set(report):
        raise ConfigError(f"{path}: not a report of `rvt-ray evaluate`")
    return report


def _warnings(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    warnings = []
    for key, what in (
        ("report_version", "report versions"),
        ("cider_idf", "IDF tables, so CIDEr cannot be compared"),
        ("bert_score", "BERTScore models"),
    ):
        if a.get(key) != b.get(key):
            warnings.append(f"the reports have different {what}: {a.get(key)} and {b.get(key)}")
    if a["options"].get("skip_ends") != b["options"].get("skip_ends"):
        warnings.append("one report leaves the first and last frames out (skip_ends), the other does not")
    if (a.get("judge") or {}).get("model") != (b.get("judge") or {}).get("model"):
        warnings.append("the reports have different judges, so accuracy on free answers cannot be compared")
    for warning in warnings:
        log.warning("compare: %s", warning)
    return warnings
