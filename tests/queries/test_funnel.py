"""The yield funnel: nothing is lost between the steps."""

from __future__ import annotations

from rvt_ray.queries.funnel import YieldFunnel


def test_each_step_takes_away_what_its_gate_refused() -> None:
    funnel = YieldFunnel()
    for gate in (None, None, "stability", "leak", "form", "form"):
        funnel.add("vqa", 2, ["semantic", "spatial"], gate)
    funnel.add("summary", 2, [], None)
    left = dict(zip(["candidates", *funnel.steps()], funnel.left(("vqa", "spatial", 2)), strict=True))
    assert left == {
        "candidates": 6,
        "program": 6,
        "necessity": 6,
        "stability": 5,
        "reply": 5,
        "leak": 4,
        "form": 2,
        "cues": 2,
        "faithful": 2,
    }
    assert funnel.total(["vqa", "summary"], 2)[0] == 7, "several categories count once in totals"
    assert [(c["task"], c["category"], c["candidates"]) for c in funnel.by_cell()] == [
        ("summary", "none", 1),
        ("vqa", "semantic", 6),
        ("vqa", "spatial", 6),
    ]


def test_a_gate_of_another_package_comes_last_and_is_counted() -> None:
    funnel = YieldFunnel()
    funnel.add("vqa", 1, ["semantic"], "own_gate")
    funnel.add("vqa", 1, ["semantic"], None)
    assert funnel.steps()[-1] == "own_gate"
    assert funnel.left(("vqa", "semantic", 1))[-1] == 1
