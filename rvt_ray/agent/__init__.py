"""RVTagent, our zero-shot baseline: query and twin in; masks, boxes or text out (docs/agent.md)."""

from rvt_ray.agent.plan import Plan, Question
from rvt_ray.agent.solve import Agent
from rvt_ray.agent.trace import Solution, Trace
from rvt_ray.agent.view import TwinView

__all__ = ["Agent", "Plan", "Question", "Solution", "Trace", "TwinView"]
