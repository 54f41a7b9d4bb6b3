"""What each predicate says of scenes in which the truth is plain, and where it must say "unknown"."""

from __future__ import annotations

import pytest

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import Absence, Attribute, CameraStep, Coverage, DepthKind, TrackStatus
from rvt_ray.twin.facts import Facts, Truth
from tests.twin.facts.worlds import Thing, make_twin

T, F, U = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN


def facts_of(*things: Thing, **options) -> Facts:
    return Facts(make_twin(things, **options), FactSettings())


def go(x0, y0, x1, y1, frames=30, start=0, stop=None):
    """A straight way from the first point to the second, at rest before `start` and after `stop`."""
    stop = frames - 1 if stop is None else stop

    def centre(t):
        a = min(max((t - start) / (stop - start), 0.0), 1.0)
        return x0 + a * (x1 - x0), y0 + a * (y1 - y0)

    return centre


def truth(facts, predicate, *args, value=None, scope=None):
    return facts.value(predicate, args, value, scope).truth


# --- semantic


def test_a_kind_is_also_its_more_general_kinds_but_not_another() -> None:
    f = facts_of(Thing(1, "dog"), Thing(2, "car"), Thing(3, "object"), Thing(4, "animal"))
    assert truth(f, "category", 1, value="dog") is T
    assert truth(f, "category", 1, value="animal") is T
    assert truth(f, "category", 1, value="car") is F
    assert truth(f, "category", 2, value="animal") is F
    assert truth(f, "category", 3, value="dog") is U
    assert truth(f, "category", 4, value="dog") is U, "an animal may be a dog"
    assert truth(f, "category", 4, value="car") is F


def test_a_contested_name_is_unknown() -> None:
    f = facts_of(
        Thing(1, "dog", kind_score=0.55, alternatives=[("cat", 0.45)]),
        Thing(2, "dog", kind_score=0.9, alternatives=[("cat", 0.05)]),
        Thing(3, "dog", kind_score=0.3),
    )
    assert truth(f, "category", 1, value="dog") is U
    assert truth(f, "category", 1, value="cat") is U
    assert truth(f, "category", 1, value="animal") is T, "both names are animals"
    assert truth(f, "category", 2, value="dog") is T
    assert truth(f, "category", 2, value="cat") is F
    assert truth(f, "category", 3, value="dog") is U
    assert truth(f, "category", 3, value="car") is U


def test_synonyms_are_one_kind() -> None:
    f = facts_of(Thing(1, "sofa"), Thing(2, "couch"))
    assert truth(f, "category", 1, value="couch") is T
    assert truth(f, "category", 2, value="sofa") is T


def test_a_colour_seen_weakly_or_mixed_up_easily_is_unknown() -> None:
    def measured(value, score):
        return [Attribute(name="colour", value=value, score=score, source="measured")]

    f = facts_of(
        Thing(1, attributes=measured("red", 0.9)),
        Thing(2, attributes=measured("red", 0.5)),
        Thing(3, attributes=measured("orange", 0.9)),
        Thing(4, attributes=measured("blue", 0.9)),
        Thing(5),
        Thing(6, colour="orange"),
    )
    assert [truth(f, "colour", i, value="red") for i in range(1, 7)] == [T, U, U, F, U, F]


def test_a_colour_that_the_measured_shares_leave_no_room_for_is_false() -> None:
    def shares(**found):
        return [Attribute(name="colour", value=v, score=s, source="measured") for v, s in found.items()]

    f = facts_of(
        Thing(1, attributes=shares(black=0.4, brown=0.3, grey=0.2)),
        Thing(2, attributes=shares(black=0.5, purple=0.12)),
        Thing(3, attributes=shares(black=0.5, purple=0.08, pink=0.08)),
        Thing(4, attributes=shares(black=0.4)),
        Thing(
            5, attributes=[*shares(black=0.8), Attribute(name="colour", value="red", score=0.2, source="vlm")]
        ),
    )
    # 2: purple is too little; 3: its neighbour counts with it; 4: most of it is unaccounted for.
    assert [truth(f, "colour", i, value="purple") for i in range(1, 6)] == [F, F, U, U, F]


