"""What the search hands out is valid, needed to the last hop, and honestly labelled."""

from __future__ import annotations

import itertools

import pytest

from rvt_ray.config.settings import FactSettings, QuerySettings
from rvt_ray.reasoning import Candidate, Constraint, Program, execute, level, search
from rvt_ray.records import Category, Coverage, TrackStatus
from rvt_ray.twin.facts import CATALOGUE, EXTREMES, Facts, Truth, logic
from tests.reasoning.brute import brute_force, drop
from tests.twin.facts.worlds import Thing, make_twin, random_twin

SEEDS = range(6)


@pytest.fixture(scope="module")
def worlds() -> list[tuple[Facts, list[Candidate]]]:
    made = []
    for seed in SEEDS:
        facts = Facts(random_twin(seed, count=7, frames=30), FactSettings())
        made.append((facts, search(facts, QuerySettings(targets_per_clip=4), seed)))
    return made


def test_every_program_means_exactly_its_targets(worlds) -> None:
    for facts, found in worlds:
        assert found
        for candidate in found:
            certain, possible = brute_force(candidate.program, facts)
            if candidate.no_target:
                assert candidate.target_ids == ()
                assert possible == set()
            else:
                assert certain == possible == set(candidate.target_ids)
                assert candidate.target_ids == tuple(sorted(candidate.target_ids))


def test_every_hop_is_needed(worlds) -> None:
    for facts, found in worlds:
        for candidate in found:
            program = candidate.program
            for c in program.constraints:
                if candidate.no_target or (len(c.args) == 1 and c.args[0] != program.target):
                    continue
                certain, possible = brute_force(drop(program, c), facts)
                assert not certain == possible == set(candidate.target_ids), (program, c)


def test_levels_and_categories_are_what_the_constraints_say(worlds) -> None:
    for _, found in worlds:
        for candidate in found:
            relations = [c for c in candidate.program.constraints if len(c.args) == 2]
            scopes = {c.scope for c in candidate.program.constraints}
            kinds = {CATALOGUE[c.predicate].category for c in candidate.program.constraints}
            if {"start", "end"} <= scopes or "while_moving" in scopes:
                kinds.add(Category.TEMPORAL)
            assert set(candidate.categories) == kinds
            if candidate.level <= 3:
                assert len(relations) == candidate.level - 1 or (
                    candidate.level == 3 and len(relations) == 3 and len(kinds) == 1
                )
            else:
                timed = [c for c in relations if CATALOGUE[c.predicate].category is Category.TEMPORAL]
                ordered = len(timed) == 2 or {"start", "end"} <= {c.scope for c in relations}
                assert len(kinds) >= 2
                assert len(relations) >= 3 or (len(relations) == 2 and ordered)


def test_an_anchor_can_be_called_the(worlds) -> None:
    for facts, found in worlds:
        for candidate in found:
            assert set(candidate.anchors) == set(candidate.program.variables) - {"x"}
            for variable, ids in candidate.anchors.items():
                assert len(ids) == 1
                assert brute_force(candidate.program.description(variable), facts)[1] == set(ids)


def test_uncertain_tracks_are_never_targets(worlds) -> None:
    for facts, found in worlds:
        shaky = {i.instance_id for i in facts.twin.instances if i.quality.status is TrackStatus.UNCERTAIN}
        for candidate in found:
            assert not shaky & set(candidate.target_ids)


def test_evidence_is_true_and_complete(worlds) -> None:
    for facts, found in worlds:
        for candidate in found:
            assert candidate.evidence
            ids = {e.fact_id for e in candidate.evidence}
            assert len(ids) == len(candidate.evidence)
            assert all(e.margin >= 0 and len(e.frames) <= 8 and e.statement for e in candidate.evidence)
            if candidate.no_target:
                continue
            in_tree = {f for edge in candidate.tree.edges for f in edge.fact_ids}
            assert ids <= in_tree
            witness = execute(candidate.program, facts).witness
            for c in candidate.program.constraints:
                for target in candidate.target_ids:
                    args = [witness[target][v] for v in c.args]
                    fact = facts.value(c.predicate, args, c.value, c.scope)
                    assert fact.truth is Truth.TRUE
                    assert fact.fact_id in ids


