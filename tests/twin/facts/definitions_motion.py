"""The facts on motion of docs/predicates.md once more, from the text alone: plain Python, thing by thing."""

from __future__ import annotations

import cmath
import functools
import itertools
import math
import statistics
from collections.abc import Callable, Sequence

from rvt_ray.records import DepthKind
from tests.twin.facts.definitions import FALSE, TRUE, UNKNOWN, Definitions

Sights = list[int]


def first_last(values: Sequence[float]) -> tuple[float, float]:
    k = min(max(len(values) // 10, 1), 5)
    return statistics.median(values[:k]), statistics.median(values[-k:])


def reach(values: Sequence[float]) -> float:
    """The most that it rises from any moment to any later one."""
    return max(max(values[k:]) - values[k] for k in range(len(values)))


def stretches(holds: Sequence[bool]) -> list[tuple[int, int]]:
    found, at = [], 0
    for value, group in itertools.groupby(holds):
        length = len(list(group))
        if value:
            found.append((at, at + length - 1))
        at += length
    return found


class Motion:
    """How one thing moves, by some of its sights."""

    def __init__(self, m: Motions, i: int, sights: Sights) -> None:
        d, s = m.d, m.d.s
        self.m, self.i, self.sights, self.s = m, i, sights, s
        self.shown = sights == m.sights(i)
        steps = m.twin.scene.camera
        self.known = len(sights) >= 4 and all(steps[t].known for t in range(sights[0] + 1, sights[-1] + 1))
        self.places = self._smooth([m.scene(t, *d.centroid(i, t)) for t in sights]) if sights else []
        shifts = [m.shift(t) for t in sights]
        self.slack = s.camera_drift * (max(shifts) - min(shifts)) if sights else 0.0
        xs, ys = [p[0] for p in self.places], [p[1] for p in self.places]
        self.x, self.y = xs, ys
        if len(sights) < 4:
            return
        self.right, self.down = reach(xs), reach(ys)
        self.left, self.up = reach([-v for v in xs]), reach([-v for v in ys])
        self.most = max(self.left, self.right, self.up, self.down)
        self.net = tuple(b - a for a, b in (first_last(xs), first_last(ys)))
        self.rests = self.most <= s.still_shift - self.slack

    def _smooth(self, raw: list[tuple[float, float]]) -> list[tuple[float, float]]:
        n = len(raw)
        if n < 3:
            return raw
        pts = [self.m.twin.pts_s[t] for t in self.sights]
        period = statistics.median(b - a for a, b in itertools.pairwise(pts))
        most = min(round(self.s.smooth_s / 2 / period), (n - 1) // 2)
        means = []
        for at in range(n):
            k = min(most, at, n - 1 - at)
            window = raw[at - k : at + k + 1]
            means.append((statistics.fmean(p[0] for p in window), statistics.fmean(p[1] for p in window)))
        return means

    def edge_moves(self, axis: int) -> list[float]:
        """How far the two edges of the box move on an axis; those that are cut at times are left out."""
        d, moves = self.m.d, []
        for side in (axis, axis + 2):
            line, cut = [], False
            for t in self.sights:
                edge, centre = d.box(self.i, t)[side], d.centroid(self.i, t)
                limit = (d.twin.width, d.twin.height)[axis]
                cut = cut or (edge < self.s.edge_px if side < 2 else edge > limit - self.s.edge_px)
                place = (edge, centre[1]) if axis == 0 else (centre[0], edge)
                line.append(self.m.scene(t, *place)[axis])
            if not cut:
                start, stop = first_last(line)
                moves.append(stop - start)
        return moves

    def speeds(self) -> tuple[float, float]:
        """Least and most."""
        pts = self.m.twin.pts_s
        seconds = pts[self.sights[-1]] - pts[self.sights[0]]
        most = sum(math.dist(a, b) for a, b in itertools.pairwise(self.places))
        covered = self.m._covered(self.i, self.sights)
        kept = [t for t, c in zip(self.sights, covered, strict=True) if not c]
        places = Motion(self.m, self.i, kept).places
        least, here = 0.0, places[0]
        for place in places[1:]:
            if math.dist(here, place) >= self.s.still_shift:
                least, here = least + math.dist(here, place), place
        least += math.dist(here, places[-1])
        return min(least, most) / seconds, most / seconds

    def pace(self) -> list[float]:
        """Speed on each sight."""
        pts = [self.m.twin.pts_s[t] for t in self.sights]

        def slope(v: list[float], k: int) -> float:
            if k in (0, len(v) - 1):
                a, b = (0, 1) if k == 0 else (k - 1, k)
                return (v[b] - v[a]) / (pts[b] - pts[a])
            before, after = pts[k] - pts[k - 1], pts[k + 1] - pts[k]
            back, forth = (v[k] - v[k - 1]) / before, (v[k + 1] - v[k]) / after
            return (back * after + forth * before) / (before + after)

        return [math.hypot(slope(self.x, k), slope(self.y, k)) for k in range(len(pts))]


class Motions:
    """Truth of single facts on motion."""

    def __init__(self, definitions: Definitions) -> None:
        self.d, self.s, self.twin = definitions, definitions.s, definitions.twin
        turn, total = 1 + 0j, 0j
        self._turn, self._off = [turn], [0j]
        for step in self.twin.scene.camera[1:]:
            if step.known:
                turn *= cmath.rect(step.zoom, step.roll)
                total += complex(step.dx, step.dy) / turn
            self._turn.append(turn)
            self._off.append(turn * total)

    def scene(self, t: int, x: float, y: float) -> tuple[float, float]:
        """A pixel of a frame as a place in the scene, in diagonals."""
        middle = complex((self.twin.width - 1) / 2, (self.twin.height - 1) / 2)
        place = ((complex(x, y) - middle - self._off[t]) / self._turn[t] + middle) / self.d.diagonal
        return place.real, place.imag

    def shift(self, t: int) -> float:
        return abs(self._off[t]) / self.d.diagonal + abs(self._turn[t] - 1) / 4

    def sights(self, i: int) -> Sights:
        return [t for t in range(self.twin.num_frames) if self.d.seen(i, t)]

    def uncut(self, i: int) -> Sights:
        """Sights that the border does not cut, or all if it cuts the same sides of it alike all along."""
        seen = self.sights(i)
        boxes = [self.d.box(i, t) for t in seen]
        rim, ends = self.s.edge_px, (self.twin.width, self.twin.height)
        alike = True
        for axis in (0, 1):
            sizes = [box[axis + 2] - box[axis] for box in boxes]
            for cut in (
                [box[axis] < rim for box in boxes],
                [box[axis + 2] > ends[axis] - rim for box in boxes],
            ):
                if any(cut) and not (all(cut) and min(sizes) >= 0.75 * max(sizes)):
                    alike = False
        return seen if alike else [t for t in seen if not self.d.cut(i, t)]

    def decide(self, rule: Callable[..., int], *ids: int) -> int:
        """By every sight, and by the uncut ones."""
        verdicts = {rule(*(Motion(self, i, of(i)) for i in ids)) for of in (self.sights, self.uncut)}
        return verdicts.pop() if len(verdicts) == 1 else UNKNOWN

    # --- while it moves

    @functools.cache  # noqa: B019 - lives as long as one test
    def moving_frames(self, i: int) -> tuple[set[int], set[int], bool]:
        """The frames on which it surely moves, those on which it may, and whether it rests for a part."""
        pts, s = self.twin.pts_s, self.s
        frames = set(range(len(pts)))
        go, rest = set(frames), set(frames)
        for of in (self.sights, self.uncut):
            m = Motion(self, i, of(i))
            pace = m.pace() if m.known else []
            slack = m.slack / (pts[m.sights[-1]] - pts[m.sights[0]]) if m.known else 0.0
            go &= {t for t, v in zip(m.sights, pace, strict=False) if v >= s.move_speed + slack}
            rest &= {t for t, v in zip(m.sights, pace, strict=False) if v <= s.still_speed - slack}
        seen = self.sights(i)
        covered = {t for t, c in zip(seen, self._covered(i, seen), strict=True) if c}
        go -= covered
        rest -= covered

        def about(t: int) -> set[int]:
            return {u for u in frames if abs(pts[u] - pts[t]) <= s.smooth_s + 1e-9}

        sure = {t for t in frames if about(t) <= go}
        calm = {t for t in frames if about(t) <= rest}
        ways = [self.moves, *(self.moves_way(axis, sign) for axis in (0, 1) for sign in (1, -1))]
        moves = any(self.decide(way, i) == TRUE for way in ways)
        proper = moves and len(sure) >= s.min_frames and len(calm) >= s.min_frames
        if self.decide(lambda m: -self.moves(m), i) == TRUE:
            return set(), set(), False
        return sure, frames - calm, proper

    def while_moving(self, name: str, i: int, j: int | None, value: str | None = None) -> int:
        """A relation of i to j, or a region of i, while i moves."""
        inverse = {"right_of": "left_of", "below": "above", "behind": "in_front_of"}

        def frame(t: int):
            if j is None:
                return self.d.region(i, value, t)
            if name in inverse:
                return getattr(self.d, inverse[name])(j, i, t)
            return getattr(self.d, name)(i, j, t)

        frame.__name__ = inverse.get(name, name)
        sure, possible, proper = self.moving_frames(i)
        ids = [i] if j is None else [i, j]
        measured = {t for t in range(self.twin.num_frames) if self.d._measured(frame, t)}
        if not measured:
            return UNKNOWN
        open_ = {t for t in possible if not any(self.d.gone(k, t) for k in ids)}
        if not open_:
            return FALSE
        open_ &= measured
        said = {t: frame(t) if all(self.d.seen(k, t) for k in ids) else UNKNOWN for t in open_}
        true, false = ({t for t in open_ if said[t] == truth} for truth in (TRUE, FALSE))
        need = self.s.min_frames
        yes, no = true & sure, false & sure
        if proper and len(yes) >= need and len(yes) >= self.s.share_true * len(yes | (open_ - true)):
            return TRUE
        if len(false) >= need and false == open_:
            return FALSE
        if len(no) >= need and len(no) > (1 - self.s.share_false) * len(no | (open_ - false)):
            return FALSE
        return UNKNOWN

    # --- one thing

    def moves_way(self, axis: int, sign: int) -> Callable[[Motion], int]:
        def rule(m: Motion) -> int:
            if not m.known:
                return UNKNOWN
            along = ((m.left, m.right), (m.up, m.down))[axis]
            back, forth = along if sign > 0 else along[::-1]
            across = max((m.up, m.down) if axis == 0 else (m.left, m.right))
            net, edges = sign * m.net[axis], [sign * e for e in m.edge_moves(axis)]
            if (
                net >= self.s.move_shift + m.slack
                and edges
                and min(edges) >= net / 2
                and back + m.slack <= forth / 4
                and forth >= 0.6 * across
            ):
                return TRUE
            rests = m.shown and forth <= self.s.still_shift - m.slack
            return FALSE if rests or forth <= max(back, across) / 4 - m.slack else UNKNOWN

        return rule

    def moves(self, m: Motion) -> int:
        if not m.known:
            return UNKNOWN
        far = self.s.move_shift + m.slack
        firsts, seconds = [], []
        for axis in (0, 1):
            for moves, side in ((firsts, axis), (seconds, axis + 2)):
                moves += [abs(v) for v in self._edge(m, axis, side)]
        both = min(max(moves, default=math.inf) for moves in (firsts, seconds))
        goes = math.hypot(*m.net) >= far and both >= far / 2
        returns = max(min(m.left, m.right), min(m.up, m.down)) >= far
        if m.most >= far and (goes or returns):
            return TRUE
        return FALSE if m.rests else UNKNOWN

    @staticmethod
    def _edge(m: Motion, axis: int, side: int) -> list[float]:
        """The move of one edge, or nothing where it is cut."""
        d = m.m.d
        limit = (d.twin.width, d.twin.height)[axis]
        edges = [d.box(m.i, t)[side] for t in m.sights]
        if any(e < m.s.edge_px if side < 2 else e > limit - m.s.edge_px for e in edges):
            return []
        line = []
        for t, e in zip(m.sights, edges, strict=True):
            centre = d.centroid(m.i, t)
            line.append(m.m.scene(t, *((e, centre[1]) if axis == 0 else (centre[0], e)))[axis])
        start, stop = first_last(line)
        return [stop - start]

    def starts(self, backwards: bool) -> Callable[[Motion], int]:
        def rule(m: Motion) -> int:
            if not m.known:
                return UNKNOWN
            pts = [self.twin.pts_s[t] for t in m.sights]
            slack = m.slack / (pts[-1] - pts[0])
            pace = m.pace()
            if backwards:
                pace, pts = pace[::-1], [-p for p in pts[::-1]]
            covered = self._covered(m.i, m.sights)
            if backwards:
                covered = covered[::-1]
            rest = [v <= self.s.still_speed - slack and not c for v, c in zip(pace, covered, strict=True)]
            go = [v >= self.s.move_speed + slack and not c for v, c in zip(pace, covered, strict=True)]
            if self._then(rest, go, pts, self.s.run_s) and m.most >= self.s.move_shift + m.slack:
                return TRUE
            if m.rests:
                return FALSE
            maybe = self._then([not g for g in go], [not r for r in rest], pts, self.s.run_s / 2)
            blind = self._longest_blind(m.i) >= self.s.run_s / 2
            return UNKNOWN if maybe or blind or self._open(m.i) else FALSE

        return rule

    @staticmethod
    def _then(rest: list[bool], go: list[bool], pts: list[float], seconds: float) -> bool:
        for a, b in stretches(rest):
            for c, d in stretches(go):
                begin = max(b, c)
                if (
                    d >= b
                    and pts[begin] - pts[b] <= 0.5
                    and pts[b] - pts[a] - seconds >= 0
                    and pts[d] - pts[begin] - seconds >= 0
                ):
                    return True
        return False

    def _open(self, i: int) -> bool:
        return any(not self.d.seen(i, t) and not self.d.gone(i, t) for t in range(self.twin.num_frames))

    def _longest_blind(self, i: int) -> float:
        seen = self.sights(i)
        usual = statistics.median(self.d._get(i, t, "area") for t in seen)
        dark = [t in set(seen) and self.d._get(i, t, "area") < usual / 4 for t in range(self.twin.num_frames)]
        return max((self.d.lasts(a, b) for a, b in stretches(dark)), default=0.0)

    def _covered(self, i: int, at: Sights) -> list[bool]:
        areas = [self.d._get(i, t, "area") for t in at]
        return [a < 0.75 * min(max(areas[: k + 1]), max(areas[k:])) for k, a in enumerate(areas)]

    def _sliver(self, i: int, at: Sights) -> bool:
        few = min(max(len(at) // 10, 1), 5)
        usual = statistics.median(self.d._get(i, t, "area") for t in self.sights(i))
        return any(self.d._get(i, t, "area") < usual / 4 for t in [*at[:few], *at[-few:]])

    def nears_camera(self, sign: int) -> Callable[[Motion], int]:
        """For metric depth."""

        def rule(m: Motion) -> int:
            i, get = m.i, self.d._get
            at = [
                t
                for t in self.sights(i)
                if not self.d.cut(i, t) and get(i, t, "depth_median") is not None and get(i, t, "area") > 0
            ]
            if len(at) < 4 or not m.known or self.twin.depth_kind is not DepthKind.METRIC:
                return UNKNOWN
            sizes = [math.log(math.sqrt(get(i, t, "area")) / abs(self._turn[t])) for t in at]
            nearness = [-math.log(get(i, t, "depth_median")) for t in at]
            (grows, doubt), (nears, blur) = self._change(sizes), self._change(nearness)
            grows, nears = sign * grows, sign * nears
            high, depth = math.log(self.s.scale_ratio), self.s.depth_margin
            if grows >= max(high, high / 4 + 3 * doubt) and nears >= max(depth, depth / 4 + 3 * blur):
                return TRUE
            if (grows <= high / 4 and nears <= depth / 4) or min(grows, nears) <= -high:
                return FALSE
            return UNKNOWN

        return rule

    @staticmethod
    def _change(values: list[float]) -> tuple[float, float]:
        """Last less first value, and its standard error."""
        start, stop = first_last(values)
        steps = [b - a for a, b in itertools.pairwise(values)]
        usual = statistics.median(steps)
        spread = statistics.median(abs(step - usual) for step in steps) / 0.954
        return stop - start, 1.25 * math.sqrt(2 / min(max(len(values) // 10, 1), 5)) * spread

    # --- two things

    def faster(self, x: Motion, y: Motion) -> int:
        if not x.known or not y.known or x.slack > self.s.still_shift:
            return UNKNOWN
        floor = self.s.still_speed
        (least_x, most_x), (least_y, most_y) = x.speeds(), y.speeds()
        if (
            math.log(max(least_x, floor) / max(most_y, floor)) >= math.log(self.s.speed_ratio)
            and least_x >= self.s.move_speed
            and y.shown
        ):
            return TRUE
        return FALSE if max(most_x, floor) <= max(least_y, floor) and x.shown else UNKNOWN

    def _common(self, x: Motion, y: Motion) -> tuple[Sights, list[list[float]]]:
        """Common frames and on each (x of x, y of x, x of y, y of y)."""
        at = [t for t in x.sights if t in set(y.sights)]
        rows = []
        for t in at:
            a, b = x.sights.index(t), y.sights.index(t)
            rows.append([x.x[a], x.y[a], y.x[b], y.y[b]])
        return at, rows

    def approaches(self, sign: int) -> Callable[[Motion, Motion], int]:
        def rule(x: Motion, y: Motion) -> int:
            if not x.known or not y.known:
                return UNKNOWN
            if x.rests and x.shown:
                return FALSE
            at, rows = self._common(x, y)
            if len(at) < 4:
                return UNKNOWN
            slack = math.hypot(x.slack, y.slack)
            far = [sign * math.hypot(r[2] - r[0], r[3] - r[1]) for r in rows]
            start, stop = first_last(far)
            m, falls, rises = start - stop, reach([-v for v in far]), reach(far)
            moved = [b - a for a, b in (first_last([r[k] for r in rows]) for k in (0, 1))]
            which = 0 if sign > 0 else 1
            line = [first_last([r[k + 2] - r[k] for r in rows])[which] for k in (0, 1)]
            own = sign * (moved[0] * line[0] + moved[1] * line[1]) / max(math.hypot(*line), 1e-9)
            cut = [self.d.cut(x.i, t) for t in at]
            lags = any(cut[-3:] if sign > 0 else cut[:3]) and not all(cut)
            rest = self.s.still_shift - slack
            blind = self._sliver(x.i, at) or self._sliver(y.i, at)
            if m >= self.s.approach_shift + slack and rises <= m / 4 and own >= m / 2 and not (lags or blind):
                return TRUE
            if x.shown and y.shown and falls <= rest:
                return FALSE
            return FALSE if m >= 0 and own <= m / 8 and own <= rest else UNKNOWN

        return rule

    def follows(self, x: Motion, y: Motion) -> int:
        if not x.known or not y.known:
            return UNKNOWN
        if (x.rests and x.shown) or (y.rests and y.shown):
            return FALSE
        at, rows = self._common(x, y)
        if len(at) < 4:
            return UNKNOWN
        slack = math.hypot(x.slack, y.slack)
        way = [b - a for a, b in (first_last([r[k] for r in rows]) for k in range(4))]
        lengths = math.hypot(*way[:2]), math.hypot(*way[2:])
        if min(lengths) < self.s.still_shift + slack:
            return UNKNOWN
        cosine = (way[0] * way[2] + way[1] * way[3]) / (lengths[0] * lengths[1])
        ux, uy = way[2] / lengths[1], way[3] / lengths[1]
        ahead = [(r[2] - r[0]) * ux + (r[3] - r[1]) * uy for r in rows]
        aside = [abs((r[2] - r[0]) * uy - (r[3] - r[1]) * ux) for r in rows]
        margin = self.s.relation_margin
        good = [a >= margin and b <= a for a, b in zip(ahead, aside, strict=True)]
        if (
            min(lengths) >= self.s.move_shift + slack
            and cosine >= 0.82
            and sum(good) >= self.s.share_true * len(good)
        ):
            return TRUE
        return FALSE if cosine <= 0.34 or max(ahead) <= -margin else UNKNOWN

    def passes(self, x: Motion, y: Motion) -> int:
        if not x.known or not y.known:
            return UNKNOWN
        if x.rests and x.shown:
            return FALSE
        at, rows = self._common(x, y)
        length = math.hypot(*x.net)
        if len(at) < 4 or length == 0:
            return UNKNOWN
        slack = math.hypot(x.slack, y.slack)
        ux, uy = x.net[0] / length, x.net[1] / length
        ahead = [(r[2] - r[0]) * ux + (r[3] - r[1]) * uy for r in rows]
        aside = [abs((r[2] - r[0]) * uy - (r[3] - r[1]) * ux) for r in rows]
        start, stop = first_last(ahead)
        level = min(range(len(at)), key=lambda k: abs(ahead[k]))
        high = self.s.relation_margin + slack
        if (
            length >= self.s.move_shift + slack
            and length >= 1.5 * math.hypot(*y.net)
            and start >= high
            and stop <= -high
            and aside[level] <= 1 / 3
        ):
            return TRUE
        return FALSE if min(ahead) >= high or max(ahead) <= -high else UNKNOWN
