"""Temporal predicates of one instance: presence, motion in the scene, starting and stopping."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rvt_ray.records import DepthKind
from rvt_ray.twin.facts.logic import Bools, Floats
from rvt_ray.twin.facts.motion import MIN_SEEN, Motion, change, steady
from rvt_ray.twin.facts.table import Moments, Table, decided
from rvt_ray.twin.facts.tracks import OCCLUDED, OUT, TrackArrays
from rvt_ray.twin.facts.view import View, agreed, of_whole_tracks

Unary = Callable[[View], Table]


def runs(mask: Bools) -> list[tuple[int, int]]:
    """Maximal runs of true as (first, last), ascending."""
    edges = np.diff(np.concatenate([[0], mask.view(np.int8), [0]]))
    return list(
        zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True)
    )


def span(tracks: TrackArrays, first: int, last: int) -> float:
    """Seconds that frames first..last stand on the screen."""
    pts = tracks.pts
    if len(pts) < 2:
        return 0.0
    end = pts[last + 1] if last + 1 < len(pts) else pts[last] + (pts[-1] - pts[0]) / (len(pts) - 1)
    return float(end - pts[first])


def _table(truth: list[int], margin: list[float], moments: list[list[int]]) -> Table:
    width = max([len(m) for m in moments], default=0) or 1
    frames = np.full((len(moments), width), -1, np.int64)
    for row, found in zip(frames, moments, strict=True):
        row[: len(found)] = found
    return Table(np.array(truth, np.int8), np.array(margin, np.float64), frames)


def _crossing(view: View, *, entering: bool) -> Table:
    """`enters` reads time forwards, `leaves` the same backwards."""
    t, s = view.tracks, view.settings
    order = slice(None) if entering else slice(None, None, -1)
    last = t.num_frames - 1

    def at(frame: int) -> int:
        return frame if entering else last - frame

    truth, margin, moments = [], [], []
    for i in range(len(t.ids)):
        seen, gone, state = t.seen[i, order], t.gone[i, order], t.state[i, order]
        edge = t.edge[i, order]
        best, possible, when = -1.0, False, []
        for a, b in runs(gone):
            after = b + 1
            while after <= last and not seen[after] and not gone[after]:
                after += 1
            if after > last or gone[after]:
                continue
            reason = state[b]
            border = bool(edge[after : after + 3].any())
            if reason == OCCLUDED:
                # It may have come in behind something: all of the absence counts, not its last reason.
                before = int(np.flatnonzero(seen[:a])[-1]) if seen[:a].any() else -1
                possible = possible or bool((gone & (state != OCCLUDED))[before + 1 : b + 1].any())
                continue
            possible = True
            lo, hi = sorted((at(a), at(b)))
            length = span(t, lo, hi)
            stay = next(e for f, e in runs(seen) if f <= after <= e)
            lo, hi = sorted((at(after), at(stay)))
            surplus = min(length, span(t, lo, hi)) - s.event_s
            clear = border and after == b + 1
            if (reason == OUT or clear) and border and surplus >= 0 and surplus > best:
                best, when = surplus, [at(b), at(after), at(min(after + 3, stay))]
        if best >= 0:
            truth.append(1)
            margin.append(best)
        elif possible or _may_be_absent_then_seen(t.unsure[i, order], seen):
            truth.append(0)
            margin.append(0.0)
        else:
            truth.append(-1)
            margin.append(0.0)
            when = sorted({int(at(0)), int(at(last))})
        moments.append(sorted(when))
    return _table(truth, margin, moments)


def _may_be_absent_then_seen(unsure: Bools, seen: Bools) -> bool:
    """Whether an unsure stretch could hide an absence before a sighting."""
    if not unsure.any():
        return False
    return bool(seen[int(np.argmax(unsure)) :].any())


def enters(view: View) -> Table:
    """Out of the frame for `event_s`, then in it for `event_s`, first seen at the frame's border."""
    return _crossing(view, entering=True)


def leaves(view: View) -> Table:
    """In the frame for `event_s`, last seen at its border, then out of it for `event_s`."""
    return _crossing(view, entering=False)


