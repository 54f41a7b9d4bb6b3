"""Bars of the yield funnel: lengths are counts, on one scale over all tasks."""

from __future__ import annotations

import pytest

from rvt_ray.gallery.yield_plot import LEFT, RIGHT, WIDTH, yield_plots
from rvt_ray.queries.funnel import YieldFunnel


def test_bars_are_as_long_as_what_is_left() -> None:
    funnel = YieldFunnel()
    for level, gate in ((1, None), (1, "stability"), (2, None), (4, "leak")):
        funnel.add("vqa", level, ["semantic", "spatial"], gate)
    funnel.add("summary", 3, ["temporal"], None)
    vqa, summary = yield_plots(funnel, ["summary", "grounding", "vqa"], (1, 2, 3, 4))[::-1]
    assert [b.count for b in vqa.bars[:2]] == [4, 4]
    assert vqa.bars[0].end == pytest.approx(WIDTH - RIGHT)
    assert vqa.bars[-1].end == pytest.approx(LEFT + (WIDTH - LEFT - RIGHT) / 2)
    assert [p.level for p in vqa.bars[-1].pieces] == [1, 2]
    assert summary.bars[0].end == pytest.approx(LEFT + (WIDTH - LEFT - RIGHT) / 4), "one scale"


def test_nothing_asked_gives_no_plot() -> None:
    assert yield_plots(YieldFunnel(), ["vqa"], (1, 2, 3, 4)) == []
