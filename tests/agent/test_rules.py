"""Queries read without a model: template wording completely, everyday English as far as it goes."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.agent import Agent, Question, TwinView
from rvt_ray.agent.plan import FORM_TASK, Plan
from rvt_ray.agent.report import constraint_text
from rvt_ray.agent.rules import MAX_TOKENS, RulePlanner, form_by_keyword
from rvt_ray.queries.wording.frames import FRAMES
from rvt_ray.reasoning import execute
from rvt_ray.records import Task
from rvt_ray.twin.facts.kinds import is_a
from tests.agent.scenes import ask
from tests.queries.twins import scene_twin

SEEDS = range(30, 32)


@pytest.fixture(scope="module")
def view() -> TwinView:
    return Agent().look(scene_twin(30)[0])


def plan(view: TwinView, query: str, *choices: str) -> Plan:
    return RulePlanner().plan(Question(query=query, choices=choices), view)[0]


def facts(view: TwinView, query: str, *choices: str) -> set[str]:
    found = plan(view, query, *choices)
    assert found.complete, found.note
    return {constraint_text(c) for c in found.program.constraints}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_template_writes_is_read_to_the_last_word(seed: int) -> None:
    scene = ask(seed)
    seen = Agent().look(scene.twin)
    for asked in scene.asked:
        found = RulePlanner().plan(asked.question, seen)[0]
        assert found.complete, (asked.question, found.note)
        assert found.task is asked.sample.task, asked.question
        result = execute(found.program, seen.facts)
        assert sorted(result.certain) == asked.sample.target_ids, asked.question


@pytest.mark.parametrize(
    ("query", "form", "said"),
    [
        ("Segment the red ball", "masks", {"colour(x)=red", "category(x)=ball"}),
        ("the largest object", "masks", {"largest(x)=object@throughout"}),
        ("Where is the ball that moves to the left?", "boxes", {"category(x)=ball", "moves_left(x)"}),
        ("How many red balls are there?", "count", {"colour(x)=red", "category(x)=ball"}),
        ("Is there a red car?", "exists", {"colour(x)=red", "category(x)=car"}),
        ("What colour is the cup?", "attribute", {"category(x)=cup"}),
        (
            "Segment the ball behind the cup at the end.",
            "masks",
            {"category(x)=ball", "behind(x,a)@end", "category(a)=cup"},
        ),
        (
            "Find the ball which is followed by the cup",
            "boxes",
            {"category(x)=ball", "follows(a,x)", "category(a)=cup"},
        ),
        ("Describe what the cup does", "summary", {"category(x)=cup"}),
        ("Please outline the wooden things", "masks", {"attribute(x)=material:wood"}),
        ("How long is the cup visible?", "duration", {"category(x)=cup"}),
        ("Which way does the cup move?", "direction", {"category(x)=cup"}),
        ("Which ball is nearest?", "masks", {"category(x)=ball", "nearest(x)=ball@throughout"}),
        ("the smallest red cup", "masks", {"category(x)=cup", "colour(x)=red", "smallest(x)=cup@throughout"}),
        ("Describe the video.", "summary", set()),
    ],
)
def test_everyday_english_is_understood(view: TwinView, query: str, form: str, said: set[str]) -> None:
    assert plan(view, query).form == form
    assert facts(view, query) == said


def test_a_yes_no_question_asks_of_the_target_and_names_the_other(view: TwinView) -> None:
    found = plan(view, "Take the red ball: does it pass the cup?", "yes", "no")
    assert found.form == "check"
    assert found.asked is not None
    assert constraint_text(found.asked) == "passes(x,other)"
    assert found.other is not None
    assert [constraint_text(c) for c in found.other.constraints] == ["category(x)=cup"]


def test_also_after_a_relative_clause_speaks_of_the_target_again(view: TwinView) -> None:
    query = "Outline the one that follows the ball that touches the cup at some point, and also moves left."
    assert "moves_left(x)" in facts(view, query)
    query = "Outline the one that follows the ball that touches the cup at some point and moves left."
    assert "moves_left(a)" in facts(view, query)


def test_the_same_thing_named_twice_is_one_variable(view: TwinView) -> None:
    query = "Outline the one that is to the left of the cup at the start and behind that same cup at the end"
    found = facts(view, query.replace("and behind", "and is behind"))
    assert found == {"left_of(x,a)@start", "behind(x,a)@end", "category(a)=cup"}


def test_choices_decide_where_the_words_leave_the_form_open(view: TwinView) -> None:
    query = "What is it that moves to the left?"
    assert plan(view, query).form == "masks"
    assert plan(view, query, "ball", "cup", "cone").form == "kind"


def test_a_time_that_is_not_said_is_the_whole_time_and_else_any_time(view: TwinView) -> None:
    plans = RulePlanner().plan(Question(query="Segment the ball left of the cup"), view)
    scopes = {c.scope for p in plans for c in p.program.constraints if c.predicate == "left_of"}
    assert scopes == {"throughout", "some_time"}


@pytest.mark.parametrize(
    "query",
    [
        "Outline the ball that while moving is to the left of the cup",
        "Outline the ball that while in motion is on the left-hand side of the cup",
        "Outline the ball that is to the left of the cup while moving",
        "Outline the ball to the left of the cup while on the move",
        "Outline the ball that is further left than the cup while it is moving",
    ],
)
def test_while_moving_is_read_as_the_moving_of_the_subject(view: TwinView, query: str) -> None:
    assert facts(view, query) == {"category(x)=ball", "left_of(x,a)@while_moving", "category(a)=cup"}


def test_words_that_mean_nothing_to_us_are_reported_and_the_rest_is_used(view: TwinView) -> None:
    found = plan(view, "Segment the discombobulated ball that moves to the left")
    assert not found.complete
    assert "discombobulated" in found.note
    said = {constraint_text(c) for c in found.program.constraints}
    assert said == {"category(x)=ball", "moves_left(x)"}


@pytest.mark.parametrize("query", ["", "?!", "  ", "the the the the", "and also, that that", "é" * 400])
def test_nonsense_gives_an_incomplete_plan_and_no_error(view: TwinView, query: str) -> None:
    assert not plan(view, query).complete


@pytest.mark.parametrize(
    ("query", "choices", "form"),
    [
        ("Hm, how many would you say?", (), "count"),
        ("In your opinion, what colour might it have?", (), "attribute"),
        ("Recount the adventures of our hero", (), "summary"),
        ("Is our hero fine?", ("yes", "no"), "check"),
        ("Our hero", ("a", "b"), "which_of"),
        ("Our hero", (), "masks"),
        ("Locate our hero", (), "boxes"),
    ],
)
def test_the_form_is_told_by_keywords_where_nothing_parses(
    query: str, choices: tuple[str, ...], form: str
) -> None:
    assert form_by_keyword(Question(query=query, choices=choices)) == form


@pytest.mark.parametrize(
    "form", [f for f in FRAMES if FORM_TASK[f.replace("count_ones", "count")] is not Task.VQA]
)
def test_words_that_are_not_understood_do_not_hide_the_task(form: str) -> None:
    words = {
        "np": "the frobnicated one",
        "it": "it",
        "does": "does",
        "is": "is",
        "fares": "fares",
        "they": "it",
    }
    for frame in FRAMES[form]:
        text = frame.lstrip("+-").format_map(defaultdict(lambda: "things", words))
        assert FORM_TASK[form_by_keyword(Question(query=text))] is FORM_TASK[form], text


def test_a_superlative_ranges_over_things_that_are_not_counted() -> None:
    """Plural and singular of "food" are one word; the parser knew only plurals after "of all the"."""
    twin = scene_twin(3)[0]
    assert any(is_a(i.category, "food") for i in twin.instances)
    found = plan(Agent().look(twin), "Outline the one that is the leftmost of all the food at the start.")
    assert found.complete, found.note
    assert any(c.predicate == "leftmost" and c.value == "food" for c in found.program.constraints)


_ROWS = (
    "the purple one that is near ", "a ball near ", "those near ", "the same ball near ", "red ",
    "one that moves left , and also ", "the leftmost ", "those that are near ", "it ", "is there ",
)  # fmt: skip


@pytest.mark.parametrize("words", _ROWS)
@pytest.mark.parametrize("times", [600, 5000])
def test_a_query_of_thousands_of_words_is_not_understood_and_raises_nothing(
    view: TwinView, words: str, times: int
) -> None:
    found = plan(view, words * times)
    assert not found.complete
    assert found.program.constraints == ()
    assert f"the rules read {MAX_TOKENS} at most" in found.note


@pytest.mark.parametrize("start", ["", "Segment ", "Is "])
@pytest.mark.parametrize("words", _ROWS)
def test_the_longest_query_that_is_parsed_fits_the_stack_and_the_names_of_things(
    view: TwinView, words: str, start: str
) -> None:
    """More anchors than there are names, and "near it" where there is no it, were tracebacks."""
    query = " ".join((start + words * MAX_TOKENS).split()[:MAX_TOKENS])
    assert plan(view, query)


def test_the_bound_leaves_room_for_the_longest_that_the_template_writes() -> None:
    longest = max(len(a.question.query.split()) for seed in SEEDS for a in ask(seed).asked)
    assert longest < MAX_TOKENS * 0.75


_WORDS = (
    "the a one ball balls cup that which is are near and also , left of it same those red largest moves "
    "moving in behind at end does can than start throughout all what where how many segment ? ; frob 7"
)
_TOKENS = st.sampled_from(_WORDS.split())


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.lists(_TOKENS, max_size=20)
    | st.lists(_TOKENS, min_size=60, max_size=MAX_TOKENS + 20)
    | st.lists(st.text(max_size=12), max_size=30),
    choices=st.sampled_from([(), ("yes", "no"), ("2", "3")]),
)
def test_no_row_of_words_raises(view: TwinView, tokens: list[str], choices: tuple[str, ...]) -> None:
    assert RulePlanner().plan(Question(query=" ".join(tokens), choices=choices), view)


def test_words_that_are_not_understood_are_named(view: TwinView) -> None:
    found = plan(view, "Segment the frobnicated red zworg")
    assert not found.complete
    assert found.ignored == ("frobnicated", "zworg"), "neither what was understood nor what asks for a mask"
    assert plan(view, "Segment the red ball").ignored == ()
