"""The `vlm` captioner through the real vLLM engine, on a tiny vision-language model of random weights: what
it says is nonsense, that pictures go in and votes come out is not."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from rvt_ray.perception.base import Captions
from rvt_ray.perception.caption.vlm import VlmCaptioner, VlmOptions
from tests.perception import tiny_vlm
from tests.perception.test_vlm import scene

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vllm is not installed"),
]


@pytest.fixture(scope="module")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VlmCaptioner]:
    folder = tiny_vlm.build(tmp_path_factory.mktemp("tiny-idefics"))
    engine = {
        "model": str(folder),
        "dtype": "float32",
        "max_model_len": 4096,
        "max_num_seqs": 4,
        "kv_cache_gb": 0.1,
        "enforce_eager": True,
        "engine_args": {"limit_mm_per_prompt": {"image": 4}},
    }
    options = {
        "llm": {"backend": "vllm", "options": engine},
        "license": "CC0-1.0",
        "frame_side": 64,
        "crop_side": 64,
        "temperature": 1.0,
        "max_tokens": 1200,
    }
    who = VlmCaptioner(VlmOptions.model_validate(options))
    yield who
    assert who._own_loop is not None
    who._own_loop.run(who.close())


@pytest.fixture(scope="module")
def said(captioner: VlmCaptioner) -> Captions:
    return captioner.caption(*scene(), [])


def test_every_look_is_answered_in_the_asked_form_and_becomes_a_vote(
    captioner: VlmCaptioner, said: Captions
) -> None:
    """Seven prompts of some thousand tokens at once, each with a seed: read in parts they end the engine."""
    assert captioner.name.startswith("vlm:tiny-idefics")
    assert captioner.weights[0].license == "CC0-1.0"
    assert said.scene
    assert [i.instance_id for i in said.instances] == [1, 2]
    for instance in said.instances:
        # Random words never agree, so none of them becomes the name, and what was said is kept.
        assert instance.category is None
        assert all(0 < score.score <= 1 / 3 + 1e-6 for score in instance.alternatives)
    assert any(instance.alternatives for instance in said.instances)


def test_what_it_is_shown_makes_a_difference(captioner: VlmCaptioner, said: Captions) -> None:
    """The pictures reach the network: with the same seeds and words, other pictures give another answer."""
    clip, frames, tracks = scene()
    inverted = type(frames)(255 - frames._frames, frames.pts_s)
    assert captioner.caption(clip, inverted, tracks, []).scene != said.scene
