"""Temporal predicates of two instances: order of appearance, approach, following, passing, hiding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rvt_ray.twin.facts.logic import Bools, Floats
from rvt_ray.twin.facts.motion import Motion, end_length, ends, rise
from rvt_ray.twin.facts.table import Table, decided
from rvt_ray.twin.facts.temporal import SLIVER, hidden_runs, span, usual_area
from rvt_ray.twin.facts.view import View, agreed, of_whole_tracks

Binary = Callable[[View], Table]


def _order(view: View, *, first: bool) -> Table:
    """First (or last) sights at least `event_s` apart. An unsure stretch before the first sight widens
    the interval in which it may lie. False: not earlier, both from the clip's very first frame included."""
    t, s = view.tracks, view.settings
    frames = t.num_frames
    seen, maybe = t.seen, t.seen | t.unsure
    pts = t.pts
    if not first:
        seen, maybe, pts = seen[:, ::-1], maybe[:, ::-1], -pts[::-1]
    never: Bools = t.seen.sum(1) == 0
    sure = np.where(never, frames - 1, seen.argmax(1))
    early = np.where(maybe.any(1), maybe.argmax(1), frames - 1)
    latest, earliest = pts[sure], pts[early]
    # x before y: x's latest possible first sight against y's earliest. Reversed time turns it round.
    gap = earliest[None, :] - latest[:, None]
    counter = latest[None, :] - earliest[:, None]
    if not first:
        gap, counter = gap.T, counter.T
    unknown: Bools = never[:, None] | never[None, :]
    # Both surely there from the very first frame on: neither is earlier.
    from_start: Bools = seen[:, 0]
    at_border = np.logical_and.outer(from_start, from_start)
    true = (gap >= s.event_s) & ~unknown
    false = ((counter <= -s.event_s) | at_border) & ~unknown
    table = decided(true, false, gap - s.event_s, np.where(at_border, 0.0, -counter - s.event_s))
    at = sure if first else frames - 1 - sure
    pair = np.stack(np.broadcast_arrays(at[:, None], at[None, :]), axis=2)
    return Table(table.truth, table.margin, np.sort(pair, axis=2))


def faster(view: View, m: Motion) -> Table:
    """The least that the mean speed of one can be is `speed_ratio` times the most that the other's can be,
    and above `move_speed`. The border hides motion: what it cuts at times may be faster than it looks, and is
    never the slower one for sure."""
    s = view.settings
    # What rests still has a jitter: below the floor speeds are all the same.
    most, least = np.maximum(m.speed, s.still_speed), np.maximum(m.least_speed, s.still_speed)
    surely = np.log(least[:, None] / most[None, :])
    at_best = np.log(most[:, None] / least[None, :])
    high = float(np.log(s.speed_ratio))
    known = m.known[:, None] & m.known[None, :] & (m.slack <= s.still_shift)[:, None]
    quick = (m.least_speed >= s.move_speed)[:, None]
    true = (surely >= high) & quick & known & m.shown[None, :]
    table = decided(true, (at_best <= 0) & known & m.shown[:, None], surely - high, -at_best)
    return _pair_moments(m, table)


