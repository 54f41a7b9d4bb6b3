"""Guards who is believed when sources disagree, and that nothing they said is thrown away."""

from __future__ import annotations

from rvt_ray.records import Attribute, Scored
from rvt_ray.twin.claims import NEUTRAL_CATEGORY, merge_attributes, merge_category


def claim(value: str, score: float, source: str, name: str = "colour") -> Attribute:
    return Attribute(name=name, value=value, score=score, source=source)


def test_an_annotation_beats_a_measurement_and_the_measurement_stays_as_alternative() -> None:
    merged = merge_attributes([claim("brown", 0.9, "measured"), claim("red", 1.0, "annotation")])
    assert [(a.value, a.source) for a in merged] == [("red", "annotation"), ("brown", "measured")]
    assert merged[1].score == 0.0


def test_an_overruled_value_can_not_score_beyond_what_the_winner_leaves() -> None:
    merged = merge_attributes([claim("red", 0.7, "vlm"), claim("pink", 0.8, "measured")])
    assert merged[0].value == "red"
    assert abs(merged[1].score - 0.3) < 1e-9


def test_values_of_one_source_keep_their_scores() -> None:
    merged = merge_attributes([claim("white", 0.4, "measured"), claim("red", 0.5, "measured")])
    assert [(a.value, a.score) for a in merged] == [("red", 0.5), ("white", 0.4)]


def test_agreement_is_one_entry_with_the_best_score() -> None:
    merged = merge_attributes([claim("red", 0.9, "measured"), claim("red", 0.8, "vlm")])
    assert [(a.value, a.score, a.source) for a in merged] == [("red", 0.9, "vlm")]


def test_names_do_not_mix() -> None:
    merged = merge_attributes([claim("red", 0.9, "measured"), claim("large", 0.8, "measured", "size")])
    assert {(a.name, a.value) for a in merged} == {("colour", "red"), ("size", "large")}


def test_the_segmenters_label_stands_first_and_the_captioners_stays() -> None:
    category, alternatives = merge_category("dog", 0.8, "cat", [Scored(value="cat", score=0.6)])
    assert category == "dog"
    assert [(s.value, s.score) for s in alternatives] == [("dog", 0.8), ("cat", 0.6)]


def test_an_unnamed_thing_is_an_object_and_has_no_scored_name() -> None:
    assert merge_category(None, 0.0, None, []) == (NEUTRAL_CATEGORY, [])
    assert merge_category(None, 0.0, NEUTRAL_CATEGORY, []) == (NEUTRAL_CATEGORY, [])
