"""Predicates of what a thing is, and of where it is in the picture."""

from __future__ import annotations

from rvt_ray.twin.facts.scopes import END, FRAME_SCOPES, START, THROUGHOUT
from rvt_ray.twin.facts.spec import (
    AREA_RATIO,
    DEPTH_RANGE,
    DIAGONALS,
    SEMANTIC,
    SPATIAL,
    PredicateSpec,
)


def _semantic(name: str, definition: str, phrase: str, value: str, *needs: str) -> PredicateSpec:
    return PredicateSpec(name, SEMANTIC, 1, definition, phrase, "score", value=value, needs=needs)


def _relation(
    name: str,
    inverse: str,
    definition: str,
    phrase: str,
    unit: str,
    *needs: str,
    opposite: str | None = None,
) -> PredicateSpec:
    return PredicateSpec(
        name, SPATIAL, 2, definition, phrase, unit, FRAME_SCOPES, None, inverse, needs, opposite
    )


def _extreme(name: str, relation: str, phrase: str, unit: str, opposite: str) -> PredicateSpec:
    return PredicateSpec(
        name,
        SPATIAL,
        1,
        f"{{x}} is a {{value}} and {relation} every other {{value}} there; there is at least one other",
        f"{{x}} is the {phrase} {{value}}",
        unit,
        (THROUGHOUT, START, END),
        "kind",
        opposite=opposite,
    )


SCENE: tuple[PredicateSpec, ...] = (
    _semantic(
        "category",
        "{x} is named {value}, or a kind whose more general kinds include {value}",
        "{x} is a {value}",
        "kind",
        "min_category_score",
    ),
    _semantic(
        "colour",
        "a colour attribute of {x} is {value}",
        "{x} is {value}",
        "colour",
        "min_attribute_score",
    ),
    _semantic(
        "attribute",
        "an attribute of {x} has this name and value",
        "{x} has {value}",
        "name:value",
        "min_attribute_score",
    ),
    _semantic(
        "function",
        "the kind of {x} is one that serves {value}",
        "{x} is something to {value}",
        "text",
        "min_category_score",
    ),
    PredicateSpec(
        "part_of",
        SEMANTIC,
        2,
        "the twin says that {x} is a part of {y}",
        "{x} is a part of {y}",
        "score",
        inverse="whole_of",
    ),
    PredicateSpec(
        "whole_of",
        SEMANTIC,
        2,
        "{y} is a part of {x}",
        "{y} is a part of {x}",
        "score",
        inverse="part_of",
    ),
    _relation(
        "left_of",
        "right_of",
        "the centroid of {x} is left of that of {y} in the image; their boxes do not mostly share columns",
        "{x} is to the left of {y}",
        DIAGONALS,
        "relation_margin",
        "overlap_share",
        opposite="right_of",
    ),
    _relation(
        "right_of",
        "left_of",
        "{y} is left_of {x}",
        "{x} is to the right of {y}",
        DIAGONALS,
        "relation_margin",
        "overlap_share",
        opposite="left_of",
    ),
    _relation(
        "above",
        "below",
        "the centroid of {x} is higher in the image than that of {y}; their boxes do not mostly share rows",
        "{x} is above {y} in the picture",
        DIAGONALS,
        "relation_margin",
        "overlap_share",
        opposite="below",
    ),
    _relation(
        "below",
        "above",
        "{y} is above {x}",
        "{x} is below {y} in the picture",
        DIAGONALS,
        "relation_margin",
        "overlap_share",
        opposite="above",
    ),
    _relation(
        "in_front_of",
        "behind",
        "{x} is nearer to the camera than {y} by median depth in the same frame",
        "{x} is nearer to the camera than {y}",
        DEPTH_RANGE,
        "depth_margin",
        opposite="behind",
    ),
    _relation(
        "behind",
        "in_front_of",
        "{y} is in_front_of {x}",
        "{x} is farther from the camera than {y}",
        DEPTH_RANGE,
        "depth_margin",
        opposite="in_front_of",
    ),
    _relation(
        "near",
        "near",
        "the gap between the masks of {x} and {y} is small in the image",
        "{x} is close to {y}",
        DIAGONALS,
        "near_distance",
        "near_margin",
    ),
    _relation(
        "touching",
        "touching",
        "the masks of {x} and {y} meet in the image, and their depths do not differ",
        "{x} touches {y}",
        "pixels",
        "touch_px",
        "touch_margin_px",
        "depth_margin",
    ),
    _relation(
        "inside",
        "contains",
        "nearly all of the box of {x} is in that of {y}, {x} is much smaller, their depths do not differ",
        "{x} is inside {y}",
        "share of the box",
        "inside_share",
        "inside_margin",
        "depth_margin",
    ),
    _relation(
        "contains",
        "inside",
        "{y} is inside {x}",
        "{x} contains {y}",
        "share of the box",
        "inside_share",
        "inside_margin",
        "depth_margin",
    ),
    _relation(
        "larger",
        "smaller",
        "{x} covers clearly more pixels than {y}",
        "{x} looks larger than {y}",
        AREA_RATIO,
        "size_ratio",
        opposite="smaller",
    ),
    _relation(
        "smaller",
        "larger",
        "{y} is larger than {x}",
        "{x} looks smaller than {y}",
        AREA_RATIO,
        "size_ratio",
        opposite="larger",
    ),
    PredicateSpec(
        "region",
        SPATIAL,
        1,
        "the centroid of {x} lies in this part of the frame (left, right, top, bottom, centre, or a half)",
        "{x} is in the {value} of the picture",
        "of the frame's side",
        FRAME_SCOPES,
        "region",
        needs=("region_share", "region_margin"),
    ),
    _extreme("leftmost", "is left_of", "leftmost", DIAGONALS, "rightmost"),
    _extreme("rightmost", "is right_of", "rightmost", DIAGONALS, "leftmost"),
    _extreme("topmost", "is above", "topmost", DIAGONALS, "bottommost"),
    _extreme("bottommost", "is below", "lowest", DIAGONALS, "topmost"),
    _extreme("nearest", "is in_front_of", "nearest", DEPTH_RANGE, "farthest"),
    _extreme("farthest", "is behind", "farthest", DEPTH_RANGE, "nearest"),
    _extreme("largest", "is larger than", "largest", AREA_RATIO, "smallest"),
    _extreme("smallest", "is smaller than", "smallest", AREA_RATIO, "largest"),
)
"""Semantic and spatial predicates, in the order of the catalogue."""
