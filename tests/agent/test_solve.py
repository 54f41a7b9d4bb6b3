"""The agent as a whole: plan, execution, revision, last resort, and the answer's form."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from rvt_ray.agent import Agent, Question, Solution
from rvt_ray.agent.plan import Judgement, Plan
from rvt_ray.config.settings import AgentSettings
from rvt_ray.reasoning import Constraint, Program
from rvt_ray.records import PREDICTION_SCHEMA, DigitalTwin, Task
from tests.agent.scenes import Asked, Planner, Scene, ask, planner_for

SEEDS = range(30, 32)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ask(31)


def solve(agent: Agent, question: Question, twin: DigitalTwin) -> Solution:
    return asyncio.run(agent.solve(question, twin))


def is_right(asked: Asked, solution: Solution) -> bool:
    sample = asked.sample
    if sample.task is Task.SEGMENTATION:
        return solution.masks == sample.masks
    if sample.task is Task.GROUNDING:
        return solution.boxes == sample.boxes
    if sample.task is Task.VQA:
        return solution.answer == sample.answer
    return solution.target_ids == sample.target_ids and bool(solution.answer)


def by_model(model: Any, **settings: Any) -> Agent:
    return Agent(AgentSettings(planner="llm", **settings), llm=model)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_right_program_gives_the_right_answer_in_every_task(seed: int) -> None:
    made = ask(seed)
    agent = by_model(planner_for(made))
    view = agent.look(made.twin)
    for asked in made.asked:
        solution = asyncio.run(agent.solve(asked.question, view))
        assert solution.task is asked.sample.task
        assert is_right(asked, solution), (asked.question, solution.trace)
        assert not solution.flagged


def test_rules_alone_answer_template_queries_and_ask_no_model(scene: Scene) -> None:
    planner = planner_for(scene)
    agent = Agent(AgentSettings(planner="auto"), llm=planner)
    for asked in scene.asked:
        assert is_right(asked, solve(agent, asked.question, scene.twin)), asked.question
    assert planner.asked == []


def test_the_same_question_gets_the_same_solution(scene: Scene) -> None:
    for asked in scene.asked[:3]:
        first, second = (solve(Agent(), asked.question, scene.twin) for _ in range(2))
        assert first.model_dump_json() == second.model_dump_json()


def test_a_solution_survives_json_and_fits_the_predictions_table(scene: Scene) -> None:
    rows = []
    for asked in scene.asked:
        solution = solve(Agent(), asked.question, scene.twin)
        assert Solution.model_validate_json(solution.model_dump_json()) == solution
        rows.append(solution.prediction(asked.sample.sample_id))
    table = pa.Table.from_pylist(rows, schema=PREDICTION_SCHEMA)
    assert table.num_rows == len(scene.asked)
    assert set(table.column_names) == set(rows[0])


def nothing_fits(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan for something that both moves left and moves right."""
    facts = [{"fact": f"moves_{way}", "of": "x"} for way in ("left", "right", "up", "down")]
    return {**plan, "facts": facts}


def single(scene: Scene) -> Asked:
    return next(
        a for a in scene.asked if a.sample.task is Task.SEGMENTATION and len(a.sample.target_ids) == 1
    )


def test_an_empty_result_goes_back_with_the_executors_report(scene: Scene) -> None:
    asked = single(scene)

    def spoil(history: list[str], data: Any) -> Any:
        return nothing_fits(data) if history == ["form", "plan"] else data

    planner = Planner({asked.question.query: asked.plan}, spoil)
    solution = solve(by_model(planner), asked.question, scene.twin)
    assert is_right(asked, solution)
    assert not solution.flagged
    assert planner.asked == ["form", "plan", "plan"]
    assert [run.verdict for run in solution.trace.runs] == ["empty", "found"]
    assert solution.trace.chosen == 1
    assert solution.trace.runs[0].report.splitlines()[0] in planner.prompts[-1]
    assert "moves_left(x)" in planner.prompts[-1]


def test_revisions_are_bounded_and_a_plan_that_is_insisted_on_counts(scene: Scene) -> None:
    asked = single(scene)
    calls = []

    def different(history: list[str], data: Any) -> Any:
        calls.append(history[-1])
        if history[-1] != "plan":
            return data
        n = history.count("plan")
        return {**data, "facts": nothing_fits(data)["facts"][: 4 - n % 2]}

    planner = Planner({asked.question.query: asked.plan}, different)
    solve(by_model(planner, max_revisions=3), asked.question, scene.twin)
    assert calls.count("plan") == 4

    def stubborn(history: list[str], data: Any) -> Any:
        return nothing_fits(data) if history[-1] == "plan" else data

    planner = Planner({asked.question.query: asked.plan}, stubborn)
    solution = solve(by_model(planner, max_revisions=5), asked.question, scene.twin)
    assert planner.asked == ["form", "plan", "plan"]
    assert solution.target_ids == []
    assert not solution.flagged


@pytest.mark.parametrize("bad", ["nonsense", {"facts": 7}, {}, None, [], {"form": "masks"}])
def test_a_model_that_talks_nonsense_costs_the_answer_and_nothing_else(scene: Scene, bad: Any) -> None:
    asked = single(scene)
    planner = Planner({asked.question.query: asked.plan}, lambda history, data: bad)
    solution = solve(by_model(planner), asked.question, scene.twin)
    assert [run.verdict for run in solution.trace.runs] == ["invalid"] * 3
    assert solution.flagged
    assert solution.target_ids == []
    assert solution.trace.how == "nothing"
    assert solution.task is Task.SEGMENTATION
    assert solution.masks is not None
    assert len(solution.masks) == scene.twin.num_frames


