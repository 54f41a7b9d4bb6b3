"""Small twins of rectangles, built by hand: what is in them is known exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rvt_ray.masks import rle as rle_codec
from rvt_ray.records import (
    Absence,
    Attribute,
    CameraMotion,
    CameraStep,
    Coverage,
    DepthKind,
    DigitalTwin,
    Instance,
    Provenance,
    Quality,
    Scene,
    Scored,
    Track,
    TrackStatus,
)

WIDTH, HEIGHT = 320, 240
STILL = CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=True)


@dataclass
class Thing:
    """A rectangle. `centre(t)` in pixels, or None with the reason where it cannot be seen."""

    instance_id: int
    kind: str = "object"
    colour: str | None = None
    centre: Callable[[int], tuple[float, float] | Absence] | tuple[float, float] = (160.0, 120.0)
    size: tuple[float, float] | Callable[[int], tuple[float, float]] = (30.0, 30.0)
    depth: float | Callable[[int], float] | None = None
    score: float | Callable[[int], float | None] | None = None
    kind_score: float = 1.0
    alternatives: Sequence[tuple[str, float]] = ()
    attributes: Sequence[Attribute] = ()
    status: TrackStatus = TrackStatus.CONFIRMED
    annotated: Callable[[int], bool] = field(default=lambda _t: True)


def box_rle(x0: int, y0: int, x1: int, y1: int, width: int = WIDTH, height: int = HEIGHT) -> str:
    """RLE of a filled rectangle, the last row and column excluded."""
    h = y1 - y0
    counts = [x0 * height + y0]
    for _ in range(x1 - x0):
        counts += [h, height - h]
    counts[-1] = width * height - (sum(counts) - counts[-1])
    if h == height:  # zero-length background runs are not written
        counts = [x0 * height, (x1 - x0) * height, (width - x1) * height]
    return rle_codec.from_counts(counts, height, width)


def _track(thing: Thing, frames: int, width: int, height: int) -> Track:
    rows: dict[str, list] = {name: [] for name in Track.model_fields}
    for t in range(frames):
        rows["frame_idx"].append(t)
        where = thing.centre(t) if callable(thing.centre) else thing.centre
        w, h = thing.size(t) if callable(thing.size) else thing.size
        numbers = dict.fromkeys(Track.model_fields)
        if not thing.annotated(t):
            rows["visible"].append(False)
            rows["absence"].append(Absence.UNKNOWN)
            rows["rle"].append(None)
        else:
            box = None
            if not isinstance(where, Absence):
                x0, y0 = round(where[0] - w / 2), round(where[1] - h / 2)
                x1, y1 = min(x0 + round(w), width), min(y0 + round(h), height)
                x0, y0 = max(x0, 0), max(y0, 0)
                box = (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None
            reason = where if isinstance(where, Absence) else Absence.OUT
            rows["visible"].append(box is not None)
            rows["absence"].append(None if box else reason)
            rows["rle"].append(box_rle(*box, width, height) if box else rle_codec.empty(height, width))
            numbers["area"] = 0.0
            if box:
                x0, y0, x1, y1 = box
                numbers.update(
                    box_x=float(x0),
                    box_y=float(y0),
                    box_w=float(x1 - x0),
                    box_h=float(y1 - y0),
                    area=float((x1 - x0) * (y1 - y0)),
                    centroid_x=(x0 + x1 - 1) / 2,
                    centroid_y=(y0 + y1 - 1) / 2,
                    score=thing.score(t) if callable(thing.score) else thing.score,
                )
                if thing.depth is not None:
                    d = thing.depth(t) if callable(thing.depth) else thing.depth
                    numbers.update({f"depth_{k}": d for k in ("median", "mean", "p10", "p90", "min", "max")})
                    numbers["depth_std"] = 0.0
        for name, column in rows.items():
            if name not in ("frame_idx", "visible", "absence", "rle"):
                column.append(numbers[name])
    return Track(**rows)


def make_twin(
    things: Sequence[Thing],
    frames: int = 30,
    fps: float = 10.0,
    width: int = WIDTH,
    height: int = HEIGHT,
    depth_kind: DepthKind = DepthKind.NONE,
    camera: Sequence[CameraStep] | None = None,
    clip_id: str = "clip",
    coverage: Coverage = Coverage.EVERYTHING,
) -> DigitalTwin:
    """A twin of these things; a still camera unless steps are given."""
    steps = list(camera) if camera is not None else [STILL] * frames
    instances = [
        Instance(
            instance_id=thing.instance_id,
            category=thing.kind,
            alternatives=[]
            if thing.kind == "object"
            else [
                Scored(value=thing.kind, score=thing.kind_score),
                *(Scored(value=v, score=s) for v, s in thing.alternatives),
            ],
            attributes=[
                *(
                    [Attribute(name="colour", value=thing.colour, score=1.0, source="annotation")]
                    if thing.colour
                    else []
                ),
                *thing.attributes,
            ],
            caption="",
            parent_id=None,
            quality=Quality(mean_score=1.0, redetection_rate=1.0, fragments=1, status=thing.status),
            track=_track(thing, frames, width, height),
        )
        for thing in things
    ]
    return DigitalTwin(
        clip_id=clip_id,
        width=width,
        height=height,
        num_frames=frames,
        pts_s=[t / fps for t in range(frames)],
        depth_kind=depth_kind,
        scene=Scene(
            caption="",
            tags=[],
            camera_motion=CameraMotion.STILL if camera is None else CameraMotion.MOVING,
            camera=steps,
        ),
        key_frames=[0],
        instances=instances,
        provenance=Provenance(segment="test", depth="test", caption="test", settings="", versions="{}"),
        coverage=coverage,
    )


KINDS = ("ball", "box", "car", "dog", "cat", "cup", "chair", "bird")
COLOURS = ("red", "green", "blue", "yellow", "white")


def random_twin(
    seed: int,
    count: int = 8,
    frames: int = 40,
    named: bool = True,
    uncertain: float = 0.1,
    fps: float = 10.0,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> DigitalTwin:
    """Things that rest, cross the frame, enter, leave or get hidden, at random."""
    rng = np.random.default_rng(seed)
    things = []
    for k in range(count):
        x, y = rng.uniform(0.1, 0.9) * width, rng.uniform(0.1, 0.9) * height
        move = rng.random() < 0.6
        vx, vy = (rng.uniform(-1, 1) * width, rng.uniform(-0.6, 0.6) * height) if move else (0.0, 0.0)
        hidden = sorted(rng.integers(0, frames, 2)) if rng.random() < 0.2 else (0, 0)

        def centre(t, x=x, y=y, vx=vx, vy=vy, hidden=hidden):
            if hidden[0] < t < hidden[1]:
                return Absence.OCCLUDED
            return x + vx * t / frames, y + vy * t / frames

        kind = str(rng.choice(KINDS))
        things.append(
            Thing(
                instance_id=3 * k + 1,
                kind=kind if named else "object",
                colour=str(rng.choice(COLOURS)) if rng.random() < 0.9 else None,
                centre=centre,
                size=(float(rng.uniform(0.06, 0.2) * width), float(rng.uniform(0.06, 0.2) * width)),
                depth=float(rng.uniform(1, 10)),
                status=TrackStatus.UNCERTAIN if rng.random() < uncertain else TrackStatus.CONFIRMED,
            )
        )
    return make_twin(
        things, frames, fps, width, height, depth_kind=DepthKind.METRIC, clip_id=f"random-{seed}"
    )