def test_function_and_part_of() -> None:
    f = facts_of(Thing(1, "chair"), Thing(2, "car"), Thing(3, "object"))
    assert [truth(f, "function", i, value="sit on") for i in (1, 2, 3)] == [T, F, U]
    twin = make_twin([Thing(1, "car"), Thing(2, "object")])
    twin.instances[1].parent_id = 1
    f = Facts(twin, FactSettings())
    assert truth(f, "part_of", 2, 1) is T
    assert truth(f, "whole_of", 1, 2) is T
    assert truth(f, "part_of", 1, 2) is F


# --- spatial


def test_sides_and_heights_with_their_margins() -> None:
    f = facts_of(Thing(1, centre=(60, 60)), Thing(2, centre=(260, 180)), Thing(3, centre=(66, 62)), frames=10)
    for scope in ("throughout", "start", "end", "some_time"):
        assert truth(f, "left_of", 1, 2, scope=scope) is T
        assert truth(f, "left_of", 2, 1, scope=scope) is F
        assert truth(f, "right_of", 2, 1, scope=scope) is T
        assert truth(f, "above", 1, 2, scope=scope) is T
        assert truth(f, "below", 2, 1, scope=scope) is T
        assert truth(f, "left_of", 1, 3, scope=scope) is U, "nearly the same column"


def test_a_small_thing_before_the_left_half_of_a_big_one_is_not_surely_left_of_it() -> None:
    f = facts_of(Thing(1, centre=(100, 120), size=(20, 20)), Thing(2, centre=(160, 120), size=(200, 100)))
    assert truth(f, "left_of", 1, 2, scope="start") is U
    assert truth(f, "left_of", 2, 1, scope="start") is F


def test_scopes_tell_moments_apart() -> None:
    f = facts_of(Thing(1, centre=go(40, 120, 280, 120)), Thing(2, centre=(160, 60)))
    assert truth(f, "left_of", 1, 2, scope="start") is T
    assert truth(f, "left_of", 1, 2, scope="end") is F
    assert truth(f, "right_of", 1, 2, scope="end") is T
    assert truth(f, "left_of", 1, 2, scope="throughout") is F
    assert truth(f, "left_of", 1, 2, scope="some_time") is T
    assert truth(f, "changes_sides_with", 1, 2) is T


def test_what_is_never_seen_together_is_in_no_relation() -> None:
    f = facts_of(
        Thing(1, centre=lambda t: (60, 60) if t < 10 else Absence.OUT),
        Thing(2, centre=lambda t: (260, 60) if t >= 20 else Absence.OUT),
    )
    for scope in ("throughout", "start", "end", "some_time"):
        assert truth(f, "left_of", 1, 2, scope=scope) is F


def test_low_scores_and_missing_annotation_make_unknown() -> None:
    other = Thing(9, centre=(260, 60))
    weak = facts_of(Thing(1, centre=(60, 60), score=0.2), other)
    assert truth(weak, "left_of", 1, 9, scope="throughout") is U
    gaps = facts_of(Thing(1, centre=(60, 60), annotated=lambda t: t % 2 == 0), other)
    assert truth(gaps, "left_of", 1, 9, scope="throughout") is U
    assert truth(gaps, "left_of", 1, 9, scope="some_time") is T
    assert truth(gaps, "left_of", 9, 1, scope="some_time") is U, "it may be on the unannotated frames"


@pytest.mark.parametrize(
    ("kind", "near", "far"), [(DepthKind.METRIC, 2.0, 8.0), (DepthKind.RELATIVE_INVERSE, 8.0, 2.0)]
)
def test_trap_12_bigger_is_nearer_in_relative_depth_only_and_near_ties_are_unknown(kind, near, far) -> None:
    f = facts_of(
        Thing(1, centre=(60, 60), depth=near),
        Thing(2, centre=(200, 60), depth=far),
        Thing(3, centre=(120, 60), depth=far * 1.01),
        depth_kind=kind,
    )
    assert truth(f, "in_front_of", 1, 2, scope="throughout") is T
    assert truth(f, "behind", 2, 1, scope="throughout") is T
    assert truth(f, "in_front_of", 2, 1, scope="throughout") is F
    assert truth(f, "in_front_of", 2, 3, scope="throughout") is U


def test_without_depth_every_depth_fact_is_unknown() -> None:
    f = facts_of(Thing(1, centre=(60, 60)), Thing(2, centre=(90, 60)))
    assert truth(f, "in_front_of", 1, 2, scope="start") is U
    assert truth(f, "touching", 1, 2, scope="start") is U, "they meet in the image; in the scene, who knows"
    assert truth(f, "moves_towards_camera", 1) is U
    assert truth(f, "nearest", 1, value="object", scope="start") is U


