"""The frames that show a fact."""

from __future__ import annotations

import numpy as np

from rvt_ray.twin.facts import spatial
from rvt_ray.twin.facts.catalogue import EXTREMES
from rvt_ray.twin.facts.logic import Bools, Floats, Truth
from rvt_ray.twin.facts.scopes import THROUGHOUT, WHILE_MOVING, FrameFacts
from rvt_ray.twin.facts.spec import PredicateSpec
from rvt_ray.twin.facts.view import View

MAX_EVIDENCE_FRAMES = 8


def showing(frames: FrameFacts, inside: Bools, scope: str, truth: Truth) -> list[int]:
    """At most 8 frames of the scope's window on which a fact is what it is: over the whole of the window for
    what is true all along, else the clearest.

    Args:
        frames: the fact of one tuple of arguments on each frame, shape (1, frames).
        inside: (frames,) the window.
        scope: what the window is that of.
        truth: TRUE or FALSE.
    """
    shows = (frames.truth[0] == int(truth)) & frames.together[0] & inside & frames.measured
    at = np.flatnonzero(shows)
    if not at.size:
        return []
    if scope in (THROUGHOUT, WHILE_MOVING) and truth is Truth.TRUE:
        picked = at[np.unique(np.linspace(0, len(at) - 1, MAX_EVIDENCE_FRAMES).astype(int))]
    else:
        best = np.argsort(-frames.margin[0, at], kind="stable")[:MAX_EVIDENCE_FRAMES]
        picked = np.sort(at[best])
    return [int(f) for f in picked]


def on_frames(
    view: View, spec: PredicateSpec, rows: tuple[int, ...], value: str | None, scope: str | None
) -> FrameFacts | None:
    """The facts on each frame of these arguments, shape (1, frames); None where there are none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if spec.name == "region":
            found, row = spatial.region(view, value or ""), rows[0]
        elif spec.name in spatial.RELATIONS:
            found, row = spatial.RELATIONS[spec.name](view, rows[0]), rows[1]
        elif spec.inverse in spatial.RELATIONS:
            found, row = spatial.RELATIONS[spec.inverse](view, rows[1]), rows[0]
        elif spec.name in EXTREMES and scope is not None:
            tracks = view.tracks
            shape = (1, tracks.num_frames)
            seen = tracks.seen[rows[0]][None]
            zero: Floats = np.zeros(shape)
            measured = np.ones(tracks.num_frames, bool)
            return FrameFacts(np.ones(shape, np.int8), zero, seen, ~seen, measured)
        else:
            return None
    at = slice(row, row + 1)
    return FrameFacts(found.truth[at], found.margin[at], found.together[at], found.unsure[at], found.measured)
