"""Text metrics: perfect is 1 at any length, nothing is 0, the IDF table is independent of who is scored."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvt_ray.errors import ConfigError
from rvt_ray.evaluation.text import Idf, TextScorer, words

REFERENCES = ["The red ball rolls behind the sofa.", "A dog runs to the left.", "The ball stops."]
IDF = Idf.build(REFERENCES)


@pytest.mark.parametrize("text", ["Ball.", "The ball stops.", *REFERENCES])
def test_a_perfect_answer_scores_one_even_when_it_is_short(text):
    scores = TextScorer(IDF).score(text, text)
    assert all(v == pytest.approx(1.0) for v in scores.values()), scores


@pytest.mark.parametrize("answer", ["", " ", "...", "zebra"])
def test_an_empty_or_unrelated_answer_scores_nothing(answer):
    scores = TextScorer(IDF).score(REFERENCES[0], answer)
    assert all(v == pytest.approx(0.0, abs=1e-9) for v in scores.values()), scores


def test_scores_fall_with_the_damage():
    scorer = TextScorer(IDF)
    whole = REFERENCES[0]
    half = scorer.score(whole, "The red ball rolls away.")
    other = scorer.score(whole, "The dog.")
    for name in ("bleu4", "rouge_l", "cider"):
        assert 1 > half[name] > other[name]


def test_cider_by_hand_for_one_word():
    # Reference "ball", answer "ball ball": only n = 1 exists; counts are clipped as in CIDEr-D.
    weight = math.log((1 + 3) / 2)
    dot = min(2, 1) * 1 * weight**2
    expected = math.exp(-1 / (2 * 36)) * dot / (weight * 2 * weight)
    assert IDF.cider("ball", "ball ball") == pytest.approx(expected)


def test_common_words_weigh_less_than_rare_ones():
    assert IDF.cider("the sofa", "sofa") > IDF.cider("the sofa", "the")


@given(st.text(max_size=40), st.text(max_size=40))
def test_cider_stays_between_zero_and_one(a, b):
    assert 0 <= IDF.cider(a, b) <= 1 + 1e-9


def test_the_table_round_trips_and_its_digest_follows_its_content(tmp_path):
    IDF.save(tmp_path / "idf.json")
    loaded = Idf.load(tmp_path / "idf.json")
    assert loaded == IDF
    assert loaded.digest == IDF.digest
    assert Idf.build(REFERENCES[:2]).digest != IDF.digest
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"bad\.json: not an IDF table"):
        Idf.load(tmp_path / "bad.json")


def test_words_keep_what_distinguishes_and_drop_punctuation():
    assert words("The dog's tail, 2 balls — OK?") == ["the", "dog's", "tail", "2", "balls", "ok"]
