"""The catalogue of predicates: what may stand in a program. `docs/predicates.md` defines each in full."""

from __future__ import annotations

from dataclasses import dataclass

from rvt_ray.records import Category
from rvt_ray.twin.facts.scopes import END, FRAME_SCOPES, START, THROUGHOUT

SEMANTIC, SPATIAL, TEMPORAL = Category.SEMANTIC, Category.SPATIAL, Category.TEMPORAL


@dataclass(frozen=True)
class PredicateSpec:
    """One predicate.

    Attributes:
        name: as in programs.
        category: which kind of reasoning it asks for.
        arity: 1 or 2.
        definition: one line; {x}, {y}, {value} stand for the arguments.
        phrase: plain words of the fact, for evidence and prompts; the same placeholders.
        unit: of the margin.
        scopes: scopes it may carry; empty: it carries none.
        value: what kind of value it carries: null, `kind`, `colour`, `name:value`, `text` or `region`.
        inverse: p(x, y) is inverse(y, x); equal to `name` for symmetric relations.
        needs: settings that set its threshold and margin.
        opposite: a predicate that cannot hold together with it (used for near misses).
    """

    name: str
    category: Category
    arity: int
    definition: str
    phrase: str
    unit: str
    scopes: tuple[str, ...] = ()
    value: str | None = None
    inverse: str | None = None
    needs: tuple[str, ...] = ()
    opposite: str | None = None

    @property
    def symmetric(self) -> bool:
        """p(x, y) is p(y, x)."""
        return self.inverse == self.name


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


def _event(
    name: str, definition: str, phrase: str, unit: str, *needs: str, opposite: str | None = None
) -> PredicateSpec:
    return PredicateSpec(name, TEMPORAL, 1, definition, phrase, unit, needs=needs, opposite=opposite)


def _meeting(
    name: str,
    definition: str,
    phrase: str,
    unit: str,
    *needs: str,
    inverse: str | None = None,
    opposite: str | None = None,
) -> PredicateSpec:
    return PredicateSpec(name, TEMPORAL, 2, definition, phrase, unit, (), None, inverse, needs, opposite)


_DIAGONALS = "frame diagonals"
_SECONDS = "seconds"

