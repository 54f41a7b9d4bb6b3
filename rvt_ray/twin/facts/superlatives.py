"""Superlatives: "the leftmost of all the dogs"."""

from __future__ import annotations

import numpy as np

from rvt_ray.twin.facts import kinds
from rvt_ray.twin.facts.logic import Bools, Truths, all_of
from rvt_ray.twin.facts.scopes import THROUGHOUT, window
from rvt_ray.twin.facts.table import Table
from rvt_ray.twin.facts.view import View


def superlative(view: View, of_kind: Truths, against: Table, kind: str, scope: str | None) -> Table:
    """x is of the kind, another is too, and for every y: y exists, is of the kind and is there implies
    relation(x, y). Uncertain tracks may or may not exist; so may things that the twin does not hold.

    Args:
        view: the twin.
        of_kind: (n,) whether each instance is of the kind.
        against: (n, n) the relation that the superlative is over all others, in the same scope.
        kind: the kind's name.
        scope: of the relation; null: it has none.
    """
    n = len(of_kind)
    exists = np.where(view.tracks.confirmed, 1, 0).astype(np.int8)
    rival = all_of(of_kind, exists)[None, :]
    there, holds = _there(view, scope), against.truth
    if scope == THROUGHOUT:
        # Never seen together: which of the two is "the leftmost" cannot be said.
        holds = np.where(_apart(view), np.minimum(np.maximum(holds, 0), 0), holds).astype(np.int8)
    rival = np.minimum(rival, there[None, :])
    implied = np.maximum(-rival, holds)
    np.fill_diagonal(implied, 1)
    others = np.broadcast_to(rival, (n, n)).copy()
    np.fill_diagonal(others, -1)
    some_other = others.max(axis=1, initial=-1)
    beats_all = implied.min(axis=1, initial=1)
    if not _holds_all(view, kind):
        # A thing that nobody tracked may be a rival, and may be the greater one.
        some_other, beats_all = np.maximum(some_other, 0), np.minimum(beats_all, 0)
    truth = all_of(of_kind, some_other, beats_all).astype(np.int8)
    counted = np.where((others > -1) & (holds > 0), against.margin, np.inf).min(axis=1, initial=np.inf)
    margin = np.where((truth > 0) & np.isfinite(counted), counted, 0.0)
    return Table(truth, margin)


def _holds_all(view: View, kind: str) -> bool:
    """Whether the twin has every thing of a kind. One that does not hold everything is taken to hold all
    of the kinds that its things are called by, as every "the dog" takes it; but not of broader kinds."""
    if view.twin.holds_everything:
        return True
    named = {kinds.normal(i.category) for i in view.twin.instances} - {kinds.NEUTRAL}
    return kinds.normal(kind) in named


def _there(view: View, scope: str | None) -> Truths:
    """Whether each instance is seen in the scope's window: false when it is gone on all of it."""
    tracks = view.tracks
    if scope is None or scope == THROUGHOUT:
        return np.ones(len(tracks.ids), np.int8)
    inside = window(tracks, scope, view.settings)
    seen, gone = tracks.seen[:, inside], tracks.gone[:, inside]
    return np.where(gone.all(1), -1, np.where(seen.all(1), 1, 0)).astype(np.int8)


def _apart(view: View) -> Bools:
    maybe = (view.tracks.seen | view.tracks.unsure).astype(np.int32)
    apart: Bools = (maybe @ maybe.T) == 0
    return apart
