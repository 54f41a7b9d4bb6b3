"""Each gate catches what it is for."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.config.settings import FactSettings, QuerySettings
from rvt_ray.masks import rle
from rvt_ray.queries.corpus_form import MIN_CORPUS, corpus_excess, corpus_form
from rvt_ray.queries.draft import Draft, Use
from rvt_ray.queries.gates.form import check_form
from rvt_ray.queries.gates.jitter import MASK_PX, jittered, moved_segments
from rvt_ray.queries.gates.necessity import check_necessity
from rvt_ray.queries.gates.program import check_program
from rvt_ray.queries.gates.shortcut import check_shortcut, favourites
from rvt_ray.queries.gates.stability import Stability
from rvt_ray.reasoning import Candidate, Constraint, Program, execute, search
from rvt_ray.records import Task, Verdict
from rvt_ray.twin.facts import Facts, Truth
from tests.queries.twins import scene_twin


@pytest.fixture(scope="module")
def facts() -> Facts:
    return Facts(scene_twin(1)[0], FactSettings())


@pytest.fixture(scope="module")
def candidates(facts: Facts) -> list[Candidate]:
    return search(facts, QuerySettings(), 0)


def masks(candidate: Candidate) -> Draft:
    return Draft(candidate, Task.SEGMENTATION, "masks")


def changed(candidate: Candidate, **fields: object) -> Candidate:
    return Candidate(**{**candidate.__dict__, **fields})  # type: ignore[arg-type]


def test_gate_1_passes_what_the_search_found(facts: Facts, candidates: list[Candidate]) -> None:
    assert candidates
    assert all(check_program(facts, masks(c)).verdict is Verdict.PASS for c in candidates)


def test_gate_1_refuses_a_wrong_target_set(facts: Facts, candidates: list[Candidate]) -> None:
    one = next(c for c in candidates if len(c.target_ids) == 1)
    other = next(i for i in facts.ids if i not in one.target_ids)
    assert check_program(facts, masks(changed(one, target_ids=(other,)))).failed
    assert check_program(facts, masks(changed(one, target_ids=()))).failed


def test_gate_1_refuses_an_answer_whose_fact_is_not_certain(
    facts: Facts, candidates: list[Candidate]
) -> None:
    one = candidates[0]
    moving = next(i for i in facts.ids if facts.value("moves", [i]).truth is Truth.TRUE)
    good = Draft(one, Task.VQA, "check", uses=(Use("moves", (moving,)),))
    bad = Draft(one, Task.VQA, "check", uses=(Use("moves", (moving,), true=False),))
    assert not check_program(facts, good).failed
    assert check_program(facts, bad).failed


def test_gate_3_refuses_a_hop_that_adds_nothing(facts: Facts, candidates: list[Candidate]) -> None:
    one = next(c for c in candidates if c.level == 2 and len(c.target_ids) == 1)
    assert not check_necessity(facts, masks(one)).failed
    target = one.target_ids[0]
    label = next(i.category for i in facts.twin.instances if i.instance_id == target)
    idle = Constraint(predicate="category", args=(one.program.target,), value=label)
    program = one.program.model_copy(update={"constraints": (*one.program.constraints, idle)})
    finding = check_necessity(facts, masks(changed(one, program=program)))
    assert finding.failed
    assert "category" in finding.detail


def test_gate_3_wants_a_near_miss_of_no_target_queries(facts: Facts, candidates: list[Candidate]) -> None:
    empty = [c for c in candidates if c.no_target]
    assert empty
    assert all(not check_necessity(facts, masks(c)).failed for c in empty)
    nonsense = Program(
        target="x",
        variables=("x",),
        constraints=(
            Constraint(predicate="category", args=("x",), value="zebra"),
            Constraint(predicate="colour", args=("x",), value="purple"),
            Constraint(predicate="category", args=("x",), value="giraffe"),
        ),
    )
    assert check_necessity(facts, masks(changed(empty[0], program=nonsense))).failed


def test_gate_2_refuses_what_hangs_on_a_pixel(facts: Facts) -> None:
    twin = facts.twin.model_copy(deep=True)
    a, b = twin.instances[0].track, twin.instances[1].track
    # The margin is met by a hair: one pixel more would be unknown.
    need = FactSettings().relation_margin * float(np.hypot(twin.width, twin.height)) + 0.1
    for k in range(len(a.frame_idx)):
        for track, x in ((a, 60.0), (b, 60.0 + need)):
            track.visible[k], track.absence[k], track.score[k] = True, None, None
            track.rle[k] = rle.encode(np.ones((twin.height, twin.width), bool))
            track.box_x[k], track.box_y[k], track.box_w[k], track.box_h[k] = x - 2, 40.0, 4.0, 20.0
            track.centroid_x[k], track.centroid_y[k], track.area[k] = x, 50.0, 80.0
    twin.instances = twin.instances[:2]
    sharp = Facts(twin, FactSettings())
    ids = (twin.instances[0].instance_id, twin.instances[1].instance_id)
    assert sharp.value("left_of", ids, None, "end").truth is Truth.TRUE
    program = Program(
        target="x",
        variables=("x", "a"),
        constraints=(Constraint(predicate="left_of", args=("x", "a"), scope="end"),),
    )
    made = Candidate(ids[:1], program, 2, (), None, (), {"a": ids[1:]})  # type: ignore[arg-type]
    assert not check_program(sharp, masks(made)).failed
    assert Stability(sharp, 10, 0).check(masks(made), 0.95).failed


def test_gate_2_is_repeatable(facts: Facts, candidates: list[Candidate]) -> None:
    draft = masks(candidates[0])
    assert Stability(facts, 5, 3).check(draft, 0.9) == Stability(facts, 5, 3).check(draft, 0.9)


def test_jitter_moves_no_border_further_than_it_says(facts: Facts) -> None:
    twin = facts.twin
    moved = jittered(twin, np.random.default_rng(0)).twin
    for before, after in zip(twin.instances, moved.instances, strict=True):
        k = [
            i
            for i, v in enumerate(before.track.visible)
            if v and before.track.frame_idx[i] not in twin.key_frames
        ]
        for name in ("box_x", "box_y", "centroid_x", "centroid_y"):
            old = np.array([getattr(before.track, name)[i] for i in k], float)
            new = np.array([getattr(after.track, name)[i] for i in k], float)
            assert np.abs(old - new).max() <= MASK_PX + 1e-9
        cut = [i for i in k if (before.track.box_x[i] or 0) <= 1]
        assert all(after.track.box_x[i] == before.track.box_x[i] for i in cut)


def drawn(segments: np.ndarray, height: int, width: int) -> np.ndarray:
    dense = np.zeros((height, width), bool)
    for x, top, bottom in segments.astype(int):
        dense[top : bottom + 1, x] = True
    return dense


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(-3, 3), st.integers(-3, 3))
def test_a_moved_mask_is_the_mask_moved(seed: int, dx: int, dy: int) -> None:
    rng = np.random.default_rng(seed)
    dense = np.zeros((17, 23), bool)
    dense[5:12, 6:15] = rng.random((7, 9)) < 0.6
    dense[8, 10] = True
    moved = moved_segments(rle.encode(dense), 17, 23, dx, dy, 0)
    assert (drawn(moved, 17, 23) == np.roll(dense, (dy, dx), (0, 1))).all()


def test_a_grown_mask_holds_the_mask_and_a_shrunk_one_is_held_by_it() -> None:
    dense = np.zeros((30, 40), bool)
    dense[10:20, 12:25] = True
    grown = drawn(moved_segments(rle.encode(dense), 30, 40, 0, 0, 2), 30, 40)
    shrunk = drawn(moved_segments(rle.encode(dense), 30, 40, 0, 0, -2), 30, 40)
    assert (grown | dense == grown).all()
    assert (shrunk & dense == shrunk).all()
    assert shrunk.sum() < dense.sum() < grown.sum()
    assert grown[:, 10].any()


def test_a_mask_that_would_leave_the_frame_or_vanish_keeps_its_shape() -> None:
    dense = np.zeros((10, 10), bool)
    dense[4, 4] = True
    assert (drawn(moved_segments(rle.encode(dense), 10, 10, 0, 0, -3), 10, 10) == dense).all()
    assert (drawn(moved_segments(rle.encode(dense), 10, 10, 30, 0, 0), 10, 10) == dense).all()


def test_masks_moved_when_asked_for_are_those_of_a_twin_with_moved_masks(facts: Facts) -> None:
    made = jittered(facts.twin, np.random.default_rng(4))
    solid = made.twin.model_copy(deep=True)
    for row, instance in enumerate(solid.instances):
        instance.track.rle = [
            rle.encode(drawn(made.segments(row, k), solid.height, solid.width))
            for k in range(len(instance.track.rle))
        ]
    lazy, eager = Facts(made.twin, facts.settings, made.segments, like=facts), Facts(solid, facts.settings)
    for scope in ("start", "end", "some_time", "throughout"):
        for name in ("near", "touching"):
            table, other = lazy.table(name, None, scope), eager.table(name, None, scope)
            assert (table.truth == other.truth).all()
            assert np.allclose(table.margin, other.margin)
    assert (lazy.table("category", "object").truth == eager.table("category", "object").truth).all()


def test_stopping_early_gives_the_verdict_of_all_draws(facts: Facts, candidates: list[Candidate]) -> None:
    draws, share = 8, 0.75
    verdicts = set()
    twins = [
        jittered(facts.twin, np.random.default_rng(stream))
        for stream in np.random.SeedSequence(5).spawn(draws)
    ]
    all_facts = [Facts(t.twin, facts.settings, t.segments) for t in twins]
    stability = Stability(facts, draws, 5)
    for candidate in candidates:
        runs = [execute(candidate.program, f) for f in all_facts]
        same = sum(r.certain == r.possible == frozenset(candidate.target_ids) for r in runs)
        assert stability.check(masks(candidate), share).failed == (same < share * draws)
        verdicts.add(same < share * draws)
    assert verdicts == {True, False}


def test_what_enters_or_leaves_still_does_when_measured_a_little_differently(facts: Facts) -> None:
    found = 0
    for draw in range(10):
        made = jittered(facts.twin, np.random.default_rng(draw))
        other = Facts(made.twin, facts.settings)
        for name in ("enters", "leaves"):
            truth = facts.table(name).truth > 0
            found += int(truth.sum())
            assert (other.table(name).truth[truth] > 0).all()
    assert found


LONG = "Which one " + "and then it goes on moving slowly " * 12 + "here?"
LOOP = "Which one is near the ball is near the ball is near the ball is near the ball?"


@pytest.mark.parametrize(
    ("query", "form", "task", "problem"),
    [
        ("Which one comes in? Where is it?", "masks", Task.SEGMENTATION, "2 sentences"),
        ("which one comes in last?", "masks", Task.SEGMENTATION, "capital"),
        ("Which one comes in last", "masks", Task.SEGMENTATION, "full stop"),
        ("The one that comes in last.", "masks", Task.SEGMENTATION, "neither a question nor a request"),
        ("Which {noun} comes in last?", "masks", Task.SEGMENTATION, "placeholders"),
        ("How many come in?", "masks", Task.SEGMENTATION, "asks for words"),
        ("Find the one that comes in last.", "count", Task.VQA, "does not ask"),
        ("Where is the one that comes in?", "summary", Task.SUMMARY, "does not ask"),
        ("Go.", "masks", Task.SEGMENTATION, "1 words"),
        (LONG, "masks", Task.SEGMENTATION, "words; level"),
        ("Which one comes comes comes in last?", "masks", Task.SEGMENTATION, "stutters"),
        (LOOP, "masks", Task.SEGMENTATION, "repeats itself"),
        (f"Which {'a' * 31} comes in?", "masks", Task.SEGMENTATION, "a word that is none"),
        ("", "masks", Task.SEGMENTATION, "empty"),
    ],
)
def test_gate_5_names_what_is_wrong(query: str, form: str, task: Task, problem: str) -> None:
    found = check_form(query, form, task, 1)
    assert any(problem in text for text in found), found


def test_gate_5_refuses_a_near_repetition_within_the_clip() -> None:
    kept = ["Which one comes into view and ends up near the red ball at last?"]
    again = "Which one comes into view and ends up near the red ball, at last?"
    assert check_form(again, "masks", Task.SEGMENTATION, 2, kept)
    assert not check_form("Outline whatever leaves before the bird.", "masks", Task.SEGMENTATION, 2, kept)


def test_gate_7_records_and_never_refuses(facts: Facts, candidates: list[Candidate]) -> None:
    picks = favourites(facts)
    assert picks.largest in facts.ids
    solved = changed(candidates[0], target_ids=(picks.largest,))
    finding = check_shortcut(picks, masks(solved))
    assert finding.verdict is Verdict.PASS
    assert "the largest" in finding.detail
    assert check_shortcut(picks, masks(changed(candidates[0], target_ids=()))).verdict is Verdict.NOT_RUN


def test_simple_solvers_keep_to_what_they_are_offered(facts: Facts) -> None:
    whole = favourites(facts)
    others = [i for i in facts.ids if i not in (whole.largest, whole.central, whole.moving)]
    part = favourites(facts, others)
    assert {part.largest, part.central, part.moving} <= {*others, None}
    assert favourites(facts, others[:1]).largest == others[0]
    assert favourites(facts, ()).largest is None


def test_corpus_form_finds_duplicates_and_crowded_openings_in_any_order() -> None:
    rng = random.Random(0)
    words = [f"w{i}" for i in range(400)]
    queries = [(f"{i:04d}", "Outline " + " ".join(rng.sample(words, 12)) + ".") for i in range(300)]
    queries += [(f"d{i}", queries[i][1]) for i in range(3)]
    queries += [(f"z{i:02d}", f"Which one of {' '.join(rng.sample(words, 9))}?") for i in range(30)]
    found = corpus_form(queries, 3, 0.05)
    assert found.duplicates == {f"d{i}": f"{i:04d}" for i in range(3)}
    assert list(found.crowded) == ["which one of"]
    assert found.total == 333
    rng.shuffle(queries)
    assert corpus_form(queries, 3, 0.05) == found


def test_a_corpus_sheds_what_it_has_too_many_of_in_any_order() -> None:
    rng = random.Random(1)
    words = [f"w{i}" for i in range(400)]
    queries = [(f"{i:04d}", f"V{i} " + " ".join(rng.sample(words, 12)) + ".") for i in range(400)]
    queries += [(f"d{i}", queries[i][1]) for i in range(9)]
    queries += [(f"z{i:02d}", f"Which one of {' '.join(rng.sample(words, 9))}?") for i in range(60)]
    excess = corpus_excess(queries, 3, 0.05, 0.01)
    left = [q for q in queries if q[0] not in excess]
    found = corpus_form(left, 3, 0.05)
    assert found.crowded == {}
    assert found.duplicate_share <= 0.01
    assert {i[0] for i in excess} == {"d", "z"}
    assert len([i for i in excess if i.startswith("z")]) < 45, "as many as may stay do"
    rng.shuffle(queries)
    assert corpus_excess(queries, 3, 0.05, 0.01) == excess


def test_shares_mean_nothing_in_a_tiny_corpus() -> None:
    queries = [(f"{i}", f"Which one is the {word}?") for i, word in enumerate("abcdefghi")]
    assert len(queries) <= 0.05 * MIN_CORPUS
    assert corpus_excess(queries, 3, 0.05, 0.01) == {}
    assert corpus_excess([], 3, 0.05, 0.01) == {}


def test_corpus_form_of_nothing_is_nothing() -> None:
    assert corpus_form([], 3, 0.05).duplicate_share == 0.0
