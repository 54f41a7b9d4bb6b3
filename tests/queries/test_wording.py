"""Phrase table, grammar, speaker and template writer."""

from __future__ import annotations

import random
import re

import pytest

from rvt_ray.config.settings import FactSettings
from rvt_ray.queries import english
from rvt_ray.queries.draft import Draft
from rvt_ray.queries.english import Form, inflect
from rvt_ray.queries.gates.cues import find_misstatements
from rvt_ray.queries.gates.text import plain
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.lexicon import load_lexicon
from rvt_ray.queries.wording import CannotSay, Speaker, TemplateWriter
from rvt_ray.queries.wording.frames import FRAMES
from rvt_ray.queries.wording.phraser import Said
from rvt_ray.queries.wording.phrases import PHRASES, PLACE_SCOPES, REGION_PLACES, STATE_SCOPES
from rvt_ray.queries.wording.speaker import Description, Reference
from rvt_ray.reasoning import Candidate, Constraint, Program
from rvt_ray.records import Task, Tree
from rvt_ray.twin.facts import CATALOGUE, REGIONS, Facts
from tests.queries.twins import scene_twin


@pytest.fixture(scope="module")
def know() -> Knowledge:
    twin, _ = scene_twin(1)
    return Knowledge(Facts(twin, FactSettings()), load_lexicon())


def candidate(know: Knowledge, constraints: list[Constraint], targets: tuple[int, ...] = (5,)) -> Candidate:
    variables = tuple(dict.fromkeys(["x", *(v for c in constraints for v in c.args)]))
    bird = next(i.instance_id for i in know.twin.instances if i.category == "bird")
    anchors = dict.fromkeys(variables[1:], (bird,))
    return Candidate(
        target_ids=targets,
        program=Program(target="x", variables=variables, constraints=tuple(constraints)),
        level=1,
        categories=(),
        tree=Tree(tree_id="t", nodes=[], edges=[]),
        evidence=(),
        anchors=anchors,
    )


def unary(predicate: str, value: str | None = None, scope: str | None = None, v: str = "x") -> Constraint:
    return Constraint(predicate=predicate, args=(v,), value=value, scope=scope)


def relation(predicate: str, a: str = "x", b: str = "a", scope: str | None = None) -> Constraint:
    return Constraint(predicate=predicate, args=(a, b), scope=scope)


def test_every_predicate_of_the_catalogue_has_phrases_for_all_its_scopes() -> None:
    assert set(PHRASES) == set(CATALOGUE)
    assert set(REGION_PLACES) == set(REGIONS)
    for name, spec in CATALOGUE.items():
        phrases = PHRASES[name]
        assert phrases.places or phrases.states or phrases.events, name
        for text in (*phrases.places, *phrases.states, *phrases.events, *phrases.passives):
            assert ("{o}" in text) == (spec.arity == 2), f"{name}: {text}"
            assert re.findall(r"\{(\w)\}", text) in ([], ["o"], ["k"], ["v"]), f"{name}: {text}"
        if spec.scopes:
            assert phrases.places or phrases.states, f"{name} takes scopes but has no phrase that does"
            assert not phrases.events, f"{name}: an event phrase would lose the scope"
        if spec.arity == 2 and spec.inverse is None:
            assert phrases.passives, f"{name} has neither an inverse nor a passive form"
        for scope in spec.scopes:
            assert scope in PLACE_SCOPES
            assert scope in STATE_SCOPES


def test_every_phrase_shows_its_own_cue() -> None:
    for name, phrases in PHRASES.items():
        for text in (*phrases.places, *phrases.states, *phrases.events, *phrases.passives):
            said = plain(inflect(text, Form.SINGULAR))
            if phrases.cues:
                assert any(re.search(cue, said) for cue in phrases.cues), f"{name}: {said!r} lacks its cue"


def test_verbs_agree_with_their_subject() -> None:
    assert inflect("<come> in and <carry> it", Form.SINGULAR) == "comes in and carries it"
    assert inflect("<be> red and <pass> by", Form.PLURAL) == "are red and pass by"
    assert inflect("<go> and <have>", Form.SINGULAR) == "goes and has"


