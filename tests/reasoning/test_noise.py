"""Unknown keeps the truth honest: noisy twins give few wrong truths, two-valued facts give many."""

from __future__ import annotations

from rvt_ray.config.settings import FactSettings, QuerySettings
from rvt_ray.reasoning import search
from rvt_ray.twin.facts import Facts
from tests.reasoning.noise import Noise, TwoValued, disturb, is_wrong
from tests.twin.facts.worlds import random_twin


def test_a_noisy_twin_yields_hardly_a_wrong_truth_and_far_fewer_than_two_valued_facts() -> None:
    counts = {Facts: [0, 0], TwoValued: [0, 0]}
    for seed in range(6):
        clean_twin = random_twin(seed, count=8, frames=30, uncertain=0.0)
        clean = Facts(clean_twin, FactSettings())
        noisy = disturb(clean_twin, Noise(), seed)
        for kind, count in counts.items():
            for candidate in search(kind(noisy, FactSettings()), QuerySettings(), seed):
                count[0] += is_wrong(candidate, clean)
                count[1] += 1
    wrong, total = counts[Facts]
    plain_wrong, plain_total = counts[TwoValued]
    assert total >= 60
    assert wrong / total <= 0.03
    assert plain_wrong / plain_total >= 3 * max(wrong / total, 0.01)
