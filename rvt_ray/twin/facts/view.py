"""What a predicate may look at: the twin, its arrays, and what is measured once and used by many."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import DigitalTwin
from rvt_ray.twin.facts.contact import Gaps, Segments
from rvt_ray.twin.facts.motion import Motion, measure_motion, uncut
from rvt_ray.twin.facts.table import Table
from rvt_ray.twin.facts.tracks import TrackArrays, track_arrays


class View:
    """A twin laid out for measuring. Everything is computed when first asked for, once."""

    def __init__(self, twin: DigitalTwin, settings: FactSettings, segments: Segments | None = None) -> None:
        self.twin = twin
        self._segments = segments
        self.settings = settings
        self.tracks: TrackArrays = track_arrays(twin, settings)

    @cached_property
    def gaps(self) -> Gaps:
        """Mask-to-mask distances."""
        return Gaps(self.twin, self.tracks, self.settings, self._segments)

    @cached_property
    def motion(self) -> Motion:
        """How each instance moves in the scene, by every sight of it."""
        return measure_motion(self.tracks, self.settings, self.tracks.seen)

    @cached_property
    def whole_motion(self) -> Motion:
        """The same by the sights on which the frame's border cuts nothing off."""
        placed = uncut(self.tracks, self.settings)
        if (placed == self.tracks.seen).all():
            return self.motion
        return measure_motion(self.tracks, self.settings, placed)


def agreed(measure: Callable[[View, Motion], Table]) -> Callable[[View], Table]:
    """A predicate on motion, decided twice: by every sight of a thing, and by those on which the border
    cuts nothing off. What comes into view is first a sliver whose centroid tells little of where it is;
    but its motion is not over when it begins to leave. Where the two differ the fact is unknown."""

    def table(view: View) -> Table:
        by_sight = measure(view, view.motion)
        if view.whole_motion is view.motion:
            return by_sight
        by_whole = measure(view, view.whole_motion)
        same = by_sight.truth == by_whole.truth
        truth = np.where(same, by_sight.truth, 0).astype(np.int8)
        margin = np.where(truth != 0, np.minimum(by_sight.margin, by_whole.margin), 0.0)
        return Table(truth, margin, by_sight.moments)

    return table


def of_whole_tracks(measure: Callable[[View], Table]) -> Callable[[View], Table]:
    """A predicate on when things are there; unknown where a track is uncertain: it may have broken off, or be
    a piece, and where it begins and ends then tells nothing of the thing."""

    def table(view: View) -> Table:
        found = measure(view)
        sure = view.tracks.confirmed
        known = sure if found.truth.ndim == 1 else sure[:, None] & sure[None, :]
        return Table(
            np.where(known, found.truth, 0).astype(np.int8),
            np.where(known, found.margin, 0.0),
            found.moments,
        )

    return table
