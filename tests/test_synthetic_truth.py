"""From pixels of rendered scenes to kept queries: every sample's truth is the renderer's own."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from pathlib import Path

import pytest

from rvt_ray.config.settings import GateSettings, GenerateSettings
from rvt_ray.queries import generate
from rvt_ray.records import Sample, Task
from rvt_ray.twin.facts import CATALOGUE, Facts, Truth
from tests.scenes import Seen, perceived, small_scene
from tests.truth.judge import Judge
from tests.truth.plain import Plain

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


@pytest.mark.parametrize("seed", [21])
def test_what_is_so_while_a_thing_moves_is_so_by_its_place_in_the_world(seed: int, tmp_path: Path) -> None:
    """Fact by fact, on scenes long enough to move and to rest in; and with another one's moving it would be
    found out."""
    seen = perceived(small_scene(seed, num_frames=64), tmp_path)
    facts, plain = Facts(seen.twin, SETTINGS.facts), Plain(seen)
    met: Counter[Truth] = Counter()
    exchanged = 0
    for spec in CATALOGUE.values():
        if "while_moving" not in spec.scopes or spec.arity != 2:
            continue
        for i, j in itertools.permutations(facts.ids, 2):
            truth = facts.value(spec.name, (i, j), None, "while_moving").truth
            if truth is Truth.UNKNOWN:
                continue
            met[truth] += 1
            verdict = plain.holds(spec.name, (i, j), None, "while_moving")
            assert verdict in (None, truth is Truth.TRUE), (spec.name, i, j)
            assert spec.inverse is not None
            other = plain.holds(spec.inverse, (j, i), None, "while_moving")
            exchanged += other not in (None, truth is Truth.TRUE)
    assert met[Truth.TRUE] > 5
    assert met[Truth.FALSE] > 50
    assert exchanged > 5