def present_throughout(view: View) -> Table:
    """No gap above `blink_s`; false with a sure gap above `event_s`."""
    t, s = view.tracks, view.settings
    truth, margin, moments = [], [], []
    for i in range(len(t.ids)):
        hole = max((span(t, a, b) for a, b in runs(~t.seen[i])), default=0.0)
        gaps = [(span(t, a, b), a, b) for a, b in runs(t.gone[i])]
        sure, a, b = max(gaps, default=(0.0, 0, 0))
        if hole <= s.blink_s:
            truth.append(1)
            margin.append(s.blink_s - hole)
            moments.append(np.linspace(0, t.num_frames - 1, min(5, t.num_frames)).astype(int).tolist())
        elif sure >= s.event_s:
            truth.append(-1)
            margin.append(sure - s.event_s)
            moments.append(sorted({a, (a + b) // 2, b}))
        else:
            truth.append(0)
            margin.append(0.0)
            moments.append([])
    return _table(truth, margin, moments)


def hidden_runs(tracks: TrackArrays, i: int) -> list[tuple[int, int, bool]]:
    """Absences between two sightings, as (first, last, whether surely by occlusion)."""
    found = []
    seen = np.flatnonzero(tracks.seen[i])
    for a, b in runs(~tracks.seen[i]):
        if seen.size and seen[0] < a and seen[-1] > b and tracks.gone[i, a : b + 1].any():
            state = tracks.state[i, a : b + 1]
            if (state != OUT).all():
                found.append((a, b, bool((state == OCCLUDED).all())))
    return found


def gets_hidden(view: View) -> Table:
    """Absent because occluded for `event_s`, and seen before and after."""
    t, s = view.tracks, view.settings
    truth, margin, moments = [], [], []
    for i in range(len(t.ids)):
        found = hidden_runs(t, i)
        sure = [(span(t, a, b) - s.event_s, a, b) for a, b, certain in found if certain]
        best = max(sure, default=(-1.0, 0, 0))
        if best[0] >= 0:
            truth.append(1)
            margin.append(best[0])
            moments.append([best[1] - 1, (best[1] + best[2]) // 2, best[2] + 1])
        else:
            truth.append(0 if found or t.unsure[i].any() else -1)
            margin.append(0.0)
            moments.append([])
    return _table(truth, margin, moments)


def _with_ends(table: Table, m: Motion) -> Table:
    """Evidence of motion: first, middle and last sight."""
    moments: Moments = np.stack([m.first, (m.first + m.last) // 2, m.last], axis=1)
    return Table(table.truth, table.margin, moments)


def moves(view: View, m: Motion, way: str) -> Table:
    """Net displacement of at least `move_shift` this way; both box edges agree; it never goes back by
    more than a quarter; it goes at least 0.6 as far as across. False: it never gets `still_shift` this
    way, or less than a quarter of what it gets another way."""
    s = view.settings
    sign = -1.0 if way in ("left", "up") else 1.0
    level = way in ("left", "right")
    there, back = {
        "left": (m.left, m.right),
        "right": (m.right, m.left),
        "up": (m.up, m.down),
        "down": (m.down, m.up),
    }[way]
    across = np.maximum(m.up, m.down) if level else np.maximum(m.left, m.right)
    net = sign * (m.net_x if level else m.net_y)
    edges = sign * (m.edges_x if level else m.edges_y)
    agree = (np.isnan(edges) | (edges >= net[:, None] / 2)).all(1) & np.isfinite(edges).any(1)
    high = s.move_shift + m.slack
    true = m.known & (net >= high) & agree & (back + m.slack <= 0.25 * there) & (there >= 0.6 * across)
    rest = np.where(m.shown, s.still_shift - m.slack, -1.0)
    low = np.maximum(rest, 0.25 * np.maximum(back, across) - m.slack)
    false = m.known & (there <= low)
    return _with_ends(decided(true, false, net - high, low - there), m)


def moving(view: View, m: Motion, *, want: bool) -> Table:
    """`still`: never farther than `still_shift` from anywhere it was; `moves`: by `move_shift` at least,
    its box along with it."""
    s = view.settings
    rest, far = s.still_shift - m.slack, s.move_shift + m.slack
    shift = np.fmax(np.abs(m.edges_x).T, np.abs(m.edges_y).T)
    whole = np.nan_to_num(shift, nan=np.inf).min(0)  # a slide over one edge is an occlusion
    drift = np.hypot(np.nan_to_num(m.net_x), np.nan_to_num(m.net_y))
    # Back and forth has no net displacement, but then both extremes are far.
    both_ways = np.maximum(np.minimum(m.left, m.right), np.minimum(m.up, m.down))
    is_far = ((drift >= far) & (whole >= far / 2)) | (both_ways >= far)
    reach = np.maximum(drift, both_ways)
    rests = m.known & (m.extent <= rest)
    goes = m.known & (m.extent >= far) & is_far
    if want:
        return _with_ends(decided(goes, rests, reach - far, rest - m.extent), m)
    return _with_ends(decided(rests, goes, rest - m.extent, reach - far), m)


SLIVER = 0.25
"""Share of its usual area below which what is seen of a thing does not tell where it is."""
DOUBT = 3.0
"""Standard errors by which a change must stand out from no change."""
ALIGNED = 0.8
"""Share of an object's frames whose depth must be comparable over time before its trend is read."""


def usual_area(tracks: TrackArrays, i: int) -> float:
    """Median area, pixels, over the sights of an instance; 0 without any."""
    return float(np.median(tracks.area[i][tracks.seen[i]])) if tracks.seen[i].any() else 0.0


def _depth_over_time(view: View, m: Motion, i: int, at: npt.NDArray[np.int64]) -> Floats:
    """Nearness on the frames `at` as far as it can be compared between them; empty where it cannot. Metric
    depth: minus the log of the distance. Relative depth is comparable inside one frame only: it is read
    through the twin's alignment, where that fits at least `ALIGNED` of the frames. A twin without an
    alignment has the object placed among the others that do not move, in units of the frame's depth range."""
    t = view.tracks
    if t.depth_kind is DepthKind.METRIC:
        distance = -t.near_side[i, at]
        return -np.log(distance) if (distance > 0).all() else np.empty(0)
    if t.near_over_time is not None:
        line = t.near_over_time[i, at]
        fits = np.isfinite(line)
        return line[fits] if fits.mean() >= ALIGNED else np.empty(0)
    calm = (m.extent <= view.settings.still_shift) & m.known
    calm[i] = False
    anchors = np.where(calm[:, None], t.near_side, np.nan)[:, at]
    anchors = anchors[np.isfinite(anchors).all(axis=1)]
    if not len(anchors):
        return np.empty(0)
    place: Floats = (t.near_side[i, at] - anchors.mean(axis=0)) / t.depth_scale[at]
    return place


def towards_camera(view: View, m: Motion, *, nearer: bool) -> Table:
    """Scale (root of the area, on frames where the border cuts nothing, zoom removed) grows by
    `scale_ratio`, and depth comes nearer by `depth_margin`, each `DOUBT` standard errors beyond what counts
    as no change. False: either says clearly the opposite or that nothing changes. Unknown without depth."""
    t, s = view.tracks, view.settings
    n = len(t.ids)
    scale, depth, scale_error, depth_error = (np.full(n, np.nan) for _ in range(4))
    for i in range(n):
        at = np.flatnonzero(t.seen[i] & ~t.edge[i] & np.isfinite(t.near_side[i]) & (t.area[i] > 0))
        if len(at) < MIN_SEEN or not m.known[i]:
            continue
        scale[i], scale_error[i] = change(np.log(np.sqrt(t.area[i, at]) / t.camera_scale[at]))
        nearness = _depth_over_time(view, m, i, at)
        if len(nearness) >= MIN_SEEN:
            depth[i], depth_error[i] = change(nearness)
    sign = 1.0 if nearer else -1.0
    scale, depth = sign * scale, sign * depth
    high = float(np.log(s.scale_ratio))
    scale_high = np.maximum(high, high / 4 + DOUBT * scale_error)
    depth_high = np.maximum(s.depth_margin, s.depth_margin / 4 + DOUBT * depth_error)
    true = (scale >= scale_high) & (depth >= depth_high)
    false = ((scale <= high / 4) & (depth <= s.depth_margin / 4)) | (np.minimum(scale, depth) <= -high)
    return _with_ends(decided(true, false, scale - scale_high, high / 4 - scale), m)


def _change(view: View, m: Motion, *, starting: bool) -> Table:
    """A rest of `run_s` with a motion of `run_s` right after it (or before it, for stopping)."""
    t, s = view.tracks, view.settings
    speed = np.hypot(m.velocity_x, m.velocity_y)
    truth, margin, moments = [], [], []
    for i in range(len(t.ids)):
        at = np.flatnonzero(m.placed[i])
        seconds = np.ptp(t.pts[at]) if at.size else 0.0
        slack = m.slack[i] / max(seconds, 1e-9)
        best, when, possible = -1.0, [], False
        if m.known[i]:
            v = speed[i, at] if starting else speed[i, at][::-1]
            pts = t.pts[at] if starting else -t.pts[at][::-1]
            frames = at if starting else at[::-1]
            # What slides over a thing moves its centroid.
            kept = steady(t.area[i, frames])
            resting, going = (v <= s.still_speed - slack) & kept, (v >= s.move_speed + slack) & kept
            best, where = _rest_then_motion(resting, going, pts, s.run_s, s.run_s)
            when = [int(frames[k]) for k in where]
            # What is not surely moving may rest, what is not surely resting may move.
            possible = _rest_then_motion(~going, ~resting, pts, s.run_s / 2, s.run_s / 2)[0] >= 0
        if best >= 0 and m.extent[i] >= s.move_shift + m.slack[i]:
            truth.append(1)
            margin.append(best)
            moments.append(sorted(when))
        else:
            # While all but a sliver of it is covered, nobody knows its place: it may rest.
            blind = [span(t, a, b) for a, b in runs(t.seen[i] & (t.area[i] < SLIVER * usual_area(t, i)))]
            possible |= max(blind, default=0.0) >= s.run_s / 2
            unsure = possible or not m.known[i] or bool(t.unsure[i].any())
            truth.append(0 if unsure and m.extent[i] > s.still_shift - m.slack[i] else -1)
            if not m.known[i]:
                truth[-1] = 0
            margin.append(0.0)
            moments.append([])
    return _table(truth, margin, moments)


def _rest_then_motion(
    resting: Bools, going: Bools, pts: Floats, rest_s: float, go_s: float
) -> tuple[float, list[int]]:
    """Best surplus (seconds) of a rest of `rest_s` that is followed, within 0.5 s, by a motion of `go_s`;
    -1 when there is none. Also the indices of the rest's middle, the change and the motion's middle."""
    best, where = -1.0, [0]
    going_runs = runs(going)
    for a, b in runs(resting):
        for c, d in going_runs:
            if d < b or pts[max(c, b)] - pts[b] > 0.5:
                continue
            surplus = min(pts[b] - pts[a] - rest_s, pts[d] - pts[max(c, b)] - go_s)
            if surplus > best and surplus >= 0:
                best, where = float(surplus), [(a + b) // 2, b, (max(c, b) + d) // 2]
    return best, where


EVENTS: dict[str, Unary] = {
    "enters": enters,
    "leaves": leaves,
    "present_throughout": of_whole_tracks(present_throughout),
    "gets_hidden": gets_hidden,
    "moves_left": agreed(lambda v, m: moves(v, m, "left")),
    "moves_right": agreed(lambda v, m: moves(v, m, "right")),
    "moves_up": agreed(lambda v, m: moves(v, m, "up")),
    "moves_down": agreed(lambda v, m: moves(v, m, "down")),
    "moves_towards_camera": agreed(lambda v, m: towards_camera(v, m, nearer=True)),
    "moves_away_from_camera": agreed(lambda v, m: towards_camera(v, m, nearer=False)),
    "still": agreed(lambda v, m: moving(v, m, want=False)),
    "moves": agreed(lambda v, m: moving(v, m, want=True)),
    "starts_moving": agreed(lambda v, m: _change(v, m, starting=True)),
    "stops_moving": agreed(lambda v, m: _change(v, m, starting=False)),
}