def test_depth_on_key_frames_only_is_enough() -> None:
    def key(value):
        return lambda t: value if t % 10 == 0 else None

    f = facts_of(
        Thing(1, centre=(60, 60), depth=key(2.0)),
        Thing(2, centre=(200, 60), depth=key(8.0)),
        depth_kind=DepthKind.METRIC,
    )
    assert truth(f, "in_front_of", 1, 2, scope="throughout") is T
    assert f.value("in_front_of", (1, 2), None, "throughout").frames == [0, 10, 20]


def test_near_and_touching_measure_masks() -> None:
    f = facts_of(
        Thing(1, centre=(60, 60), size=(30, 30), depth=2.0),
        Thing(2, centre=(90, 60), size=(30, 30), depth=2.0),
        Thing(3, centre=(90, 93), size=(30, 30), depth=2.0),
        Thing(4, centre=(280, 200), size=(30, 30), depth=2.0),
        depth_kind=DepthKind.METRIC,
    )
    assert truth(f, "near", 1, 2, scope="throughout") is T
    assert truth(f, "near", 2, 1, scope="throughout") is T
    assert truth(f, "near", 1, 4, scope="throughout") is F
    assert truth(f, "touching", 1, 2, scope="throughout") is T
    assert truth(f, "touching", 1, 4, scope="throughout") is F
    assert truth(f, "touching", 2, 3, scope="some_time") is U, "a gap between touching and not"


def test_what_meets_in_the_image_at_different_depths_does_not_touch() -> None:
    f = facts_of(
        Thing(1, centre=(60, 60), depth=2.0),
        Thing(2, centre=(90, 60), depth=9.0),
        Thing(3, centre=(200, 120), size=(90, 90), depth=9.0),
        Thing(4, centre=(200, 120), size=(20, 20), depth=9.0),
        Thing(5, centre=(215, 130), size=(20, 20), depth=2.0),
        depth_kind=DepthKind.METRIC,
    )
    assert truth(f, "touching", 1, 2, scope="throughout") is F
    assert truth(f, "inside", 4, 3, scope="throughout") is T
    assert truth(f, "contains", 3, 4, scope="throughout") is T
    assert truth(f, "inside", 5, 3, scope="throughout") is F
    assert truth(f, "inside", 3, 4, scope="throughout") is F


def test_larger_wants_a_clear_ratio_and_an_uncut_rival() -> None:
    f = facts_of(
        Thing(1, centre=(100, 100), size=(60, 60)),
        Thing(2, centre=(200, 100), size=(30, 30)),
        Thing(3, centre=(200, 200), size=(56, 56)),
        Thing(4, centre=(0, 200), size=(60, 60)),
    )
    assert truth(f, "larger", 1, 2, scope="start") is T
    assert truth(f, "smaller", 2, 1, scope="start") is T
    assert truth(f, "larger", 1, 3, scope="start") is U
    assert truth(f, "larger", 1, 4, scope="start") is U, "the border cuts it"


def test_regions_leave_the_middle_open() -> None:
    f = facts_of(Thing(1, centre=(40, 120)), Thing(2, centre=(140, 120)), Thing(3, centre=(300, 120)))
    assert [truth(f, "region", i, value="left", scope="start") for i in (1, 2, 3)] == [T, U, F]
    assert truth(f, "region", 2, value="centre", scope="start") is T
    assert truth(f, "region", 1, value="centre", scope="start") is F
    # A half is decided for all but what stands on its border.
    assert [truth(f, "region", i, value="left half", scope="start") for i in (1, 2, 3)] == [T, T, F]
    assert [truth(f, "region", i, value="right half", scope="start") for i in (1, 2, 3)] == [F, F, T]
    assert truth(f, "region", 2, value="upper half", scope="start") is U


