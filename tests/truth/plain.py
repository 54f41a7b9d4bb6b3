"""What is so in a rendered scene, read off the renderer: instance maps, depth maps, amodal masks, positions
in the world and the exact camera. No twin, no run-length masks, no facts.

Every predicate is decided as people would, in the middle between what `docs/predicates.md` calls surely so
and surely not. A certain fact must agree with it; where two readings are equally good the answer is None.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import cv2
import numpy as np

from rvt_ray.synthetic.spec import Camera
from rvt_ray.twin.facts import kinds
from tests.scenes import Seen

Verdict = bool | None
MOVE = 0.0375  # frame diagonals, between what rests (0.015) and what moves (0.06)
SPEED = 0.0325  # diagonals per second, between what rests (0.015) and what moves (0.05)
FASTER = 1.18  # ratio of speeds, between 1 and 1.4
LARGER = 1.14  # ratio of areas, between 1 and 1.3
EDGE_S, EDGE_SHARE = 0.5, 0.15  # the start and the end of a clip
SUPERLATIVES = {
    "leftmost": "left_of",
    "rightmost": "right_of",
    "topmost": "above",
    "bottommost": "below",
    "nearest": "in_front_of",
    "farthest": "behind",
    "largest": "larger",
    "smallest": "smaller",
    "fastest": "faster",
    "slowest": "slower",
}
TURNED = {
    "right_of": "left_of",
    "below": "above",
    "behind": "in_front_of",
    "smaller": "larger",
    "contains": "inside",
    "slower": "faster",
    "appears_after": "appears_before",
    "disappears_after": "disappears_before",
    "whole_of": "part_of",
}


class Plain:
    """The plain truth of one scene."""

    def __init__(self, seen: Seen) -> None:
        self.truth, self.frames, self.spec = seen.truth, seen.frames, seen.spec
        self.ids = sorted(self.truth.objects)
        self.fps = self.spec.fps
        self.n = self.spec.num_frames
        self.diagonal = float(np.hypot(self.spec.width, self.spec.height))
        self._gaps: dict[tuple[int, int, int], float] = {}
        self._slack = 1.0

    def holds(self, name: str, args: tuple[int, ...], value: str | None, scope: str | None) -> Verdict:
        """Whether predicate(args) with this value is so over this scope."""
        if scope == "while_moving":
            return self._while_moving(name, args, value)
        if name in TURNED:
            return self.holds(TURNED[name], args[::-1], value, scope)
        if name in SUPERLATIVES:
            return self._superlative(SUPERLATIVES[name], args[0], value or "object", scope)
        if name in self._on_frames:
            return self._over(name, args, value, scope or "throughout")
        single: dict[str, Callable[..., Verdict]] = {
            "category": lambda i: kinds.is_a(self.spec_of(i).kind, value or ""),
            "function": lambda i: value in kinds.functions(self.spec_of(i).kind),
            "colour": lambda i: self.spec_of(i).colour == value,
            "attribute": lambda i: value == f"{(value or ':').split(':')[0]}:{self._given(i, value)}",
            "part_of": lambda i, j: False,
        }
        found = single.get(name) or getattr(self, f"_{name}", None)
        if found is None:
            raise ValueError(f"no plain truth for predicate {name!r}")
        verdict = found(*args)
        return None if verdict is None else bool(verdict)

    def spec_of(self, i: int):  # type: ignore[no-untyped-def]
        """The object as it was specified."""
        return self.truth.objects[i].spec

    def _given(self, i: int, value: str | None) -> str:
        return str(getattr(self.spec_of(i), (value or "").split(":")[0], ""))

    # -- on every frame, over scopes --------------------------------------------------------------

    @cached_property
    def _on_frames(self) -> dict[str, Callable[..., np.ndarray]]:
        return {
            "left_of": lambda i, j: self._c(j)[:, 0] - self._c(i)[:, 0] > 0,
            "above": lambda i, j: self._c(j)[:, 1] - self._c(i)[:, 1] > 0,
            "in_front_of": lambda i, j: self._d(i) < self._d(j),
            "larger": lambda i, j: self._area(i) > LARGER * self._area(j),
            "near": lambda i, j: self._gap(i, j) < 0.08 * self.diagonal,
            "touching": lambda i, j: (self._gap(i, j) < 4) & self._level(i, j),
            "inside": lambda i, j: (self._share_inside(i, j) > 0.85) & self._level(i, j),
        } | {"region": lambda i: np.zeros(self.n, bool)}

    def _c(self, i: int) -> np.ndarray:
        return self.truth.objects[i].centroid

    def _d(self, i: int) -> np.ndarray:
        return self.truth.objects[i].depth

    def _area(self, i: int) -> np.ndarray:
        return self.truth.objects[i].area

    def _visible(self, i: int) -> np.ndarray:
        return self.truth.objects[i].visible

    def _region(self, i: int, value: str) -> np.ndarray:
        u, v = self._c(i)[:, 0] / self.spec.width, self._c(i)[:, 1] / self.spec.height
        if value == "centre":
            return np.maximum(abs(u - 0.5), abs(v - 0.5)) < 0.25
        if value.endswith("half"):
            return {"left half": u, "right half": 1 - u, "upper half": v, "lower half": 1 - v}[value] < 0.5
        return {"left": u, "right": 1 - u, "top": v, "bottom": 1 - v}[value] < 0.43

    def _gap(self, i: int, j: int) -> np.ndarray:
        """Least distance of two masks in pixels, per frame; inf where one cannot be seen."""
        out = np.full(self.n, np.inf)
        for t in np.flatnonzero(self._visible(i) & self._visible(j)).tolist():
            key = (min(i, j), max(i, j), t)
            if key not in self._gaps:
                instances = self.frames[t].instances
                away = cv2.distanceTransform(
                    (instances != key[0]).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE
                )
                self._gaps[key] = float(away[instances == key[1]].min())
            out[t] = self._gaps[key]
        return out

    def _spread(self, i: int, t: int) -> tuple[float, float]:
        depth = self.frames[t].depth[self.frames[t].instances == i]
        return (float(np.percentile(depth, 10)), float(np.percentile(depth, 90)))

    def _level(self, i: int, j: int) -> np.ndarray:
        """Neither is clearly in front: their depths overlap, or nearly."""
        out = np.zeros(self.n, bool)
        for t in np.flatnonzero(self._visible(i) & self._visible(j)).tolist():
            spans = [self._spread(k, t) for k in self.ids if self._visible(k)[t]]
            width = max(b for _, b in spans) - min(a for a, _ in spans)
            (a0, a1), (b0, b1) = self._spread(i, t), self._spread(j, t)
            blur = (a1 - a0 + b1 - b0) / 4
            out[t] = abs(self._d(i)[t] - self._d(j)[t]) < self._slack * max(0.06 * width, blur)
        return out

    def _share_inside(self, i: int, j: int) -> np.ndarray:
        a, b = self.truth.objects[i].box, self.truth.objects[j].box
        w = np.minimum(a[:, 0] + a[:, 2], b[:, 0] + b[:, 2]) - np.maximum(a[:, 0], b[:, 0])
        h = np.minimum(a[:, 1] + a[:, 3], b[:, 1] + b[:, 3]) - np.maximum(a[:, 1], b[:, 1])
        share = np.clip(w, 0, None) * np.clip(h, 0, None) / (a[:, 2] * a[:, 3])
        return np.where(self._area(i) < self._area(j), share, 0.0)

    def _window(self, scope: str) -> np.ndarray:
        t = np.arange(self.n) / self.fps
        length = min(EDGE_S, EDGE_SHARE * t[-1]) + 1e-9
        return {"start": t <= length, "end": t >= t[-1] - length}.get(scope, np.ones(self.n, bool))

    def _over(
        self,
        name: str,
        args: tuple[int, ...],
        value: str | None,
        scope: str,
        slack: float = 0.0,
        moving: np.ndarray | None = None,
    ) -> Verdict:
        together = np.logical_and.reduce([self._visible(i) for i in args])
        if moving is not None:
            together &= moving
        if name in ("touching", "inside") and not slack:
            # Where "at the same depth" ends is a matter of taste.
            tight, loose = (self._over(name, args, value, scope, k, moving) for k in (0.75, 1.33))
            return tight if tight == loose else None
        self._slack = slack or 1.0
        on = self._region(args[0], value or "") if name == "region" else self._on_frames[name](*args)
        holds, inside = on & together, self._window(scope)
        if scope == "some_time":
            return bool(holds.any())
        if scope in ("throughout", "moving"):
            return bool(together.sum() >= min(3, self.n) and holds.sum() >= 0.9 * together.sum())
        return bool(holds[inside].mean() > 0.5)

    def _while_moving(self, name: str, args: tuple[int, ...], value: str | None) -> Verdict:
        """Over the frames on which the first of `args` moves, by its place in the world: its middle goes
        faster than the middle between rest and motion since the frame before or until the next."""
        step = np.hypot(*np.diff(self.place(args[0]), axis=0).T) * self.fps > SPEED
        moving = np.concatenate((step, [False])) | np.concatenate(([False], step))
        measured, order = (TURNED[name], args[::-1]) if name in TURNED else (name, args)
        return self._over(measured, order, value, "moving", moving=moving)

    def _superlative(self, relation: str, i: int, kind: str, scope: str | None) -> Verdict:
        others = [j for j in self.ids if j != i and kinds.is_a(self.spec_of(j).kind, kind)]
        if scope in ("start", "end"):
            others = [j for j in others if self._visible(j)[self._window(scope)].mean() > 0.5]
        if not others or not kinds.is_a(self.spec_of(i).kind, kind):
            return False
        if scope == "throughout":
            apart = [j for j in others if not (self._visible(i) & self._visible(j)).any()]
            if apart:
                return None
        return every([self.holds(relation, (i, j), None, scope) for j in others])

    # -- coming and going -------------------------------------------------------------------------

    def _states(self, i: int) -> np.ndarray:
        """Per frame: v(isible), h(idden) or o(ut)."""
        item = self.truth.objects[i]
        return np.where(item.visible, "v", np.where(item.in_view, "h", "o"))

    def _absences(self, i: int) -> list[tuple[int, int]]:
        """First and last frame of every stretch on which it cannot be seen."""
        edges = np.flatnonzero(np.diff(np.concatenate(([0], ~self._visible(i), [0])).astype(int)))
        return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]

    def _enters(self, i: int) -> Verdict:
        return any("o" in self._states(i)[a : b + 1] for a, b in self._absences(i) if b < self.n - 1)

    def _leaves(self, i: int) -> Verdict:
        return any("o" in self._states(i)[a : b + 1] for a, b in self._absences(i) if a > 0)

    def _present_throughout(self, i: int) -> Verdict:
        return bool(self._visible(i).all())

    def _hidings(self, i: int) -> list[tuple[int, int]]:
        inner = [(a, b) for a, b in self._absences(i) if a > 0 and b < self.n - 1]
        return [(a, b) for a, b in inner if (self._states(i)[a : b + 1] == "h").all()]

    def _gets_hidden(self, i: int) -> Verdict:
        return bool(self._hidings(i))

    def _hidden_by(self, i: int, j: int) -> Verdict:
        shares = []
        for a, b in self._hidings(i):
            covered = [
                (self.frames[t].amodal[i] & (self.frames[t].instances == j)).sum()
                / self.frames[t].amodal[i].sum()
                for t in range(a, b + 1)
            ]
            shares.append(float(np.mean(covered)))
        if not shares or max(shares) == 0:
            return False
        return True if max(shares) > 0.4 else None

    def _appears_before(self, i: int, j: int) -> Verdict:
        a, b = self.truth.first_visible(i), self.truth.first_visible(j)
        return None if a is None or b is None else a < b

    def _disappears_before(self, i: int, j: int) -> Verdict:
        a, b = self.truth.last_visible(i), self.truth.last_visible(j)
        return None if a is None or b is None else a < b

    # -- motion: the body's middle in the world, seen by the camera as it stood at first -----------

    def place(self, i: int) -> np.ndarray:
        """(frames, 2) where the body's middle would be in the first frame's picture, in diagonals."""
        item = self.truth.objects[i]
        middle = item.position + np.array([0.0, item.spec.tall / 2, 0.0])
        return Camera(self.spec).project(middle, 0) / self.diagonal

    def _span(self, *ids: int) -> np.ndarray:
        """Frames from the first to the last on which all can be seen."""
        both = np.flatnonzero(np.logical_and.reduce([self._visible(i) for i in ids]))
        return np.arange(both[0], both[-1] + 1) if both.size else np.arange(0)

    def _way(self, i: int, axis: int, sign: int) -> tuple[float, float]:
        """Net displacement and farthest excursion in a direction while it can be seen."""
        x = sign * self.place(i)[self._span(i)][:, axis]
        return float(x[-1] - x[0]), float((x - np.minimum.accumulate(x)).max())

    def _moves_way(self, i: int, axis: int, sign: int) -> Verdict:
        if not self._span(i).size:
            return None
        net, forth = self._way(i, axis, sign)
        back = self._way(i, axis, -sign)[1]
        across = max(self._way(i, 1 - axis, s)[1] for s in (1, -1))
        return net > MOVE and back < 0.6 * forth and forth > 0.4 * across

    def _moves_left(self, i: int) -> Verdict:
        return self._moves_way(i, 0, -1)

    def _moves_right(self, i: int) -> Verdict:
        return self._moves_way(i, 0, 1)

    def _moves_up(self, i: int) -> Verdict:
        return self._moves_way(i, 1, -1)

    def _moves_down(self, i: int) -> Verdict:
        return self._moves_way(i, 1, 1)

    def _extent(self, i: int) -> float:
        return max(self._way(i, axis, sign)[1] for axis in (0, 1) for sign in (1, -1))

    def _moves(self, i: int) -> Verdict:
        return self._extent(i) > MOVE if self._span(i).size else None

    def _still(self, i: int) -> Verdict:
        moves = self._moves(i)
        return None if moves is None else not moves

    def _nearer(self, i: int) -> float:
        z = self.truth.objects[i].position[self._span(i), 2]
        return float(np.log(z[0] / z[-1])) if z.size else 0.0

    def _moves_towards_camera(self, i: int) -> Verdict:
        return self._nearer(i) > np.log(1.2) / 2

    def _moves_away_from_camera(self, i: int) -> Verdict:
        return self._nearer(i) < -np.log(1.2) / 2

    def _rest_then_motion(self, moving: np.ndarray, seconds: float) -> bool:
        """A rest of so many seconds, and within half a second a motion as long."""
        need = max(1, round(seconds * self.fps))
        rests = [a for a in range(len(moving)) if not moving[a : a + need].any() and a + need <= len(moving)]
        goes = [a for a in range(len(moving)) if moving[a : a + need].all() and a + need <= len(moving)]
        return any(0 <= g - (r + need) <= 0.5 * self.fps for r in rests for g in goes)

    def _starts(self, i: int, backwards: bool) -> Verdict:
        at = self._span(i)
        step = np.hypot(*np.diff(self.place(i)[at], axis=0).T) * self.fps
        step = step[::-1] if backwards else step
        strict = self._rest_then_motion(step > 0.04, 0.5) and self._extent(i) > MOVE
        if not self._visible(i)[at].all():
            return None  # nobody sees what it does while it is hidden
        # A soft start and smoothing over a quarter of a second make short rests arguable.
        lenient = self._rest_then_motion(step > 0.02, 0.125) or self._rest_then_motion(step > 0.05, 0.125)
        return True if strict else (None if lenient else False)

    def _starts_moving(self, i: int) -> Verdict:
        return self._starts(i, backwards=False)

    def _stops_moving(self, i: int) -> Verdict:
        return self._starts(i, backwards=True)

    def _speed(self, i: int) -> float:
        at = self._span(i)
        if len(at) < 2:
            return 0.0
        return float(np.hypot(*np.diff(self.place(i)[at], axis=0).T).sum() * self.fps / (len(at) - 1))

    def _faster(self, i: int, j: int) -> Verdict:
        return max(self._speed(i), 0.015) > FASTER * max(self._speed(j), 0.015)

    # -- meetings ---------------------------------------------------------------------------------

    def _approach(self, i: int, j: int, sign: int) -> Verdict:
        at = self._span(i, j)
        if not at.size:
            return None
        x, y = self.place(i)[at], self.place(j)[at]
        far = sign * np.hypot(*(y - x).T)
        gain, worst = far[0] - far[-1], float((far - np.minimum.accumulate(far)).max())
        line = (y - x)[0] if sign > 0 else (x - y)[-1]
        own = float((x[-1] - x[0]) @ line / max(np.hypot(*line), 1e-9))
        return bool(gain > 0.05 and own > gain / 3 and worst < gain / 2)

    def _approaches(self, i: int, j: int) -> Verdict:
        return self._approach(i, j, 1)

    def _moves_away_from(self, i: int, j: int) -> Verdict:
        return self._approach(i, j, -1)

    def _follows(self, i: int, j: int) -> Verdict:
        at = self._span(i, j)
        if len(at) < 2:
            return None
        x, y = self.place(i)[at], self.place(j)[at]
        mine, other = x[-1] - x[0], y[-1] - y[0]
        size = np.hypot(*mine), np.hypot(*other)
        if min(size) < MOVE or mine @ other < 0.58 * size[0] * size[1]:
            return False
        ahead = (y - x) @ other / size[1]
        aside = np.abs((y - x)[:, 0] * other[1] - (y - x)[:, 1] * other[0]) / size[1]
        return bool(((ahead > 0) & (aside < 1.5 * ahead)).mean() > 0.8)

    def _passes(self, i: int, j: int) -> Verdict:
        at = self._span(i, j)
        if len(at) < 2:
            return None
        way = self.place(i)[self._span(i)]
        way = way[-1] - way[0]
        size = float(np.hypot(*way))
        if size < MOVE:
            return False
        gap = self.place(j)[at] - self.place(i)[at]
        ahead = gap @ way / size
        aside = np.abs(gap[:, 0] * way[1] - gap[:, 1] * way[0]) / size
        level = aside[np.abs(ahead).argmin()]
        return bool(ahead[0] > 0 and ahead[-1] < 0 and level < 0.5)

    def _changes_sides_with(self, i: int, j: int) -> Verdict:
        both = np.flatnonzero(self._visible(i) & self._visible(j))
        if not both.size:
            return False
        side = (self._c(j) - self._c(i))[both, 0] / self.diagonal
        few = max(1, min(5, round(len(side) / 10)))
        first, last = float(np.median(side[:few])), float(np.median(side[-few:]))
        return bool(first * last < 0 and min(abs(first), abs(last)) > 0.03)


def every(verdicts: list[Verdict]) -> Verdict:
    """All of them: false beats unknown."""
    if False in verdicts:
        return False
    return None if None in verdicts else True
