"""What the stock predictor gets wrong and the engine must not; more such tests stand beside parity."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sam2_common import first_masks, moving_pictures
from rvt_ray.masks import rle
from rvt_ray.perception.linking import TrackLinker
from rvt_ray.perception.proposals import Proposal
from rvt_ray.perception.segment.sam2.engine import Propagator
from rvt_ray.perception.segment.sam2.network import Network
from rvt_ray.perception.segment.sam2.passes import Passes, PassSettings
from rvt_ray.video.frames import ArrayFrames

HEIGHT, WIDTH = 72, 96


def test_trap_2_what_was_handed_out_outlives_the_objects(network: Network) -> None:
    """The stock predictor empties the lists of ids that it returned when its state is reset."""
    frames = moving_pictures(2, HEIGHT, WIDTH)
    propagator = Propagator(network, 2)
    given = propagator.prompt(
        network.encode([0], frames[:1])[0], dict(enumerate(first_masks(3, HEIGHT, WIDTH), 1))
    )
    tracked = propagator.step(network.encode([1], frames[1:])[0])
    ids = propagator.ids
    before = tracked.logits.clone()
    propagator.drop([1, 2, 3])
    assert given.ids == tracked.ids == ids == [1, 2, 3]
    assert bool((tracked.logits == before).all())
    assert propagator.ids == []


def test_trap_3_a_correction_long_after_memories_were_forgotten_does_not_crash(network: Network) -> None:
    """`clear_non_cond_mem_around_input` of the stock predictor does."""
    frames = moving_pictures(4, HEIGHT, WIDTH)
    first, second = first_masks(2, HEIGHT, WIDTH)
    propagator = Propagator(network, 40)
    for t in range(40):
        features = network.encode([t], frames[t % 4][None])[0]
        tracked = propagator.step(features)
        assert tracked.ids == ([1] if t else [])
        if t in (0, 25):
            propagator.prompt(features, {1: first if t == 0 else second})
    assert np.isfinite(tracked.logits.numpy()).all()


def test_trap_4_the_confidence_is_handed_on_and_null_where_a_mask_was_given(network: Network) -> None:
    """It is not yielded by the stock predictor, and a constant where a mask was given."""
    frames = ArrayFrames(moving_pictures(9, HEIGHT, WIDTH), np.arange(9) / 25)
    settings = PassSettings(
        frames_per_batch=2,
        objects_per_batch=None,
        window=4,
        lost_frames=3,
        min_fragment_share=0.1,
        max_hole_share=0.02,
    )
    masks = first_masks(2, HEIGHT, WIDTH)
    proposals = {4: [Proposal(4, text, 0.9) for text in rle.encode_batch(np.stack(masks))]}
    passes = Passes(network, frames, settings)
    sights, starts = passes.forward(TrackLinker(HEIGHT, WIDTH, 9), proposals)
    passes.backward(sights, starts)
    assert sights
    for track in sights.values():
        assert track[4].score is None, "a constant was taken for a confidence"
        scores = [sight.score for t, sight in track.items() if t != 4]
        assert all(score is not None and 0 <= score <= 1 for score in scores)
        constant = 1 / (1 + np.exp(-10.0))
        assert not any(score == pytest.approx(constant, abs=1e-7) for score in scores)
        assert len(set(scores)) > 1
