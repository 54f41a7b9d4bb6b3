"""`Facts`: every predicate of the catalogue over one twin, three-valued, computed when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import Category, DigitalTwin
from rvt_ray.twin.facts import kinds, semantic, spatial
from rvt_ray.twin.facts.catalogue import CATALOGUE, EXTREMES, REGIONS
from rvt_ray.twin.facts.contact import Segments
from rvt_ray.twin.facts.encounters import ENCOUNTERS
from rvt_ray.twin.facts.evidence import on_frames, showing
from rvt_ray.twin.facts.logic import Truth, bits
from rvt_ray.twin.facts.moving import MovingWindows, moving_windows, over_moving
from rvt_ray.twin.facts.naming import check, fact_id, statement
from rvt_ray.twin.facts.scopes import THROUGHOUT, WHILE_MOVING, FrameFacts, over_scope, stacked, window
from rvt_ray.twin.facts.spec import PredicateSpec
from rvt_ray.twin.facts.superlatives import superlative
from rvt_ray.twin.facts.table import Table
from rvt_ray.twin.facts.temporal import EVENTS
from rvt_ray.twin.facts.view import View

BATCH = 1 << 18
"""Frames of pairs that are put under quantifiers at once, and kept: at most 3 MB per measured relation."""


@dataclass(frozen=True)
class Fact:
    """One fact about given instances.

    Attributes:
        truth: TRUE, FALSE or UNKNOWN.
        margin: how far beyond its threshold, >= 0, in the predicate's unit; 0 when unknown.
        frames: at most 8 clip frames that show it; empty for semantic facts.
        fact_id: derived from the content, e.g. `left_of(3,5)@start`.
        statement: plain words, e.g. "#3 is to the left of #5 at the start".
    """

    truth: Truth
    margin: float
    frames: list[int]
    fact_id: str
    statement: str


@dataclass(frozen=True)
class BitTable:
    """A predicate's table as bit masks over instance rows.

    Unary: `certain[0]` and `possible[0]` are the instances of which it is TRUE, and not FALSE. Binary:
    `certain[x]` are the objects of subject x, `certain_of[y]` the subjects of object y.
    """

    certain: tuple[int, ...]
    possible: tuple[int, ...]
    certain_of: tuple[int, ...] = ()
    possible_of: tuple[int, ...] = ()


class Facts:
    """The facts of one twin.

    Instances are addressed by `instance_id` in `value`, and by their row in the twin (0..n-1) in tables.

    Args:
        twin: the digital twin; it is not copied and must not change.
        settings: thresholds and margins.
        segments: where masks come from, if not from the twin (gate 2 moves them).
        like: facts of a twin with the same names, attributes and parts, whose semantic tables hold here too.

    Raises:
        ValueError: the twin's tracks do not fit its frames.
    """

    def __init__(
        self,
        twin: DigitalTwin,
        settings: FactSettings,
        segments: Segments | None = None,
        like: Facts | None = None,
    ) -> None:
        self.twin = twin
        self.settings = settings
        self.view = View(twin, settings, segments)
        self._like = like
        self.ids: tuple[int, ...] = self.view.tracks.ids
        self.confirmed = self.view.tracks.confirmed
        self._row = {instance_id: row for row, instance_id in enumerate(self.ids)}
        self.confirmed_bits = bits(self.confirmed)
        self._tables: dict[tuple[str, str | None, str | None], Table] = {}
        self._bits: dict[tuple[str, str | None, str | None], BitTable] = {}
        self._pairs: dict[str, FrameFacts] = {}

    def values(self, predicate: str) -> list[str]:
        """The values that a predicate can sensibly carry in this twin, sorted; empty if it carries none."""
        kind = CATALOGUE[predicate].value
        if kind is None:
            return []
        if kind == "region":
            return list(REGIONS)
        found = semantic.values(self.twin, kind)
        return [*found, kinds.NEUTRAL] if predicate in EXTREMES else found

    def value(
        self, predicate: str, args: Sequence[int], value: str | None = None, scope: str | None = None
    ) -> Fact:
        """One fact.

        Args:
            predicate: a name of the catalogue.
            args: instance ids, one or two.
            value, scope: as the predicate demands.

        Raises:
            ValueError: no such predicate, or arguments, value or scope that it does not take.
            KeyError: the twin has no such instance.
        """
        spec = check(predicate, len(args), value, scope)
        for instance_id in args:
            if instance_id not in self._row:
                raise KeyError(f"twin of clip {self.twin.clip_id} has no instance {instance_id}")
        rows = tuple(self._row[a] for a in args)
        table = self.table(predicate, value, scope)
        truth = Truth(int(table.truth[rows]))
        frames = self._frames(spec, table, rows, value, scope, truth)
        return Fact(
            truth=truth,
            margin=round(float(table.margin[rows]), 6),
            frames=frames,
            fact_id=fact_id(predicate, args, value, scope),
            statement=statement(spec, args, value, scope),
        )

    def table(self, predicate: str, value: str | None = None, scope: str | None = None) -> Table:
        """Truth and margin for all instances (unary) or ordered pairs (binary; the diagonal is FALSE).

        Raises:
            ValueError: no such predicate, or value or scope that it does not take.
        """
        key = (predicate, value, scope)
        known = self._tables.get(key)
        if known is not None:
            return known
        spec = check(predicate, CATALOGUE[predicate].arity if predicate in CATALOGUE else 1, value, scope)
        if self._like is not None and spec.category is Category.SEMANTIC:
            return self._like.table(predicate, value, scope)
        table = self._compute(spec, value, scope)
        if spec.arity == 2:
            np.fill_diagonal(table.truth, -1)
            np.fill_diagonal(table.margin, 0.0)
        self._tables[key] = table
        return table

    def bits(self, predicate: str, value: str | None = None, scope: str | None = None) -> BitTable:
        """The same table as bit masks, as programs use it."""
        key = (predicate, value, scope)
        known = self._bits.get(key)
        if known is None:
            truth = np.atleast_2d(self.table(predicate, value, scope).truth)
            sets = [tuple(bits(row) for row in mask) for mask in (truth > 0, truth >= 0)]
            if CATALOGUE[predicate].arity == 2:
                sets += [tuple(bits(row) for row in mask) for mask in (truth.T > 0, truth.T >= 0)]
            known = self._bits[key] = BitTable(*sets)
        return known

    def _compute(self, spec: PredicateSpec, value: str | None, scope: str | None) -> Table:
        name = spec.name
        if name in EXTREMES:
            kind = value or kinds.NEUTRAL
            of_kind, against = self.table("category", kind).truth, self.table(EXTREMES[name], None, scope)
            return superlative(self.view, of_kind, against, kind, scope)
        if name in ("category", "function", "colour", "attribute"):
            return {
                "category": semantic.category,
                "function": semantic.function,
                "colour": semantic.colour,
                "attribute": semantic.attribute,
            }[name](self.twin, value or "", self.settings)
        if name == "part_of":
            return semantic.part_of(self.twin)
        if name in EVENTS:
            return EVENTS[name](self.view)
        if name in ENCOUNTERS:
            return ENCOUNTERS[name](self.view)
        if name == "region":
            frames = spatial.region(self.view, value or "")
            if scope == WHILE_MOVING:
                w = self._moving
                return Table(*over_moving(frames, (w.sure, w.possible, w.proper), self.settings))
            return Table(*over_scope(frames, scope or THROUGHOUT, self.view.tracks, self.settings))
        if name in spatial.RELATIONS:
            return self._relation(name, scope or THROUGHOUT)
        assert spec.inverse is not None, name
        if scope == WHILE_MOVING:
            # The other one's moving: no table turned round, but measured along with the inverse.
            self._relation(spec.inverse, scope)
            return self._tables[(name, value, scope)]
        return self.table(spec.inverse, value, scope).swapped()

    @cached_property
    def _moving(self) -> MovingWindows:
        return moving_windows(self.view)

    def _relation(self, name: str, scope: str) -> Table:
        """Many subjects at a time: quantifying over small arrays costs little but the call. Where the frames
        of all pairs are too many to keep, all scopes at once: measuring them is the dear part then."""
        n, view = len(self.ids), self.view
        small = n * n * view.tracks.num_frames <= BATCH
        scopes = (scope,) if small else CATALOGUE[name].scopes
        names = {(name, s) for s in scopes}
        inverse = CATALOGUE[name].inverse
        if WHILE_MOVING in scopes and inverse is not None:
            names.add((inverse, WHILE_MOVING))
        tables = {key: Table(np.full((n, n), -1, np.int8), np.zeros((n, n))) for key in names}
        step = max(1, BATCH // max(1, n * view.tracks.num_frames))
        for start in range(0, n, step):
            rows = range(start, min(start + step, n))
            frames = self._kept_frames(name) if small else self._frames_of(name, rows)
            for (said, s), table in tables.items():
                if s == WHILE_MOVING:
                    windows = self._moving.of(rows, n, subject=said == name)
                    truth, margin = over_moving(frames, windows, self.settings)
                else:
                    truth, margin = over_scope(frames, s, view.tracks, self.settings)
                filled = table if said == name else table.swapped()
                filled.truth[rows], filled.margin[rows] = truth.reshape(-1, n), margin.reshape(-1, n)
        for (said, s), table in tables.items():
            np.fill_diagonal(table.truth, -1)
            np.fill_diagonal(table.margin, 0.0)
            self._tables[(said, None, s)] = table
        return tables[(name, scope)]

    def _frames_of(self, name: str, rows: Iterable[int]) -> FrameFacts:
        with np.errstate(invalid="ignore", divide="ignore"):
            return stacked([spatial.RELATIONS[name](self.view, row) for row in rows])

    def _kept_frames(self, name: str) -> FrameFacts:
        """A measured relation of all subjects, kept, since the scopes share it."""
        known = self._pairs.get(name)
        if known is None:
            known = self._pairs[name] = self._frames_of(name, range(len(self.ids)))
        return known

    def _frames(
        self,
        spec: PredicateSpec,
        table: Table,
        rows: tuple[int, ...],
        value: str | None,
        scope: str | None,
        truth: Truth,
    ) -> list[int]:
        if truth is Truth.UNKNOWN:
            return []
        if table.moments is not None:
            return sorted({int(f) for f in table.moments[rows] if f >= 0})
        frames = on_frames(self.view, spec, rows, value, scope)
        if frames is None:
            return []
        scope = scope or THROUGHOUT
        if scope == WHILE_MOVING:
            # What fails wherever it may move is false even without a frame on which it surely moves.
            sure, possible = self._moving.sure[rows[0]], self._moving.possible[rows[0]]
            shown = showing(frames, sure, scope, truth)
            return shown or (showing(frames, possible, scope, truth) if truth is Truth.FALSE else [])
        return showing(frames, window(self.view.tracks, scope, self.settings), scope, truth)
