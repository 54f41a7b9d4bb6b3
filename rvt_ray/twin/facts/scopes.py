"""From frames to scopes: how a fact that holds or not on each frame holds over a part of the clip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rvt_ray.config.settings import FactSettings
from rvt_ray.twin.facts.logic import Bools, Floats, Truths, from_bounds
from rvt_ray.twin.facts.tracks import TrackArrays

THROUGHOUT, START, END, SOME_TIME = "throughout", "start", "end", "some_time"
FRAME_SCOPES = (THROUGHOUT, START, END, SOME_TIME)
WHILE_MOVING = "while_moving"
"""Bound to the subject's own moving: each subject has its own window (`moving.py`)."""
MOVING_SCOPES = (*FRAME_SCOPES, WHILE_MOVING)


@dataclass(frozen=True)
class FrameFacts:
    """One predicate on every frame, for one subject and each of k objects (or for all subjects, unary).

    Attributes:
        truth: int8 (k, frames), meaningful where `together`.
        margin: (k, frames), >= 0.
        together: (k, frames) every argument is surely visible and was measured.
        unsure: (k, frames) an argument may or may not be visible.
        measured: (frames,) the frames on which this predicate is measured at all.
    """

    truth: Truths
    margin: Floats
    together: Bools
    unsure: Bools
    measured: Bools


def window(tracks: TrackArrays, scope: str, settings: FactSettings) -> Bools:
    """(frames,) the frames that a scope speaks of: for `start` and `end` the first and last `edge_s`
    seconds, but no more than `edge_share` of the clip and no less than one frame."""
    pts = tracks.pts
    if scope not in (START, END):
        return np.ones(len(pts), bool)
    length = min(settings.edge_s, settings.edge_share * float(pts[-1] - pts[0]))
    inside: Bools
    if scope == START:
        inside = pts <= pts[0] + length + 1e-9
    else:
        inside = pts >= pts[-1] - length - 1e-9
    return inside


def stacked(parts: list[FrameFacts]) -> FrameFacts:
    """Several subjects' frame facts of one predicate as one, subject after subject."""
    if len(parts) == 1:
        return parts[0]
    return FrameFacts(
        np.concatenate([p.truth for p in parts]),
        np.concatenate([p.margin for p in parts]),
        np.concatenate([p.together for p in parts]),
        np.concatenate([p.unsure for p in parts]),
        parts[0].measured,
    )


def over_scope(
    facts: FrameFacts, scope: str, tracks: TrackArrays, settings: FactSettings
) -> tuple[Truths, Floats]:
    """Truth and margin of shape (k,) over a scope. The quantifiers, on the measured frames of the window:

    * throughout: the arguments are seen together on at least `min_frames` of them, and of those it holds
      on at least `share_true`. False: never so often together, or it fails on more than 1 - `share_false`.
    * start, end: as throughout, but a frame on which an argument is absent counts against it. False: it
      may hold on at most `edge_false` of the window.
    * some_time: it holds on `min_frames` frames in a row, of those on which the arguments are seen together.
      False: it may hold on none. Not on as many frames anywhere: of a long clip's masks some are wrong by
      chance, but hardly three at a stretch.
    """
    inside = window(tracks, scope, settings) & facts.measured
    total = int(inside.sum())
    k = facts.truth.shape[0]
    if total == 0:
        return np.zeros(k, np.int8), np.zeros(k)
    at = slice(None) if total == len(inside) else np.flatnonzero(inside)
    truth, together, unsure = facts.truth[:, at], facts.together[:, at], facts.unsure[:, at]
    margin = facts.margin[:, at]
    holds, fails = (truth > 0) & together, (truth < 0) & together
    n_true, n_false = holds.sum(1), fails.sum(1)
    n_together, n_unsure = together.sum(1), unsure.sum(1)
    need = min(settings.min_frames, total)
    worst = np.where(holds, margin, np.inf).min(1)
    refuting = np.where(fails, margin, 0.0).max(1)
    if scope == SOME_TIME:
        count = np.cumsum(holds, axis=1)
        before = np.maximum.accumulate(np.where(together & ~holds, count, 0), axis=1)
        result = from_bounds((count - before).max(1) >= need, n_together - n_false + n_unsure == 0)
        kth = np.partition(np.where(holds, margin, 0.0), -need, axis=1)[:, -need]
        return result, np.where(result > 0, kth, np.where(result < 0, refuting, 0.0))
    if scope == THROUGHOUT:
        known = n_together + n_unsure
        true = (n_together >= need) & (n_true >= settings.share_true * known)
        false = (known < need) | (n_false > (1 - settings.share_false) * known)
    else:
        may = n_together - n_false + n_unsure
        true = n_true >= settings.share_true * total
        false = may <= settings.edge_false * total
    result = from_bounds(true, false & ~true)
    return result, np.where(result > 0, np.where(n_true > 0, worst, 0.0), np.where(result < 0, refuting, 0.0))
