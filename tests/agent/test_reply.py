"""The form in which a model writes plans: bounded, of this twin's words only, and nothing lost on the way."""

from __future__ import annotations

import json

import pytest

from rvt_ray.agent import Agent
from rvt_ray.agent.plan import FORM_TASK
from rvt_ray.agent.reply import ReplyError, plan_schema, read_plan, write_plan
from rvt_ray.agent.sketch import MAX_THINGS, shown_ids, sketch
from rvt_ray.llm.schema import check_schema, violation
from rvt_ray.queries.wording.frames import FRAMES
from rvt_ray.reasoning import execute
from tests.agent.scenes import ask
from tests.queries.twins import scene_twin


def test_every_form_of_question_belongs_to_a_task() -> None:
    assert set(FORM_TASK) == {name.replace("count_ones", "count") for name in FRAMES}


@pytest.mark.parametrize("seed", range(30, 32))
def test_plans_survive_the_reply_form_and_fit_its_schema(seed: int) -> None:
    scene = ask(seed)
    view = Agent().look(scene.twin)
    schema = plan_schema(view)
    check_schema(schema)
    for asked in scene.asked:
        data = json.loads(json.dumps(write_plan(asked.plan)))
        assert violation(data, schema) is None
        back = read_plan(data)
        assert (back.form, back.many, back.attribute) == (asked.form, asked.plan.many, asked.plan.attribute)
        assert execute(back.program, view.facts).certain == execute(asked.plan.program, view.facts).certain
        assert back.asked == asked.plan.asked


def test_trap_13_words_that_the_twin_does_not_have_cannot_be_said() -> None:
    twin, _ = scene_twin(30)
    schema = json.dumps(plan_schema(Agent().look(twin)))
    assert '"giraffe"' not in schema
    assert f'"{twin.instances[0].category}"' in schema


def test_a_fact_that_is_tied_to_nothing_is_refused_by_name() -> None:
    data = {
        "form": "masks", "many": "one", "asked": [], "other": [], "attribute": "none",
        "facts": [{"fact": "moves_left", "of": "x"}, {"fact": "moves_left", "of": "b"}],
    }  # fmt: skip
    with pytest.raises(ReplyError, match="b: no relation ties it to x"):
        read_plan(data)
    with pytest.raises(ReplyError, match="'check' needs the fact"):
        read_plan({**data, "form": "check", "facts": []})


def test_the_sketch_grows_with_things_up_to_a_bound_and_not_with_frames() -> None:
    short, long = scene_twin(30, num_frames=12)[0], scene_twin(30)[0]
    view = Agent().look(long)
    assert len(sketch(view, shown_ids(view)).splitlines()) == 1 + len(long.instances)
    few = Agent().look(short)
    assert len(sketch(view, shown_ids(view))) < 1.5 * len(sketch(few, shown_ids(few)))
    crowd = long.model_copy(
        update={"instances": [long.instances[0].model_copy(update={"instance_id": i + 1}) for i in range(50)]}
    )
    assert len(shown_ids(Agent().look(crowd))) == MAX_THINGS


def test_prompts_show_the_model_every_predicate_and_an_example_that_is_a_plan() -> None:
    from rvt_ray.agent.model import predicates_text
    from rvt_ray.llm.prompting import load_prompt
    from rvt_ray.twin.facts import CATALOGUE

    lines = predicates_text().splitlines()
    assert {line.partition(":")[0] for line in lines} == set(CATALOGUE)
    system = load_prompt("plan", "rvt_ray.agent").system
    start = system.index('{"form"')
    example = json.loads(system[start : system.rindex("}") + 1])
    plan = read_plan(example)
    assert plan.form == "masks"
    assert len(plan.program.constraints) == 3
