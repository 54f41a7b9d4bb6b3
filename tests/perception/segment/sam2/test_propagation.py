"""Propagation gives what sam2's own video predictor gives on the same weights and pixels (float32)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from benchmarks.sam2_common import first_masks, moving_pictures, stock_predictor, stock_state
from rvt_ray.perception.segment.sam2 import checkpoints, memory
from rvt_ray.perception.segment.sam2.engine import Propagator
from rvt_ray.perception.segment.sam2.memory import Attended
from rvt_ray.perception.segment.sam2.network import Network
from tests.perception.segment.sam2.conftest import IMAGE_SIZE

cached_stock_predictor = cache(stock_predictor)  # what it remembers of a clip is in the state

HEIGHT, WIDTH = 90, 140  # unlike the network's size, and not square
Logits = dict[int, dict[int, np.ndarray]]  # frame -> object -> logits at video size


class Ours:
    """The engine behind the few calls that a script of prompts needs."""

    def __init__(self, network: Network, frames: np.ndarray, **options: Any) -> None:
        self.network, self.frames = network, frames
        self.propagator = Propagator(network, len(frames), **options)
        self.logits: Logits = {}
        self.presence: dict[int, dict[int, float]] = {}

    def _keep(self, tracked: Any) -> None:
        large = F.interpolate(tracked.logits[:, None], (HEIGHT, WIDTH), mode="bilinear")[:, 0].numpy()
        self.logits.setdefault(tracked.frame, {}).update(zip(tracked.ids, large, strict=True))
        self.presence.setdefault(tracked.frame, {}).update(
            zip(tracked.ids, tracked.presence.tolist(), strict=True)
        )

    def run(self, order: range, prompts: dict[int, dict[int, np.ndarray]]) -> Logits:
        for frame in order:
            features = self.network.encode([frame], self.frames[frame : frame + 1])[0]
            if self.propagator.ids:
                self._keep(self.propagator.step(features))
            if frame in prompts:
                self._keep(self.propagator.prompt(features, prompts[frame]))
        return self.logits


class Stock:
    """sam2's predictor, driven as its authors mean it to be: prompt, propagate up to the next prompt, ..."""

    def __init__(self, checkpoint: Path, network: Network, frames: np.ndarray, max_cond: int = 4) -> None:
        self.predictor = cached_stock_predictor(checkpoint, "tiny", IMAGE_SIZE, max_cond)
        self.state = stock_state(self.predictor, network.prepare(frames), HEIGHT, WIDTH)
        self.last = len(frames) - 1

    def run(self, prompts: dict[int, dict[int, np.ndarray]], reverse: bool = False) -> Logits:
        logits: Logits = {}
        starts = sorted(prompts)
        for start, stop in zip(starts, [*starts[1:], self.last], strict=True):
            for i, mask in prompts[start].items():
                self.predictor.add_new_mask(self.state, start, i, mask)
            # `max_frame_num_to_track=n` gives n + 1 frames: the next prompted frame is tracked, too.
            span = start if reverse else stop - start
            for frame, ids, masks in self.predictor.propagate_in_video(self.state, start, span, reverse):
                logits.setdefault(frame, {}).update(zip(ids, masks[:, 0].numpy(), strict=True))
        return logits

    def presence(self, frame: int, position: int) -> float:
        out = self.state["output_dict_per_obj"][position]
        found = out["cond_frame_outputs"].get(frame) or out["non_cond_frame_outputs"][frame]
        return float(found["object_score_logits"])


def assert_same(ours: Logits, stock: Logits) -> None:
    assert ours.keys() == stock.keys()
    for frame in stock:
        assert ours[frame].keys() == stock[frame].keys(), f"frame {frame}"
        for i, expected in stock[frame].items():
            got = ours[frame][i]
            a, b = got > 0, expected > 0
            assert 0.01 < b.mean() < 0.99, f"the reference mask of {i} on {frame} is trivial: proves nothing"
            iou = (a & b).sum() / (a | b).sum()
            assert iou >= 0.999, f"object {i} on frame {frame}: IoU {iou:.5f}"
            assert np.abs(got - expected).mean() < 0.01, f"object {i} on frame {frame}: logits differ"


def assert_objects_differ(logits: Logits) -> None:
    """The objects' memories must speak: else one object's masks could stand for another's unnoticed."""
    last = list(logits[max(logits)].values())
    for other in last[1:]:
        assert np.abs(last[0] - other).mean() > 0.03


