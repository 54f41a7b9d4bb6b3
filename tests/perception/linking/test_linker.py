"""The linker: ids that stay, whatever the masks do."""

from __future__ import annotations

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.linking import LinkSettings, TrackLinker
from rvt_ray.perception.linking.ending import Ending
from rvt_ray.perception.proposals import Proposal, Sight
from rvt_ray.records import Absence, TrackStatus

HEIGHT, WIDTH = 60, 100
NOTHING = rle.empty(HEIGHT, WIDTH)


def box(x: int, y: int, w: int, h: int) -> str:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[y : y + h, x : x + w] = True
    return rle.encode(mask)


def proposal(
    frame: int, text: str, score: float = 0.9, label: str | None = None, parent: int | None = None
) -> Proposal:
    return Proposal(frame, text, score, label, parent)


def linker(num_frames: int = 20, **options: object) -> TrackLinker:
    return TrackLinker(HEIGHT, WIDTH, num_frames, LinkSettings(**options))  # type: ignore[arg-type]


def still(text: str, frames: range, score: float = 0.9) -> dict[int, Sight]:
    return {t: Sight(text, score) for t in frames}


def test_trap_8_two_detections_never_share_one_track() -> None:
    links = linker()
    track = box(10, 10, 30, 30)
    assert list(links.key_frame(0, [proposal(0, track)], {}).born) == [1]
    near, far = box(12, 10, 30, 30), box(70, 10, 20, 30)
    decision = links.key_frame(10, [proposal(10, near), proposal(10, far)], {1: Sight(track, 0.9)})
    assert list(decision.born) == [2]
    assert decision.born[2].rle == far


def test_trap_8_a_mask_that_a_track_half_covers_is_not_new() -> None:
    links = linker()
    track = box(10, 10, 60, 40)
    links.key_frame(0, [proposal(0, track)], {})
    inside, beside = box(15, 15, 10, 10), box(66, 10, 10, 40)
    decision = links.key_frame(10, [proposal(10, inside), proposal(10, beside)], {1: Sight(track, 0.9)})
    assert list(decision.born.values()) == [proposal(10, beside)]


def test_trap_8_a_lost_track_that_is_back_takes_up_its_id_and_is_given_its_mask() -> None:
    links = linker()
    first = box(10, 10, 20, 20)
    links.key_frame(0, [proposal(0, first)], {})
    decision = links.key_frame(5, [proposal(5, first)], {1: Sight(NOTHING, 0.1)})
    assert decision.born == {}
    assert list(decision.corrected) == [1], "nobody told the propagator that it is back"
    assert decision.ended == []


def test_trap_8_a_candidate_that_never_shows_again_is_dropped() -> None:
    links = linker()
    real, ghost = box(10, 10, 20, 20), box(60, 10, 20, 20)
    links.key_frame(0, [proposal(0, real), proposal(0, ghost)], {})
    links.key_frame(10, [proposal(10, real)], {1: Sight(real, 0.9), 2: Sight(ghost, 0.9)})
    fading = {**still(ghost, range(3)), **{t: Sight(NOTHING, 0.1) for t in range(3, 20)}}
    drafts = links.finish({1: still(real, range(20)), 2: fading})
    assert [d.instance_id for d in drafts] == [1]
    assert drafts[0].redetection_rate == 1.0


def test_trap_8_a_track_that_stays_but_is_not_found_again_is_kept_and_uncertain() -> None:
    links = linker()
    shy = box(60, 10, 20, 20)
    links.key_frame(0, [proposal(0, shy)], {})
    links.key_frame(10, [], {1: Sight(shy, 0.9)})
    (draft,) = links.finish({1: still(shy, range(20))})
    assert draft.status is TrackStatus.UNCERTAIN
    assert draft.redetection_rate == 0.0


def test_trap_8_two_tracks_of_one_thing_become_the_older() -> None:
    links = linker()
    a, b = box(10, 10, 20, 20), box(60, 10, 20, 20)
    links.key_frame(0, [proposal(0, a)], {})
    links.key_frame(10, [proposal(10, b)], {1: Sight(NOTHING, 0.1)})
    merged = {**still(a, range(5)), **still(b, range(12, 20))}
    (draft,) = links.finish({1: merged, 2: still(b, range(8, 20))})
    assert draft.instance_id == 1
    assert [rle.area(text) > 0 for text in draft.rle] == [True] * 5 + [False] * 3 + [True] * 12


