"""Programs that say where a thing is while it moves itself."""

from __future__ import annotations

from rvt_ray.config.settings import FactSettings, QuerySettings
from rvt_ray.reasoning import Constraint, Program, categories, execute, idle_hops, search
from rvt_ray.records import Category
from rvt_ray.twin.facts import Facts
from tests.reasoning.brute import brute_force
from tests.twin.facts.worlds import Thing, make_twin

TARGET, CUP = 1, 9


def facts(*, crowd: bool) -> Facts:
    """A ball that goes and then rests left of a cup; with a crowd, balls that only rest there too, and one
    that goes and rests on the other side."""
    things = [
        Thing(TARGET, "ball", "red", lambda t: (40.0 + 3 * min(t, 20), 60.0)),
        Thing(CUP, "cup", "red", (180, 120)),
    ]
    if crowd:
        things += [
            Thing(2, "ball", "red", (70, 200)),
            Thing(3, "ball", "red", (40, 140)),
            Thing(4, "ball", "red", lambda t: (230.0 + 3 * min(t, 20), 200.0)),
        ]
    return Facts(make_twin(things, 40), FactSettings())


def while_moving(scope: str = "while_moving") -> Program:
    return Program(
        target="x",
        variables=("x", "a"),
        constraints=(
            Constraint(predicate="left_of", args=("x", "a"), scope=scope),
            Constraint(predicate="category", args=("a",), value="cup"),
        ),
    )


def test_it_tells_the_one_that_moves_there_from_those_that_rest_there() -> None:
    world = facts(crowd=True)
    assert execute(while_moving(), world).is_exactly(frozenset({TARGET}))
    assert execute(while_moving("throughout"), world).certain == {TARGET, 2, 3}
    assert idle_hops(while_moving(), world, frozenset({TARGET})) == []


def test_a_moving_that_nobody_need_watch_is_an_idle_hop() -> None:
    world = facts(crowd=False)
    assert execute(while_moving(), world).is_exactly(frozenset({TARGET}))
    assert idle_hops(while_moving(), world, frozenset({TARGET})) == [while_moving().constraints[0]]


def test_it_is_spatial_and_temporal() -> None:
    assert set(categories(while_moving())) == set(Category)
    assert Category.TEMPORAL not in categories(while_moving("throughout"))


def test_the_search_makes_use_of_it_and_only_where_the_whole_clip_would_not_do() -> None:
    world = facts(crowd=True)
    used = 0
    for seed in range(10):
        for candidate in search(world, QuerySettings(), seed):
            for c in candidate.program.constraints:
                if c.scope != "while_moving" or candidate.no_target:
                    continue
                used += 1
                assert Category.TEMPORAL in candidate.categories
                if candidate.program.target not in c.args and len(c.args) == 1:
                    continue  # an anchor's own attribute: no hop
                whole = c.model_copy(update={"scope": "throughout"})
                constraints = tuple(whole if k == c else k for k in candidate.program.constraints)
                changed = candidate.program.model_copy(update={"constraints": constraints})
                certain, possible = brute_force(changed, world)
                assert not certain == possible == set(candidate.target_ids), candidate.program
    assert used > 5
