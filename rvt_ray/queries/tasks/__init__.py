"""The four tasks: which fit a program, and their answers, computed from certain facts only."""

from rvt_ray.queries.tasks.choose import Chooser
from rvt_ray.queries.tasks.fit import fitting
from rvt_ray.queries.tasks.regions import target_boxes, target_masks

__all__ = ["Chooser", "fitting", "target_boxes", "target_masks"]