def test_the_same_seed_gives_the_same_and_another_seed_something_else() -> None:
    def run(seed: int) -> list[str]:
        facts = Facts(random_twin(1, count=8, frames=30), FactSettings())
        return [repr(c) for c in search(facts, QuerySettings(), seed)]

    assert run(7) == run(7)
    assert run(7) != run(8)


def test_no_program_comes_twice(worlds) -> None:
    for _, found in worlds:
        texts = [c.program.to_json() for c in found]
        assert len(set(texts)) == len(texts)


def test_every_level_and_groups_and_every_category_are_found(worlds) -> None:
    found = [c for _, candidates in worlds for c in candidates]
    assert {c.level for c in found} == {1, 2, 3, 4}
    assert {k for c in found for k in c.categories} == set(Category)
    assert any(len(c.target_ids) > 1 for c in found)
    assert len({k.predicate for c in found for k in c.program.constraints}) >= 25


def test_no_target_is_never_a_superlative_that_nothing_holds() -> None:
    """ "The leftmost of all the trucks", and nothing is the answer, for there is one truck only."""
    config = QuerySettings(targets_per_clip=6, no_target_share=0.5)
    none = held = 0
    for seed in range(8):
        for c in search(Facts(random_twin(seed, count=7, frames=30), FactSettings()), config, seed):
            best = any(
                k.predicate in EXTREMES and k.args == (c.program.target,) for k in c.program.constraints
            )
            assert not (c.no_target and best), c.program
            none, held = none + c.no_target, held + best
    assert none > 30
    assert held > 5


def test_a_lineage_shares_one_tree_that_grows(worlds) -> None:
    for _, found in worlds:
        trees: dict[str, list[Candidate]] = {}
        for c in found:
            trees.setdefault(c.tree.tree_id, []).append(c)
        for members in trees.values():
            assert len({m.target_ids for m in members}) == 1
            for shallow, deep in itertools.pairwise(members):
                assert deep.level > shallow.level
                edges = {(e.subject, e.predicate, e.object) for e in deep.tree.edges}
                assert {(e.subject, e.predicate, e.object) for e in shallow.tree.edges} < edges
            for c in members:
                names = {n.node for n in c.tree.nodes}
                assert all(
                    e.subject in names and (e.object is None or e.object in names) for e in c.tree.edges
                )
                assert max(e.level for e in c.tree.edges) <= c.level


def test_one_level_down_an_attribute_gives_way_to_a_relation(worlds) -> None:
    """Most levels follow from the one above: some direct attribute is gone, a relation is there instead."""
    follows = total = 0
    for _, found in worlds:
        for shallow, deep in itertools.pairwise(found):
            if shallow.tree.tree_id != deep.tree.tree_id:
                continue
            total += 1

            def split(c: Candidate) -> tuple[set, set]:
                world = dict(c.anchors.items()) | {"x": "target"}
                rows = {
                    (k.predicate, k.value, k.scope, *(world[a] for a in k.args))
                    for k in c.program.constraints
                }
                return {r for r in rows if len(r) == 4}, {r for r in rows if len(r) == 5}

            (attributes, relations), (fewer, more) = split(shallow), split(deep)
            follows += bool(attributes - fewer) and relations < more
    assert follows / total > 0.6, (follows, total)


def test_no_target_queries_come_in_the_wanted_share() -> None:
    config = QuerySettings(targets_per_clip=6, no_target_share=0.1)
    found = [
        c
        for seed in range(4)
        for c in search(Facts(random_twin(seed, count=9, frames=20), FactSettings()), config, seed)
    ]
    share = sum(c.no_target for c in found) / len(found)
    assert 0.05 <= share <= 0.14
    none = search(
        Facts(random_twin(1, count=9, frames=20), FactSettings()), QuerySettings(no_target_share=0), 0
    )
    assert not any(c.no_target for c in none)