def test_of_all_is_not_proven_by_a_twin_that_holds_only_some_things() -> None:
    """A moving car may be the largest thing that `motion` holds, and the house behind it larger."""
    things = [
        *(Thing(1, "dog", centre=(40, 120)), Thing(2, "dog", centre=(120, 120))),
        *(Thing(3, "car", centre=(200, 120)), Thing(4, "object", centre=(280, 60), size=(4, 4))),
    ]
    whole = Facts(make_twin(things), FactSettings())
    part = Facts(make_twin(things, coverage=Coverage.SOME), FactSettings())
    ask = {"value": "object", "scope": "start"}
    assert [truth(whole, "leftmost", i, **ask) for i in (1, 2)] == [T, F]
    assert [truth(part, "leftmost", i, **ask) for i in (1, 2)] == [U, F], "that it is not stays known"
    # Of the kinds that things are called by it is taken to hold all, of broader ones not.
    assert truth(part, "rightmost", 2, value="dog", scope="start") is truth(
        whole, "rightmost", 2, value="dog", scope="start"
    )
    animals = {"value": "animal", "scope": "start"}
    assert truth(whole, "leftmost", 1, **animals) is T
    assert truth(part, "leftmost", 1, **animals) is U, "a cat may be farther left"
    lonely = Facts(make_twin(things[:1], coverage=Coverage.SOME), FactSettings())
    assert truth(lonely, "leftmost", 1, **ask) is U, "there may be another"


def test_a_superlative_needs_rivals_and_loses_to_a_possible_one() -> None:
    left, mid = Thing(1, "dog", centre=(40, 120)), Thing(2, "dog", centre=(120, 120))
    alone = Thing(3, "car", centre=(200, 120))
    f = facts_of(left, mid, alone)
    assert truth(f, "leftmost", 1, value="dog", scope="throughout") is T
    assert truth(f, "leftmost", 2, value="dog", scope="throughout") is F
    assert truth(f, "leftmost", 3, value="car", scope="throughout") is F, "there is no other car"
    ghost = Thing(4, "dog", centre=(5, 120), size=(8, 8), status=TrackStatus.UNCERTAIN)
    f = facts_of(left, mid, alone, ghost)
    assert truth(f, "leftmost", 1, value="dog", scope="throughout") is U
    unnamed = Thing(5, "object", centre=(5, 120), size=(8, 8))
    f = facts_of(left, mid, alone, unnamed)
    assert truth(f, "leftmost", 1, value="dog", scope="throughout") is U, "the unnamed one may be a dog"
    gone = Thing(6, "dog", centre=lambda t: Absence.OUT if t < 20 else (5, 120))
    f = facts_of(left, mid, alone, gone)
    assert truth(f, "leftmost", 1, value="dog", scope="start") is T
    assert truth(f, "leftmost", 1, value="dog", scope="end") is F


# --- temporal


def test_entering_and_leaving_are_not_hiding() -> None:
    def enters(t):
        return Absence.OUT if t < 10 else (min(5 + 12 * (t - 10), 160), 120)

    def hides(t):
        return Absence.OCCLUDED if 10 <= t < 20 else (160, 60)

    f = facts_of(Thing(1, centre=enters), Thing(2, centre=hides), Thing(3, centre=(250, 200)))
    assert [truth(f, "enters", i) for i in (1, 2, 3)] == [T, F, F]
    assert [truth(f, "leaves", i) for i in (1, 2, 3)] == [F, F, F]
    assert [truth(f, "gets_hidden", i) for i in (1, 2, 3)] == [F, T, F]
    assert [truth(f, "present_throughout", i) for i in (1, 2, 3)] == [F, F, T]
    leaves = facts_of(Thing(1, centre=lambda t: enters(29 - t)))
    assert truth(leaves, "leaves", 1) is T
    assert truth(leaves, "enters", 1) is F


def test_appearing_in_the_middle_of_the_frame_for_no_known_reason_is_unknown() -> None:
    f = facts_of(Thing(1, centre=lambda t: Absence.UNKNOWN if t < 10 else (160, 120)))
    assert truth(f, "enters", 1) is U


def test_order_of_appearance() -> None:
    def from_frame(n, until=99):
        return lambda t: (160, 120) if n <= t < until else Absence.OUT

    f = facts_of(
        Thing(1, centre=from_frame(0)),
        Thing(2, centre=from_frame(10)),
        Thing(3, centre=from_frame(11)),
        Thing(4, centre=from_frame(20, 25)),
        Thing(5, centre=from_frame(0, 10)),
    )
    assert truth(f, "appears_before", 1, 2) is T
    assert truth(f, "appears_after", 2, 1) is T
    assert truth(f, "appears_before", 2, 1) is F
    assert truth(f, "appears_before", 2, 3) is U, "a tenth of a second apart"
    assert truth(f, "appears_before", 1, 5) is F, "both are there from the start"
    assert truth(f, "disappears_before", 5, 4) is T
    assert truth(f, "disappears_after", 4, 5) is T
    assert truth(f, "disappears_before", 1, 2) is F


