"""The executor against brute force, and the laws of the two readings."""

from __future__ import annotations

import functools
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rvt_ray.config.settings import FactSettings
from rvt_ray.reasoning import Constraint, Program, execute
from rvt_ray.records import TrackStatus
from rvt_ray.twin.facts import CATALOGUE, Facts
from tests.reasoning.brute import brute_force
from tests.twin.facts.worlds import Thing, make_twin, random_twin


@functools.cache
def world(seed: int) -> Facts:
    return Facts(random_twin(seed, count=6, frames=20, uncertain=0.25), FactSettings())


@st.composite
def programs(draw, facts: Facts) -> Program:
    names = ("x", "a", "b", "c")[: draw(st.integers(1, 4))]
    pairs = [(names[draw(st.integers(0, i - 1))], names[i]) for i in range(1, len(names))]
    if len(names) > 2 and draw(st.booleans()):
        pairs.append((names[0], names[-1]))
    constraints = []
    for pair in pairs:
        spec = draw(st.sampled_from([s for s in CATALOGUE.values() if s.arity == 2]))
        scope = draw(st.sampled_from(spec.scopes)) if spec.scopes else None
        args = pair if draw(st.booleans()) else pair[::-1]
        constraints.append(Constraint(predicate=spec.name, args=args, scope=scope))
    for _ in range(draw(st.integers(0, 3))):
        spec = draw(st.sampled_from([s for s in CATALOGUE.values() if s.arity == 1]))
        options = facts.values(spec.name) if spec.value else [None]
        if not options:
            continue
        scope = draw(st.sampled_from(spec.scopes)) if spec.scopes else None
        value = draw(st.sampled_from(options))
        args = (draw(st.sampled_from(names)),)
        constraints.append(Constraint(predicate=spec.name, args=args, value=value, scope=scope))
    return Program(target="x", variables=names, constraints=tuple(dict.fromkeys(constraints)))


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_the_executor_equals_brute_force(data) -> None:
    facts = world(data.draw(st.integers(0, 5)))
    program = data.draw(programs(facts))
    result = execute(program, facts, bindings=True)
    certain, possible = brute_force(program, facts)
    assert result.certain == certain
    assert result.possible == possible
    assert result.certain <= result.possible
    for variable in program.variables:
        assert set(result.bindings[variable]) == bindings(program, facts, variable)


def bindings(program: Program, facts: Facts, variable: str) -> set[int]:
    """The same constraints, asked of another variable."""
    return brute_force(program.model_copy(update={"target": variable}), facts)[1]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_leaving_a_constraint_out_never_loses_a_target(data) -> None:
    facts = world(data.draw(st.integers(0, 5)))
    program = data.draw(programs(facts))
    whole = execute(program, facts)
    for constraint in program.constraints:
        less = execute(program.without(constraint), facts)
        assert less.certain >= whole.certain
        assert less.possible >= whole.possible


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equal_programs_have_equal_text_whatever_the_order_of_constraints(data) -> None:
    program = data.draw(programs(world(0)))
    shuffled = data.draw(st.permutations(program.constraints))
    other = program.model_copy(update={"constraints": tuple(shuffled)})
    assert program.to_json() == other.to_json()
    again = Program.from_json(program.to_json())
    assert again.to_json() == program.to_json()
    assert set(again.constraints) == set(program.constraints)


def test_nothing_is_certain_by_standing_twice_but_a_reader_may_take_it_so() -> None:
    twin = make_twin([Thing(1, "dog", centre=(60, 60)), Thing(2, "cat", centre=(90, 60))])
    facts = Facts(twin, FactSettings())
    near = Constraint(predicate="near", args=("x", "a"), scope="start")
    assert execute(Program(target="x", variables=("x", "a"), constraints=(near,)), facts).certain == {1, 2}
    more = Constraint(predicate="near", args=("x", "b"), scope="start")
    two = Program(target="x", variables=("x", "a", "b"), constraints=(near, more))
    found = execute(two, facts)
    assert found.certain == frozenset(), "two anchors need two things"
    assert found.possible == {1, 2}, "near the one that is near: a reader may mean the same thing twice"


def test_an_uncertain_track_is_possible_and_never_certain() -> None:
    twin = make_twin(
        [
            Thing(1, "dog", centre=(60, 60)),
            Thing(2, "dog", centre=(160, 60), status=TrackStatus.UNCERTAIN),
            Thing(3, "cat", centre=(260, 60)),
        ]
    )
    facts = Facts(twin, FactSettings())
    dog = Constraint(predicate="category", args=("x",), value="dog")
    result = execute(Program(target="x", variables=("x",), constraints=(dog,)), facts)
    assert (result.certain, result.possible) == ({1}, {1, 2})
    beside = Constraint(predicate="right_of", args=("x", "a"), scope="start")
    dog_anchor = Constraint(predicate="category", args=("a",), value="dog")
    cat = Constraint(predicate="category", args=("x",), value="cat")
    program = Program(target="x", variables=("x", "a"), constraints=(beside, dog_anchor, cat))
    result = execute(program, facts, bindings=True)
    assert (result.certain, result.possible) == ({3}, {3})
    assert result.bindings["a"] == (1, 2)
    assert result.witness == {3: {"x": 3, "a": 1}}


def test_a_program_without_constraints_means_everything() -> None:
    facts = world(1)
    result = execute(Program(target="x", variables=("x",), constraints=()), facts)
    assert result.possible == set(facts.ids)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variables": ("x", "a", "b")}, "not connected"),
        ({"variables": ("x",)}, "undeclared"),
        ({"variables": ("x", "a", "a")}, "declared twice"),
        ({"target": "y"}, "not among the variables"),
        ({"constraints": (Constraint(predicate="near", args=("x", "x"), scope="start"),)}, "to itself"),
        ({"constraints": (Constraint(predicate="nearby", args=("x", "a")),)}, "no predicate 'nearby'"),
    ],
)
def test_a_malformed_program_is_refused_not_run(change, message) -> None:
    near = Constraint(predicate="near", args=("x", "a"), scope="start")
    good = Program(target="x", variables=("x", "a"), constraints=(near,))
    execute(good, world(0))
    with pytest.raises(ValueError, match=message):
        execute(good.model_copy(update=change), world(0))


def test_text_that_is_no_program_is_refused() -> None:
    with pytest.raises(ValidationError):
        Program.from_json('{"target": "x", "variables": ["x"], "constraints": [], "answer": 3}')


def test_a_description_is_what_hangs_below_a_variable() -> None:
    def c(name, *args):
        return Constraint(predicate=name, args=args, scope="start" if len(args) == 2 else None)

    program = Program(
        target="x",
        variables=("x", "a", "b", "c"),
        constraints=(c("left_of", "x", "a"), c("above", "a", "b"), c("near", "x", "c"), c("still", "b")),
    )
    about = program.description("a")
    assert about.variables == ("a", "b")
    assert {k.predicate for k in about.constraints} == {"above", "still"}
    assert program.description("c").constraints == ()


def test_many_things_and_anchors_stay_quick() -> None:
    facts = Facts(random_twin(0, count=40, frames=10, uncertain=0.1), FactSettings())
    names = ("x", "a", "b", "c", "d")
    relations = [
        Constraint(predicate="left_of", args=pair, scope="start") for pair in itertools.pairwise(names)
    ]
    relations.append(Constraint(predicate="right_of", args=("x", "d"), scope="start"))  # a circle: impossible
    result = execute(Program(target="x", variables=names, constraints=tuple(relations)), facts)
    assert result.certain == frozenset()
