"""The tracks of a twin on a time line: geometry for the SVG that the template draws."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from enum import StrEnum

from rvt_ray.gallery.palette import hex_colour
from rvt_ray.records import Absence, DigitalTwin, Instance, Track

LEFT, RIGHT, ROW, TOP = 190, 16, 30, 34
WIDTH = 960


class State(StrEnum):
    """What a track says about one frame."""

    VISIBLE = "visible"
    OCCLUDED = "occluded"
    OUT = "out"
    UNKNOWN = "unknown"
    NOT_ANNOTATED = "not_annotated"


@dataclass(frozen=True)
class Run:
    """Frames `first`..`last` (inclusive) in one state, and where the bar is drawn."""

    state: State
    first: int
    last: int
    x: float
    width: float


@dataclass(frozen=True)
class Event:
    """Something that a track's visibility shows: `appears`, `leaves`, `hidden` or `reappears`."""

    name: str
    frame: int
    x: float


@dataclass(frozen=True)
class Row:
    """One track."""

    instance_id: int
    label: str
    colour: str
    uncertain: bool
    y: float
    runs: list[Run]
    events: list[Event]


@dataclass(frozen=True)
class Timeline:
    """Everything that the SVG needs, in its own pixels."""

    width: int
    height: int
    rows: list[Row]
    ticks: list[tuple[float, str]] = field(default_factory=list)
    key_frames: list[tuple[float, int]] = field(default_factory=list)


def states(track: Track, num_frames: int) -> list[State]:
    """The state of every frame of the clip."""
    result = [State.NOT_ANNOTATED] * num_frames
    for i, frame in enumerate(track.frame_idx):
        if track.rle[i] is None:
            continue
        if track.visible[i]:
            result[frame] = State.VISIBLE
        elif track.absence[i] is Absence.OCCLUDED:
            result[frame] = State.OCCLUDED
        elif track.absence[i] is Absence.OUT:
            result[frame] = State.OUT
        else:
            result[frame] = State.UNKNOWN
    return result


def runs_of(sequence: list[State]) -> list[tuple[State, int, int]]:
    """Maximal runs of one state: (state, first frame, last frame)."""
    runs: list[tuple[State, int, int]] = []
    for frame, state in enumerate(sequence):
        if runs and runs[-1][0] is state:
            runs[-1] = (state, runs[-1][1], frame)
        else:
            runs.append((state, frame, frame))
    return runs


def events_of(runs: list[tuple[State, int, int]]) -> list[tuple[str, int]]:
    """Changes of visibility; gaps without annotation are no evidence and make no event."""
    events = []
    seen = False
    for (before, _, _), (after, first, _) in itertools.pairwise(runs):
        seen = seen or before is State.VISIBLE
        if after is State.VISIBLE and before in (State.OUT, State.OCCLUDED, State.UNKNOWN):
            events.append(("reappears" if seen else "appears", first))
        elif before is State.VISIBLE and after is State.OCCLUDED:
            events.append(("hidden", first))
        elif before is State.VISIBLE and after is State.OUT:
            events.append(("leaves", first))
    return events


def timeline(twin: DigitalTwin) -> Timeline:
    """Lay the tracks of a twin out over its presentation times."""
    times = list(twin.pts_s) or [0.0]
    # A frame lasts until the next one; the last one as long as the one before it.
    last = times[-1] - times[-2] if len(times) > 1 else 1.0
    edges = [*times, times[-1] + last]
    span = (edges[-1] - edges[0]) or 1.0

    def x(frame: int) -> float:
        return round(LEFT + (edges[frame] - edges[0]) / span * (WIDTH - LEFT - RIGHT), 2)

    rows = []
    for number, instance in enumerate(twin.instances):
        runs = runs_of(states(instance.track, twin.num_frames))
        rows.append(
            Row(
                instance.instance_id,
                _label(instance),
                hex_colour(instance.instance_id),
                instance.quality.status == "uncertain",
                TOP + number * ROW,
                [Run(s, a, b, x(a), max(1.0, x(b + 1) - x(a))) for s, a, b in runs],
                [Event(name, frame, x(frame)) for name, frame in events_of(runs)],
            )
        )
    step = _tick_step(span)
    ticks = [
        (round(LEFT + i * step / span * (WIDTH - LEFT - RIGHT), 2), f"{i * step:g} s")
        for i in range(int(span / step) + 1)
    ]
    keys = [(x(k), k) for k in twin.key_frames if 0 <= k < twin.num_frames]
    return Timeline(WIDTH, TOP + max(1, len(rows)) * ROW + 8, rows, ticks, keys)


def _label(instance: Instance) -> str:
    text = f"{instance.instance_id} {instance.category}"
    return text if len(text) <= 24 else text[:23] + "…"


def _tick_step(span: float) -> float:
    for step in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800):
        if span / step <= 10:
            return step
    return 3600
