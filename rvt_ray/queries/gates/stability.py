"""Gate 2: the same answer when the twin is measured a little differently."""

from __future__ import annotations

import numpy as np

from rvt_ray.queries.draft import Draft, Use
from rvt_ray.queries.gates.base import Finding, judge
from rvt_ray.queries.gates.jitter import jittered
from rvt_ray.reasoning import Program, execute
from rvt_ray.twin.facts import Facts, Truth

_READS_MASKS = {"near", "touching"}


class Stability:
    """Jittered twins of one clip, made when first needed and shared by its candidates.

    Args:
        facts: of the twin as it was measured.
        draws: jittered twins per clip.
        seed: of the jitter.
    """

    def __init__(self, facts: Facts, draws: int, seed: int) -> None:
        self._base = facts
        self._twin = facts.twin
        self._settings = facts.settings
        self._draws = draws
        self._seed = seed
        self._facts: dict[bool, list[Facts]] = {}
        self._known: dict[str, list[bool]] = {}

    def check(self, draft: Draft, share: float) -> Finding:
        """Whether certain = possible = targets, and the answer's facts hold, in at least `share` of the
        draws. A true fact of the answer must stay true, a false one false."""
        masks = any(c.predicate in _READS_MASKS for c in draft.candidate.program.constraints)
        masks = masks or any(use.predicate in _READS_MASKS for use in draft.uses)
        same = self._program(draft.candidate.program, frozenset(draft.candidate.target_ids), masks)
        held = [
            ok and all(_holds(facts, use) for use in draft.uses)
            for ok, facts in zip(same, self._jittered(masks), strict=True)
        ]
        text = f"same answer in {sum(held)} of {len(held)} jittered twins"
        return judge([f"{text}; {share:.0%} wanted"] if sum(held) < share * len(held) else [], text)

    def _program(self, program: Program, targets: frozenset[int], masks: bool) -> list[bool]:
        key = f"{masks}{program.to_json()}"
        if key not in self._known:
            runs = [execute(program, facts) for facts in self._jittered(masks)]
            self._known[key] = [r.certain == r.possible == targets for r in runs]
        return self._known[key]

    def _jittered(self, masks: bool) -> list[Facts]:
        if masks not in self._facts:
            grid = self._base.view.gaps.grid if masks else None
            streams = np.random.SeedSequence(self._seed).spawn(self._draws)
            self._facts[masks] = [
                Facts(jittered(self._twin, np.random.default_rng(stream), grid), self._settings)
                for stream in streams
            ]
        return self._facts[masks]


def _holds(facts: Facts, use: Use) -> bool:
    truth = facts.value(use.predicate, use.ids, use.value, use.scope).truth
    return truth is (Truth.TRUE if use.true else Truth.FALSE)
