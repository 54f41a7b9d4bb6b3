"""Programs over a twin's facts: their execution is the truth of a query. See docs/programs.md."""

from rvt_ray.reasoning.candidate import Candidate
from rvt_ray.reasoning.execute import Execution, execute
from rvt_ray.reasoning.levels import categories, hops, idle_hops, level
from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.reasoning.search import anchors, search

__all__ = [
    "Candidate",
    "Constraint",
    "Execution",
    "Program",
    "anchors",
    "categories",
    "execute",
    "hops",
    "idle_hops",
    "level",
    "search",
]
