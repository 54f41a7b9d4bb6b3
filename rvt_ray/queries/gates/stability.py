"""Gate 2: the same answer when the twin is measured a little differently."""

from __future__ import annotations

import numpy as np

from rvt_ray.queries.draft import Draft, Use
from rvt_ray.queries.gates.base import Finding, passed, refused
from rvt_ray.queries.gates.jitter import jittered
from rvt_ray.reasoning import execute
from rvt_ray.twin.facts import Facts, Truth


class Stability:
    """Jittered twins of one clip, made when first needed and shared by its candidates.

    Args:
        facts: of the twin as it was measured.
        draws: jittered twins per clip.
        seed: of the jitter.
    """

    def __init__(self, facts: Facts, draws: int, seed: int) -> None:
        self._base = facts
        self._streams = np.random.SeedSequence(seed).spawn(draws)
        self._facts: dict[int, Facts] = {}
        self._known: dict[tuple[str, int], bool] = {}

    def check(self, draft: Draft, share: float) -> Finding:
        """Whether certain = possible = targets, and the answer's facts hold, in at least `share` of the
        draws. A true fact of the answer must stay true, a false one false. Stops when that is settled."""
        draws = len(self._streams)
        same = 0
        for k in range(draws):
            same += self._holds(draft, k)
            if same >= share * draws:
                return passed(f"same answer in {same} of the first {k + 1} of {draws} jittered twins")
            if same + draws - (k + 1) < share * draws:
                text = f"same answer in only {same} of the first {k + 1} of {draws} jittered twins"
                return refused(f"{text}; {share:.0%} of all wanted")
        return passed("no jittered twins wanted")

    def _holds(self, draft: Draft, k: int) -> bool:
        candidate, facts = draft.candidate, self._draw(k)
        key = (f"{candidate.target_ids}{candidate.program.to_json()}", k)
        if key not in self._known:
            found = execute(candidate.program, facts)
            self._known[key] = found.certain == found.possible == frozenset(candidate.target_ids)
        return self._known[key] and all(_is_so(facts, use) for use in draft.uses)

    def _draw(self, k: int) -> Facts:
        if k not in self._facts:
            made = jittered(self._base.twin, np.random.default_rng(self._streams[k]))
            self._facts[k] = Facts(made.twin, self._base.settings, made.segments, like=self._base)
        return self._facts[k]


def _is_so(facts: Facts, use: Use) -> bool:
    rows = tuple(facts.ids.index(i) for i in use.ids)
    truth = facts.table(use.predicate, use.value, use.scope).truth[rows]
    return int(truth) == (Truth.TRUE if use.true else Truth.FALSE)
