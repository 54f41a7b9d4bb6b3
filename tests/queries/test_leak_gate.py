"""Gate 4 on hand-made leaking and clean queries, and the lexicon behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rvt_ray.errors import ConfigError
from rvt_ray.queries.gates.leak import LeakContext, find_leaks, machinery_in
from rvt_ray.queries.lexicon import load_lexicon

CASES = [json.loads(line) for line in (Path(__file__).parent / "leak_cases.jsonl").read_text().splitlines()]


def leaks(case: dict) -> list[str]:
    context = LeakContext(frozenset({case["target"]}), tuple(case["others"]))
    return find_leaks(case["query"], context, load_lexicon())


def test_the_case_set_is_large_and_varied() -> None:
    assert len(CASES) >= 200
    assert len({c["target"] for c in CASES}) >= 40
    assert len({c["how"] for c in CASES if c["leak"]}) >= 10
    assert sum(c["leak"] for c in CASES) >= 80
    assert sum(not c["leak"] for c in CASES) >= 80


def test_precision_and_recall_of_the_leak_gate() -> None:
    found = [(bool(leaks(c)), c) for c in CASES]
    hits = sum(said and c["leak"] for said, c in found)
    precision = hits / sum(said for said, _ in found)
    recall = hits / sum(c["leak"] for c in CASES)
    wrong = [f"{c['target']}: {c['query']} ({c['how']})" for said, c in found if said is not c["leak"]]
    print(f"\nleak gate on {len(CASES)} queries: precision {precision:.3f}, recall {recall:.3f}")
    print("\n".join(wrong))
    assert precision >= 0.97, wrong
    assert recall >= 0.97, wrong


def test_a_general_term_leaks_only_where_nothing_else_falls_under_it() -> None:
    lexicon = load_lexicon()
    query = "Which animal comes in last?"
    assert find_leaks(query, LeakContext(frozenset({"dog"}), ("car", "person")), lexicon)
    assert not find_leaks(query, LeakContext(frozenset({"dog"}), ("car", "cat")), lexicon)


def test_the_answer_of_a_question_does_not_stand_in_it() -> None:
    context = LeakContext(frozenset({"ball"}), ("cube",), frozenset({"red"}))
    assert find_leaks("What colour is the one near the red cube?", context, load_lexicon())


def test_a_mask_is_machinery_unless_somebody_wears_one() -> None:
    assert machinery_in("Which mask is largest?", ("ball",))
    assert not machinery_in("Which one is above the mask?", ("face mask",))


def test_every_kind_of_the_lexicon_has_names_and_sayable_functions() -> None:
    lexicon = load_lexicon()
    coco = (Path(__file__).parent / "coco80.txt").read_text().splitlines()
    assert len(coco) == 80
    assert not [kind for kind in coco if kind not in lexicon.kinds]
    for name, kind in lexicon.kinds.items():
        assert name in lexicon.names(name)
        # A function phrase that names its own kind could never be used.
        context = LeakContext(frozenset({name}), tuple(lexicon.kinds))
        for _, phrases in lexicon.functions(name):
            usable = [
                p for p in phrases if not find_leaks(p.replace("<", "").replace(">", ""), context, lexicon)
            ]
            assert usable, f"every function phrase of {name!r} names it: {phrases}"
        assert kind.functions or kind.general, (
            f"{name!r} can be described neither by function nor more generally"
        )


def test_a_users_lexicon_adds_and_replaces_kinds(tmp_path: Path) -> None:
    path = tmp_path / "more.json"
    path.write_text(
        json.dumps(
            {
                "kinds": {"Sundial": {"synonyms": ["shadow clock"], "functions": ["shade"]}},
                "functions": {"shade": ["<tell> the time by its shadow"]},
            }
        )
    )
    lexicon = load_lexicon(str(path))
    assert "shadow clock" in lexicon.names("sundial")
    assert lexicon.functions("sundial") == (("shade", ("<tell> the time by its shadow",)),)
    assert "cup" in lexicon.kinds


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Expecting"),
        ('{"kinds": {"x": {"colour": "red"}}}', "colour"),
        ('{"kinds": {"x": {"functions": ["fly_to_mars"]}}}', "fly_to_mars"),
    ],
)
def test_a_broken_lexicon_file_is_refused_with_the_reason(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_lexicon(str(path))


def test_a_missing_lexicon_file_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json"):
        load_lexicon("nowhere.json")
