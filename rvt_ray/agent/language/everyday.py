"""Everyday ways to say a predicate, beside those that our own wording uses."""

from __future__ import annotations

from rvt_ray.queries.wording.phrases import WHILE_MOVING_ADVERBS, Phrases
from rvt_ray.twin.facts.scopes import WHILE_MOVING

EVERYDAY: dict[str, Phrases] = {
    "left_of": Phrases(places=("left of {o}", "on the left of {o}", "on the left side of {o}")),
    "right_of": Phrases(places=("right of {o}", "on the right of {o}", "on the right side of {o}")),
    "above": Phrases(places=("over {o}", "higher than {o}", "higher up than {o}")),
    "below": Phrases(places=("under {o}", "underneath {o}", "beneath {o}", "lower than {o}")),
    "in_front_of": Phrases(
        places=("closer to the camera than {o}", "nearer than {o}", "nearer to us than {o}")
    ),
    "behind": Phrases(places=("further from the camera than {o}", "farther away than {o}")),
    "near": Phrases(places=("next to {o}", "beside {o}", "by {o}", "nearby {o}")),
    "touching": Phrases(places=("touching {o}", "against {o}")),
    "inside": Phrases(places=("in {o}", "inside {o}", "within {o}")),
    "contains": Phrases(
        places=("around {o}",), states=("<contain> {o}", "<have> {o} inside", "<hold> {o} within")
    ),
    "larger": Phrases(places=("larger than {o}", "bigger than {o}")),
    "smaller": Phrases(places=("smaller than {o}",)),
    "region=left": Phrases(places=("on the left", "on the left-hand side", "at the left", "to the left")),
    "region=right": Phrases(
        places=("on the right", "on the right-hand side", "at the right", "to the right")
    ),
    "region=top": Phrases(places=("at the top", "in the top part of the picture", "in the upper part")),
    "region=bottom": Phrases(
        places=("at the bottom", "in the bottom part of the picture", "in the lower part")
    ),
    "region=centre": Phrases(places=("in the centre", "in the center", "in the middle", "at the centre")),
    "region=left half": Phrases(places=("in the left half", "on the left half of the picture")),
    "region=right half": Phrases(places=("in the right half", "on the right half of the picture")),
    "region=upper half": Phrases(
        places=("in the upper half", "in the top half", "in the top half of the picture")
    ),
    "region=lower half": Phrases(
        places=("in the lower half", "in the bottom half", "in the bottom half of the picture")
    ),
    "leftmost": Phrases(places=("leftmost {k}", "the furthest left {k}", "furthest left {k}")),
    "rightmost": Phrases(places=("rightmost {k}", "the furthest right {k}", "furthest right {k}")),
    "topmost": Phrases(places=("the highest {k}", "highest {k}", "topmost {k}")),
    "bottommost": Phrases(places=("the lowest {k}", "lowest {k}")),
    "nearest": Phrases(
        places=("the nearest {k}", "nearest {k}", "the closest {k}", "closest to the camera {k}")
    ),
    "farthest": Phrases(places=("the farthest {k}", "the furthest away {k}", "furthest from the camera {k}")),
    "largest": Phrases(
        states=("<look> the largest {k}", "<appear> the biggest {k}"),
        places=("the largest {k}", "the biggest {k}", "largest {k}", "biggest {k}"),
    ),
    "smallest": Phrases(
        states=("<look> the tiniest {k}", "<appear> the smallest {k}"),
        places=("the smallest {k}", "smallest {k}", "the tiniest {k}"),
    ),
    "enters": Phrases(
        events=(
            "<appear> later on",
            "<come> in",
            "<enter>",
            "<enter> the scene",
            "<enter> the frame",
            "<arrive>",
        )
    ),
    "leaves": Phrases(
        events=("<leave>", "<leave> the scene", "<leave> the frame", "<disappear>", "<exit>", "<go> away")
    ),
    "present_throughout": Phrases(
        events=(
            "<be> visible throughout",
            "<be> always visible",
            "<stay> in view",
            "<be> visible all the time",
        )
    ),
    "gets_hidden": Phrases(
        events=("<get> hidden", "<be> hidden for a while", "<be> occluded", "<get> occluded")
    ),
    "moves_left": Phrases(
        events=("<move> left", "<go> left", "<go> to the left", "<head> left", "<drive> left")
    ),
    "moves_right": Phrases(events=("<move> right", "<go> right", "<go> to the right", "<head> right")),
    "moves_up": Phrases(events=("<move> up", "<go> up", "<rise>", "<move> upwards")),
    "moves_down": Phrases(events=("<move> down", "<go> down", "<fall>", "<sink>", "<move> downwards")),
    "moves_towards_camera": Phrases(
        events=("<approach> the camera", "<move> towards the camera", "<come> closer")
    ),
    "moves_away_from_camera": Phrases(events=("<move> away from the camera", "<leave> the camera behind")),
    "still": Phrases(
        events=("<be> still", "does not move", "do not move", "<be> stationary", "<stand> still")
    ),
    "moves": Phrases(events=("<be> in motion", "<be> moving", "<move> around")),
    "starts_moving": Phrases(events=("<start> moving", "<start> to move", "<begin> to move", "<set> off")),
    "stops_moving": Phrases(events=("<stop>", "<stop> moving", "<come> to rest", "<halt>")),
    "fastest": Phrases(events=("<be> the fastest {k}", "<move> fastest {k}")),
    "slowest": Phrases(events=("<be> the slowest {k}", "<move> slowest {k}")),
    "faster": Phrases(events=("<be> faster than {o}",)),
    "appears_before": Phrases(
        events=("<come> before {o}", "<enter> before {o}", "<come> into view before {o}")
    ),
    "appears_after": Phrases(events=("<come> after {o}", "<enter> after {o}", "<come> into view after {o}")),
    "disappears_before": Phrases(events=("<leave> before {o}",)),
    "disappears_after": Phrases(events=("<leave> after {o}",)),
    "approaches": Phrases(events=("<come> closer to {o}", "<get> closer to {o}")),
    "passes": Phrases(events=("<overtake> {o}", "<pass> by {o}")),
    "hidden_by": Phrases(
        events=("<be> hidden by {o}", "<be> hidden behind {o}", "<go> behind {o}", "<be> occluded by {o}"),
        passives=("<hide> {o}", "<cover> {o}", "<occlude> {o}"),
    ),
}
"""Predicate (or `region=<value>`) -> phrases. A place without a time ("left of the cup") is read as
`throughout`, and where that gives nothing as `some_time`."""

EVERYDAY_SCOPES: dict[str, tuple[str, ...]] = {
    WHILE_MOVING: (
        *WHILE_MOVING_ADVERBS,
        *("while it moves", "while it is moving", "as it moves", "when it moves", "when moving"),
    ),
}
"""Scope -> adverbs that may follow a place or a state."""
