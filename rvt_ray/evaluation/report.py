"""A report three times: JSON for machines, a Markdown table, a static page with plots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from rvt_ray.errors import MissingDependencyError
from rvt_ray.evaluation.metrics import HEADLINE, METRICS, Metric
from rvt_ray.records import Category, Task

TEMPLATES = Path(__file__).parent / "templates"
Group = dict[str, Any]
# Okabe and Ito's colour-blind-safe set, in the order of `Category`, then all.
_COLOURS = {"all": "#3d4650", "semantic": "#0072b2", "spatial": "#d55e00", "temporal": "#009e73"}
_MARKS = {"all": "o", "semantic": "s", "spatial": "^", "temporal": "D"}


def write_report(report: dict[str, Any], folder: Path, plots: bool = True) -> Path:
    """Write report.json, report.md and index.html with its plots. Returns the path of report.json.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    drawn = [plot_levels(report["groups"], task, folder) for task in Task] if plots else []
    (folder / "report.md").write_text(markdown(report), encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,  # model names, sample ids and error texts are other people's
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["estimate"] = estimate
    page = environment.get_template("report.html.j2").render(
        report=report,
        sections=[s for task in Task if (s := section(report, task)) is not None],
        plots=[plot for plot in drawn if plot is not None],
    )
    (folder / "index.html").write_text(page, encoding="utf-8")
    path = folder / "report.json"
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def estimate(value: dict[str, Any] | None) -> str:
    """An estimate in words: "0.512 [0.430, 0.598]"."""
    if value is None:
        return "–"
    text = f"{value['value']:.3f}"
    if value.get("low") is None:
        return text
    return f"{text} [{value['low']:.3f}, {value['high']:.3f}]"


def metrics_of(task: Task) -> list[Metric]:
    """A task's metrics, the headline first."""
    own = [m for m in METRICS if m.task is task]
    return sorted(own, key=lambda m: m.name != HEADLINE[task])


def find(groups: Sequence[Group], task: Task, **axes: Any) -> Group | None:
    """The group of a task with exactly these axes; those not named are null (all)."""
    wanted = {"category": None, "level": None, "source": None, "has_target": True} | axes
    wanted["task"] = str(task)
    return next((g for g in groups if g["group"] == wanted), None)


def section(report: dict[str, Any], task: Task) -> dict[str, Any] | None:
    """A task's table: rows for all, each category, level, source and the no-target queries; null without
    samples."""
    groups = report["groups"]
    rows: list[tuple[str, Group | None]] = [("all", find(groups, task))]
    rows += [(str(c), find(groups, task, category=str(c))) for c in Category]
    levels = sorted({g["group"]["level"] for g in groups if g["group"]["level"] is not None})
    rows += [(f"level {level}", find(groups, task, level=level)) for level in levels]
    sources = sorted({g["group"]["source"] for g in groups if g["group"]["source"] is not None})
    if len(sources) > 1:
        rows += [(f"source {source}", find(groups, task, source=source)) for source in sources]
    rows.append(("no-target queries", find(groups, task, has_target=False)))
    found = [(label, group) for label, group in rows if group is not None]
    if not found:
        return None
    metrics = [m for m in metrics_of(task) if any(m.name in g["metrics"] for _, g in found)]
    baselines = [
        (name, group)
        for name, base in report.get("baselines", {}).items()
        if (group := find(base, task)) is not None
    ]
    return {"task": str(task), "metrics": metrics, "rows": found, "baselines": baselines}


def markdown(report: dict[str, Any]) -> str:
    """The tables as Markdown."""
    lines = [f"# {report['name']} on {report['corpus']['name']}", ""]
    for task in Task:
        part = section(report, task)
        if part is None:
            continue
        lines += [f"## {task}", ""]
        lines.append("| group | n | " + " | ".join(_header(m) for m in part["metrics"]) + " |")
        lines.append("| --- | ---: |" + " ---: |" * len(part["metrics"]))
        rows = part["rows"] + [(f"baseline: {name}", group) for name, group in part["baselines"]]
        for label, group in rows:
            cells = [estimate(group["metrics"].get(m.name)) for m in part["metrics"]]
            lines.append(f"| {label} | {group['samples']} | " + " | ".join(cells) + " |")
        lines.append("")
    issues = {kind: n for kind, n in report["issues"].items() if n}
    lines.append(
        "Predictions: "
        + (", ".join(f"{kind.replace('_', ' ')} {n}" for kind, n in issues.items()) or "no issues")
        + f". BERTScore: {report['bert_score']}."
    )
    lines.append("Brackets: 95 % bootstrap interval over videos.")
    return "\n".join(lines) + "\n"


def _header(metric: Metric) -> str:
    return metric.label + ("" if metric.higher_is_better else " (lower is better)")


def plot_levels(groups: Sequence[Group], task: Task, folder: Path) -> dict[str, str] | None:
    """The headline metric by level, one line per category, with intervals; an SVG file in `folder`.

    Returns:
        `{"file", "alt"}`; null where the task has no levelled sample.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "the report's plots need matplotlib: pip install 'rvt-ray[evaluation]'"
        ) from error
    name = HEADLINE[task]
    label = next(m.label for m in METRICS if m.name == name and m.task is task)
    lines: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for g in groups:
        axes = g["group"]
        if (
            axes["task"] != task
            or not axes["has_target"]
            or axes["source"] is not None
            or axes["level"] is None
        ):
            continue
        if name in g["metrics"]:
            lines.setdefault(axes["category"] or "all", []).append((axes["level"], g["metrics"][name]))
    if not lines:
        return None
    # Fixed salt and no date: the same scores give the same bytes.
    with mpl.rc_context({"svg.hashsalt": "rvt-ray", "font.size": 10, "svg.fonttype": "path"}):
        figure = Figure(figsize=(5.6, 3.3), layout="constrained")
        axis = figure.add_subplot()
        for offset, key in enumerate(k for k in _COLOURS if k in lines):
            points = sorted(lines[key], key=lambda item: item[0])
            xs = [level + (offset - 1.5) * 0.07 for level, _ in points]
            ys = [e["value"] for _, e in points]
            bars = [
                [max(0.0, e["value"] - e["low"]) if e["low"] is not None else 0.0 for _, e in points],
                [max(0.0, e["high"] - e["value"]) if e["high"] is not None else 0.0 for _, e in points],
            ]
            axis.errorbar(xs, ys, bars, color=_COLOURS[key], marker=_MARKS[key], capsize=3, label=key, lw=1.6)
        axis.set_xticks(sorted({level for points in lines.values() for level, _ in points}))
        axis.set(xlabel="level", ylabel=label, ylim=(-0.03, 1.03), title=f"{task}: {label} by level")
        axis.grid(axis="y", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, ncols=2, fontsize=9)
        file = f"levels-{task}.svg"
        figure.savefig(folder / file, metadata={"Date": None})
    said = ", ".join(
        f"level {level} {estimate(e)}" for level, e in sorted(lines.get("all", []), key=lambda i: i[0])
    )
    return {"file": file, "alt": f"{task}: {label} by level. All categories: {said}"}