def test_a_twin_that_holds_some_things_proves_neither_that_there_is_none_nor_what_is_most_of_all() -> None:
    config = QuerySettings(targets_per_clip=6, no_target_share=0.3)
    superlatives = {Coverage.EVERYTHING: 0, Coverage.SOME: 0}
    for seed in range(4):
        whole = random_twin(seed, count=9, frames=20)
        for coverage in Coverage:
            twin = whole.model_copy(update={"coverage": coverage})
            found = search(Facts(twin, FactSettings()), config, seed)
            assert found
            assert any(c.no_target for c in found) == twin.holds_everything
            used = [k for c in found for k in c.program.constraints if k.predicate in EXTREMES]
            superlatives[coverage] += sum(k.value == "object" for k in used)
    assert superlatives[Coverage.EVERYTHING] > 0
    assert superlatives[Coverage.SOME] == 0


def test_levels_that_are_not_wanted_are_not_given() -> None:
    facts = Facts(random_twin(2, count=8, frames=20), FactSettings())
    found = search(facts, QuerySettings(levels=[1, 2]), 0)
    assert {c.level for c in found} == {1, 2}
    assert {c.level for c in search(facts, QuerySettings(levels=[3]), 0)} == {3}


def test_things_without_a_name_are_still_asked_for() -> None:
    found = []
    for seed in range(4):
        facts = Facts(random_twin(seed, count=6, frames=30, named=False), FactSettings())
        found += search(facts, QuerySettings(), seed)
    assert {c.level for c in found} >= {1, 2, 3}
    used = {k.predicate for c in found for k in c.program.constraints}
    assert not used & {"category", "function"}


@pytest.mark.parametrize("count", [0, 1, 2])
def test_tiny_scenes_give_little_and_no_error(count: int) -> None:
    things = [Thing(1, "dog", "red", (60, 60)), Thing(2, "car", "blue", (260, 180))][:count]
    found = search(Facts(make_twin(things), FactSettings()), QuerySettings(), 0)
    assert all(c.level <= 2 for c in found)
    assert bool(found) == (count == 2), "a single thing needs no description: nothing tells it from others"


def test_level_counts_relations_and_orders_of_events() -> None:
    def program(*relations: Constraint, unary: tuple[Constraint, ...] = ()) -> Program:
        names = tuple(dict.fromkeys(v for c in (*relations, *unary) for v in c.args))
        return Program(target="x", variables=names or ("x",), constraints=(*relations, *unary))

    def rel(name: str, *args: str, scope: str | None = None) -> Constraint:
        return Constraint(predicate=name, args=args, scope=scope)

    red = Constraint(predicate="colour", args=("x",), value="red")
    left = rel("left_of", "x", "a", scope="start")
    right = rel("right_of", "x", "b", scope="end")
    assert level(program(unary=(red,))) == 1
    assert level(program(left, unary=(red,))) == 2
    assert level(program(left, rel("above", "x", "b", scope="start"))) == 3
    assert level(program(left, right)) == 4, "first left of a, at the end right of b: an order of events"
    before, after = rel("appears_before", "x", "a"), rel("appears_after", "x", "b")
    assert level(program(before, after)) == 3, "an order of events, but a single category"
    assert level(program(before, after, unary=(red,))) == 4
    assert (
        level(program(left, rel("above", "a", "b", scope="start"), rel("near", "x", "c", scope="start"))) == 3
    )


def test_speeds_are_compared_only_among_things_that_move() -> None:
    compared = 0
    for seed in range(6):
        facts = Facts(random_twin(seed, count=9, frames=40), FactSettings())
        moving = set(logic.members(facts.bits("moves").certain[0]))
        for candidate in search(facts, QuerySettings(), seed):
            if candidate.no_target:
                continue
            for c in candidate.program.constraints:
                if c.predicate in ("faster", "slower", "fastest", "slowest"):
                    compared += 1
                    named = [i for v in c.args for i in (candidate.anchors.get(v) or candidate.target_ids)]
                    assert {facts.ids.index(i) for i in named} <= moving
    assert compared