def test_directions_of_motion() -> None:
    f = facts_of(
        Thing(1, centre=go(250, 120, 60, 120)),
        Thing(2, centre=go(60, 60, 250, 70)),
        Thing(3, centre=(160, 120)),
        Thing(4, centre=go(100, 40, 100, 200)),
        Thing(5, centre=go(100, 120, 108, 120)),
    )
    assert [truth(f, "moves_left", i) for i in (1, 2, 3, 4)] == [T, F, F, F]
    assert [truth(f, "moves_right", i) for i in (1, 2, 3, 4)] == [F, T, F, F]
    assert [truth(f, "moves_down", i) for i in (1, 2, 3, 4)] == [F, F, F, T]
    assert [truth(f, "still", i) for i in (1, 2, 3, 4, 5)] == [F, F, T, F, U]
    assert [truth(f, "moves", i) for i in (1, 2, 3, 4, 5)] == [T, T, F, T, U]


def test_there_and_back_is_motion_but_no_direction() -> None:
    f = facts_of(Thing(1, centre=lambda t: (60 + 180 * (1 - abs(t - 15) / 15), 120)))
    assert truth(f, "moves", 1) is T
    assert truth(f, "moves_left", 1) is U
    assert truth(f, "moves_right", 1) is U


def test_an_occluder_sliding_over_a_resting_thing_does_not_move_it() -> None:
    """The visible part shrinks from 80 to 20 pixels: its centroid moves, its left edge does not."""

    def width(t):
        return 80 - 2 * t

    f = facts_of(Thing(1, centre=lambda t: (100 + width(t) / 2, 120), size=lambda t: (width(t), 40)))
    assert truth(f, "moves_left", 1) is not T
    assert truth(f, "moves", 1) is not T


def test_camera_motion_is_taken_out() -> None:
    """The camera pans right: everything at rest drifts left on the screen, a follower stays centred."""
    pan = [CameraStep(dx=-6.0 if t else 0.0, dy=0.0, zoom=1.0, roll=0.0, known=True) for t in range(30)]
    resting = Thing(1, centre=lambda t: (260 - 6 * t, 120))
    follower = Thing(2, centre=(160, 60))
    f = facts_of(resting, follower, camera=pan)
    assert truth(f, "still", 1) is T
    assert truth(f, "moves_left", 1) is F
    assert truth(f, "moves_right", 2) is T
    assert truth(f, "still", 2) is F


def test_a_zooming_camera_moves_nothing() -> None:
    zoom = 1.02
    steps = [CameraStep(dx=0, dy=0, zoom=zoom if t else 1.0, roll=0, known=True) for t in range(30)]
    f = facts_of(
        Thing(1, centre=lambda t: (159.5 + 40 * zoom**t, 119.5 + 20 * zoom**t), size=(12, 12)), camera=steps
    )
    assert truth(f, "still", 1) is T


def test_unknown_camera_motion_makes_motion_unknown() -> None:
    steps = [CameraStep(dx=0, dy=0, zoom=1, roll=0, known=t != 15) for t in range(30)]
    f = facts_of(Thing(1, centre=go(40, 120, 250, 120)), Thing(2, centre=(160, 60)), camera=steps)
    for predicate in ("moves_left", "moves_right", "still", "moves", "starts_moving"):
        assert truth(f, predicate, 1) is U, predicate
    assert truth(f, "approaches", 1, 2) is U
    assert truth(f, "left_of", 1, 2, scope="start") is T, "relations inside a frame do not care"


def test_towards_the_camera_needs_depth_and_scale_to_agree() -> None:
    grow = {"centre": (160, 120), "size": lambda t: (30 + 1.5 * t, 30 + 1.5 * t)}
    f = facts_of(
        Thing(1, depth=lambda t: 6 - 0.1 * t, **grow),
        Thing(2, depth=6.0, **grow),
        Thing(3, centre=(40, 40), depth=3.0),
        depth_kind=DepthKind.METRIC,
    )
    assert [truth(f, "moves_towards_camera", i) for i in (1, 2, 3)] == [T, U, F]
    assert [truth(f, "moves_away_from_camera", i) for i in (1, 3)] == [F, F]