def _pair_moments(m: Motion, table: Table) -> Table:
    start = np.maximum(m.first[:, None], m.first[None, :])
    stop = np.maximum(np.minimum(m.last[:, None], m.last[None, :]), start)
    return Table(table.truth, table.margin, np.stack([start, (start + stop) // 2, stop], axis=2))


_CUT_FRAMES = 3


class _Pairs:
    """Fills a pair table one subject at a time, objects as rows."""

    def __init__(self, n: int, moments: int) -> None:
        self.true = np.zeros((n, n), bool)
        self.false = np.zeros((n, n), bool)
        self.margin_true = np.zeros((n, n))
        self.margin_false = np.zeros((n, n))
        self.moments = np.full((n, n, moments), -1, np.int64)

    def table(self) -> Table:
        done = decided(self.true, self.false, self.margin_true, self.margin_false)
        return Table(done.truth, done.margin, self.moments)


def _distance_change(view: View, m: Motion, *, closing: bool) -> Table:
    """`approaches`: the distance of centroids (scene, camera removed) falls by `approach_shift` from first
    to last common sight, never rises by more than a quarter of that, and the subject's own displacement
    towards where the object was is at least half of it. `moves_away_from`: the same with the sign turned.
    Not true where the border cuts the subject on the last (first) of these frames, and not on all, nor where
    one is all but covered when the distance is taken. False:
    the distance never falls by `still_shift`, or the subject rests."""
    s = view.settings
    n = len(m.known)
    out = _Pairs(n, 3)
    rests = m.known & m.shown & (m.extent <= s.still_shift - m.slack)
    for i in range(n):
        for j in range(n):
            if i == j or not (m.known[i] and m.known[j]):
                continue
            if rests[i]:
                out.false[i, j] = True
                out.margin_false[i, j] = s.still_shift - m.slack[i] - m.extent[i]
                continue
            at = np.flatnonzero(m.placed[i] & m.placed[j])
            if len(at) < 4:
                continue
            dx, dy = m.x[j, at] - m.x[i, at], m.y[j, at] - m.y[i, at]
            distance = np.hypot(dx, dy)
            if not closing:
                distance = -distance
            start, stop = ends(distance)
            gain, most, worst = start - stop, rise(-distance), rise(distance)
            slack = float(np.hypot(m.slack[i], m.slack[j]))
            (x0, x1), (y0, y1) = ends(m.x[i, at]), ends(m.y[i, at])
            (ox, _), (oy, _) = ends(dx), ends(dy)
            if closing:
                way = (x1 - x0) * ox + (y1 - y0) * oy
                own = way / max(float(np.hypot(ox, oy)), 1e-9)
            else:
                (_, ox), (_, oy) = ends(dx), ends(dy)
                own = -((x1 - x0) * ox + (y1 - y0) * oy) / max(float(np.hypot(ox, oy)), 1e-9)
            high = s.approach_shift + slack
            # Beyond the border a cut thing goes on: its measured place stays behind, as if it had stopped.
            cut = view.tracks.edge[i, at]
            beyond = (cut[-_CUT_FRAMES:] if closing else cut[:_CUT_FRAMES]).any() and not cut.all()
            true = gain >= high and own >= gain / 2 and worst <= gain / 4 and not beyond
            # Last: few pairs come so far, and medians are dear.
            out.true[i, j] = true and not any(_sliver_at_ends(view, k, at) for k in (i, j))
            still = m.shown[i] and m.shown[j] and most <= s.still_shift - slack
            out.false[i, j] = still or (own <= s.still_shift - slack and gain >= 0 and own <= gain / 8)
            out.margin_true[i, j] = gain - high
            out.margin_false[i, j] = s.still_shift - slack - most
            out.moments[i, j] = at[[0, len(at) // 2, -1]]
    return out.table()


def _sliver_at_ends(view: View, i: int, at: npt.NDArray[np.int64]) -> bool:
    """Whether, on a frame that its first or last value is taken of, a thing shows less than a quarter of what
    it usually shows: its place is not that of its visible rest."""
    t, k = view.tracks, end_length(len(at))
    area = t.area[i, np.concatenate([at[:k], at[-k:]])]
    return bool((area < SLIVER * usual_area(t, i)).any())


def _heading(m: Motion, i: int) -> tuple[float, float, float]:
    """Unit vector and length of the net displacement."""
    x, y = float(np.nan_to_num(m.net_x[i])), float(np.nan_to_num(m.net_y[i]))
    length = float(np.hypot(x, y))
    return (x / length, y / length, length) if length > 0 else (0.0, 0.0, 0.0)


def follows(view: View, m: Motion) -> Table:
    """Both move by `move_shift` within 35 degrees of each other while both are seen, and the subject is
    behind the object along the object's way by `relation_margin` on `share_true` of their common frames,
    never farther aside than ahead. False: either rests, they head more than 70 degrees apart, or it is
    behind on none."""
    s = view.settings
    n = len(m.known)
    out = _Pairs(n, 3)
    rests = m.known & m.shown & (m.extent <= s.still_shift - m.slack)
    for i in range(n):
        for j in range(n):
            if i == j or not (m.known[i] and m.known[j]):
                continue
            if rests[i] or rests[j]:
                out.false[i, j] = True
                continue
            at = np.flatnonzero(m.placed[i] & m.placed[j])
            if len(at) < 4:
                continue
            moved = []
            for k in (i, j):
                (x0, x1), (y0, y1) = ends(m.x[k, at]), ends(m.y[k, at])
                moved.append((x1 - x0, y1 - y0))
            length = [float(np.hypot(*v)) for v in moved]
            slack = float(np.hypot(m.slack[i], m.slack[j]))
            if min(length) < s.still_shift + slack:
                continue
            cosine = (moved[0][0] * moved[1][0] + moved[0][1] * moved[1][1]) / (length[0] * length[1])
            ux, uy = moved[1][0] / length[1], moved[1][1] / length[1]
            dx, dy = m.x[j, at] - m.x[i, at], m.y[j, at] - m.y[i, at]
            ahead, aside = dx * ux + dy * uy, np.abs(dx * uy - dy * ux)
            good = (ahead >= s.relation_margin) & (aside <= ahead)
            out.true[i, j] = (
                min(length) >= s.move_shift + slack and cosine >= 0.82 and good.mean() >= s.share_true
            )
            out.false[i, j] = cosine <= 0.34 or float(ahead.max()) <= -s.relation_margin
            out.margin_true[i, j] = min(length) - s.move_shift - slack
            out.moments[i, j] = at[[0, len(at) // 2, -1]]
    return out.table()


def passes(view: View, m: Motion) -> Table:
    """The subject moves by `move_shift`, at least 1.5 times as far as the object, is behind it by
    `relation_margin` when both are first seen and beyond it when last, along the subject's way, and no
    farther aside at the crossing than a third of a diagonal. False: it rests, or does not get ahead."""
    s = view.settings
    n = len(m.known)
    out = _Pairs(n, 3)
    rests = m.known & m.shown & (m.extent <= s.still_shift - m.slack)
    for i in range(n):
        ux, uy, length = _heading(m, i)
        for j in range(n):
            if i == j or not (m.known[i] and m.known[j]):
                continue
            if rests[i]:
                out.false[i, j] = True
                continue
            at = np.flatnonzero(m.placed[i] & m.placed[j])
            if len(at) < 4 or length == 0:
                continue
            dx, dy = m.x[j, at] - m.x[i, at], m.y[j, at] - m.y[i, at]
            ahead, aside = dx * ux + dy * uy, np.abs(dx * uy - dy * ux)
            start, stop = ends(ahead)
            slack = float(np.hypot(m.slack[i], m.slack[j]))
            high = s.relation_margin + slack
            cross = int(np.argmin(np.abs(ahead)))
            far = length >= s.move_shift + slack and length >= 1.5 * _heading(m, j)[2]
            out.true[i, j] = far and start >= high and stop <= -high and aside[cross] <= 1 / 3
            out.false[i, j] = float(ahead.min()) >= high or float(ahead.max()) <= -high
            out.margin_true[i, j] = min(start, -stop) - high
            out.margin_false[i, j] = max(float(ahead.min()), -float(ahead.max())) - high
            out.moments[i, j] = at[[0, cross, -1]]
    return out.table()


def changes_sides_with(view: View) -> Table:
    """Left of it (by `relation_margin` in the image) at the first common moments and right of it at the
    last ones, or the other way round. False: the sides never differ by more than half of the margin."""
    s, t = view.settings, view.tracks
    n = len(t.ids)
    out = _Pairs(n, 3)
    for i in range(n):
        for j in range(i + 1, n):
            at = np.flatnonzero(t.seen[i] & t.seen[j])
            if len(at) < 4:
                continue
            side = (t.cx[j, at] - t.cx[i, at]) / t.diagonal
            start, stop = ends(side)
            high = s.relation_margin
            true = min(abs(start), abs(stop)) >= high and start * stop < 0
            for a, b in ((i, j), (j, i)):
                out.true[a, b] = true
                out.false[a, b] = float(side.min()) >= -high / 2 or float(side.max()) <= high / 2
                out.margin_true[a, b] = min(abs(start), abs(stop)) - high
                out.margin_false[a, b] = max(float(side.min()), -float(side.max()), 0.0) + high / 2
                out.moments[a, b] = at[[0, len(at) // 2, -1]]
    together = (t.seen.astype(np.int32) @ t.seen.T.astype(np.int32)) + (
        (t.unsure | t.seen).astype(np.int32) @ (t.unsure | t.seen).T.astype(np.int32)
    )
    out.false |= (together == 0) & ~np.eye(n, dtype=bool)  # never in view at the same time
    return out.table()


def _covered(view: View, j: int, frames: npt.NDArray[np.int64], x: Floats, y: Floats, slack: float) -> Bools:
    """On which of the frames the point lies in the box of `j`, widened by `slack` pixels."""
    t = view.tracks
    inside: Bools = (
        t.seen[j, frames]
        & (x >= t.x0[j, frames] - slack)
        & (x <= t.x1[j, frames] + slack)
        & (y >= t.y0[j, frames] - slack)
        & (y <= t.y1[j, frames] + slack)
    )
    return inside


def hidden_by(view: View) -> Table:
    """An absence by occlusion of `event_s` between two sights, on 80 % of whose frames the place where
    the subject must be (between its last and next centroid) lies in the box of the object, which is not
    known to be behind it. False: no absence, or that place, give or take the subject's own size, is never
    in the object's box."""
    t, s = view.tracks, view.settings
    n = len(t.ids)
    out = _Pairs(n, 3)
    for i in range(n):
        found = hidden_runs(t, i)
        out.false[i] = not t.unsure[i].any() or not found
        out.false[i, i] = False
        for a, b, certain in found:
            at = np.arange(a, b + 1)
            place = (t.pts[at] - t.pts[a - 1]) / max(t.pts[b + 1] - t.pts[a - 1], 1e-9)
            x = t.cx[i, a - 1] + place * (t.cx[i, b + 1] - t.cx[i, a - 1])
            y = t.cy[i, a - 1] + place * (t.cy[i, b + 1] - t.cy[i, a - 1])
            reach = float(np.nanmax(t.x1[i] - t.x0[i]) + np.nanmax(t.y1[i] - t.y0[i]))
            for j in range(n):
                if i == j:
                    continue
                share = float(_covered(view, j, at, x, y, 0.0).mean())
                depth = t.near_side[i, a - 1] - t.near_side[j, a - 1]
                behind = depth > s.depth_margin * t.depth_scale[a - 1]  # subject nearer: not its occluder
                if certain and share >= 0.8 and span(t, a, b) >= s.event_s and not behind:
                    surplus = span(t, a, b) - s.event_s
                    if not out.true[i, j] or surplus > out.margin_true[i, j]:
                        out.true[i, j], out.margin_true[i, j] = True, surplus
                        out.moments[i, j] = (a - 1, (a + b) // 2, b + 1)
                if _covered(view, j, at, x, y, reach).any() or not t.seen[j, at].all():
                    out.false[i, j] = False
    return out.table()


ENCOUNTERS: dict[str, Binary] = {
    "appears_before": of_whole_tracks(lambda v: _order(v, first=True)),
    "disappears_before": of_whole_tracks(lambda v: _order(v, first=False)),
    "faster": agreed(faster),
    "approaches": agreed(lambda v, m: _distance_change(v, m, closing=True)),
    "moves_away_from": agreed(lambda v, m: _distance_change(v, m, closing=False)),
    "follows": agreed(follows),
    "passes": agreed(passes),
    "hidden_by": hidden_by,
    "changes_sides_with": changes_sides_with,
}
