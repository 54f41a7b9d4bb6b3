"""Finds valid programs of every level for the targets of a twin. Seeded: the same twin, settings and seed
give the same candidates in the same order."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

from rvt_ray.config.settings import QuerySettings
from rvt_ray.reasoning.candidate import Candidate
from rvt_ray.reasoning.describe import Describer
from rvt_ray.reasoning.execute import Execution, execute
from rvt_ray.reasoning.levels import categories, idle_hops, level
from rvt_ray.reasoning.lineage import Grower
from rvt_ray.reasoning.near_miss import near_misses
from rvt_ray.reasoning.pool import Pool
from rvt_ray.reasoning.program import Program
from rvt_ray.reasoning.proof import evidence, tree
from rvt_ray.reasoning.shapes import Shape, to_program
from rvt_ray.reasoning.targets import choose_targets
from rvt_ray.twin.facts import Facts
from rvt_ray.twin.facts.logic import members

LINEAGES = 2
MORE_ROUNDS = 4
"""Further trees per target on a twin with too few targets that can be described."""
TRIES = 12


class _Step:
    """A verified program of a lineage."""

    def __init__(self, shape: Shape, program: Program, execution: Execution) -> None:
        self.shape = shape
        self.program = program
        self.execution = execution
        self.level = level(program)


def search(facts: Facts, config: QuerySettings, seed: int) -> list[Candidate]:
    """Candidates for the chosen targets of a twin.

    Args:
        facts: the facts of the twin.
        config: `levels`, `targets_per_clip`, `samples_per_clip` (where targets are few) and
            `no_target_share` are used here.
        seed: of all choices.

    Returns:
        Proven candidates: for each target up to `LINEAGES` reasoning trees (more where targets are few), each
        with at most one program per level; then the no-target ones, of twins that hold everything. No program
        occurs twice. A level that no program reaches is left out, never filled.
    """
    digest = hashlib.sha256(f"{facts.twin.clip_id}|{seed}".encode()).digest()
    rng = random.Random(int.from_bytes(digest[:8], "big"))
    lineages = Lineages(facts, config, rng)
    found: list[Candidate] = []
    described: list[int] = []
    for rows in choose_targets(lineages.pool, config.targets_per_clip, rng):
        if len(described) == config.targets_per_clip:
            break
        grown = [c for _ in range(LINEAGES) for c in lineages.grow(rows)]
        found += grown
        described += [rows] if grown else []
    for _ in range(MORE_ROUNDS if len(described) < config.targets_per_clip else 0):
        if len(found) >= config.samples_per_clip:
            break
        found += [c for rows in described for c in lineages.grow(rows)]
    wanted = round(len(found) * config.no_target_share / (1 - config.no_target_share))
    if found and config.no_target_share > 0:
        wanted = max(wanted, int(rng.random() < len(found) * config.no_target_share))
    if facts.twin.holds_everything:  # that nothing fits, another twin cannot prove
        found += near_misses(found, facts, rng, wanted, lineages.seen)
    return found


class Lineages:
    """Grows reasoning trees for target sets of one twin.

    Attributes:
        pool: the twin's terms.
        seen: canonical text of every program made so far; none is made twice.
    """

    def __init__(self, facts: Facts, config: QuerySettings, rng: random.Random) -> None:
        self.pool = Pool(facts)
        self.seen: set[str] = set()
        self._facts = facts
        self._levels = set(config.levels)
        self._rng = rng
        self._grower = Grower(self.pool, Describer(self.pool, rng), rng)

    def grow(self, rows: int) -> list[Candidate]:
        """One tree of the target set `rows` (bit mask): at most one candidate per level, shallow first,
        each built on the one before."""
        facts = self._facts
        targets = frozenset(facts.ids[r] for r in members(rows))
        chain: list[_Step] = []
        for wanted in range(1, max(self._levels, default=0) + 1):
            step = self._next(wanted, chain, rows, targets)
            if step is not None:
                chain.append(step)
                self.seen.add(step.program.to_json())
                self.pool.note_use(step.shape)
        found = []
        for i, step in enumerate(chain):
            if step.level not in self._levels:
                continue
            history = [(s.level, s.program, s.execution) for s in chain[: i + 1]]
            found.append(
                Candidate(
                    target_ids=tuple(sorted(targets)),
                    program=step.program,
                    level=step.level,
                    categories=categories(step.program),
                    tree=tree(facts.twin.clip_id, targets, history),
                    evidence=evidence(step.program, step.execution, facts),
                    anchors=anchors(step.program, facts),
                )
            )
        return found

    def _next(self, wanted: int, chain: list[_Step], rows: int, targets: frozenset[int]) -> _Step | None:
        for shapes in _options(wanted, chain, rows, self._grower):
            weights = [(_score(shape, self.pool), i) for i, shape in enumerate(shapes)]
            for i in self.pool.pick(weights, self._rng, TRIES):
                step = _verify(shapes[i], targets, self._facts)
                if step is not None and step.level == wanted and step.program.to_json() not in self.seen:
                    return step
        return None


def _options(wanted: int, chain: list[_Step], rows: int, grower: Grower) -> Iterator[list[Shape]]:
    """Descriptions to try for a level, the preferred way of getting them first."""
    if wanted == 1:
        yield grower.direct(rows)
        return
    if chain:
        yield grower.deeper(chain[-1].shape, rows)
    yield grower.afresh(rows, wanted - 1)


def _score(shape: Shape, pool: Pool) -> float:
    """Readiness of a description: its terms', fewer terms and more categories first."""
    terms = list(shape.terms())
    if not terms:
        return 0.0
    kinds = {t.predicate for t in terms}
    score = sum(pool.weight(t) for t in terms) / len(terms)
    return score * (len(kinds) / len(terms)) / (1 + 0.25 * len(shape.unary)) / (1 + 0.05 * len(terms))


def _verify(shape: Shape, targets: frozenset[int], facts: Facts) -> _Step | None:
    """Run the program: exactly the targets, and every hop needed."""
    made = to_program(shape)
    if made is None:
        return None
    program, named = made
    execution = execute(program, facts)
    if not execution.is_exactly(targets) or idle_hops(program, facts, targets):
        return None
    for variable, row in named.items():
        alone = execute(program.description(variable), facts)
        if not alone.is_exactly(frozenset({facts.ids[row]})):
            return None
    return _Step(shape, program, execution)


def anchors(program: Program, facts: Facts) -> dict[str, tuple[int, ...]]:
    """Per anchor variable what its own description can mean: exactly one instance where one may say "the"."""
    return {
        v: tuple(sorted(execute(program.description(v), facts).possible))
        for v in program.variables
        if v != program.target
    }