def test_trap_12_relative_depth_that_flickers_is_read_against_things_at_rest() -> None:
    """The depth map flickers by a factor per frame; only the place among the others is comparable."""

    def flicker(t):
        return 1 + 0.3 * (t % 3)

    def scene(*more):
        return facts_of(
            Thing(
                1,
                centre=(160, 120),
                size=lambda t: (30 + 1.5 * t, 30 + 1.5 * t),
                depth=lambda t: (3 + 0.1 * t) * flicker(t),
            ),
            *more,
            depth_kind=DepthKind.RELATIVE_INVERSE,
        )

    far = Thing(2, centre=(40, 40), depth=lambda t: 1.0 * flicker(t))
    near = Thing(3, centre=(280, 40), depth=lambda t: 9.0 * flicker(t))
    assert truth(scene(far, near), "moves_towards_camera", 1) is T
    assert truth(scene(), "moves_towards_camera", 1) is U, "nothing to compare with"


def test_starting_and_stopping() -> None:
    f = facts_of(
        Thing(1, centre=go(60, 120, 250, 120, start=15)),
        Thing(2, centre=go(60, 60, 250, 60, stop=14)),
        Thing(3, centre=go(60, 180, 250, 180)),
        Thing(4, centre=(160, 30)),
    )
    assert [truth(f, "starts_moving", i) for i in (1, 2, 3, 4)] == [T, F, F, F]
    assert [truth(f, "stops_moving", i) for i in (1, 2, 3, 4)] == [F, T, F, F]
    assert 12 <= f.value("starts_moving", (1,)).frames[1] <= 17


def test_a_thing_that_is_all_but_covered_may_rest_there() -> None:
    def covered(t: int) -> tuple[float, float]:
        return (6, 20) if 10 <= t < 25 else (30, 30)

    f = facts_of(Thing(1, centre=go(60, 120, 250, 120), size=covered), Thing(2, centre=go(60, 60, 250, 60)))
    assert [truth(f, "starts_moving", i) for i in (1, 2)] == [U, F]
    assert [truth(f, "stops_moving", i) for i in (1, 2)] == [U, F]


def test_what_slides_over_a_resting_thing_does_not_start_or_stop_it() -> None:
    """Its visible part shrinks to a third and grows again; that shifts its centroid by 27 pixels and back."""

    def width(t: int) -> float:
        return 80 - 54 * max(0.0, 1 - abs(t - 20) / 9)

    f = facts_of(
        Thing(1, centre=lambda t: (100 + width(t) / 2, 120), size=lambda t: (width(t), 40)),
        Thing(2, centre=lambda t: (100 + width(t) / 2, 60), size=(40, 40)),  # the same way, in full view
        frames=40,
    )
    assert [truth(f, "starts_moving", i) for i in (1, 2)] == [U, T]
    assert [truth(f, "stops_moving", i) for i in (1, 2)] == [U, T]


def test_a_sliver_does_not_tell_how_far_away_a_thing_was() -> None:
    way = go(150, 120, 40, 120)
    whole = Thing(1, centre=way, size=(30, 30))
    peeps = Thing(2, centre=way, size=lambda t: (4, 4) if t < 5 else (30, 30))
    f = facts_of(whole, peeps, Thing(3, centre=(180, 120)))
    assert [truth(f, "moves_away_from", i, 3) for i in (1, 2)] == [T, U]


def test_speed() -> None:
    f = facts_of(
        Thing(1, "car", centre=go(40, 60, 280, 60)),
        Thing(2, "car", centre=go(40, 120, 160, 120)),
        Thing(3, "dog", centre=go(40, 180, 50, 180)),
    )
    assert truth(f, "faster", 1, 2) is T
    assert truth(f, "slower", 2, 1) is T
    assert truth(f, "faster", 2, 1) is F
    assert truth(f, "fastest", 1, value="car") is T
    assert truth(f, "fastest", 1, value="object") is T
    assert truth(f, "slowest", 2, value="car") is T


def test_approaching_following_and_passing() -> None:
    rest = Thing(2, centre=(250, 120))
    f = facts_of(Thing(1, centre=go(40, 120, 200, 120)), rest)
    assert truth(f, "approaches", 1, 2) is T
    assert truth(f, "approaches", 2, 1) is F, "the one at rest does not approach"
    assert truth(f, "moves_away_from", 1, 2) is F
    f = facts_of(Thing(1, centre=go(80, 120, 310, 120)), Thing(2, centre=(300, 150)))
    assert truth(f, "approaches", 1, 2) is U, "beyond the border it may have gone past"
    f = facts_of(Thing(1, centre=go(200, 120, 40, 120)), rest)
    assert truth(f, "moves_away_from", 1, 2) is T
    assert truth(f, "approaches", 1, 2) is F
    f = facts_of(Thing(1, centre=go(40, 120, 200, 120)), Thing(2, centre=go(100, 120, 260, 120)))
    assert truth(f, "follows", 1, 2) is T
    assert truth(f, "follows", 2, 1) is F
    assert truth(f, "approaches", 1, 2) is not T
    f = facts_of(Thing(1, centre=go(40, 150, 280, 150)), Thing(2, centre=(160, 120)))
    assert truth(f, "passes", 1, 2) is T
    assert truth(f, "passes", 2, 1) is F
    assert truth(f, "follows", 1, 2) is F