@pytest.mark.parametrize(("objects", "num_frames"), [(1, 18), (8, 8), (16, 5)])
def test_masks_and_scores_are_those_of_the_stock_predictor(
    objects: int, num_frames: int, checkpoint: Path, network: Network
) -> None:
    frames = moving_pictures(num_frames, HEIGHT, WIDTH)
    prompts = {0: dict(enumerate(first_masks(objects, HEIGHT, WIDTH), 1))}
    stock = Stock(checkpoint, network, frames)
    expected = stock.run(prompts)
    engine = Ours(network, frames)
    ours = engine.run(range(num_frames), prompts)
    assert_same(ours, expected)
    assert_objects_differ(expected)
    for frame in range(num_frames):
        for i in range(objects):
            assert engine.presence[frame][i + 1] == pytest.approx(stock.presence(frame, i), abs=1e-2)
    assert engine.presence[0] == dict.fromkeys(range(1, objects + 1), 10.0)


def test_objects_born_at_later_key_frames_join_the_batch(checkpoint: Path, network: Network) -> None:
    frames = moving_pictures(9, HEIGHT, WIDTH, seed=2)
    masks = first_masks(5, HEIGHT, WIDTH, seed=2)
    prompts = {0: {1: masks[0], 2: masks[1]}, 3: {3: masks[2]}, 5: {4: masks[3], 5: masks[4]}}
    expected = Stock(checkpoint, network, frames).run(prompts)
    assert_same(Ours(network, frames).run(range(9), prompts), expected)
    assert_objects_differ(expected)


def test_trap_1_a_correction_on_a_tracked_frame_is_not_ignored(checkpoint: Path, network: Network) -> None:
    frames = moving_pictures(8, HEIGHT, WIDTH, seed=3)
    masks = first_masks(3, HEIGHT, WIDTH, seed=3)
    prompts = {0: {1: masks[0], 2: masks[1]}, 4: {1: masks[2]}}
    expected = Stock(checkpoint, network, frames).run(prompts)
    ours = Ours(network, frames).run(range(8), prompts)
    assert_same(ours, expected)
    corrected = ours[4][1] > 0
    assert (corrected & masks[2]).sum() / (corrected | masks[2]).sum() > 0.9
    uncorrected = Ours(network, frames).run(range(8), {0: prompts[0]})
    assert np.abs(ours[5][1] - uncorrected[5][1]).mean() > 0.05, "the correction does not outlive its frame"
    assert np.array_equal(ours[5][2], uncorrected[5][2]), "correcting one object changed another"


def test_trap_1_corrections_beyond_the_cap_are_forgotten_as_in_the_stock_predictor(checkpoint: Path) -> None:
    model, _ = checkpoints.load(checkpoint, "tiny", IMAGE_SIZE, 2)
    network = Network(model)
    frames = moving_pictures(9, HEIGHT, WIDTH, seed=4)
    masks = first_masks(5, HEIGHT, WIDTH, seed=4)
    prompts = {0: {1: masks[0], 2: masks[1]}, 1: {1: masks[2]}, 3: {1: masks[3]}, 4: {1: masks[4]}}
    expected = Stock(checkpoint, network, frames, max_cond=2).run(prompts)
    engine = Ours(network, frames)
    assert_same(engine.run(range(9), prompts), expected)


def test_reverse_runs_from_the_birth_to_the_first_frame(checkpoint: Path, network: Network) -> None:
    frames = moving_pictures(7, HEIGHT, WIDTH, seed=5)
    prompts = {6: dict(enumerate(first_masks(3, HEIGHT, WIDTH, seed=5), 1))}
    expected = Stock(checkpoint, network, frames).run(prompts, reverse=True)
    assert sorted(expected) == list(range(7))
    assert_same(Ours(network, frames, reverse=True).run(range(6, -1, -1), prompts), expected)


def test_trap_2_reverse_from_frame_0_is_no_error(network: Network) -> None:
    frames = moving_pictures(1, HEIGHT, WIDTH)
    ours = Ours(network, frames, reverse=True).run(
        range(0, -1, -1), {0: {7: first_masks(1, HEIGHT, WIDTH)[0]}}
    )
    assert list(ours) == [0]
    assert list(ours[0]) == [7]


