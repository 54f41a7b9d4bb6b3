"""Answers are computed from certain facts only; masks and boxes come from the tracks."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rvt_ray.config.settings import FactSettings, QuerySettings, TwinSettings
from rvt_ray.masks import rle
from rvt_ray.perception.base import Segmentation
from rvt_ray.perception.caption.annotations import AnnotationsCaptioner
from rvt_ray.queries.draft import Draft
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.lexicon import load_lexicon
from rvt_ray.queries.tasks import Chooser, fitting, target_boxes, target_masks
from rvt_ray.queries.tasks.open_ended import summary
from rvt_ray.reasoning import Candidate, Constraint, Program, search
from rvt_ray.records import Absence, CameraStep, DepthKind, DigitalTwin, Provenance, Task, Tree
from rvt_ray.twin.assemble import assemble
from rvt_ray.twin.facts import Facts, Truth
from tests.queries.twins import scene_twin
from tests.twin.helpers import box_masks, make_clip, make_draft


@pytest.fixture(scope="module", params=[1, 2])
def found(request: pytest.FixtureRequest) -> tuple[Knowledge, list[Candidate]]:
    twin, _ = scene_twin(request.param)
    facts = Facts(twin, FactSettings())
    return Knowledge(facts, load_lexicon()), search(facts, QuerySettings(), 0)


@pytest.fixture(scope="module")
def drafts(found: tuple[Knowledge, list[Candidate]]) -> list[tuple[Knowledge, Draft]]:
    know, candidates = found
    return [
        (know, d) for k, c in enumerate(candidates) for d in fitting(know, c, list(Task), random.Random(k))
    ]


def test_all_tasks_and_many_forms_of_question_come_up(drafts: list[tuple[Knowledge, Draft]]) -> None:
    assert {d.task for _, d in drafts} == set(Task)
    assert len({d.form for _, d in drafts}) >= 9


def test_an_answer_is_one_of_its_choices_exactly_once(drafts: list[tuple[Knowledge, Draft]]) -> None:
    for _, draft in drafts:
        if draft.task is Task.VQA:
            assert draft.choices.count(draft.answer or "") == 1
            assert len(set(draft.choices)) == len(draft.choices) >= 2


def test_no_choice_rests_on_an_unknown_fact(drafts: list[tuple[Knowledge, Draft]]) -> None:
    checked = 0
    for know, draft in drafts:
        for use in draft.uses:
            truth = know.facts.value(use.predicate, use.ids, use.value, use.scope).truth
            assert truth is (Truth.TRUE if use.true else Truth.FALSE), (draft.form, use)
            checked += 1
    assert checked > 50


def test_every_sentence_of_a_summary_cites_facts_that_are_true(drafts: list[tuple[Knowledge, Draft]]) -> None:
    summaries = [d for _, d in drafts if d.task is Task.SUMMARY]
    assert summaries
    for draft in summaries:
        sentences = [s for s in (draft.answer or "").split(". ") if s]
        cited = {e.statement.split(":")[0] for e in draft.evidence}
        assert cited == {f"sentence {n + 1} of the answer" for n in range(len(sentences))}
        assert all(use.true for use in draft.uses)


def test_a_question_never_asks_for_what_its_program_says(drafts: list[tuple[Knowledge, Draft]]) -> None:
    for _, draft in drafts:
        values = {c.value for c in draft.candidate.program.constraints}
        if draft.form in ("attribute", "material", "kind"):
            assert draft.answer not in values
            assert f"material:{draft.answer}" not in values


def test_counts_and_existence_follow_from_the_target_set(drafts: list[tuple[Knowledge, Draft]]) -> None:
    for _, draft in drafts:
        n = len(draft.candidate.target_ids)
        if draft.form == "count":
            assert draft.answer == str(n)
        if draft.form == "exists":
            assert draft.answer == ("yes" if n else "no")


def without_annotation(twin: DigitalTwin, instance_id: int, frame: int) -> DigitalTwin:
    twin = twin.model_copy(deep=True)
    track = twin.instance(instance_id).track
    track.rle[track.frame_idx.index(frame)] = None
    return twin


def test_masks_are_the_union_of_the_targets_on_every_frame() -> None:
    twin, _ = scene_twin(1)
    ids = [i.instance_id for i in twin.instances[:2]]
    masks = target_masks(twin, ids)
    assert len(masks) == twin.num_frames
    for frame, text in enumerate(masks):
        dense = [rle.decode(twin.instance(i).track.rle[frame] or "", twin.height, twin.width) for i in ids]
        assert text is not None
        assert (rle.decode(text, twin.height, twin.width) == (dense[0] | dense[1])).all()


def test_a_frame_that_is_not_annotated_has_no_truth_and_is_not_called_empty() -> None:
    twin, _ = scene_twin(1)
    target = twin.instances[0].instance_id
    holey = without_annotation(twin, target, 7)
    masks, boxes = target_masks(holey, [target]), target_boxes(holey, [target])
    assert masks[7] is None
    assert boxes[7] is None
    assert masks[6] is not None
    assert boxes[6] is not None


def test_boxes_are_given_for_visible_targets_only() -> None:
    twin, _ = scene_twin(1)
    for instance in twin.instances:
        boxes = target_boxes(twin, [instance.instance_id])
        assert [len(b or []) for b in boxes] == [int(v) for v in instance.track.visible]


def test_no_target_means_empty_masks_and_no_boxes() -> None:
    twin, _ = scene_twin(1)
    assert target_masks(twin, []) == [rle.empty(twin.height, twin.width)] * twin.num_frames
    assert target_boxes(twin, []) == [[]] * twin.num_frames


def test_the_chooser_spreads_over_levels_and_targets(found: tuple[Knowledge, list[Candidate]]) -> None:
    know, candidates = found
    chooser = Chooser(candidates, 16, 0.07, random.Random(0))
    levels: dict[int, int] = {}
    for _ in range(16):
        candidate = chooser.next()
        if candidate is None:
            break
        levels[candidate.level] = levels.get(candidate.level, 0) + 1
        chooser.kept(chooser.rank(fitting(know, candidate, list(Task), random.Random(1)))[0])
    offered = {c.level for c in candidates}
    assert set(levels) == offered
    assert max(levels.values()) - min(levels.values()) <= 3


def summary_of(boxes: list[tuple[int, int, int, int] | None]) -> str:
    """The summary of one cup that is where the boxes say, and out of the picture elsewhere."""
    n = len(boxes)
    masks = box_masks(boxes, 96, 72)
    draft = make_draft(1, masks, category="cup", category_score=1.0)
    draft = replace(draft, absence=[None if m.any() else Absence.OUT for m in masks])
    clip = make_clip(n, 96, 72)
    still = [CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=True)] * n
    segmentation = Segmentation([draft], [0])
    captions = AnnotationsCaptioner().caption(clip, None, segmentation, still)  # type: ignore[arg-type]
    made_by = Provenance(segment="truth", depth="none", caption="truth", settings="0" * 16, versions="{}")
    twin = assemble(clip, segmentation, iter([]), DepthKind.NONE, captions, still, TwinSettings(), made_by)
    program = Program(
        target="x",
        variables=("x",),
        constraints=(Constraint(predicate="category", args=("x",), value="cup"),),
    )
    candidate = Candidate((1,), program, 1, (), Tree(tree_id="t", nodes=[], edges=[]), ())
    draft_of = summary(Knowledge(Facts(twin, FactSettings()), load_lexicon()), candidate, random.Random(0))
    assert draft_of is not None
    return draft_of.answer or ""


def test_a_thing_that_leaves_and_comes_back_is_told_in_that_order() -> None:
    """The summary said "comes into view. It starts out in the middle. It moves out of the picture."."""
    out = [(40 - 2 * t, 30, 14, 14) for t in range(20)] + [(0, 30, 10, 14)]
    there = [(40, 30, 14, 14)] * 8
    back = [(0, 30, 10, 14)] * 2 + [(2 * t, 30, 14, 14) for t in range(12)]
    text = summary_of([*there, *out, *[None] * 12, *back])
    sentences = text.split(". ")
    start = next(k for k, s in enumerate(sentences) if "start" in s)
    returns = next(k for k, s in enumerate(sentences) if "back into view" in s)
    gone = [
        k
        for k, s in enumerate(sentences)
        if any(w in s for w in ("leaves", "out of", "disappears", "departs"))
    ]
    assert gone
    assert start < gone[0] < returns, text


def test_a_thing_that_was_never_there_before_does_not_come_back() -> None:
    boxes = [(0, 30, 10, 14)] * 2 + [(2 * t, 30, 14, 14) for t in range(16)]
    assert "back" not in summary_of([*[None] * 12, *boxes])