def test_hidden_by_the_thing_that_is_where_it_must_be() -> None:
    def behind(t):
        return Absence.OCCLUDED if 10 <= t < 20 else (60 + 200 * t / 29, 120)

    f = facts_of(
        Thing(1, centre=behind, size=(16, 16), depth=6.0),
        Thing(2, centre=(160, 120), size=(110, 100), depth=2.0),
        Thing(3, centre=(160, 30), size=(40, 20), depth=2.0),
        depth_kind=DepthKind.METRIC,
    )
    assert truth(f, "hidden_by", 1, 2) is T
    assert truth(f, "hidden_by", 1, 3) is F
    assert truth(f, "hidden_by", 2, 1) is F
    frames = f.value("hidden_by", (1, 2)).frames
    assert frames[0] == 9
    assert frames[-1] == 20


# --- the interface


def test_misuse_is_refused_with_the_remedy() -> None:
    f = facts_of(Thing(1), Thing(2))
    with pytest.raises(ValueError, match=r"docs/predicates\.md"):
        f.value("leftof", (1, 2))
    with pytest.raises(ValueError, match="takes 2 argument"):
        f.value("left_of", (1,), scope="start")
    with pytest.raises(ValueError, match="one of the scopes"):
        f.value("left_of", (1, 2))
    with pytest.raises(ValueError, match="no scope"):
        f.value("enters", (1,), scope="start")
    with pytest.raises(ValueError, match="takes a value"):
        f.value("category", (1,))
    with pytest.raises(ValueError, match="region takes"):
        f.value("region", (1,), "middle", "start")
    with pytest.raises(KeyError, match="no instance 7"):
        f.value("still", (7,))


def test_a_track_beyond_the_clip_is_refused() -> None:
    twin = make_twin([Thing(4)], frames=5)
    twin.instances[0].track.frame_idx[-1] = 5
    with pytest.raises(ValueError, match=r"instance 4 has frames outside 0\.\.4"):
        Facts(twin, FactSettings())


def test_ids_and_statements_come_from_the_content() -> None:
    f = facts_of(Thing(3, centre=(60, 60)), Thing(5, "dog", centre=(260, 60)))
    fact = f.value("left_of", (3, 5), scope="start")
    assert fact.fact_id == "left_of(3,5)@start"
    assert fact.statement == "#3 is to the left of #5 at the start"
    assert fact.margin > 0
    assert fact.frames
    assert len(fact.frames) <= 8
    assert f.value("category", (5,), "animal").fact_id == "category(5)=animal"


def test_an_empty_twin_and_a_single_frame_work() -> None:
    assert Facts(make_twin([]), FactSettings()).table("left_of", None, "start").truth.shape == (0, 0)
    f = facts_of(Thing(1, centre=(60, 60)), Thing(2, centre=(260, 60)), frames=1)
    assert truth(f, "left_of", 1, 2, scope="throughout") is T
    assert truth(f, "moves_left", 1) is U
    assert truth(f, "enters", 1) is F


# --- what the frame's border hides


def test_what_came_in_behind_something_is_not_said_to_have_been_there_all_along() -> None:
    def centre(t):
        if t < 10:
            return Absence.OUT
        return Absence.OCCLUDED if t < 14 else (160.0, 120.0)

    f = facts_of(Thing(1, centre=centre), Thing(2, centre=(50.0, 50.0)))
    assert truth(f, "enters", 1) is U
    assert truth(f, "enters", 2) is F
    backwards = facts_of(Thing(1, centre=lambda t: centre(29 - t)), Thing(2, centre=(50.0, 50.0)))
    assert truth(backwards, "leaves", 1) is U


