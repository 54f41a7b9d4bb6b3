"""Spatial predicates on every frame: one subject against all objects at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rvt_ray.twin.facts.contact import inside, near, touching
from rvt_ray.twin.facts.logic import Bools, Floats, Truths, graded
from rvt_ray.twin.facts.scopes import FrameFacts
from rvt_ray.twin.facts.tracks import TrackArrays
from rvt_ray.twin.facts.view import View

Row = Callable[[View, int], FrameFacts]


def pair_frames(
    tracks: TrackArrays, i: int, truth: Truths, margin: Floats, measured: Bools | None = None
) -> FrameFacts:
    """Frame facts of subject `i` against every instance, from arrays of shape (instances, frames)."""
    together = tracks.seen & tracks.seen[i]
    unsure = ~(tracks.gone | tracks.gone[i] | together)
    if measured is None:
        measured = np.ones(tracks.num_frames, bool)
    return FrameFacts(truth, margin, together, unsure, measured)


def _side(
    view: View,
    i: int,
    centre: Floats,
    low: Floats,
    high: Floats,
) -> FrameFacts:
    """Whether `i` is before the others along one axis."""
    tracks, settings = view.tracks, view.settings
    truth, margin = graded(
        (centre - centre[i]) / tracks.diagonal, -settings.relation_margin, settings.relation_margin
    )
    shared = np.minimum(high, high[i]) - np.maximum(low, low[i])
    narrower = np.minimum(high - low, high[i] - low[i])
    # A cup in front of the left half of a sofa is not "left of the sofa".
    mixed = (truth > 0) & (shared > settings.overlap_share * narrower)
    truth[mixed] = 0
    margin[mixed] = 0.0
    return pair_frames(tracks, i, truth, margin)


def left_of(view: View, i: int) -> FrameFacts:
    """Centroid of `i` to the left by more than `relation_margin`, boxes not mostly in the same columns."""
    return _side(view, i, view.tracks.cx, view.tracks.x0, view.tracks.x1)


def above(view: View, i: int) -> FrameFacts:
    """Centroid of `i` higher by more than `relation_margin`, boxes not mostly in the same rows."""
    return _side(view, i, view.tracks.cy, view.tracks.y0, view.tracks.y1)


def in_front_of(view: View, i: int) -> FrameFacts:
    """Median depth of `i` nearer by more than `depth_margin` of the frame's range, and by more than half
    of the pair's own spread in depth, on frames with depth."""
    tracks, settings = view.tracks, view.settings
    measured = np.asarray(np.isfinite(tracks.near_side).any(axis=0), bool)
    blur = (tracks.depth_span + tracks.depth_span[i]) / 2 / tracks.depth_scale
    bound = np.maximum(settings.depth_margin, np.nan_to_num(blur))
    truth, margin = graded((tracks.near_side[i] - tracks.near_side) / tracks.depth_scale, -bound, bound)
    return pair_frames(tracks, i, truth, margin, measured)


def larger(view: View, i: int) -> FrameFacts:
    """At least `size_ratio` times the pixels; unknown where the frame's border cuts the smaller one."""
    tracks, settings = view.tracks, view.settings
    area = np.where(tracks.area > 0, tracks.area, np.nan)
    truth, margin = graded(np.log(area[i]) - np.log(area), 0.0, float(np.log(settings.size_ratio)))
    cut = (truth > 0) & tracks.edge
    truth[cut] = 0
    margin[cut] = 0.0
    return pair_frames(tracks, i, truth, margin)


def _near(view: View, i: int) -> FrameFacts:
    return pair_frames(
        view.tracks, i, *near(view.gaps, view.tracks, i, view.settings), measured=view.gaps.grid
    )


def _touching(view: View, i: int) -> FrameFacts:
    facts = touching(view.gaps, view.tracks, i, view.settings, in_front_of(view, i))
    return pair_frames(view.tracks, i, *facts, measured=view.gaps.grid)


def _inside(view: View, i: int) -> FrameFacts:
    return pair_frames(view.tracks, i, *inside(view.tracks, i, view.settings, in_front_of(view, i)))


RELATIONS: dict[str, Row] = {
    "left_of": left_of,
    "above": above,
    "in_front_of": in_front_of,
    "larger": larger,
    "near": _near,
    "touching": _touching,
    "inside": _inside,
}
"""Measured relations. The others are their inverses (`right_of` is `left_of` the other way round)."""


def region(view: View, value: str) -> FrameFacts:
    """Centroid in a part of the frame, for all instances.

    `left`: within `region_share` of the width from the left border, by `region_margin`. False from the
    middle of the frame on: people call anything left of the middle "on the left". `centre`: within half
    of `region_share` around the middle both ways; false beyond `region_share`. `left half`: to the left of
    the middle by `region_margin`; false to the right of it by as much.
    """
    tracks, settings = view.tracks, view.settings
    u, v = tracks.cx / tracks.width, tracks.cy / tracks.height
    share, slack = settings.region_share, settings.region_margin
    if value == "centre":
        off = np.maximum(np.abs(u - 0.5), np.abs(v - 0.5))
        truth, margin = graded(-off, -share, -share / 2 + slack)
    elif value.endswith(" half"):
        inwards = {"left": 0.5 - u, "right": u - 0.5, "upper": 0.5 - v, "lower": v - 0.5}[value.split()[0]]
        truth, margin = graded(inwards, -slack, slack)
    else:
        distance = {"left": u, "right": 1 - u, "top": v, "bottom": 1 - v}[value]
        truth, margin = graded(-distance, -0.5 - slack, -share + slack)
    return FrameFacts(truth, margin, tracks.seen, tracks.unsure, np.ones(tracks.num_frames, bool))
