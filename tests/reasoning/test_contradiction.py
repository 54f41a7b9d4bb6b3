"""No near miss is impossible by its own words, and nothing that can be true is called a contradiction."""

from __future__ import annotations

import pytest

from rvt_ray.config.settings import FactSettings, QuerySettings
from rvt_ray.reasoning import Constraint, Program, search
from rvt_ray.reasoning.contradiction import contradicts_itself
from rvt_ray.twin.facts import Facts
from tests.twin.facts.worlds import random_twin


def said(*constraints: str) -> Program:
    """`left_of(x,a)@start`, `smallest(a)=dog@end`, ..."""
    made = []
    for text in constraints:
        text, _, scope = text.partition("@")
        text, _, value = text.partition("=")
        name, _, args = text.rstrip(")").partition("(")
        made.append(
            Constraint(predicate=name, args=tuple(args.split(",")), value=value or None, scope=scope or None)
        )
    variables = sorted({v for c in made for v in c.args}, reverse=True)
    program = Program(target="x", variables=tuple(variables), constraints=tuple(made))
    program.check()
    return program


@pytest.mark.parametrize(
    "constraints",
    [
        ("smaller(x,a)@start", "smallest(a)=object@start"),
        ("larger(a,x)@start", "smallest(a)=object@throughout"),
        ("left_of(x,a)@end", "leftmost(a)=dog@end", "category(x)=dog"),
        ("right_of(x,a)@start", "leftmost(x)=object@start"),
        ("left_of(x,a)@start", "right_of(x,a)@start"),
        ("left_of(x,a)@throughout", "left_of(a,x)@end"),
        ("inside(x,a)@start", "contains(x,a)@start"),
        ("colour(x)=red", "colour(x)=blue"),
        ("attribute(x)=material:wood", "attribute(x)=material:metal"),
        ("category(x)=dog", "category(x)=cup"),
        ("region(x)=left@start", "region(x)=right half@start"),
        ("region(x)=top@throughout", "region(x)=bottom@end"),
        ("largest(x)=object@start", "smallest(x)=object@start"),
        ("largest(x)=object@start", "left_of(x,a)@start", "largest(a)=object@start"),
        ("still(x)", "moves_left(x)"),
        ("still(x)", "approaches(x,a)"),
        ("still(a)", "slower(x,a)"),
        ("still(x)", "region(x)=left@while_moving"),
        ("left_of(x,a)@while_moving", "still(x)"),
        ("enters(x)", "present_throughout(x)"),
        ("appears_before(x,a)", "present_throughout(a)"),
        ("appears_after(a,x)", "present_throughout(a)"),
        ("appears_before(x,a)", "appears_before(a,x)"),
    ],
    ids=" & ".join,
)
def test_what_no_clip_can_show_is_a_contradiction(constraints: tuple[str, ...]) -> None:
    assert contradicts_itself(said(*constraints))


@pytest.mark.parametrize(
    "constraints",
    [
        ("smaller(x,a)@start", "smallest(a)=dog@start"),
        ("smaller(x,a)@start", "smallest(a)=object@end"),
        ("larger(x,a)@start", "smallest(a)=object@start"),
        ("left_of(x,a)@start", "right_of(x,a)@end"),
        ("left_of(x,a)@start", "right_of(x,b)@start"),
        ("touching(x,a)@some_time", "touching(a,x)@some_time"),
        ("region(x)=left@start", "region(x)=right@end"),
        ("region(x)=left@start", "region(x)=top@start"),
        ("colour(x)=red", "left_of(x,a)@start", "colour(a)=blue"),
        ("attribute(x)=material:wood", "attribute(x)=state:open"),
        ("category(x)=animal", "category(x)=dog"),
        ("category(x)=animal", "category(x)=toy"),
        ("largest(x)=dog@start", "smallest(x)=animal@start"),
        ("starts_moving(x)", "stops_moving(x)"),
        ("enters(x)", "leaves(x)"),
        ("still(a)", "approaches(x,a)"),
        ("still(a)", "left_of(x,a)@while_moving"),
        ("appears_after(x,a)", "present_throughout(a)"),
        ("hidden_by(x,a)", "hidden_by(a,x)"),
    ],
    ids=" & ".join,
)
def test_what_some_clip_can_show_is_none(constraints: tuple[str, ...]) -> None:
    assert not contradicts_itself(said(*constraints))


def test_no_proven_program_is_called_a_contradiction_and_no_near_miss_is_one() -> None:
    """Found programs are true of something: calling one contradictory would be an error of the catalogue."""
    seen = {True: 0, False: 0}
    for seed in range(8):
        facts = Facts(random_twin(seed, count=7, frames=30), FactSettings())
        for candidate in search(facts, QuerySettings(targets_per_clip=5, no_target_share=0.3), seed):
            assert not contradicts_itself(candidate.program), candidate.program
            seen[candidate.no_target] += 1
    assert seen[True] >= 20
    assert seen[False] >= 50
