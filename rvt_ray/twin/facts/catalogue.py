"""The catalogue of predicates: what may stand in a program. `docs/predicates.md` defines each in full."""

from __future__ import annotations

from rvt_ray.twin.facts.spec import PredicateSpec
from rvt_ray.twin.facts.spec_scene import SCENE
from rvt_ray.twin.facts.spec_time import TIME

CATALOGUE: dict[str, PredicateSpec] = {spec.name: spec for spec in (*SCENE, *TIME)}

EXTREMES: dict[str, str] = {
    "leftmost": "left_of",
    "rightmost": "right_of",
    "topmost": "above",
    "bottommost": "below",
    "nearest": "in_front_of",
    "farthest": "behind",
    "largest": "larger",
    "smallest": "smaller",
    "fastest": "faster",
    "slowest": "slower",
}
"""Superlative -> the relation to every other of the kind that defines it."""

REGIONS = (
    *("left", "right", "top", "bottom", "centre"),
    *("left half", "right half", "upper half", "lower half"),
)