def test_trap_7_parts_know_their_whole_even_after_a_merge() -> None:
    links = linker()
    whole, part = box(10, 10, 40, 40), box(12, 12, 10, 10)
    decision = links.key_frame(0, [proposal(0, whole), proposal(0, part, 0.8, parent=0)], {})
    assert list(decision.born) == [1, 2]
    drafts = links.finish({1: still(whole, range(20)), 2: still(part, range(20))})
    assert {d.instance_id: d.parent_id for d in drafts} == {1: None, 2: 1}


def test_labels_of_a_detector_come_along_and_the_surest_wins() -> None:
    links = linker()
    thing = box(10, 10, 20, 20)
    links.key_frame(0, [proposal(0, thing, 0.5, "cat")], {})
    links.key_frame(10, [proposal(10, thing, 0.8, "dog")], {1: Sight(thing, 0.9)})
    (draft,) = links.finish({1: still(thing, range(20))})
    assert (draft.category, draft.category_score) == ("dog", 0.8)


def test_a_drifted_track_is_corrected_only_when_asked_to() -> None:
    drifted, fresh = box(10, 10, 20, 20), box(12, 10, 20, 20)
    for correct in (False, True):
        links = linker(correct=correct)
        links.key_frame(0, [proposal(0, drifted)], {})
        decision = links.key_frame(10, [proposal(10, fresh)], {1: Sight(drifted, 0.9)})
        assert list(decision.corrected) == ([1] if correct else [])


def test_absence_says_out_at_the_border_and_occluded_behind_another() -> None:
    links = linker()
    mover, edge, cover = box(40, 20, 10, 10), box(0, 40, 8, 10), box(38, 15, 30, 30)
    links.key_frame(0, [proposal(0, t) for t in (mover, edge)], {})
    links.key_frame(10, [proposal(10, cover)], {1: Sight(NOTHING, 0.1), 2: Sight(NOTHING, 0.1)})
    drafts = links.finish(
        {1: still(mover, range(9)), 2: still(edge, range(9)), 3: still(cover, range(10, 20))}
    )
    by_id = {d.instance_id: d for d in drafts}
    assert by_id[1].absence[15] is Absence.OCCLUDED
    assert by_id[1].absence[9] is Absence.UNKNOWN
    assert by_id[2].absence[15] is Absence.OUT
    assert by_id[1].absence[3] is None
    assert by_id[1].score[15] is None


def test_no_more_tracks_than_there_is_room_for_and_the_best_come_first() -> None:
    links = linker(max_objects=2)
    masks = [box(x, 5, 15, 15) for x in (2, 30, 60)]
    decision = links.key_frame(
        0, [proposal(0, t, s) for t, s in zip(masks, (0.5, 0.9, 0.7), strict=True)], {}
    )
    assert [p.score for p in decision.born.values()] == [0.9, 0.7]


def test_trap_9_scenery_is_in_the_twin_but_never_a_target() -> None:
    links = linker()
    wall = box(0, 0, 100, 40)
    links.key_frame(0, [proposal(0, wall)], {})
    (draft,) = links.finish({1: still(wall, range(20))})
    assert draft.status is TrackStatus.UNCERTAIN


def test_what_was_at_the_border_and_is_covered_there_is_neither_surely_out_nor_surely_hidden() -> None:
    """Each reason alone is one; both together are none."""
    at_border, inside, cover = box(0, 20, 10, 10), box(40, 20, 10, 10), box(0, 15, 60, 20)
    for place, covered, why in [
        (at_border, False, Absence.OUT),
        (inside, True, Absence.OCCLUDED),
        (at_border, True, Absence.UNKNOWN),
        (inside, False, Absence.UNKNOWN),
    ]:
        tracks = {1: {0: Sight(place, 0.9)}, 2: {1: Sight(cover, 0.9)} if covered else {}}
        assert Ending(tracks, HEIGHT, WIDTH, 2).absence(1) == [None, why]
