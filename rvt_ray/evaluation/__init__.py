"""Scoring predictions against a corpus: metrics, baselines, reports (docs/evaluation.md)."""

from rvt_ray.evaluation.baselines import BASELINES, write_baseline
from rvt_ray.evaluation.compare import compare
from rvt_ray.evaluation.score import EvaluationOptions, evaluate

__all__ = ["BASELINES", "EvaluationOptions", "compare", "evaluate", "write_baseline"]
