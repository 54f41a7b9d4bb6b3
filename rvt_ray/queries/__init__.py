"""From proven programs to worded queries: tasks, answers, wording, gates. Entry: `generate`."""

from rvt_ray.queries.generate import generate
from rvt_ray.queries.outcome import Outcome

__all__ = ["Outcome", "generate"]
