"""The `guided` style: the model chooses among sentences that say the program, and can say nothing else."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvt_ray.agent import Agent, Question
from rvt_ray.agent.rules import RulePlanner
from rvt_ray.config.settings import GateSettings, GenerateSettings, LlmSettings, QuerySettings
from rvt_ray.llm.base import Finish, LlmRequest
from rvt_ray.llm.schema import check_schema
from rvt_ray.queries import Outcome
from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.cues import find_misstatements
from rvt_ray.queries.gates.form import check_form
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.lexicon import load_lexicon
from rvt_ray.queries.tasks import Chooser, fitting
from rvt_ray.queries.wording import CannotSay, TemplateWriter
from rvt_ray.queries.wording.lattice import Lattice, Row, alike, first, parts
from rvt_ray.queries.wording.template import too_alike
from rvt_ray.reasoning import Candidate, Constraint, Program, execute, search
from rvt_ray.records import Task, Tree, Wording
from rvt_ray.twin.facts import Facts
from tests.queries import scripted
from tests.queries.scripted import Said, ScriptedLlm
from tests.queries.test_generate import run
from tests.queries.twins import scene_twin

SEEDS = (30, 31)
GUIDED = GenerateSettings(
    gates=GateSettings(stability_draws=4, stability_share=0.75),
    queries=QuerySettings(samples_per_clip=8),
    llm=LlmSettings(backend="scripted", style="guided", max_tries=1),
)

# -- lattices in themselves -------------------------------------------------------------------------

_WORDS = st.sampled_from(["a ", "b ", "ab ", "is it? ", "so. "])
_PARTS = st.one_of(_WORDS, st.lists(_WORDS, min_size=2, max_size=3, unique=True).map(tuple))
_ROWS = st.lists(
    st.builds(Row, st.sampled_from("fgh"), st.lists(_PARTS, min_size=1, max_size=4).map(tuple)),
    min_size=1,
    max_size=5,
)


@given(rows=_ROWS, other=st.lists(_WORDS, max_size=4).map("".join))
def test_the_pattern_fits_the_sentences_and_nothing_else(rows: list[Row], other: str) -> None:
    lattice = Lattice(rows)
    pattern = lattice.pattern()
    check_schema({"type": "string", "pattern": pattern})
    sentences = set(lattice.sentences())
    assert len(sentences) <= len(lattice)
    for text in {*sentences, other}:
        inside = text in sentences
        assert (re.fullmatch(pattern, text) is not None) is inside
        assert (lattice.find(text) is not None) is inside
        assert len(text) <= lattice.longest or not inside


@given(rows=_ROWS, number=st.integers(0, 10**6))
def test_what_was_said_is_not_offered_again(rows: list[Row], number: int) -> None:
    lattice = Lattice(rows)
    sentences = list(lattice.sentences())
    said = lattice.find(sentences[number % len(sentences)])
    assert said is not None
    left = lattice.without(said)
    assert said.frame not in {row.frame for row in left.rows}
    assert set(left.sentences()) <= set(sentences)


@given(rows=_ROWS, count=st.integers(0, 4))
def test_shares_have_no_frame_in_common_and_lose_no_sentence(rows: list[Row], count: int) -> None:
    lattice = Lattice(rows)
    frames = {row.frame for row in lattice.rows}
    shares = lattice.shares(count)
    assert len(shares) == min(count, len(frames))
    if count:
        assert sorted(f for share in shares for f in {row.frame for row in share.rows}) == sorted(frames)
        assert {t for share in shares for t in share.sentences()} == set(lattice.sentences())


def test_marks_in_a_text_become_choices() -> None:
    text = f"Find {alike(['the one', 'that thing', 'the one'])}, please{alike(['.'])}"
    assert parts(text) == ("Find ", ("the one", "that thing"), ", ", "please.")
    assert first(text) == "Find the one, please."


@given(rows=_ROWS, words=st.integers(0, 8))
def test_a_row_keeps_to_a_number_of_words(rows: list[Row], words: int) -> None:
    for row in rows:
        kept = row.within(words)
        sentences = set(row.sentences())
        if kept is None:
            assert all(len(s.split()) > words for s in sentences)
        else:
            assert set(kept.sentences()) <= {s for s in sentences if len(re.findall(r"\w+", s)) <= words}


def test_a_row_that_a_pattern_cannot_hold_is_left_out() -> None:
    rows = [Row("f", ('Find the "Eiffel" (tower).',)), Row("f", ("Find the tower.",))]
    assert list(Lattice(rows).sentences()) == ["Find the tower."]


# -- lattices of programs ---------------------------------------------------------------------------


@cache
def drafts(seed: int, count: int = 10) -> tuple[Knowledge, list[tuple[Draft, Lattice]]]:
    """Drafts of a scene, spread over tasks and levels, with their lattices."""
    twin, _ = scene_twin(seed)
    settings, rng = GenerateSettings(), random.Random(seed)
    know = Knowledge(Facts(twin, settings.facts), load_lexicon())
    chooser = Chooser(search(know.facts, settings.queries, seed), count, 0.07, rng)
    writer = TemplateWriter(know, rng, 3)
    found: list[tuple[Draft, Lattice]] = []
    while len(found) < count and (candidate := chooser.next()) is not None:
        fits = fitting(know, candidate, settings.queries.tasks, rng)
        if fits:
            draft = chooser.rank(fits)[0]
            try:
                found.append((draft, writer.lattice(draft)))
            except CannotSay:
                continue
            chooser.kept(draft)
    return know, found


def some_sentences(lattice: Lattice, count: int, rng: random.Random) -> Iterator[str]:
    for row in rng.sample(lattice.rows, min(count, len(lattice.rows))):
        yield "".join(p if isinstance(p, str) else rng.choice(p) for p in row.parts)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_sentence_says_the_program_and_does_not_name_the_target(seed: int) -> None:
    """Read back by the agent's rules: each finds exactly the targets, and no other form of question."""
    know, found = drafts(seed)
    view = Agent().look(know.twin)
    rng = random.Random(seed)
    for draft, lattice in found:
        forbidden = know.forbidden_names(draft.candidate) | draft.answer_words
        for text in some_sentences(lattice, 4, rng):
            assert not know.names_in(text, forbidden), text
            assert find_misstatements(text, draft, know) == [], text
            assert check_form(text, draft.form, draft.task, draft.candidate.level) == [], text
            plan = RulePlanner().plan(Question(query=text, choices=draft.choices), view)[0]
            assert plan.complete, (text, plan.note)
            assert plan.task is draft.task, text
            result = execute(plan.program, view.facts)
            assert sorted(result.certain) == sorted(draft.candidate.target_ids), text


