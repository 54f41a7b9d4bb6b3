"""Finds valid programs of every level for the targets of a twin. Seeded: the same twin, settings and seed
give the same candidates in the same order."""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Iterator
from dataclasses import replace

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

log = logging.getLogger(__name__)

LINEAGES = 2
TRIES = 12
MAX_LEVEL = 4


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
        config: `levels`, `targets_per_clip` and `no_target_share` are used here.
        seed: of all choices.

    Returns:
        Proven candidates, grouped by target: for each up to `LINEAGES` reasoning trees, each with at most
        one program per level; then the no-target ones. No program occurs twice. A level that no program
        reaches is left out, never filled.
    """
    digest = hashlib.sha256(f"{facts.twin.clip_id}|{seed}".encode()).digest()
    rng = random.Random(int.from_bytes(digest[:8], "big"))
    pool = Pool(facts)
    describer = Describer(pool, rng)
    grower = Grower(pool, describer, rng)
    found: list[Candidate] = []
    seen: set[str] = set()
    for rows in choose_targets(pool, config.targets_per_clip, rng):
        for _ in range(LINEAGES):
            found += _lineage(rows, pool, grower, rng, config, seen)
    wanted = round(len(found) * config.no_target_share / (1 - config.no_target_share))
    if found and config.no_target_share > 0:
        wanted = max(wanted, int(rng.random() < len(found) * config.no_target_share))
    found += near_misses(found, facts, rng, wanted, seen)
    return found


def _lineage(
    rows: int,
    pool: Pool,
    grower: Grower,
    rng: random.Random,
    config: QuerySettings,
    seen: set[str],
) -> list[Candidate]:
    """One reasoning tree of a target set: at most one candidate per level, each built on the one before."""
    facts = pool.facts
    targets = frozenset(facts.ids[r] for r in members(rows))
    chain: list[_Step] = []
    for wanted in range(1, MAX_LEVEL + 1):
        if wanted > max(config.levels, default=0):
            break
        step = _next_step(wanted, chain, rows, targets, pool, grower, rng, seen)
        if step is None:
            continue
        chain.append(step)
        seen.add(step.program.to_json())
        pool.note_use(step.shape)
    out = []
    for i, step in enumerate(chain):
        if step.level not in config.levels:
            continue
        history = [(s.level, s.program, s.execution) for s in chain[: i + 1]]
        out.append(
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
    if out:
        # One id for the whole lineage: that of its shallowest program.
        tree_id = out[0].tree.tree_id
        out = [replace(c, tree=c.tree.model_copy(update={"tree_id": tree_id})) for c in out]
    return out


def _next_step(
    wanted: int,
    chain: list[_Step],
    rows: int,
    targets: frozenset[int],
    pool: Pool,
    grower: Grower,
    rng: random.Random,
    seen: set[str],
) -> _Step | None:
    for shapes in _options(wanted, chain, rows, grower):
        weights = [(_score(shape, pool), i) for i, shape in enumerate(shapes)]
        for i in pool.pick(weights, rng, TRIES):
            step = _verify(shapes[i], targets, pool.facts)
            if step is not None and step.level == wanted and step.program.to_json() not in seen:
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
