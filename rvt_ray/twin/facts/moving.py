"""The scope `while_moving`: the frames on which a thing surely moves, and those on which it may.

Where a motion begins and ends is itself measured, and smoothed. So there are two windows, and a fact over
the scope is decided only where every window between them gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rvt_ray.config.settings import FactSettings
from rvt_ray.twin.facts.logic import Bools, Floats, Truths, from_bounds
from rvt_ray.twin.facts.motion import Motion, steady
from rvt_ray.twin.facts.scopes import FrameFacts
from rvt_ray.twin.facts.temporal import EVENTS
from rvt_ray.twin.facts.view import View

MOTIONS = ("moves", "moves_left", "moves_right", "moves_up", "moves_down")


@dataclass(frozen=True)
class MovingWindows:
    """When each instance moves.

    Attributes:
        sure: (instances, frames) it surely moves.
        possible: (instances, frames) it is not known to rest; holds `sure`.
        proper: (instances,) it surely moves for a part of the clip and rests for a part, so that "while
            moving" says something that "throughout" does not.
    """

    sure: Bools
    possible: Bools
    proper: Bools

    def of(self, rows: range, others: int, *, subject: bool) -> tuple[Bools, Bools, Bools]:
        """The windows of all pairs of `rows` with `others` instances, row after row: those of the row where
        it is the subject, else those of the other."""
        sure, possible, proper = self.sure, self.possible, self.proper
        if subject:
            return tuple(np.repeat(w[rows], others, axis=0) for w in (sure, possible, proper))  # type: ignore[return-value]
        return (
            np.tile(sure, (len(rows), 1)),
            np.tile(possible, (len(rows), 1)),
            np.tile(proper, len(rows)),
        )


def moving_windows(view: View) -> MovingWindows:
    """When everything moves, by every sight of a thing and by its uncut ones alike."""
    tracks = view.tracks
    shape = tracks.seen.shape
    going, resting = np.ones(shape, bool), np.ones(shape, bool)
    for m in (view.motion,) if view.whole_motion is view.motion else (view.motion, view.whole_motion):
        goes, rests = _by_speed(view, m)
        going &= goes
        resting &= rests
    for i in range(shape[0]):
        at = np.flatnonzero(tracks.seen[i])
        if at.size:
            covered = at[~steady(tracks.area[i, at])]
            going[i, covered] = resting[i, covered] = False
    sure, calm = (_all_around(mask, tracks.pts, view.settings.smooth_s) for mask in (going, resting))
    # Speed is that of the centroid, which an occluder that slides by moves too: some motion has to be sure.
    moves = np.logical_or.reduce([EVENTS[name](view).truth > 0 for name in MOTIONS])
    need = view.settings.min_frames
    proper = moves & (sure.sum(1) >= need) & (calm.sum(1) >= need)
    calm |= EVENTS["still"](view).truth[:, None] > 0
    return MovingWindows(sure & ~calm, ~calm, proper)


def _by_speed(view: View, m: Motion) -> tuple[Bools, Bools]:
    """(instances, frames) faster than what surely moves, and slower than what surely rests."""
    t, s = view.tracks, view.settings
    first, last = np.maximum(m.first, 0), np.maximum(m.last, 0)
    slack = m.slack / np.maximum(t.pts[last] - t.pts[first], 1e-9)
    speed = np.where(m.known[:, None], np.hypot(m.velocity_x, m.velocity_y), np.nan)
    with np.errstate(invalid="ignore"):  # NaN: not placed there, neither is known
        going: Bools = speed >= s.move_speed + slack[:, None]
        resting: Bools = speed <= s.still_speed - slack[:, None]
    return going, resting


def _all_around(mask: Bools, pts: Floats, seconds: float) -> Bools:
    """(instances, frames) true where the mask is on every frame within so many seconds before and after."""
    first = np.searchsorted(pts, pts - seconds - 1e-9)
    after = np.searchsorted(pts, pts + seconds + 1e-9, side="right")
    misses = np.concatenate([np.zeros((len(mask), 1), np.int64), np.cumsum(~mask, axis=1)], axis=1)
    found: Bools = misses[:, after] == misses[:, first]
    return found


def over_moving(
    facts: FrameFacts, windows: tuple[Bools, Bools, Bools], settings: FactSettings
) -> tuple[Truths, Floats]:
    """Truth and margin of shape (k,) over `while_moving`.

    Args:
        facts: k pairs (or, unary, k subjects) on every frame.
        windows: `sure` and `possible` of shape (k, frames) and `proper` of shape (k,), of each subject.
        settings: quantifiers.

    Counted are the measured frames of the sure window and, of the frames between the two windows, those that
    speak against the answer. True: it holds on `min_frames` of the sure window, on `share_true` of all that
    counts, and the window is proper. False: the arguments cannot be together on any possible frame; or it
    fails on `min_frames` of the possible window and may hold on none of it; or it fails on `min_frames` of
    the sure window, and on more than 1 - `share_false` of all that counts.
    """
    sure, possible, proper = windows
    if not facts.measured.any():
        return np.zeros(len(facts.truth), np.int8), np.zeros(len(facts.truth))
    known = (facts.together | facts.unsure) & possible
    never = ~known.any(1)
    known &= facts.measured
    holds, fails = (facts.truth > 0) & facts.together & known, (facts.truth < 0) & facts.together & known
    surely_holds, surely_fails = holds & sure, fails & sure
    counted, all_fail = known.sum(1), fails.sum(1)
    n_true, n_false = surely_holds.sum(1), surely_fails.sum(1)
    against_true = counted - (holds.sum(1) - n_true)
    against_false = counted - (all_fail - n_false)
    true = proper & (n_true >= settings.min_frames) & (n_true >= settings.share_true * against_true)
    hopeless = never | ((all_fail >= settings.min_frames) & (all_fail == counted))
    mostly = (n_false >= settings.min_frames) & (n_false > (1 - settings.share_false) * against_false)
    false = hopeless | mostly
    result = from_bounds(true, false)
    worst = np.where(surely_holds, facts.margin, np.inf).min(1, initial=np.inf)
    refuting = np.where(fails, facts.margin, 0.0).max(1, initial=0.0)
    return result, np.where(result > 0, worst, np.where(result < 0, refuting, 0.0))
