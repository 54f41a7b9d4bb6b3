"""A twin, down-sampled to text that a language model can read: a line per thing, a few moments in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rvt_ray.agent.view import TwinView
from rvt_ray.records import Instance
from rvt_ray.twin.facts import Truth

MAX_THINGS = 24
MOMENTS = 4
_EVENTS = (
    ("enters", "comes into view"),
    ("leaves", "leaves the view"),
    ("gets_hidden", "is hidden for a while"),
    ("still", "does not move"),
    ("moves_left", "moves left"),
    ("moves_right", "moves right"),
    ("moves_up", "moves up"),
    ("moves_down", "moves down"),
    ("moves_towards_camera", "comes closer"),
    ("moves_away_from_camera", "goes farther away"),
)


def shown_ids(view: TwinView, most: int = MAX_THINGS) -> list[int]:
    """The instances that fit into a sketch: those with the largest total area, by id."""
    instances = view.twin.instances
    if len(instances) > most:
        instances = sorted(instances, key=lambda i: (-_area(i), i.instance_id))[:most]
    return sorted(i.instance_id for i in instances)


def sketch(view: TwinView, ids: Sequence[int], moments: int = MOMENTS) -> str:
    """One line per instance: its names and attributes, where it is at a few moments, how large, what it
    surely does. Positions are in percent of the frame, x to the right and y downwards."""
    times = np.unique(np.linspace(0, view.twin.num_frames - 1, moments).round().astype(int)).tolist()
    start = view.twin.pts_s[0] if view.twin.pts_s else 0.0
    head = ", ".join(f"{view.twin.pts_s[t] - start:.1f} s" for t in times)
    lines = [f"Positions (x, y in percent) are given at {head}."]
    return "\n".join([*lines, *(_line(view, view.twin.instance(i), times) for i in ids)])


def _line(view: TwinView, instance: Instance, times: list[int]) -> str:
    twin, track = view.twin, instance.track
    words = [instance.category, *(a.value for a in instance.alternatives if a.score >= 0.3)]
    attributes = [f"{a.name} {a.value}" for a in instance.attributes if a.score >= 0.5]
    at = {frame: k for k, frame in enumerate(track.frame_idx)}
    places = []
    for t in times:
        k = at.get(t)
        x, y = (None, None) if k is None else (track.centroid_x[k], track.centroid_y[k])
        places.append(
            "-" if x is None or y is None else f"({100 * x / twin.width:.0f}, {100 * y / twin.height:.0f})"
        )
    seen = [a for a in track.area if a]
    size = 100 * float(np.median(seen)) / (twin.width * twin.height) if seen else 0.0
    doing = [text for p, text in _EVENTS if view.know.truth(p, instance.instance_id) is Truth.TRUE]
    parts = [
        f"#{instance.instance_id}: {' or '.join(dict.fromkeys(words))}",
        *attributes[:4],
        f"at {' '.join(places)}",
        f"size {size:.1f} %",
        *doing[:4],
    ]
    return "; ".join(parts)


def _area(instance: Instance) -> float:
    return float(sum(a for a in instance.track.area if a is not None))