PREDICATES: tuple[PredicateSpec, ...] = (
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
        _DIAGONALS,
        "relation_margin",
        "overlap_share",
        opposite="right_of",
    ),
    _relation(
        "right_of",
        "left_of",
        "{y} is left_of {x}",
        "{x} is to the right of {y}",
        _DIAGONALS,
        "relation_margin",
        "overlap_share",
        opposite="left_of",
    ),
    _relation(
        "above",
        "below",
        "the centroid of {x} is higher in the image than that of {y}; their boxes do not mostly share rows",
        "{x} is above {y} in the picture",
        _DIAGONALS,
        "relation_margin",
        "overlap_share",
        opposite="below",
    ),
    _relation(
        "below",
        "above",
        "{y} is above {x}",
        "{x} is below {y} in the picture",
        _DIAGONALS,
        "relation_margin",
        "overlap_share",
        opposite="above",
    ),
    _relation(
        "in_front_of",
        "behind",
        "{x} is nearer to the camera than {y} by median depth in the same frame",
        "{x} is nearer to the camera than {y}",
        "of the frame's depth range",
        "depth_margin",
        opposite="behind",
    ),
    _relation(
        "behind",
        "in_front_of",
        "{y} is in_front_of {x}",
        "{x} is farther from the camera than {y}",
        "of the frame's depth range",
        "depth_margin",
        opposite="in_front_of",
    ),
    _relation(
        "near",
        "near",
        "the gap between the masks of {x} and {y} is small in the image",
        "{x} is close to {y}",
        _DIAGONALS,
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
        "log of the area ratio",
        "size_ratio",
        opposite="smaller",
    ),
    _relation(
        "smaller",
        "larger",
        "{y} is larger than {x}",
        "{x} looks smaller than {y}",
        "log of the area ratio",
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
    _extreme("leftmost", "is left_of", "leftmost", _DIAGONALS, "rightmost"),
    _extreme("rightmost", "is right_of", "rightmost", _DIAGONALS, "leftmost"),
    _extreme("topmost", "is above", "topmost", _DIAGONALS, "bottommost"),
    _extreme("bottommost", "is below", "lowest", _DIAGONALS, "topmost"),
    _extreme("nearest", "is in_front_of", "nearest", "of the frame's depth range", "farthest"),
    _extreme("farthest", "is behind", "farthest", "of the frame's depth range", "nearest"),
    _extreme("largest", "is larger than", "largest", "log of the area ratio", "smallest"),
    _extreme("smallest", "is smaller than", "smallest", "log of the area ratio", "largest"),
    _event(
        "enters",
        "{x} comes into the frame from outside of it",
        "{x} comes into view",
        _SECONDS,
        "event_s",
        "edge_px",
        opposite="present_throughout",
    ),
    _event(
        "leaves",
        "{x} goes out of the frame",
        "{x} leaves the view",
        _SECONDS,
        "event_s",
        "edge_px",
        opposite="present_throughout",
    ),
    _event(
        "present_throughout",
        "{x} is visible from the first frame to the last without a gap",
        "{x} stays in view the whole time",
        _SECONDS,
        "blink_s",
        "event_s",
    ),
    _event(
        "gets_hidden",
        "{x} is hidden by something for a while and seen both before and after",
        "{x} is hidden for a while and seen again",
        _SECONDS,
        "event_s",
    ),
    *(
        _event(
            f"moves_{way}",
            f"{{x}} moves {way} in the scene, camera motion removed, and hardly back",
            f"{{x}} moves {words}",
            _DIAGONALS,
            "move_shift",
            "still_shift",
            "camera_drift",
            opposite=f"moves_{other}",
        )
        for way, words, other in (
            ("left", "to the left", "right"),
            ("right", "to the right", "left"),
            ("up", "upwards", "down"),
            ("down", "downwards", "up"),
        )
    ),
    _event(
        "moves_towards_camera",
        "{x} comes nearer to the camera: its image grows and its depth says the same",
        "{x} comes towards the camera",
        "log of the scale ratio",
        "scale_ratio",
        "depth_margin",
        opposite="moves_away_from_camera",
    ),
    _event(
        "moves_away_from_camera",
        "{x} goes away from the camera: its image shrinks and its depth says the same",
        "{x} goes away from the camera",
        "log of the scale ratio",
        "scale_ratio",
        "depth_margin",
        opposite="moves_towards_camera",
    ),
    _event(
        "still",
        "{x} stays where it is in the scene, camera motion removed",
        "{x} does not move",
        _DIAGONALS,
        "still_shift",
        "move_shift",
        "camera_drift",
        opposite="moves",
    ),
    _event(
        "moves",
        "{x} changes its place in the scene, camera motion removed",
        "{x} moves",
        _DIAGONALS,
        "still_shift",
        "move_shift",
        "camera_drift",
        opposite="still",
    ),
    _event(
        "starts_moving",
        "{x} is at rest for a while and then moves",
        "{x} starts to move",
        _SECONDS,
        "still_speed",
        "move_speed",
        "run_s",
        opposite="stops_moving",
    ),
    _event(
        "stops_moving",
        "{x} moves for a while and then is at rest",
        "{x} stops moving",
        _SECONDS,
        "still_speed",
        "move_speed",
        "run_s",
        opposite="starts_moving",
    ),
    PredicateSpec(
        "fastest",
        TEMPORAL,
        1,
        "{x} is a {value} and faster than every other {value}, of which there is at least one",
        "{x} is the fastest {value}",
        "log of the speed ratio",
        value="kind",
        needs=("speed_ratio",),
        opposite="slowest",
    ),
    PredicateSpec(
        "slowest",
        TEMPORAL,
        1,
        "{x} is a {value} and slower than every other {value}, of which there is at least one",
        "{x} is the slowest {value}",
        "log of the speed ratio",
        value="kind",
        needs=("speed_ratio",),
        opposite="fastest",
    ),
    _meeting(
        "faster",
        "the mean speed of {x} is clearly above that of {y}, camera motion removed",
        "{x} moves faster than {y}",
        "log of the speed ratio",
        "speed_ratio",
        "move_speed",
        "still_speed",
        "still_shift",
        inverse="slower",
        opposite="slower",
    ),
    _meeting(
        "slower",
        "{y} is faster than {x}",
        "{x} moves more slowly than {y}",
        "log of the speed ratio",
        "speed_ratio",
        "move_speed",
        "still_speed",
        "still_shift",
        inverse="faster",
        opposite="faster",
    ),
    _meeting(
        "appears_before",
        "{x} is seen for the first time earlier than {y}",
        "{x} is first seen earlier than {y}",
        _SECONDS,
        "event_s",
        inverse="appears_after",
        opposite="appears_after",
    ),
    _meeting(
        "appears_after",
        "{y} appears_before {x}",
        "{x} is first seen later than {y}",
        _SECONDS,
        "event_s",
        inverse="appears_before",
        opposite="appears_before",
    ),
    _meeting(
        "disappears_before",
        "{x} is seen for the last time earlier than {y}",
        "{x} is last seen earlier than {y}",
        _SECONDS,
        "event_s",
        inverse="disappears_after",
        opposite="disappears_after",
    ),
    _meeting(
        "disappears_after",
        "{y} disappears_before {x}",
        "{x} is last seen later than {y}",
        _SECONDS,
        "event_s",
        inverse="disappears_before",
        opposite="disappears_before",
    ),
    _meeting(
        "approaches",
        "the distance from {x} to {y} shrinks, and {x} itself moves towards {y}",
        "{x} approaches {y}",
        _DIAGONALS,
        "approach_shift",
        "still_shift",
        "camera_drift",
        opposite="moves_away_from",
    ),
    _meeting(
        "moves_away_from",
        "the distance from {x} to {y} grows, and {x} itself moves away from {y}",
        "{x} moves away from {y}",
        _DIAGONALS,
        "approach_shift",
        "still_shift",
        "camera_drift",
        opposite="approaches",
    ),
    _meeting(
        "follows",
        "{x} and {y} move in the same direction, {x} behind {y} along it",
        "{x} follows {y}",
        _DIAGONALS,
        "move_shift",
        "relation_margin",
        "camera_drift",
    ),
    _meeting(
        "passes",
        "{x} moves past {y}: first behind it and then beyond it along the way of {x}",
        "{x} passes {y}",
        _DIAGONALS,
        "move_shift",
        "relation_margin",
        "camera_drift",
    ),
    _meeting(
        "hidden_by",
        "{x} is hidden for a while where {y} is",
        "{x} is hidden by {y} for a while",
        _SECONDS,
        "event_s",
    ),
    _meeting(
        "changes_sides_with",
        "{x} is on one side of {y} when both are first seen, and on the other when both are last seen",
        "{x} changes sides with {y}",
        _DIAGONALS,
        "relation_margin",
        inverse="changes_sides_with",
    ),
)

CATALOGUE: dict[str, PredicateSpec] = {spec.name: spec for spec in PREDICATES}

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
