"""Guards what follows from a name: functions and names of the right sense only."""

from __future__ import annotations

import pytest

from rvt_ray.queries.lexicon.lexicon import load_lexicon


@pytest.mark.parametrize(
    "name", ["vessel", "drinking vessel", "Drinking_Vessel", "vessels", "seat", "luggage"]
)
def test_a_broader_term_does_not_inherit_functions_of_another_sense(name: str) -> None:
    """A cup is a drinking vessel; it would not carry a crew across the sea."""
    lexicon = load_lexicon()
    assert lexicon.functions(name) == ()
    assert lexicon.canonical(name) is None


@pytest.mark.parametrize(
    ("name", "function"), [("yacht", "float_people"), ("boat", "float_people"), ("tea cup", "drink_from")]
)
def test_kinds_and_unmistakable_synonyms_keep_their_functions(name: str, function: str) -> None:
    assert function in {f for f, _ in load_lexicon().functions(name)}


def test_a_boat_is_still_given_away_by_vessel() -> None:
    """The word is no name to look a kind up by, but it must not stand in a question about a boat."""
    assert "vessel" in load_lexicon().names("boat")