@pytest.mark.parametrize(
    ("phrase", "many", "asked"),
    [
        ("<be> in view", False, "is it in view"),
        ("<end> up near the ball", False, "does it end up near the ball"),
        ("<be> in view", True, "are it in view"),
        ("can be seen", False, "can it be seen"),
    ],
)
def test_questions_put_the_verb_first(phrase: str, many: bool, asked: str) -> None:
    assert english.question("it", phrase, many) == asked


def test_two_anchors_are_told_apart_and_the_second_mention_refers_back(know: Knowledge) -> None:
    found = Speaker(
        know,
        candidate(
            know,
            [
                unary("category", "bird", v="a"),
                relation("left_of", scope="start"),
                relation("right_of", scope="end"),
            ],
        ),
        random.Random(0),
        plain=True,
    ).reference()
    assert found.clause_singular == "starts out to the left of the bird and ends up to the right of it"


def test_a_relation_between_anchors_is_said_after_both_are_introduced(know: Knowledge) -> None:
    made = candidate(
        know,
        [
            unary("category", "bird", v="a"),
            unary("category", "truck", v="b"),
            relation("left_of", scope="end"),
            relation("near", "x", "b", "end"),
            relation("above", "a", "b", "end"),
        ],
    )
    for seed in range(20):
        text = Speaker(know, made, random.Random(seed)).reference().noun_phrase
        first = re.search(r"\b(the|a|an) (bird|truck)\b", text)
        again = re.search(r"that same (bird|truck)", text)
        assert first is not None
        if again is not None:
            assert text.index(again.group(1)) < again.start(), text
        assert "bird" in text
        assert "truck" in text


def test_a_target_is_never_named_by_its_kind(know: Knowledge) -> None:
    red_ball = next(i for i in know.twin.instances if know.name(i.instance_id) == "the red ball")
    made = candidate(know, [unary("category", "ball"), unary("colour", "red")], (red_ball.instance_id,))
    for seed in range(30):
        text = Speaker(know, made, random.Random(seed)).reference().noun_phrase
        assert "ball" not in text
        assert not know.names_in(text, know.forbidden_names(made)), text


def test_an_anchor_of_the_targets_kind_is_described_or_refused(know: Knowledge) -> None:
    red_ball = next(i for i in know.twin.instances if know.name(i.instance_id) == "the red ball")
    made = candidate(
        know, [relation("near", scope="end"), unary("category", "ball", v="a")], (red_ball.instance_id,)
    )
    for seed in range(10):
        text = Speaker(know, made, random.Random(seed)).reference().noun_phrase
        assert not know.names_in(text, know.forbidden_names(made)), text


def test_what_cannot_be_said_without_a_leak_is_refused(know: Knowledge) -> None:
    made = candidate(know, [unary("category", "container")], (4,))
    with pytest.raises(CannotSay, match="container"):
        Speaker(know, made, random.Random(0)).reference()


def test_a_loose_variable_is_refused_and_not_dropped(know: Knowledge) -> None:
    made = candidate(know, [unary("enters"), unary("category", "bird", v="a")])
    with pytest.raises(CannotSay, match="category"):
        Speaker(know, made, random.Random(0)).reference()


def test_people_are_not_things(know: Knowledge) -> None:
    lexicon = load_lexicon()
    assert lexicon.animate("person")
    assert lexicon.animate("dog")
    assert not lexicon.animate("cup")
    bird = next(i.instance_id for i in know.twin.instances if i.category == "bird")
    assert know.generic_nouns((bird,)) == ("one",)