def test_a_thing_that_is_cut_at_times_may_be_faster_than_it_looks() -> None:
    # First a sliver of it is seen, whose centre goes half as fast as the thing.
    slides = Thing(1, centre=lambda t: (-45.0 + 3 * t, 120.0), size=(100.0, 30.0))
    walks = Thing(2, centre=lambda t: (60.0 + 2.4 * t, 60.0))
    f = facts_of(slides, walks)
    assert truth(f, "slower", 1, 2) is not T
    assert truth(f, "faster", 2, 1) is not T


def test_a_sliver_that_grows_does_not_rest() -> None:
    # More and more of it is seen as it goes left; its visible centre goes half as far.
    grows = Thing(1, centre=lambda t: (345.0 - t, 120.0), size=(60.0, 30.0))
    f = facts_of(grows, Thing(2, centre=(50.0, 50.0)))
    assert truth(f, "moves_left", 1) is not F
    assert truth(f, "still", 1) is not T


def test_a_thing_that_is_cut_alike_all_along_is_as_good_as_what_is_seen_of_it() -> None:
    rests = Thing(1, centre=(0.0, 120.0), size=(60.0, 30.0))
    f = facts_of(rests, Thing(2, centre=go(100, 100, 200, 100)))
    assert truth(f, "still", 1) is T
    assert truth(f, "approaches", 1, 2) is F


def test_wings_that_beat_and_a_post_that_is_passed_make_nothing_fast() -> None:
    # Both birds go at the same pace. The second one's wings move its centroid on every frame, and a post
    # leaves at first its one side, then its other side to be seen: its path is long, its way is not.
    def behind_a_post(t: int) -> tuple[float, float]:
        x = 60.0 + 2 * t
        return (x + {14: -14.0, 15: -18.0, 16: 18.0, 17: 14.0}.get(t, 0.0), 60.0 + 4 * (t % 3 - 1))

    def width(t: int) -> tuple[float, float]:
        return ({14: 12.0, 15: 4.0, 16: 4.0, 17: 12.0}.get(t, 40.0), 30.0)

    flaps = Thing(2, "bird", centre=behind_a_post, size=width)
    f = facts_of(Thing(1, "bird", centre=go(60, 180, 118, 180)), flaps)
    assert truth(f, "slower", 1, 2) is not T
    assert truth(f, "slowest", 1, value="bird") is not T
    assert truth(f, "slower", 2, 1) is not T
    # What is surely fast is faster than it all the same.
    f = facts_of(Thing(1, "bird", centre=go(20, 180, 300, 180)), flaps)
    assert truth(f, "faster", 1, 2) is T


def test_masks_that_flicker_now_and_then_make_no_contact() -> None:
    # The gap is 8 px; a bad mask closes it on every fifth frame: more than `min_frames` of them altogether.
    flickers = Thing(1, centre=(100.0, 120.0), size=lambda t: (56.0 if t % 5 == 0 else 40.0, 30.0), depth=5.0)
    f = facts_of(
        flickers, Thing(2, centre=(148.0, 120.0), size=(40.0, 30.0), depth=5.0), depth_kind=DepthKind.METRIC
    )
    assert truth(f, "touching", 1, 2, scope="some_time") is U
    meets = Thing(1, centre=lambda t: (104.0 if 10 <= t < 14 else 60.0, 120.0), size=(40.0, 30.0), depth=5.0)
    f = facts_of(
        meets, Thing(2, centre=(144.0, 120.0), size=(40.0, 30.0), depth=5.0), depth_kind=DepthKind.METRIC
    )
    assert truth(f, "touching", 1, 2, scope="some_time") is T


def test_a_size_and_a_depth_that_flicker_come_no_nearer() -> None:
    # From first to last as much growth as is asked for, but from frame to frame it changes by more.
    def flicker(t: int, steady: float) -> float:
        return steady * (0.7, 1.0, 1.3)[t % 3] if 2 < t < 27 else steady

    grows = {"size": lambda t: (20.0 + 0.4 * t, 20.0 + 0.4 * t), "depth": lambda t: 8.0 - 0.1 * t}
    shaky = {
        "size": lambda t: (flicker(t, 20.0 + 0.2 * t),) * 2,
        "depth": lambda t: flicker(t, 8.0 - 0.03 * t),
    }
    f = facts_of(
        Thing(1, centre=(80.0, 80.0), **grows),
        Thing(2, centre=(200.0, 80.0), **shaky),
        depth_kind=DepthKind.METRIC,
    )
    assert truth(f, "moves_towards_camera", 1) is T
    assert truth(f, "moves_towards_camera", 2) is U
