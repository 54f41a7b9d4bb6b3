"""The predicates of docs/predicates.md once more, written from the text alone: one pair, one frame at a time,
plain Python on the twin's lists. Shares nothing with the package but the records and settings."""

from __future__ import annotations

import functools
import math

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import Absence, DepthKind, DigitalTwin, TrackStatus

TRUE, FALSE, UNKNOWN = 1, -1, 0


class Definitions:
    """Truth of single facts."""

    def __init__(self, twin: DigitalTwin, settings: FactSettings) -> None:
        self.twin, self.s = twin, settings
        self.diagonal = math.hypot(twin.width, twin.height)
        self.at = {i.instance_id: {f: k for k, f in enumerate(i.track.frame_idx)} for i in twin.instances}

    def _get(self, i: int, t: int, name: str):
        k = self.at[i].get(t)
        return None if k is None else getattr(self.twin.instance(i).track, name)[k]

    def seen(self, i: int, t: int) -> bool:
        score = self._get(i, t, "score")
        return (
            self._get(i, t, "rle") is not None
            and bool(self._get(i, t, "visible"))
            and (score is None or score >= self.s.min_track_score)
        )

    def gone(self, i: int, t: int) -> bool:
        return self._get(i, t, "rle") is not None and not self._get(i, t, "visible")

    def box(self, i: int, t: int) -> tuple[float, float, float, float]:
        x, y, w, h = (self._get(i, t, f"box_{k}") for k in "xywh")
        return x, y, x + w, y + h

    def centroid(self, i: int, t: int) -> tuple[float, float]:
        return self._get(i, t, "centroid_x"), self._get(i, t, "centroid_y")

    def lasts(self, first: int, last: int) -> float:
        """Seconds from the first frame's time to the time of the frame after the last."""
        pts = self.twin.pts_s
        end = pts[last + 1] if last + 1 < len(pts) else pts[-1] + (pts[-1] - pts[0]) / (len(pts) - 1)
        return end - pts[first]

    def cut(self, i: int, t: int) -> bool:
        x0, y0, x1, y1 = self.box(i, t)
        rim = self.s.edge_px
        return x0 < rim or y0 < rim or x1 > self.twin.width - rim or y1 > self.twin.height - rim

    # --- one frame; None: not measured there

    def _side(self, i: int, j: int, t: int, axis: int) -> int:
        name = "centroid_x" if axis == 0 else "centroid_y"
        ahead = (self._get(j, t, name) - self._get(i, t, name)) / self.diagonal
        if ahead <= -self.s.relation_margin:
            return FALSE
        if ahead < self.s.relation_margin:
            return UNKNOWN
        a, b = self.box(i, t), self.box(j, t)
        shared = min(a[axis + 2], b[axis + 2]) - max(a[axis], b[axis])
        narrow = min(a[axis + 2] - a[axis], b[axis + 2] - b[axis])
        return UNKNOWN if shared > self.s.overlap_share * narrow else TRUE

    def left_of(self, i: int, j: int, t: int) -> int:
        return self._side(i, j, t, 0)

    def above(self, i: int, j: int, t: int) -> int:
        return self._side(i, j, t, 1)

    def _depth_range(self, t: int) -> float | None:
        lows, highs = [], []
        for other in self.twin.instances:
            i = other.instance_id
            if self.seen(i, t) and self._get(i, t, "depth_p10") is not None:
                lows.append(self._get(i, t, "depth_p10"))
                highs.append(self._get(i, t, "depth_p90"))
        return max(highs) - min(lows) if lows and max(highs) > min(lows) else None

    def in_front_of(self, i: int, j: int, t: int) -> int | None:
        if self.twin.depth_kind is DepthKind.NONE:
            return None
        if not any(
            self.seen(o.instance_id, t) and self._get(o.instance_id, t, "depth_median") is not None
            for o in self.twin.instances
        ):
            return None
        a, b, unit = self._get(i, t, "depth_median"), self._get(j, t, "depth_median"), self._depth_range(t)
        if a is None or b is None or unit is None:
            return UNKNOWN
        nearer = (a - b) / unit * (-1 if self.twin.depth_kind is DepthKind.METRIC else 1)
        spread = [self._get(k, t, "depth_p90") - self._get(k, t, "depth_p10") for k in (i, j)]
        margin = max(self.s.depth_margin, sum(spread) / 4 / unit)
        return TRUE if nearer >= margin else FALSE if nearer <= -margin else UNKNOWN

    def larger(self, i: int, j: int, t: int) -> int:
        ratio = self._get(i, t, "area") / self._get(j, t, "area")
        if ratio <= 1:
            return FALSE
        return TRUE if ratio >= self.s.size_ratio and not self.cut(j, t) else UNKNOWN

    def _grid(self, t: int) -> bool:
        n = self.twin.num_frames
        return t % max(1, math.ceil(n / self.s.contact_frames)) == 0 or t == n - 1

    def gap(self, i: int, j: int, t: int) -> float:
        """Least distance between pixel centres. The masks of these tests are filled boxes; test_contact.py
        has other shapes."""
        a, b = self.box(i, t), self.box(j, t)
        dx = max(a[0], b[0]) - (min(a[2], b[2]) - 1)
        dy = max(a[1], b[1]) - (min(a[3], b[3]) - 1)
        return math.hypot(max(dx, 0.0), max(dy, 0.0))

    def near(self, i: int, j: int, t: int) -> int | None:
        if not self._grid(t):
            return None
        gap = self.gap(i, j, t) / self.diagonal
        if gap <= self.s.near_distance - self.s.near_margin:
            return TRUE
        return FALSE if gap >= self.s.near_distance + self.s.near_margin else UNKNOWN

    def region(self, i: int, value: str, t: int) -> int:
        u = self._get(i, t, "centroid_x") / self.twin.width
        v = self._get(i, t, "centroid_y") / self.twin.height
        share, slack = self.s.region_share, self.s.region_margin
        if value == "centre":
            off = max(abs(u - 0.5), abs(v - 0.5))
            return TRUE if off <= share / 2 - slack else FALSE if off >= share else UNKNOWN
        if value.endswith("half"):
            d = {"left half": u, "right half": 1 - u, "upper half": v, "lower half": 1 - v}[value]
            return TRUE if d <= 0.5 - slack else FALSE if d >= 0.5 + slack else UNKNOWN
        d = {"left": u, "right": 1 - u, "top": v, "bottom": 1 - v}[value]
        return TRUE if d <= share - slack else FALSE if d >= 0.5 + slack else UNKNOWN

    # --- scopes

    def window(self, scope: str) -> list[int]:
        pts = self.twin.pts_s
        length = min(self.s.edge_s, self.s.edge_share * (pts[-1] - pts[0])) + 1e-9
        if scope == "start":
            return [t for t, p in enumerate(pts) if p <= pts[0] + length]
        if scope == "end":
            return [t for t, p in enumerate(pts) if p >= pts[-1] - length]
        return list(range(len(pts)))

    def over(self, scope: str, ids: list[int], frame) -> int:
        """`frame(t)` where all are seen; elsewhere absent (someone surely gone) or open."""
        true = false = together = open_ = total = 0
        row = longest = 0
        for t in self.window(scope):
            if any(self.gone(i, t) for i in ids) or not all(self.seen(i, t) for i in ids):
                measured = self._measured(frame, t)
                if not measured:
                    continue
                total += 1
                open_ += not any(self.gone(i, t) for i in ids)
                continue
            value = frame(t)
            if value is None:
                continue
            total += 1
            together += 1
            true += value == TRUE
            false += value == FALSE
            row = row + 1 if value == TRUE else 0
            longest = max(longest, row)
        if not total:
            return UNKNOWN
        need = min(self.s.min_frames, total)
        if scope == "some_time":
            return TRUE if longest >= need else FALSE if together - false + open_ == 0 else UNKNOWN
        if scope == "throughout":
            known = together + open_
            if together >= need and true >= self.s.share_true * known:
                return TRUE
            if known < need or false > (1 - self.s.share_false) * known:
                return FALSE
            return UNKNOWN
        if true >= self.s.share_true * total:
            return TRUE
        return FALSE if together - false + open_ <= self.s.edge_false * total else UNKNOWN

    def _measured(self, frame, t: int) -> bool:
        if frame.__name__ == "near":
            return self._grid(t)
        if frame.__name__ == "in_front_of":
            return self.twin.depth_kind is not DepthKind.NONE and any(
                self.seen(o.instance_id, t) and self._get(o.instance_id, t, "depth_median") is not None
                for o in self.twin.instances
            )
        return True

    @functools.cache  # noqa: B019 - lives as long as one test
    def relation(self, name: str, i: int, j: int, scope: str) -> int:
        inverse = {"right_of": "left_of", "below": "above", "behind": "in_front_of", "smaller": "larger"}
        if name in inverse:
            return self.relation(inverse[name], j, i, scope)

        def frame(t: int):
            return getattr(self, name)(i, j, t)

        frame.__name__ = name
        return self.over(scope, [i, j], frame)

    def in_region(self, i: int, value: str, scope: str) -> int:
        def frame(t: int):
            return self.region(i, value, t)

        return self.over(scope, [i], frame)

    # --- superlatives

    def extreme(self, relation: str, i: int, kind, scope: str, all_held: bool) -> int:
        """`kind(j)` is the truth of "j is of the kind"; `all_held`: there is no other of the kind than in the
        twin. (Else there may be one, and how it would stand to `i` nobody knows.)"""
        someone, best = (FALSE, TRUE) if all_held else (UNKNOWN, UNKNOWN)
        frames = self.window(scope)
        for other in self.twin.instances:
            j = other.instance_id
            if j == i:
                continue
            rival = kind(j)
            if other.quality.status is TrackStatus.UNCERTAIN:
                rival = min(rival, UNKNOWN)
            holds = self.relation(relation, i, j, scope)
            if scope == "throughout":
                never = not any(
                    not self.gone(i, t) and not self.gone(j, t) for t in range(self.twin.num_frames)
                )
                holds = UNKNOWN if never else holds
            elif all(self.gone(j, t) for t in frames):
                rival = FALSE
            elif not all(self.seen(j, t) for t in frames):
                rival = min(rival, UNKNOWN)
            someone = max(someone, rival)
            best = min(best, max(-rival, holds))
        return min(kind(i), someone, best)

    # --- order of appearance

    def whole(self, i: int) -> bool:
        return (
            next(x for x in self.twin.instances if x.instance_id == i).quality.status is TrackStatus.CONFIRMED
        )

    def present_throughout(self, i: int) -> int:
        n, pts = self.twin.num_frames, self.twin.pts_s
        ends = [*pts[1:], pts[-1] + (pts[-1] - pts[0]) / (n - 1)]

        def longest(absent: list[bool]) -> float:
            best, since = 0.0, None
            for t in range(n):
                since = (pts[t] if since is None else since) if absent[t] else None
                best = max(best, ends[t] - since if since is not None else 0.0)
            return best

        if not self.whole(i):
            return UNKNOWN
        if longest([not self.seen(i, t) for t in range(n)]) <= self.s.blink_s:
            return TRUE
        return FALSE if longest([self.gone(i, t) for t in range(n)]) >= self.s.event_s else UNKNOWN

    def appears_before(self, i: int, j: int) -> int:
        n, pts = self.twin.num_frames, self.twin.pts_s

        def interval(k: int) -> tuple[int, int] | None:
            sure = [t for t in range(n) if self.seen(k, t)]
            if not sure:
                return None
            return min(t for t in range(n) if not self.gone(k, t)), sure[0]

        if not (self.whole(i) and self.whole(j)):
            return UNKNOWN
        a, b = interval(i), interval(j)
        if a is None or b is None:
            return UNKNOWN
        if pts[b[0]] - pts[a[1]] >= self.s.event_s:
            return TRUE
        if pts[a[0]] - pts[b[1]] >= self.s.event_s or (a[1] == 0 and b[1] == 0):
            return FALSE
        return UNKNOWN

    def gets_hidden(self, i: int) -> int:
        n, pts = self.twin.num_frames, self.twin.pts_s
        period = (pts[-1] - pts[0]) / (n - 1) if n > 1 else 0.0
        ends = [*pts[1:], pts[-1] + period]
        sure = [t for t in range(n) if self.seen(i, t)]
        result = UNKNOWN if any(not self.seen(i, t) and not self.gone(i, t) for t in range(n)) else FALSE
        t = 0
        while t < n:
            if self.seen(i, t):
                t += 1
                continue
            first = t
            while t < n and not self.seen(i, t):
                t += 1
            run = range(first, t)
            if not sure or not sure[0] < first or not sure[-1] > run[-1]:
                continue
            reasons = [self._get(i, k, "absence") for k in run if self.gone(i, k)]
            if not reasons or Absence.OUT in reasons:
                continue
            occluded = len(reasons) == len(run) and all(r is Absence.OCCLUDED for r in reasons)
            if occluded and ends[run[-1]] - pts[first] >= self.s.event_s:
                return TRUE
            result = UNKNOWN
        return result