def test_all_frames_are_filled_without_a_trace_of_the_template(know: Knowledge) -> None:
    red_ball = next(i for i in know.twin.instances if know.name(i.instance_id) == "the red ball")
    made = candidate(
        know,
        [unary("moves_right"), relation("near", scope="end"), unary("category", "bird", v="a")],
        (red_ball.instance_id,),
    )
    for form in FRAMES:
        if form in ("count_ones", "check"):
            continue
        task = {"masks": Task.SEGMENTATION, "boxes": Task.GROUNDING, "summary": Task.SUMMARY}.get(
            form, Task.VQA
        )
        draft = Draft(made, task, form, slots={"attribute": "colour", "other": "the truck"})
        seen = set()
        for seed in range(6):
            words = TemplateWriter(know, random.Random(seed), 3).write(draft, 2)
            for text in (words.query, *words.paraphrases):
                assert not re.search(r"[{}<>_]|  | ,", text), text
                assert text[0].isupper()
                assert text[-1] in ".?"
            seen.add(words.query)
        assert len(seen) >= 4, f"{form}: too little variety"


def test_what_is_said_of_an_anchor_does_not_seem_to_be_said_of_the_target(
    know: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "Near the one that is sweet, and also comes after the duck": who comes after it?"""
    made = candidate(know, [relation("near", scope="end")])
    clauses = [Said("<be> sweet"), Said("<come> after what lays eggs and has a beak")]
    speaker = Speaker(know, made, random.Random(0))
    monkeypatch.setattr(speaker, "_describe", lambda _: Description(clauses=clauses))
    with pytest.raises(CannotSay, match="another thing"):
        speaker._anchor("a")
    assert ", and also" in speaker._join(clauses), "of the target itself it can be said"


@pytest.mark.parametrize("targets", [(), (5,), (3, 5)])
def test_the_verb_does_not_tell_how_many_there_are(know: Knowledge, targets: tuple[int, ...]) -> None:
    """ "Is there anything that are below the lamp?": whoever reads it need not look."""
    made = candidate(know, [unary("region", "left", "start"), unary("moves_up")], targets)
    singular, plural = r"\b(rises|goes|moves|begins|starts)\b", r"\b(are|rise|go|move|begin)\b"
    for form, other in (("exists", plural), ("count", singular)):
        for seed in range(8):
            writer = TemplateWriter(know, random.Random(seed), 3)
            draft = Draft(made, Task.VQA, form, answer="yes", choices=("yes", "no"))
            for text in (writer.one(draft), writer.plain(draft)):
                assert not re.search(other, text.replace("clip begins", "")), (form, text)


def test_template_wording_says_what_the_cue_gate_wants(know: Knowledge) -> None:
    anchors = [unary("category", "bird", v="a")]
    for name, spec in CATALOGUE.items():
        if spec.category == "semantic" or spec.value is not None:
            continue
        for scope in spec.scopes or (None,):
            constraint = Constraint(predicate=name, args=("x", "a")[: spec.arity], scope=scope)
            made = candidate(know, [constraint, *(anchors if spec.arity == 2 else [])])
            draft = Draft(made, Task.SEGMENTATION, "masks")
            for seed in range(6):
                query = f"Outline {Speaker(know, made, random.Random(seed)).reference().noun_phrase}."
                assert find_misstatements(query, draft, know) == [], f"{name}@{scope}: {query}"


def test_while_moving_is_said_of_the_one_that_moves(know: Knowledge) -> None:
    bird = unary("category", "bird", v="a")
    made = candidate(know, [relation("left_of", scope="while_moving"), bird])
    for seed in range(8):
        text = Speaker(know, made, random.Random(seed)).reference().noun_phrase
        assert re.search(r"that while (moving|in motion|on the move) is .*\bleft\b.* bird$", text), text
    turned = candidate(know, [relation("left_of", a="a", b="x", scope="while_moving"), bird])
    with pytest.raises(CannotSay, match="turned round"):
        Speaker(know, turned, random.Random(0)).reference()


def test_nothing_is_said_after_while_moving_that_would_seem_to_be_so_while_moving(know: Knowledge) -> None:
    for said in (relation("left_of", scope="while_moving"), unary("region", "left", "while_moving")):
        rest = [relation("near", b="b", scope="end"), unary("moves_up")]
        kinds = [unary("category", "bird", v=v) for v in ("a", "b") if said.args[-1] == "a" or v == "b"]
        made = candidate(know, [said, *rest, *kinds])
        for seed in range(8):
            try:
                text = Speaker(know, made, random.Random(seed)).reference().noun_phrase
            except CannotSay:
                continue
            after = re.split(r"\bwhile (?:moving|in motion|on the move)\b", text)[1]
            assert " and " not in after, text


def test_the_moving_of_another_one_is_not_what_the_cue_gate_wants(know: Knowledge) -> None:
    bird = unary("category", "bird", v="a")
    draft = Draft(
        candidate(know, [relation("left_of", scope="while_moving"), bird]), Task.SEGMENTATION, "masks"
    )
    for query, complaint in (
        ("Outline the one that while moving is to the left of the bird.", None),
        ("Outline what is red and while in motion is further left than the bird.", None),
        ("Outline what is to the left of the bird while moving.", "which of the two"),
        ("Outline what is to the left of the bird while it is on the move.", "which of the two"),
        ("Outline what is to the left of the bird while the bird moves.", "when (while moving)"),
        ("Outline what is to the left of the bird the whole time.", "when (while moving)"),
    ):
        found = find_misstatements(query, draft, know)
        assert any((complaint or "moving") in f for f in found) is (complaint is not None), (query, found)
    assert find_misstatements("Outline what while moving has the bird on its right.", draft, know), (
        "the relation turned round"
    )


def test_an_anchor_is_called_by_the_superlative_that_always_holds(know: Knowledge) -> None:
    made = candidate(know, [unary("slowest", "bird", v="a"), relation("left_of", scope="end")])
    text = Speaker(know, made, random.Random(0), plain=True).reference().noun_phrase
    assert "slowest bird" in text
    at_first = candidate(know, [unary("leftmost", "bird", "start", v="a"), relation("left_of", scope="end")])
    text = Speaker(know, at_first, random.Random(0), plain=True).reference().noun_phrase
    assert "the leftmost of all the birds" in text, "the time has to be said"


def test_mass_nouns_have_no_plural() -> None:
    assert english.plural("furniture") == "furniture"
    assert english.plural("chair") == "chairs"


def test_a_thing_is_not_said_to_be_something(know: Knowledge) -> None:
    target = next(i for i in know.instances if "thing" in know.generic_nouns((i,)))
    made = candidate(know, [unary("function", "sit on")], (target,))
    for seed in range(12):
        text = Speaker(know, made, random.Random(seed)).reference().noun_phrase
        assert "thing that" not in text, text


def test_several_are_not_something(know: Knowledge) -> None:
    targets = tuple(sorted(know.instances)[:2])
    made = candidate(know, [unary("function", "sit on")], targets)
    for seed in range(6):
        said = Speaker(know, made, random.Random(seed)).reference()
        assert "are things" in said.noun_phrase, said.noun_phrase
        assert "is something" in said.clause_singular, said.clause_singular


@pytest.mark.parametrize(("unlucky", "said"), [(1, True), (2, True), (1000, False)])
def test_one_unlucky_draw_does_not_refuse_a_candidate(
    know: Knowledge, monkeypatch: pytest.MonkeyPatch, unlucky: int, said: bool
) -> None:
    made = candidate(know, [unary("moves_right"), unary("region", "left", "start")])
    spoken, calls = Speaker.reference, iter(range(2000))

    def reference(self: Speaker) -> Reference:
        if next(calls) < unlucky:
            raise CannotSay(f"draw {unlucky}")
        return spoken(self)

    monkeypatch.setattr(Speaker, "reference", reference)
    writer, draft = TemplateWriter(know, random.Random(0), 3), Draft(made, Task.SEGMENTATION, "masks")
    if said:
        assert writer.write(draft, 2).query
    else:
        with pytest.raises(CannotSay, match="draw"):
            writer.write(draft, 2)
        assert next(calls) < 5, "what can never be said is tried on and on"