def test_the_batch_size_does_not_change_the_result(network: Network) -> None:
    frames = moving_pictures(4, HEIGHT, WIDTH, seed=6)
    prompts = {0: dict(enumerate(first_masks(5, HEIGHT, WIDTH, seed=6), 1))}
    assert_same(
        Ours(network, frames, objects_at_once=2).run(range(4), prompts),
        Ours(network, frames, objects_at_once=16).run(range(4), prompts),
    )


def test_trap_3_nested_objects_keep_their_whole_masks(network: Network) -> None:
    """`non_overlap_masks` would cut the inner object out of the outer one."""
    frames = moving_pictures(1, HEIGHT, WIDTH)
    outer, inner = np.zeros((HEIGHT, WIDTH), bool), np.zeros((HEIGHT, WIDTH), bool)
    outer[10:80, 20:120] = True
    inner[30:50, 50:90] = True
    ours = Ours(network, frames).run(range(1), {0: {1: outer, 2: inner}})
    assert ((ours[0][1] > 0) & inner).sum() == inner.sum()


def test_an_object_corrected_on_its_birth_frame_starts_from_the_later_mask(network: Network) -> None:
    frames = moving_pictures(3, HEIGHT, WIDTH, seed=10)
    wrong, right = first_masks(2, HEIGHT, WIDTH, seed=10)
    engine = Ours(network, frames)
    engine.run(range(1), {0: {1: wrong}})
    features = network.encode([0], frames[:1])[0]
    engine.propagator.prompt(features, {1: right})
    corrected = engine.run(range(1, 3), {})
    fresh = Ours(network, frames).run(range(3), {0: {1: right}})
    assert np.array_equal(corrected[2][1], fresh[2][1])


def test_a_dropped_object_leaves_the_others_as_they_were(network: Network) -> None:
    frames = moving_pictures(4, HEIGHT, WIDTH, seed=7)
    prompts = {0: dict(enumerate(first_masks(3, HEIGHT, WIDTH, seed=7), 1))}
    whole = Ours(network, frames).run(range(4), prompts)
    engine = Ours(network, frames)
    engine.run(range(2), prompts)
    engine.propagator.drop([2])
    rest = engine.run(range(2, 4), {})
    assert engine.propagator.ids == [1, 3]
    for i in (1, 3):
        assert np.abs(rest[3][i] - whole[3][i]).mean() < 1e-3


def _without_pointers(one: Attended) -> Attended:
    return replace(one, pointers=one.pointers[:1])


def _misplaced_in_time(one: Attended) -> Attended:
    return replace(one, spatial=[(m, max(0, row - 1)) for m, row in one.spatial])


def _only_the_prompt(one: Attended) -> Attended:
    return replace(one, spatial=one.spatial[:1])


@pytest.mark.parametrize("damage", [_without_pointers, _misplaced_in_time, _only_the_prompt])
def test_the_comparison_notices_a_wrong_memory(
    damage: Callable[[Attended], Attended], network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = moving_pictures(5, HEIGHT, WIDTH, seed=8)
    prompts = {0: dict(enumerate(first_masks(2, HEIGHT, WIDTH, seed=8), 1))}
    right = Ours(network, frames).run(range(5), prompts)
    attended = memory.ObjectMemory.attended
    monkeypatch.setattr(memory.ObjectMemory, "attended", lambda *args: damage(attended(*args)))
    wrong = Ours(network, frames).run(range(5), prompts)
    with pytest.raises(AssertionError, match=r"IoU|logits differ"):
        assert_same(wrong, right)


def test_memory_precision_and_autocast_give_nearly_the_same_masks(checkpoint: Path, network: Network) -> None:
    frames = moving_pictures(4, HEIGHT, WIDTH, seed=9)
    prompts = {0: dict(enumerate(first_masks(2, HEIGHT, WIDTH, seed=9), 1))}
    exact = Ours(network, frames).run(range(4), prompts)
    model, _ = checkpoints.load(checkpoint, "tiny", IMAGE_SIZE, 4)
    half = Ours(Network(model, dtype="bfloat16"), frames).run(range(4), prompts)
    for i in (1, 2):
        a, b = exact[3][i] > 0, half[3][i] > 0
        assert (a & b).sum() / (a | b).sum() > 0.8
    assert half[3][1].dtype == np.float32
    assert torch.isfinite(torch.tensor(half[3][1])).all()
