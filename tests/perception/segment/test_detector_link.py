"""Linking of detections: one box, one track; ids live on; names are voted; noise never becomes a track."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.proposals import Proposal, Sight
from rvt_ray.perception.segment.detector.life import LinkRules
from rvt_ray.perception.segment.detector.link import DetectionLinker
from rvt_ray.records import Absence, TrackStatus

H, W, N = 60, 100, 40
LOOKS = list(range(0, N, 4))
RED = np.eye(8, dtype=np.float32)[0]
BLUE = np.eye(8, dtype=np.float32)[5]


RULES = LinkRules(
    birth_score=0.3,
    confirm_score=0.5,
    confirm_looks=3,
    same_iou=0.35,
    known_iou=0.2,
    lost_s=0.5,
    max_objects=10,
)


def linker(**changes: float) -> DetectionLinker:
    return DetectionLinker(np.arange(N) / 20, H, W, LOOKS, replace(RULES, **changes))  # type: ignore[arg-type]


def block(x: int, y: int, w: int = 12, h: int = 20) -> str:
    mask = np.zeros((H, W), np.bool_)
    mask[max(y, 0) : y + h, max(x, 0) : x + w] = True
    return rle.encode(mask)


def seen(
    frame: int, text: str, label: str = "cup", score: float = 0.8, colours: np.ndarray = RED
) -> Proposal:
    return Proposal(frame, text, score, label, colours=colours)


def play(link: DetectionLinker, script: dict[int, list[Proposal]]) -> list[TrackDraft]:
    """Follow with masks that stay where they were found last: the worst that flow can do."""
    tracks: dict[int, dict[int, Sight]] = {}
    carried: dict[int, str] = {}
    for t in LOOKS:
        decision = link.key_frame(t, script.get(t, []), {i: Sight(m, 0.5) for i, m in carried.items()})
        given = {**decision.corrected, **decision.born}
        carried = {i: m for i, m in carried.items() if i not in decision.ended}
        carried |= {i: p.rle for i, p in given.items()}
        for i, proposal in given.items():
            tracks.setdefault(i, {})[t] = Sight(proposal.rle, proposal.score)
    return link.finish(tracks)


def test_a_moving_thing_keeps_its_id_and_its_name() -> None:
    (track,) = play(linker(), {t: [seen(t, block(t, 10))] for t in LOOKS})
    assert (track.instance_id, track.category, track.status) == (1, "cup", None)
    assert track.redetection_rate == 1.0
    assert track.category_score == pytest.approx(0.8)


def test_two_neighbours_are_matched_one_to_one() -> None:
    script = {t: [seen(t, block(20 + t // 4, 10)), seen(t, block(36 + t // 4, 10))] for t in LOOKS}
    tracks = play(linker(), script)
    assert [rle.bbox(d.rle[36], H, W) for d in tracks] == [(29, 10, 12, 20), (45, 10, 12, 20)]


def test_what_is_seen_once_never_becomes_a_track() -> None:
    script = {t: [seen(t, block(t, 10))] for t in LOOKS}
    script[8] = [*script[8], seen(8, block(70, 30), score=0.95)]
    assert len(play(linker(), script)) == 1


def test_what_is_never_sure_never_becomes_a_track() -> None:
    assert play(linker(), {t: [seen(t, block(10, 10), score=0.45)] for t in LOOKS}) == []


def test_a_short_clip_is_not_held_to_more_looks_than_it_has() -> None:
    link = DetectionLinker(np.array([0.0]), H, W, [0], RULES)
    link.key_frame(0, [seen(0, block(10, 10))], {})
    assert len(link.finish({1: {0: Sight(block(10, 10), 0.8)}})) == 1


def test_a_lost_thing_takes_up_its_id_again_and_another_does_not_take_it() -> None:
    script = {t: [seen(t, block(10, 10), "person")] for t in (0, 4, 8)}
    back = {
        t: [seen(t, block(24, 12), "person"), seen(t, block(10, 36), "person", colours=BLUE)]
        for t in (28, 32, 36)
    }
    tracks = play(linker(), script | back)
    assert len(tracks) == 2
    old = next(d for d in tracks if rle.area(d.rle[0]))
    assert rle.bbox(old.rle[32], H, W) == (24, 12, 12, 20)
    assert old.absence[20] is Absence.UNKNOWN


def test_hidden_by_another_thing_is_occluded_and_left_over_the_border_is_out() -> None:
    script = {t: [seen(t, block(40, 10), "dog")] for t in LOOKS}
    for t in (0, 4, 8):
        script[t] = [
            *script[t],
            seen(t, block(44, 14, 8, 12), "cup", colours=BLUE),
            seen(t, block(88, 30), "cat"),
        ]
    by_name = {d.category: d for d in play(linker(), script)}
    assert by_name["cup"].absence[20] is Absence.OCCLUDED
    assert by_name["cat"].absence[20] is Absence.OUT


def test_names_are_voted_and_a_divided_vote_is_uncertain() -> None:
    mostly = {t: [seen(t, block(10, 10), "bottle" if t == 8 else "cup")] for t in LOOKS}
    (track,) = play(linker(), mostly)
    assert track.category == "cup"
    assert 0.6 < track.category_score < 0.8
    third = ("cup", "bottle", "vase")
    divided = {t: [seen(t, block(10, 10), third[k % 3])] for k, t in enumerate(LOOKS)}
    (track,) = play(linker(), divided)
    assert track.status is TrackStatus.UNCERTAIN


def test_the_same_thing_found_twice_is_one_track() -> None:
    """A part under the same name is not born; a twin that slipped in is united with the older."""
    script = {t: [seen(t, block(10, 10, 30, 40)), seen(t, block(12, 12, 10, 10), score=0.6)] for t in LOOKS}
    assert len(play(linker(), script)) == 1


def test_numbers_are_by_first_sight_without_gaps() -> None:
    script = {t: [seen(t, block(60, 30), "dog")] for t in LOOKS}
    script[4] = [*script[4], seen(4, block(5, 5), "cat")]
    for t in LOOKS[3:]:
        script[t] = [*script[t], seen(t, block(30, 10), "cup", colours=BLUE)]
    assert [(d.instance_id, d.category) for d in play(linker(), script)] == [(1, "dog"), (2, "cup")]


def test_no_more_are_followed_than_allowed() -> None:
    script = {t: [seen(t, block(16 * k, 10, 8, 8), score=0.9 - 0.1 * k) for k in range(5)] for t in LOOKS}
    assert len(play(linker(max_objects=2), script)) == 2


def test_a_thing_that_goes_behind_another_ends_where_it_was_found_last() -> None:
    """Carried on for a while, its faded masks would blur when it was hidden."""
    link = linker()
    wall, cup = block(40, 5, 40, 50), block(34, 20)
    decisions = {t: [seen(t, wall, "tv", colours=BLUE)] + ([seen(t, cup)] if t <= 8 else []) for t in LOOKS}
    tracks: dict[int, dict[int, Sight]] = {1: {}, 2: {}}
    for t in LOOKS:
        link.key_frame(
            t, decisions[t], {i: tracks[i][max(tracks[i])] for i in tracks if tracks[i]} if t else {}
        )
        for frame in range(t, min(t + 4, N)):
            tracks[1][frame] = Sight(wall, 0.8)
            if frame <= 16:
                tracks[2][frame] = Sight(cup, 0.8 if frame <= 8 else 0.3)
    hidden = next(d for d in link.finish(tracks) if d.category == "cup")
    assert [t for t in range(N) if rle.area(hidden.rle[t])] == list(range(9))
    assert hidden.absence[12] is Absence.OCCLUDED


def crossing(second: np.ndarray) -> list[TrackDraft]:
    """Two people; for a while one box holds both; then they are apart again, the second one on the left."""
    script: dict[int, list[Proposal]] = {}
    for t in LOOKS:
        if t < 12:
            pair = (block(30, 10), block(50, 10))
        elif t < 20:
            script[t] = [seen(t, block(28, 8, 36, 24), "person", colours=(RED + second) / 2)]
            continue
        else:
            pair = (block(50, 10), block(30, 10))
        script[t] = [seen(t, pair[0], "person"), seen(t, pair[1], "person", colours=second)]
    return play(linker(), script)


def at(tracks: list[TrackDraft], t: int, x: int) -> TrackDraft:
    """The track whose mask starts at column x on a frame."""
    (track,) = [d for d in tracks if (box := rle.bbox(d.rle[t], H, W)) is not None and box[0] == x]
    return track


@pytest.mark.parametrize("second", [BLUE, (RED + BLUE) / 2], ids=["unlike", "half alike"])
def test_two_people_in_one_box_do_not_come_out_of_it_as_each_other(second: np.ndarray) -> None:
    tracks = crossing(second)
    assert at(tracks, 0, 30).instance_id == at(tracks, 36, 50).instance_id
    assert at(tracks, 0, 50).instance_id == at(tracks, 36, 30).instance_id
    assert all((d.score[36] or 0) > 0.5 for d in tracks)


def test_look_alikes_that_come_out_of_one_box_are_not_trusted_from_there_on() -> None:
    """Nobody can say which is which: their masks prove nothing any more."""
    tracks = crossing(RED)
    assert len(tracks) == 2
    for track in tracks:
        assert (track.score[0] or 0) > 0.5
        later = [s for s in track.score[24:] if s is not None]
        assert later
        assert max(later) < 0.5
        assert Absence.OCCLUDED not in track.absence[12:]


def test_a_look_alike_that_turns_up_elsewhere_is_the_missing_one_but_not_for_sure() -> None:
    """Three cups were four: one was moved too fast to be followed, and another one was born."""
    script: dict[int, list[Proposal]] = {}
    for t in LOOKS:
        x = 80 if t < 16 else 4
        script[t] = [seen(t, block(40, 10)), seen(t, block(x, 30))]
    tracks = play(linker(lost_s=0.1), script)
    assert len(tracks) == 2
    moved = at(tracks, 36, 4)
    assert moved is at(tracks, 0, 80)
    assert (moved.score[36] or 0) < 0.5
    assert (at(tracks, 36, 40).score[36] or 0) > 0.5


def test_what_comes_in_over_the_border_is_not_a_missing_look_alike() -> None:
    script = {t: [seen(t, block(50, 10))] for t in LOOKS[:4]}
    script |= {t: [seen(t, block(0, 30))] for t in LOOKS[4:]}
    assert len(play(linker(lost_s=0.1), script)) == 2


def test_neighbours_that_the_detector_overlooks_for_a_moment_are_not_doubted() -> None:
    script = {t: [seen(t, block(20, 10)), seen(t, block(36, 10))] for t in LOOKS}
    script[16] = script[16][:1]
    assert all((d.score[36] or 0) > 0.5 for d in play(linker(), script))