def test_a_variable_that_hangs_loose_is_told_to_the_model(scene: Scene) -> None:
    asked = single(scene)

    def spoil(history: list[str], data: Any) -> Any:
        if history == ["form", "plan"]:
            return {**data, "facts": [*data["facts"], {"fact": "moves_left", "of": "d"}]}
        return data

    planner = Planner({asked.question.query: asked.plan}, spoil)
    solution = solve(by_model(planner), asked.question, scene.twin)
    assert is_right(asked, solution)
    assert "d: no relation ties it to x" in planner.prompts[-1]


def test_what_no_fact_can_say_is_judged_by_the_model_over_the_sketch(scene: Scene) -> None:
    wanted = scene.twin.instances[1].instance_id
    judgement = Judgement(name="q1", text="what a child would like best")
    program = Program(
        target="x",
        variables=("x",),
        constraints=(Constraint(predicate="attribute", args=("x",), value=judgement.value),),
    )
    plan = Plan(form="masks", program=program, many=False, judged=(judgement,))
    question = Question(query="Outline what a child would like best.")

    def spoil(history: list[str], data: Any) -> Any:
        return {"ids": [wanted]} if history[-1] == "ids" else data

    planner = Planner({question.query: plan}, spoil)
    solution = solve(by_model(planner), question, scene.twin)
    assert solution.target_ids == [wanted]
    assert not solution.flagged
    assert solution.trace.runs[0].judged[0].instance_ids == [wanted]
    assert "what a child would like best" in planner.prompts[-1]
    assert f"#{wanted}: " in planner.prompts[-1]
    assert not any(a.source == "agent" for i in scene.twin.instances for a in i.attributes)


def test_the_model_is_not_asked_for_the_form_where_that_is_switched_off(scene: Scene) -> None:
    asked = single(scene)
    planner = Planner({asked.question.query: asked.plan})
    solution = solve(by_model(planner, llm={"task_choice": False}), asked.question, scene.twin)
    assert planner.asked == ["plan"]
    assert solution.trace.task.by == "rules"


def test_the_last_resort_is_a_direct_choice_that_is_flagged(scene: Scene) -> None:
    asked = single(scene)
    wanted = scene.twin.instances[0].instance_id

    def spoil(history: list[str], data: Any) -> Any:
        return {"ids": [wanted]} if history[-1] == "ids" else "no plan"

    def without_form(history: list[str], data: Any) -> Any:
        return data if history[-1] == "form" else spoil(history, data)

    planner = Planner({asked.question.query: asked.plan}, without_form)
    solution = solve(by_model(planner), asked.question, scene.twin)
    assert (solution.target_ids, solution.flagged) == ([wanted], True)
    assert solution.trace.how == "direct_choice"
    planner = Planner({asked.question.query: asked.plan}, without_form)
    solution = solve(by_model(planner, direct_choice=False), asked.question, scene.twin)
    assert (solution.target_ids, solution.flagged) == ([], True)
    assert "ids" not in planner.asked


def test_a_query_for_something_that_is_not_there_finds_nothing_and_is_no_guess(scene: Scene) -> None:
    absent = next(
        k for k in ("giraffe", "train", "zebra") if k not in {i.category for i in scene.twin.instances}
    )
    solution = solve(Agent(), Question(query=f"Where is the {absent}?"), scene.twin)
    assert solution.task is Task.GROUNDING
    assert (solution.target_ids, solution.flagged) == ([], False)
    assert solution.boxes == [[]] * scene.twin.num_frames


def test_a_query_that_is_half_understood_is_a_flagged_guess(scene: Scene) -> None:
    kind = scene.twin.instances[0].category
    question = Question(query=f"Segment the flabbergasted {kind} whose aunt was a plumber")
    solution = solve(Agent(), question, scene.twin)
    of_kind = [i.instance_id for i in scene.twin.instances if i.category == kind]
    assert solution.target_ids
    assert set(solution.target_ids) <= set(of_kind)
    assert solution.flagged
    assert "flabbergasted" in solution.trace.runs[0].report


def test_of_a_query_that_is_not_understood_at_all_nothing_is_claimed(scene: Scene) -> None:
    solution = solve(Agent(), Question(query="Blimey, wherever did our hero go?"), scene.twin)
    assert (solution.target_ids, solution.flagged, solution.trace.how) == ([], True, "nothing")


def test_a_twin_without_anything_is_answered(scene: Scene) -> None:
    empty = scene.twin.model_copy(update={"instances": []})
    for query in ("Segment the red ball", "How many things are there?", "Describe the ball"):
        solution = solve(Agent(), Question(query=query), empty)
        assert solution.target_ids == []
    assert solve(Agent(), Question(query="How many things are there?"), empty).answer == "0"


def test_a_query_too_long_for_the_rules_goes_to_the_model(scene: Scene) -> None:
    asked = single(scene)
    query = "the purple one that is near " * 600
    planner = Planner({query.strip(): asked.plan})
    solution = solve(Agent(AgentSettings(planner="auto"), llm=planner), Question(query=query), scene.twin)
    assert "plan" in planner.asked
    assert solution.target_ids == asked.sample.target_ids
    alone = solve(Agent(), Question(query=query), scene.twin)
    assert (alone.target_ids, alone.flagged, alone.trace.how) == ([], True, "nothing")