@pytest.mark.parametrize("scope", ["start", "throughout"])
def test_the_lattice_holds_what_the_template_could_have_written_and_nothing_else(scope: str) -> None:
    know, _ = drafts(SEEDS[0])
    bird = next(i.instance_id for i in know.twin.instances if i.category == "bird")
    target = next(i for i in know.instances if i != bird)
    program = Program(
        target="x",
        variables=("x", "a"),
        constraints=(
            Constraint(predicate="left_of", args=("x", "a"), scope=scope),
            Constraint(predicate="category", args=("a",), value="bird"),
        ),
    )
    tree = Tree(tree_id="t", nodes=[], edges=[])
    made = Candidate((target,), program, 1, (), tree, (), {"a": (bird,)})
    draft = Draft(made, Task.VQA, "which_of")
    writer = TemplateWriter(know, random.Random(0), 3)
    written = {text for _ in range(400) for text in writer.more(draft, [], 5)}
    offered = set(writer.lattice(draft).sentences())
    assert len(offered) >= 40
    assert offered <= written


def test_there_is_much_to_choose_among() -> None:
    sizes = sorted(len(lattice) for seed in SEEDS for _, lattice in drafts(seed)[1])
    assert sizes[len(sizes) // 2] >= 300
    assert all(len(lattice.pattern()) <= 16_000 for seed in SEEDS for _, lattice in drafts(seed)[1])


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_a_second_sentence_begins_otherwise_and_takes_other_phrases(seed: int) -> None:
    rng = random.Random(seed)
    for _, lattice in drafts(seed)[1]:
        if len({row.frame for row in lattice.rows}) < 2:
            continue
        (text,) = some_sentences(lattice, 1, rng)
        said = lattice.find(text)
        assert said is not None
        rest = lattice.without(said)
        assert rest.rows
        assert rest.find(text) is None


# -- the writer -------------------------------------------------------------------------------------


def walk(pattern: str, rng: random.Random) -> str:
    """A text that fits: a guided model with no preferences."""

    def alternatives(i: int) -> tuple[list[str], int]:
        found, now = [], ""
        while i < len(pattern) and pattern[i] != ")":
            if pattern.startswith("(?:", i):
                inner, i = alternatives(i + 3)
                now += rng.choice(inner)
            elif pattern[i] == "[":
                now += pattern[i + 1]
                i += 2
            elif pattern[i] == "|":
                found.append(now)
                now = ""
            elif pattern[i] not in "^$":
                now += pattern[i]
            i += 1
        return [*found, now], i

    text = rng.choice(alternatives(0)[0])
    assert re.fullmatch(pattern, text)
    return text


def pattern_of(request: LlmRequest) -> str:
    assert request.schema is not None
    pattern: str = request.schema["pattern"]
    return pattern


def guided(request: LlmRequest, text: str) -> object:
    if scripted.is_choice(request):
        return scripted.first_task(request)
    return Said(walk(pattern_of(request), random.Random(request.seed)))


@pytest.fixture(scope="module")
def chosen() -> Outcome:
    return run(llm=ScriptedLlm(guided), settings=GUIDED)


def test_a_model_without_preferences_words_every_sample(chosen: Outcome) -> None:
    assert len(chosen.samples) == GUIDED.queries.samples_per_clip
    assert chosen.candidates == len(chosen.samples) + len(chosen.rejects)
    mine = [s for s in chosen.samples if s.wording is Wording.LLM]
    assert len(mine) >= 0.8 * len(chosen.samples)
    assert {(s.provenance.model, s.provenance.prompt_version) for s in mine} == {("scripted@1", "guided@1")}
    assert len({s.query for s in chosen.samples}) == len(chosen.samples)


def test_the_same_seed_offers_and_gets_the_same(chosen: Outcome) -> None:
    again = run(llm=ScriptedLlm(guided), settings=GUIDED)
    assert [s.model_dump() for s in again.samples] == [s.model_dump() for s in chosen.samples]


def test_paraphrases_differ_from_the_query_and_from_each_other(chosen: Outcome) -> None:
    for sample in chosen.samples:
        texts = [sample.query, *sample.paraphrases]
        assert len(texts) == 3
        for i, text in enumerate(texts):
            assert not too_alike(text, texts[:i]), texts


def test_a_sentence_from_outside_is_refused_whoever_lets_it_through() -> None:
    """An endpoint may take no notice of the schema."""

    def astray(request: LlmRequest, text: str) -> object:
        said = guided(request, text)
        return Said(said.replace(" the ", " this ", 1) + " Thanks.") if isinstance(said, Said) else said

    found = run(llm=ScriptedLlm(astray), settings=GUIDED)
    assert found.samples
    assert all(s.wording is Wording.TEMPLATE for s in found.samples)
    refused = [r for r in found.rejects if r.wording is Wording.LLM]
    assert refused
    assert all(r.gate == "reply" and "none of the" in r.reason for r in refused)


def test_a_reply_that_is_cut_after_the_query_leaves_the_query() -> None:
    cut = []

    def tired(request: LlmRequest, text: str) -> object:
        if scripted.is_choice(request):
            return scripted.first_task(request)
        if "It has been said" in text:
            cut.append(text)
            return Finish.LENGTH
        return guided(request, text)

    found = run(llm=ScriptedLlm(tired), settings=GUIDED)
    mine = [s for s in found.samples if s.wording is Wording.LLM]
    assert mine
    assert len(cut) >= len(mine)
    assert all(len(s.paraphrases) == 2 for s in mine), "the template's take their place"
