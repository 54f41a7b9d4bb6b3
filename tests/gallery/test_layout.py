"""Time line and graph: what the pictures claim."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvt_ray.gallery.graph import graph
from rvt_ray.gallery.palette import hex_colour
from rvt_ray.gallery.timeline import State, events_of, runs_of
from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.records import Tree

EMPTY_TREE = Tree(tree_id="t", nodes=[], edges=[])


@given(st.lists(st.sampled_from(list(State)), min_size=1, max_size=40))
def test_runs_cover_every_frame_once_and_neighbours_differ(sequence):
    runs = runs_of(sequence)
    assert [s for s, a, b in runs for _ in range(a, b + 1)] == sequence
    assert all(x[0] is not y[0] for x, y in itertools.pairwise(runs))


def test_a_gap_without_annotation_is_no_event():
    gap = [State.VISIBLE] * 3 + [State.NOT_ANNOTATED] * 2 + [State.VISIBLE] * 3
    assert events_of(runs_of(gap)) == []


def test_events_name_appearing_hiding_and_leaving():
    line = [State.OUT, State.VISIBLE, State.OCCLUDED, State.VISIBLE, State.OUT]
    assert events_of(runs_of(line)) == [("appears", 1), ("hidden", 2), ("reappears", 3), ("leaves", 4)]


@st.composite
def programs(draw):
    names = [f"v{i}" for i in range(draw(st.integers(1, 6)))]
    constraints = [
        Constraint(predicate=draw(st.text("abc_", min_size=1, max_size=40)), args=(names[i], names[j]))
        for i in range(1, len(names))
        for j in [draw(st.integers(0, i - 1))]
    ]
    constraints += [
        Constraint(predicate="colour", args=(draw(st.sampled_from(names)),), value=draw(st.text(max_size=60)))
        for _ in range(draw(st.integers(0, 6)))
    ]
    return Program(target=names[0], variables=tuple(names), constraints=tuple(constraints))


@given(programs())
def test_no_box_of_a_graph_covers_another_and_all_are_inside(program):
    picture = graph(program, EMPTY_TREE, [1])
    assert {n.name for n in picture.nodes} == set(program.variables)
    for n in picture.nodes:
        assert n.x >= 0
        assert n.x + n.width <= picture.width + 1e-6
        assert n.y + n.height <= picture.height
    for a, b in itertools.combinations(picture.nodes, 2):
        assert a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
    assert sum(len(e.labels) for e in picture.edges) == sum(len(c.args) == 2 for c in program.constraints)


def test_the_target_stands_on_top():
    program = Program(
        target="x",
        variables=("a", "x"),
        constraints=(Constraint(predicate="near", args=("a", "x")),),
    )
    nodes = {n.name: n for n in graph(program, EMPTY_TREE, [4]).nodes}
    assert nodes["x"].is_target
    assert nodes["x"].y < nodes["a"].y
    assert "#4" in nodes["x"].heading


@pytest.mark.parametrize("count", [8, 60])
def test_colours_of_different_instances_differ(count):
    assert len({hex_colour(i) for i in range(1, count + 1)}) == count
