"""Guards the vote: one look settles nothing, a tie is no name, `unclear` counts, the outvoted are kept."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvt_ray.llm.schema import check_schema, violation
from rvt_ray.perception.base import InstanceCaption
from rvt_ray.perception.caption.votes import SCHEMA, Look, decide, plain, read


def opinion(*names: str | None) -> InstanceCaption:
    looks = [Look(i, name, frozenset(), f"caption {i}") for i, name in enumerate(names)]
    return decide(7, looks)


def scores(found: InstanceCaption) -> dict[str, float]:
    return {a.value: round(a.score, 3) for a in found.alternatives}


def test_trap_15_what_was_outvoted_is_kept_as_an_alternative() -> None:
    found = opinion("dog", "fox", "dog")
    assert found.category == "dog"
    assert scores(found) == {"dog": 0.667, "fox": 0.333}
    assert found.caption in ("caption 0", "caption 2")


def test_trap_15_unclear_is_a_vote_against_every_name() -> None:
    assert scores(opinion("dog", None, None)) == {"dog": 0.333}
    assert opinion("dog", None, None).category is None
    assert scores(opinion("dog", "dog", None)) == {"dog": 0.667}
    assert opinion(None, None, None).alternatives == []


def test_a_tie_is_no_name() -> None:
    found = opinion("dog", "fox", None)
    assert found.category is None
    assert found.caption == ""
    assert scores(found) == {"dog": 0.333, "fox": 0.333}


def test_trap_15_fewer_than_three_looks_are_never_sure() -> None:
    assert scores(opinion("dog")) == {"dog": 0.333}
    assert scores(opinion("dog", "dog")) == {"dog": 0.667}
    assert scores(opinion("dog", "dog", "dog")) == {"dog": 1.0}
    assert opinion().category is None


NAMES = st.lists(st.sampled_from(["dog", "fox", "cat", None]), max_size=9)


@given(NAMES)
def test_shares_add_up_and_the_name_has_the_most(names: list[str | None]) -> None:
    found = opinion(*names)
    assert sum(a.score for a in found.alternatives) <= 1 + 1e-9
    if found.category is not None:
        counted = Counter(n for n in names if n is not None)
        assert all(counted[found.category] > n for name, n in counted.items() if name != found.category)


@given(st.permutations(["dog", "dog", "fox", None, "cat"]))
def test_the_order_in_which_replies_arrive_changes_nothing(names: list[str | None]) -> None:
    looks = [Look(i, name, frozenset(), f"c{i}") for i, name in enumerate(names)]
    assert decide(1, looks) == decide(1, looks[::-1])


def reply(**changes: object) -> dict[str, object]:
    data = {"sure": "clear", "what": "A Dog.", "attributes": [], "doing": "", "caption": "A  dog runs."}
    return data | changes


def test_the_schema_is_bounded_and_closed() -> None:
    check_schema(SCHEMA)
    assert violation(reply(), SCHEMA) is None
    assert violation(reply(sure="maybe"), SCHEMA) is not None


def test_trap_13_a_reply_that_fits_the_grammar_is_still_cleaned() -> None:
    look = read(4, reply(attributes=[
        {"name": "colour", "value": "Brown"}, {"name": "colour", "value": "brown "},
        {"name": "material", "value": "unknown"},
    ], doing="Running."))  # fmt: skip
    assert (look.category, look.caption) == ("dog", "A dog runs.")
    assert look.claims == {("colour", "brown"), ("action", "running")}


@pytest.mark.parametrize("what", ["", "object", "An outlined object", "unclear", "  The thing "])
def test_a_name_that_names_nothing_is_unclear(what: str) -> None:
    assert read(0, reply(what=what)).category is None
    assert read(0, reply(sure="unclear", what="dog")).category is None


def test_plain_words() -> None:
    assert plain(' "The  Old Dog." ') == "old dog"
    assert plain("Ant") == "ant"
