"""Linking where nothing is propagated: every frame proposes, the linker alone knows who is who."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from rvt_ray.masks import rle
from rvt_ray.perception.linking import LinkSettings, TrackLinker
from rvt_ray.perception.linking.looks import alike, colours
from rvt_ray.perception.proposals import Proposal, Sight

HEIGHT, WIDTH = 80, 160


def rect(x: int, y: int, w: int, h: int) -> np.ndarray:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[max(y, 0) : max(y + h, 0), max(x, 0) : max(x + w, 0)] = True
    return mask


def look(*bins: int) -> np.ndarray:
    """A thing of a few colours."""
    shares = np.zeros(512, np.float32)
    shares[list(bins)] = 1 / len(bins)
    return shares


RED, BLUE = look(10, 11), look(200, 201)


def propose(frame: int, mask: np.ndarray, looks: np.ndarray | None = None, score: float = 0.9) -> Proposal:
    return Proposal(frame, rle.encode(mask), score, colours=looks)


class Run:
    """Feeds frames to a linker and keeps what it says."""

    def __init__(self, **settings: object) -> None:
        self.linker = TrackLinker(HEIGHT, WIDTH, 60, LinkSettings(**settings))  # type: ignore[arg-type]
        self.sights: dict[int, dict[int, Sight]] = {}
        self.frame = -1

    def __call__(self, *things: tuple[np.ndarray, np.ndarray] | np.ndarray) -> list[int | None]:
        """The ids of the things of the next frame."""
        self.frame += 1
        pairs = [thing if isinstance(thing, tuple) else (thing, None) for thing in things]
        proposals = [propose(self.frame, mask, looks) for mask, looks in pairs]
        decision = self.linker.key_frame(self.frame, proposals, {})
        ids = {**decision.found, **decision.born}
        for i, proposal in ids.items():
            self.sights.setdefault(i, {})[self.frame] = Sight(proposal.rle, None)
        return [next((i for i, p in ids.items() if p is proposal), None) for proposal in proposals]

    def drafts(self):  # type: ignore[no-untyped-def]
        return self.linker.finish(self.sights)


def test_two_that_cross_keep_their_ids() -> None:
    run = Run()
    for t in range(40):
        left, right = rect(2 + 3 * t, 20, 20, 30), rect(130 - 3 * t, 22, 20, 30)
        hidden = right & ~left  # the one that goes right is in front
        things = [(left, RED)] + ([(hidden, BLUE)] if hidden.sum() > 40 else [])
        ids = run(*things)
        assert ids[0] == 1
        assert ids[1:] in ([], [2]), f"frame {t}: another id after the crossing"
    assert sorted(run.sights) == [1, 2]


def test_a_fast_one_that_is_missed_for_a_moment_is_found_where_it_must_be_by_now() -> None:
    run = Run()
    for t in range(14):
        mask = rect(5 + 9 * t, 30, 12, 12)
        if t in (5, 6, 7):
            assert run() == []
        else:
            assert run((mask, RED)) == [1]


def test_one_that_comes_out_from_behind_something_is_itself_from_its_first_pixels_on() -> None:
    run = Run()
    wall = rect(70, 10, 40, 60)
    for t in range(30):
        whole = rect(20 + 4 * t, 30, 20, 20)
        seen = whole & ~wall
        things = [(wall, BLUE)] + ([(seen, RED)] if seen.any() else [])
        ids = run(*things)
        assert ids == [1, 2][: len(things)], f"frame {t}"


def test_one_that_slides_into_the_picture_is_one_from_its_first_sliver_on() -> None:
    run = Run()
    for t in range(12):
        mask = rect(-36 + 5 * t, 30, 38, 30)
        if t != 1:  # and is missed just then
            assert run((mask, RED)) == [1], f"frame {t}"
        else:
            run()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda mask: (mask, BLUE), "another colour"),
        (lambda mask: (np.roll(mask, 100, axis=1), RED), "too far away"),
        (lambda mask: (mask | rect(10, 5, 60, 70), RED), "too large"),
        (lambda mask: (mask & rect(20, 30, 5, 5), RED), "too small"),
    ],
)
def test_a_lost_one_is_not_mistaken_for_what_differs(
    spoil: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], why: str
) -> None:
    for right in (True, False):
        run = Run(recent_looks=1)
        thing = rect(20, 30, 20, 20)
        for _ in range(4):
            run((thing, RED))
        for _ in range(3):
            run()
        back = (thing, RED) if right else spoil(thing)
        assert (run(back) == [1]) is right, why


def test_trap_8_a_fragment_of_a_track_is_no_new_track_and_its_mask_is_whole_again() -> None:
    run = Run()
    whole = rect(40, 20, 40, 40)
    for _ in range(4):
        run((whole, RED))
    left, right = whole & rect(0, 0, 60, HEIGHT), whole & rect(62, 0, 90, HEIGHT)
    run((left, RED), (right, RED))
    run((right, RED))
    assert run((whole, RED)) == [1]
    assert sorted(run.sights) == [1]
    assert rle.area(run.sights[1][4].rle) == left.sum() + right.sum(), "the pieces were not joined"


def test_two_in_one_proposal_neither_swap_nor_vanish_nor_become_a_third() -> None:
    run = Run()
    for t in range(30):
        a, b = rect(10 + 2 * t, 20, 20, 30), rect(31 + 2 * t, 20, 20, 30)
        if 10 <= t < 14:
            run((a | b, look(10, 200)))
            for i, mask in ((1, a), (2, b)):
                assert rle.iou(run.sights[i][t].rle, rle.encode(mask), HEIGHT, WIDTH) > 0.7
        else:
            assert run((a, RED), (b, RED)) == [1, 2], f"frame {t}"
    assert sorted(run.sights) == [1, 2]


def test_what_was_two_when_it_was_first_seen_becomes_two() -> None:
    run = Run()
    a, b = rect(20, 20, 20, 30), rect(41, 20, 20, 30)
    run(a | b)
    for _ in range(6):
        run((a, RED), (b, BLUE))
    drafts = run.drafts()
    assert [d.instance_id for d in drafts] == [2, 3], "the lump was kept, or its halves were not"


def test_what_was_in_pieces_when_it_was_first_seen_becomes_one() -> None:
    run = Run()
    whole = rect(20, 20, 40, 30)
    run(whole & rect(0, 0, 39, HEIGHT), whole & rect(41, 0, 90, HEIGHT))
    for _ in range(6):
        run(whole)
    (draft,) = run.drafts()
    assert draft.instance_id in (1, 2)
    assert rle.area(draft.rle[5]) == whole.sum()


def test_one_that_falls_apart_for_good_is_two() -> None:
    run = Run()
    for _ in range(5):
        run((rect(40, 20, 40, 40), RED))
    ids = []
    for t in range(8):
        ids = run((rect(40 - t, 20, 25, 40), RED), (rect(66 + t, 20, 14, 40), RED))
    assert ids == [1, 2]


def test_trap_8_a_mask_that_is_seen_once_never_becomes_a_track() -> None:
    run = Run()
    thing, ghost = rect(20, 20, 20, 20), rect(100, 30, 20, 20)
    run((thing, RED))
    run((thing, RED), (ghost, BLUE))
    for _ in range(6):
        run((thing, RED))
    assert [d.instance_id for d in run.drafts()] == [1]
    # Its place is free, its id is not.
    assert run((thing, RED), (ghost, BLUE)) == [1, 3]


def test_short_gaps_are_bridged_but_not_behind_something_nor_long_ones() -> None:
    run = Run(bridge=3)
    cover = rect(100, 10, 50, 60)
    for t in range(24):
        a, b = rect(2 + 4 * t, 10, 14, 14), rect(110, 30, 20, 20)
        things = [] if t in (4, 5) or 10 <= t < 15 else [(a, RED)]
        things.append((cover, BLUE) if t in (8, 9) else (b, BLUE))
        run(*things)
    drafts = {d.instance_id: d for d in run.drafts()}
    first = drafts[1]
    for t in (4, 5):
        assert rle.iou(first.rle[t], rle.encode(rect(2 + 4 * t, 10, 14, 14)), HEIGHT, WIDTH) > 0.8
        assert first.score[t] == 0.5, "nobody saw it: its score must say so"
    assert all(rle.area(first.rle[t]) == 0 for t in range(10, 15)), "a long gap was made up"
    run = Run()
    for t in range(8):
        run(*([] if t == 4 else [(rect(20, 20, 20, 20), RED)]))
    assert rle.area(run.drafts()[0].rle[4]) == 0, "nobody asked for it"


def test_trap_5_what_is_remembered_of_a_track_does_not_grow_with_the_clip() -> None:
    linker = TrackLinker(HEIGHT, WIDTH, 1000)
    sizes = []
    for t in range(400):
        x = 10 + abs(t % 80 - 40)
        linker.key_frame(t, [propose(t, rect(x, 20, 20, 20), RED), propose(t, rect(x, 50, 20, 20), BLUE)], {})
        sizes.append(len(pickle.dumps(linker)))
    assert len(linker._memories) == 2
    assert max(sizes[100:]) <= 1.05 * max(sizes[:100])


def test_colours_of_a_mask_tell_things_apart_and_a_part_from_a_stranger() -> None:
    frame = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    frame[:, :80] = (200, 30, 30)
    frame[:, 80:120] = (30, 30, 200)
    frame[:, 120:] = (30, 160, 40)
    red, blue, both = colours(frame, [rect(0, 0, 80, 40), rect(80, 0, 40, 40), rect(60, 0, 60, 40)])
    assert red.shape == (512,)
    assert float(red.sum()) == pytest.approx(1, abs=1e-4)
    assert alike(red, red) == pytest.approx(1, abs=1e-4)
    assert alike(red, blue) < 0.1
    assert 0.25 < alike(both, red) < 0.5
    assert alike(both, red, slack=4) > 0.9, "a part of a thing has its colours"
    green = colours(frame, [rect(120, 0, 40, 40)])[0]
    assert alike(both, green, slack=4) < 0.1
    assert alike(None, red) is None
