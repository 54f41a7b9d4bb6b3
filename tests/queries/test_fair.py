"""The text of a question does not tell its answer: not by what is usual, nor by what the choices are."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from rvt_ray.config.settings import FactSettings, QuerySettings
from rvt_ray.queries.draft import Draft
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.lexicon import load_lexicon
from rvt_ray.queries.tasks import Chooser, fitting
from rvt_ray.queries.tasks.closed import DIRECTIONS
from rvt_ray.queries.tasks.fair import even_odds, holders, pick_telling
from rvt_ray.queries.tasks.vqa import _durations, visible_seconds
from rvt_ray.reasoning import Candidate, Program, search
from rvt_ray.records import Task, Tree
from rvt_ray.twin.facts import CATALOGUE, EXTREMES, Facts
from tests.queries.twins import scene_twin


@pytest.fixture(scope="module")
def asked() -> list[tuple[Knowledge, Draft]]:
    found = []
    for seed in (1, 2, 3):
        know = Knowledge(Facts(scene_twin(seed)[0], FactSettings()), load_lexicon())
        for k, candidate in enumerate(search(know.facts, QuerySettings(), 0)):
            for draw in range(3):
                drafts = fitting(know, candidate, [Task.VQA], random.Random(7 * k + draw))
                found += [(know, d) for d in drafts]
    return found


def of_form(asked: list[tuple[Knowledge, Draft]], *forms: str) -> list[tuple[Knowledge, Draft]]:
    return [(know, d) for know, d in asked if d.form in forms]


def test_a_common_answer_is_asked_for_no_more_often_than_a_rare_one() -> None:
    """Six of eight things are of rubber: who says rubber would be right three times in four."""
    things = ["rubber"] * 6 + ["metal", "wood"]
    have, rng = holders([{t} for t in things]), random.Random(0)
    kept = Counter(
        t
        for _ in range(1000)
        for t in things
        if even_odds(have, t, ["wood", "rubber", "metal", "glass"], rng)
    )
    assert set(kept) == {"rubber", "metal", "wood"}
    assert max(kept.values()) < 1.15 * min(kept.values()), kept


def test_what_is_the_same_for_all_things_is_hardly_ever_asked() -> None:
    rng = random.Random(0)
    options = [("nothing leaves", 8, 0), ("one enters", 7, 1), ("half are still", 4, 4)]
    picked = Counter(pick_telling(options, rng) for _ in range(1000))
    assert picked["half are still"] > 3 * picked["one enters"] > 3 * picked["nothing leaves"] > 0
    assert pick_telling([], rng) is None


def test_every_wrong_choice_is_true_of_some_other_thing_of_the_clip(
    asked: list[tuple[Knowledge, Draft]],
) -> None:
    """A kind or colour that nothing here has is never right, and whoever knows the corpus leaves it out."""
    checked = 0
    for know, draft in of_form(asked, "attribute", "material", "kind", "direction"):
        (target,) = draft.candidate.target_ids
        right = next(use for use in draft.uses if use.true)
        for use in draft.uses:
            elsewhere = any(
                know.is_true(use.predicate, i, value=use.value) for i in know.instances if i != target
            )
            opposite = use.predicate in DIRECTIONS and use.predicate == CATALOGUE[right.predicate].opposite
            assert use.true or elsewhere or opposite, (draft.choices, use)
            checked += 1
    assert checked > 60


def test_no_choice_is_ruled_out_by_the_query_that_speaks_of_it(asked: list[tuple[Knowledge, Draft]]) -> None:
    """ "Left of the red ball: which one is it, the red ball or ...?" """
    for _, draft in of_form(asked, "attribute", "material", "kind"):
        said = {w for c in draft.candidate.program.constraints if c.value for w in c.value.lower().split(":")}
        assert not said & set(draft.choices), draft
    which = of_form(asked, "which_of")
    assert which
    for know, draft in which:
        anchors = {i for bound in draft.candidate.anchors.values() for i in bound}
        assert not {know.name(i) for i in anchors} & set(draft.choices), draft


def test_nobody_is_asked_whether_or_how_often_there_is_a_leftmost(
    asked: list[tuple[Knowledge, Draft]],
) -> None:
    best = {
        id(d): any(c.predicate in EXTREMES and c.args == ("x",) for c in d.candidate.program.constraints)
        for _, d in asked
    }
    assert any(best.values())
    assert of_form(asked, "exists")
    assert of_form(asked, "count")
    assert not any(best[id(d)] for _, d in of_form(asked, "exists", "count"))


@pytest.mark.parametrize("form", ["count", "which_of", "attribute"])
def test_the_answer_stands_anywhere_among_the_choices(
    form: str, asked: list[tuple[Knowledge, Draft]]
) -> None:
    places = Counter(d.choices.index(d.answer or "") for _, d in of_form(asked, form) if len(d.choices) == 4)
    assert len(places) == 4
    assert max(places.values()) <= 0.45 * sum(places.values()), places


def test_a_duration_is_asked_only_where_the_clips_length_is_not_the_answer() -> None:
    know = Knowledge(Facts(scene_twin(2, 6, 96)[0], FactSettings()), load_lexicon())
    whole = know.twin.pts_s[-1] - know.twin.pts_s[0]
    durations = 0
    for k, candidate in enumerate(search(know.facts, QuerySettings(), 0)):
        for draft in fitting(know, candidate, [Task.VQA], random.Random(k)):
            if draft.form != "duration":
                continue
            durations += 1
            assert visible_seconds(know, candidate.target_ids[0]) <= whole / 1.6
            seconds = sorted(float(c.split()[1]) for c in draft.choices)
            assert seconds[-1] <= whole / 1.6, "never right"
            assert len(seconds) >= 3
            assert all(b / a >= 1.45 for a, b in itertools.pairwise(seconds))
    assert durations


def test_each_duration_among_the_choices_is_right_equally_often() -> None:
    """Wrong ones made from the right one by a factor: "2 seconds" was never wrong."""
    rng = random.Random(0)
    right, shown = Counter[float](), Counter[float]()
    for answer in (n / 2 for n in range(2, 17)):
        for _ in range(200):
            choices = _durations(answer, 8.0, rng)
            assert answer in choices
            if len(choices) == 4:
                right[answer] += 1
                shown.update(choices)
    assert len(right) >= 9
    assert all(0.18 < right[v] / shown[v] < 0.32 for v in right), (right, shown)


def checks(*answers: str) -> list[Draft]:
    program = Program(target="x", variables=("x",), constraints=())
    candidate = Candidate((1,), program, 1, (), Tree(tree_id="t", nodes=[], edges=[]), ())
    return [Draft(candidate, Task.VQA, "check", answer=a, choices=("yes", "no")) for a in answers]


def test_yes_and_no_take_turns_even_where_gates_refuse_one_of_them_more_often() -> None:
    """Asked at random, and every second yes refused, two of three answers were no."""
    kept: Counter[str] = Counter()
    for seed in range(40):
        chooser = Chooser([], 8, 0.0, random.Random(seed))
        refuse = random.Random(seed)
        for _ in range(12):
            draft = chooser.rank(checks("no", "yes"))[0]
            if draft.answer == "yes" and refuse.random() < 0.5:
                continue
            chooser.kept(draft)
            kept[draft.answer or ""] += 1
    assert abs(kept["yes"] - kept["no"]) <= 0.1 * sum(kept.values()), kept


def test_how_many_is_not_mostly_one() -> None:
    """Three of four targets are single things."""
    answers: Counter[int] = Counter()
    for scene, seed in itertools.product((1, 2, 3), range(6)):
        know = Knowledge(Facts(scene_twin(scene)[0], FactSettings()), load_lexicon())
        candidates = search(know.facts, QuerySettings(no_target_share=0.1), seed)
        chooser = Chooser(candidates, 24, 0.1, random.Random(seed))
        while (candidate := chooser.next()) is not None:
            best = chooser.rank(fitting(know, candidate, [Task.VQA], random.Random(seed), chooser.sizes))[0]
            if best.form == "count":
                answers[len(candidate.target_ids)] += 1
                assert {int(c) for c in best.choices} <= set(chooser.sizes), "a number that is never right"
            chooser.kept(best)
    assert sum(answers.values()) >= 10
    assert answers[1] <= 0.5 * sum(answers.values()), answers
