"""The identity benchmark at a size for every day: the simulated segmenter, and targets on moving boxes."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.identity import Rates, compare, ours
from benchmarks.identity_linkers import FirstMatch, Greedy
from benchmarks.identity_scenes import TrueMasks
from benchmarks.identity_sim import Simulated
from rvt_ray.evaluation.identity import identity_scores
from rvt_ray.masks import rle
from rvt_ray.perception.proposals import Proposal

HEIGHT, WIDTH, FRAMES = 90, 160, 36
FAULTLESS = Rates(drop=0, split=0, merge=0, false=0, jitter=0, forget=10**6)
COLOURS = [(210, 40, 40), (40, 60, 210), (40, 180, 60), (230, 200, 40)]


def boxes(seed: int) -> TrueMasks:
    """Four boxes: two cross, one enters, one passes behind a fifth that stands."""
    rng = np.random.default_rng([seed, 77])
    frames = np.full((FRAMES, HEIGHT, WIDTH, 3), 128, np.uint8)
    tracks: dict[int, dict[int, str]] = {}
    rows, speeds = rng.integers(0, 20, 4), rng.uniform(2.5, 4.0, 4)
    for t in range(FRAMES):
        label = np.zeros((HEIGHT, WIDTH), np.uint8)
        xs = [8 + speeds[0] * t, 130 - speeds[1] * t, -30 + speeds[2] * t, 5 + speeds[3] * t]
        for k in (3, 2, 1, 0):
            x, y = int(xs[k]), 5 + (k >= 2) * 40 + int(rows[k]) // 2
            label[y : y + 24, max(x, 0) : max(x + 18, 0)] = k + 1
        label[42:86, 70:92] = 5
        for i in np.unique(label[label > 0]):
            frames[t][label == i] = COLOURS[i - 1] if i < 5 else (60, 50, 40)
            if (label == i).mean() >= 0.0005:
                tracks.setdefault(int(i), {})[t] = rle.encode(label == i)
    return TrueMasks(f"boxes {seed}", tracks, frames)


@pytest.mark.parametrize("key_every", [None, 4])
def test_without_faults_every_linked_track_is_an_object(key_every: int | None) -> None:
    clip = boxes(0)
    tracks = ours(Simulated(clip, FAULTLESS, 1), key_every)
    got = identity_scores(clip.tracks, tracks, HEIGHT, WIDTH)
    assert got.switches == 0
    assert got.hota > 0.97
    assert len(tracks) == 5


@pytest.mark.parametrize("key_every", [None, 4])
def test_at_most_half_the_switches_and_fragments_of_first_match_linking(key_every: int | None) -> None:
    clips = [boxes(seed) for seed in (1, 2)]
    drops = compare(clips, Rates(drop=0.1, split=0, merge=0, false=0, jitter=0), key_every, seed=5)
    assert drops["ours"].hota >= 0.9
    every = compare(clips, Rates(), key_every, seed=5)
    for totals in (drops, every):
        mine, first = totals["ours"], totals["first match"]
        assert first.switches > 10, "the input is too easy to prove anything"
        assert 2 * mine.switches <= first.switches
        assert 2 * mine.fragmentations <= first.fragmentations
        assert mine.hota > first.hota


def test_the_same_faults_whoever_links() -> None:
    clip = boxes(2)
    first, second = (Simulated(clip, Rates(), 3) for _ in range(2))
    second.proposals(7)  # in another order
    assert [first.proposals(t) for t in range(10)] == [second.proposals(t) for t in range(10)]
    other = Simulated(clip, Rates(), 4)
    assert [first.proposals(t) for t in range(10)] != [other.proposals(t) for t in range(10)]


def test_stated_rates_are_the_rates() -> None:
    clip = boxes(3)
    there = sum(len(t) for t in clip.tracks.values())

    def found(**rates: float) -> int:
        base = {"drop": 0.0, "split": 0.0, "merge": 0.0, "false": 0.0, "jitter": 0.0}
        sim = Simulated(clip, Rates(**{**base, **rates}), 9)  # type: ignore[arg-type]
        return sum(len(sim.proposals(t)) for t in range(FRAMES))

    assert found() == there
    assert found(drop=0.3) / there == pytest.approx(0.7, abs=0.1)
    assert found(split=0.4) / there == pytest.approx(1.4, abs=0.12)
    assert (found(false=2.0) - there) / FRAMES == pytest.approx(2.0, abs=0.6)
    assert found(merge=1.0) < there


def test_what_public_linkers_do_wrong_is_what_these_do() -> None:
    near, box = (np.zeros((HEIGHT, WIDTH), bool) for _ in range(2))
    box[10:40, 10:40] = near[10:40, 14:44] = True
    text, beside = rle.encode(box), rle.encode(near)
    first, greedy = FirstMatch(HEIGHT, WIDTH), Greedy(HEIGHT, WIDTH)
    for linker in (first, greedy):
        assert list(linker.key_frame(0, [Proposal(0, text, 1)], {}).born) == [1]
    both = [Proposal(1, text, 1), Proposal(1, beside, 1)]
    assert first.key_frame(1, both, {}).born == {}, "two detections, one id"
    assert list(greedy.key_frame(1, both, {}).born) == [2]
    assert first.key_frame(2, [], {}).ended == [1], "what is not detected is dropped"
    assert greedy.key_frame(2, [], {}).ended == []


def test_the_ceiling_is_what_jitter_alone_leaves_and_drops_take_little_from_it() -> None:
    clips = [boxes(seed) for seed in (1, 2)]
    exact = compare(clips, Rates(drop=0.1, split=0, merge=0, false=0, jitter=0), 4, seed=5)
    shaken = compare(clips, Rates(drop=0.1, split=0, merge=0, false=0), 4, seed=5)
    assert exact["ceiling"].hota == pytest.approx(1.0)
    assert shaken["ceiling"].hota < 0.97, "this jitter costs nothing"
    assert shaken["ceiling"].switches == 0
    lost_to_linking = exact["ceiling"].hota - exact["ours"].hota
    assert shaken["ours"].hota >= shaken["ceiling"].hota - lost_to_linking - 0.02
