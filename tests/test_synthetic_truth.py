"""From pixels of rendered scenes to kept queries: every sample's truth is the renderer's own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rvt_ray.config.settings import GateSettings, GenerateSettings
from rvt_ray.queries import generate
from rvt_ray.records import Sample, Task
from tests.scenes import Seen, perceived, small_scene
from tests.truth.judge import Judge

# Fewer draws than by default: gate 2 makes samples fewer, not truer, where nothing was measured wrongly.
SETTINGS = GenerateSettings(gates=GateSettings(stability_draws=4))
SCENES = range(12)


@pytest.fixture(scope="module", params=SCENES)
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Seen, list[Sample]]:
    seen = perceived(small_scene(request.param), tmp_path_factory.mktemp("scene"))
    made = asyncio.run(generate(seen.twin, seen.clip, SETTINGS, None, request.param, "0" * 16))
    return seen, made.samples


def test_every_sample_is_true(asked: tuple[Seen, list[Sample]]) -> None:
    seen, samples = asked
    judge = Judge(seen)
    assert len(samples) >= 8
    assert {s.task for s in samples} >= {Task.SEGMENTATION, Task.GROUNDING, Task.VQA}
    assert {s.sample_id: found for s in samples if (found := judge.complaints(s))} == {}


def test_the_judge_sees_what_is_wrong(tmp_path: Path) -> None:
    seen = perceived(small_scene(3), tmp_path)
    samples = asyncio.run(generate(seen.twin, seen.clip, SETTINGS, None, 0, "0" * 16)).samples
    judge = Judge(seen)
    one = next(s for s in samples if s.masks is not None and len(s.target_ids) == 1)
    other = next(i for i in judge.plain.ids if i not in one.target_ids)
    assert any("targets" in c for c in judge.complaints(one.model_copy(update={"target_ids": [other]})))
    shifted = [*(one.masks or [])[1:], *(one.masks or [])[:1]]
    assert any("masks" in c for c in judge.complaints(one.model_copy(update={"masks": shifted})))
    boxed = next(s for s in samples if s.boxes is not None and s.target_ids)
    assert any("boxes" in c for c in judge.complaints(boxed.model_copy(update={"boxes": [[]] * 32})))
    flipped = 0
    for sample in samples:
        if sample.task is Task.VQA and len(sample.choices) > 1:
            wrong = next(c for c in sample.choices if c != sample.answer)
            flipped += bool(judge.complaints(sample.model_copy(update={"answer": wrong})))
    assert flipped
