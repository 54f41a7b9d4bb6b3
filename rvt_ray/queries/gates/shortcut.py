"""Gate 7: would a solver that does not reason get it right? Recorded and balanced, never refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.base import Finding, not_run, passed
from rvt_ray.twin.facts import Facts


@dataclass(frozen=True)
class Favourites:
    """What each simple solver picks in this clip, whatever is asked; null where it cannot tell.

    Attributes:
        largest: the most pixels over the clip.
        central: the least mean distance from the frame's centre.
        moving: the longest way, camera motion removed.
    """

    largest: int | None
    central: int | None
    moving: int | None

    def solve(self, target_ids: tuple[int, ...]) -> list[str]:
        """The solvers that find this target set."""
        if len(target_ids) != 1:
            return []
        picks = {
            "the largest": self.largest,
            "the most central": self.central,
            "the one that moves most": self.moving,
        }
        return [name for name, pick in picks.items() if pick == target_ids[0]]


def favourites(facts: Facts, among: Collection[int] | None = None) -> Favourites:
    """Run the simple solvers once per clip; `among` these instances where they are given."""
    tracks = facts.view.tracks
    offered = np.array([among is None or i in among for i in tracks.ids], dtype=bool)
    seen = tracks.seen & offered[:, None]
    if not seen.any():
        return Favourites(None, None, None)
    area = np.where(seen, np.nan_to_num(tracks.area), 0.0).sum(axis=1)
    off = np.hypot(tracks.cx - tracks.width / 2, tracks.cy - tracks.height / 2)
    count = np.maximum(seen.sum(axis=1), 1)
    mean_off = np.where(seen.any(axis=1), np.where(seen, np.nan_to_num(off), 0.0).sum(axis=1) / count, np.inf)
    motion = facts.view.motion
    way = np.where(motion.known & offered, np.nan_to_num(motion.extent), -1.0)
    return Favourites(
        largest=tracks.ids[int(area.argmax())],
        central=tracks.ids[int(mean_off.argmin())],
        moving=tracks.ids[int(way.argmax())] if way.max() > 0 else None,
    )


def check_shortcut(picks: Favourites, draft: Draft) -> Finding:
    """Which simple solvers would be right, and the chance of a guess from the text alone."""
    targets = draft.candidate.target_ids
    if draft.form in ("masks", "boxes", "summary"):
        guess = ""
    else:
        guess = f"; guessing among the choices: 1 in {len(draft.choices)}" if draft.choices else ""
    if not targets:
        return not_run(f"no target to be found by accident{guess}")
    found = picks.solve(targets)
    return passed(f"solved by: {', '.join(found) or 'none'}{guess}")
