"""faster(x, y) of docs/predicates.md once more, from the text alone, for a camera at rest."""

from __future__ import annotations

import itertools
import math
import statistics

from tests.twin.facts.definitions import FALSE, TRUE, UNKNOWN, Definitions

Place = tuple[float, float]


class Speeds:
    """Least and most mean speed of things, and what follows."""

    def __init__(self, definitions: Definitions) -> None:
        self.d, self.s, self.twin = definitions, definitions.s, definitions.twin

    def sights(self, i: int) -> list[int]:
        return [t for t in range(self.twin.num_frames) if self.d.seen(i, t)]

    def uncut(self, i: int) -> list[int]:
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

    def _places(self, i: int, sights: list[int]) -> list[Place]:
        raw = [
            (
                self.d._get(i, t, "centroid_x") / self.d.diagonal,
                self.d._get(i, t, "centroid_y") / self.d.diagonal,
            )
            for t in sights
        ]
        n = len(raw)
        if n < 3:
            return raw
        pts = [self.twin.pts_s[t] for t in sights]
        period = statistics.median(b - a for a, b in itertools.pairwise(pts))
        most = min(round(self.s.smooth_s / 2 / period), (n - 1) // 2)
        means = []
        for at in range(n):
            k = min(most, at, n - 1 - at)
            window = raw[at - k : at + k + 1]
            means.append((statistics.fmean(p[0] for p in window), statistics.fmean(p[1] for p in window)))
        return means

    def speeds(self, i: int, sights: list[int]) -> tuple[float, float]:
        """Least and most."""
        if len(sights) < 2:
            return 0.0, 0.0
        seconds = self.twin.pts_s[sights[-1]] - self.twin.pts_s[sights[0]]
        places = self._places(i, sights)
        most = sum(math.dist(a, b) for a, b in itertools.pairwise(places))
        areas = [self.d._get(i, t, "area") for t in sights]
        kept = [
            t for k, t in enumerate(sights) if areas[k] >= 0.75 * min(max(areas[: k + 1]), max(areas[k:]))
        ]
        places = self._places(i, kept)
        least, here = 0.0, places[0]
        for place in places[1:]:
            if math.dist(here, place) >= self.s.still_shift:
                least, here = least + math.dist(here, place), place
        least += math.dist(here, places[-1])
        return min(least, most) / seconds, most / seconds

    def faster(self, i: int, j: int) -> int:
        verdicts = {self._faster(i, j, *(of(k) for k in (i, j))) for of in (self.sights, self.uncut)}
        return verdicts.pop() if len(verdicts) == 1 else UNKNOWN

    def _faster(self, i: int, j: int, of_i: list[int], of_j: list[int]) -> int:
        if len(of_i) < 4 or len(of_j) < 4:
            return UNKNOWN
        floor = self.s.still_speed
        (least_i, most_i), (least_j, most_j) = self.speeds(i, of_i), self.speeds(j, of_j)
        if (
            math.log(max(least_i, floor) / max(most_j, floor)) >= math.log(self.s.speed_ratio)
            and least_i >= self.s.move_speed
            and of_j == self.sights(j)
        ):
            return TRUE
        if max(most_i, floor) <= max(least_j, floor) and of_i == self.sights(i):
            return FALSE
        return UNKNOWN
