"""A twin's tracks as dense arrays over instances and frames, with the camera's motion taken out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import Absence, CameraMotion, DepthKind, DigitalTwin, TrackStatus
from rvt_ray.twin.facts.logic import Bools, Floats

NOT_ANNOTATED, VISIBLE, OCCLUDED, OUT, UNEXPLAINED = range(5)
_NUMBERS = (
    "box_x",
    "box_y",
    "box_w",
    "box_h",
    "area",
    "centroid_x",
    "centroid_y",
    "score",
    "depth_median",
    "depth_p10",
    "depth_p90",
)
_ABSENCE = {Absence.OCCLUDED: OCCLUDED, Absence.OUT: OUT, Absence.UNKNOWN: UNEXPLAINED, None: UNEXPLAINED}


@dataclass(frozen=True)
class TrackArrays:
    """Tracks of a twin. Arrays have shape (instances, frames) unless said otherwise; lengths in pixels.

    Attributes:
        ids: instance ids, in the twin's order.
        confirmed: (instances,) false for uncertain tracks.
        state: int8: not annotated, visible, occluded, out, absent for an unknown reason.
        seen: surely visible: annotated, visible, and scored at least `min_track_score` (or given).
        gone: surely absent.
        unsure: neither: not annotated, or a low-score mask.
        x0, y0, x1, y1: box edges, x1 = x0 + width. cx, cy: centroid. NaN where not visible.
        near_side: depth with bigger = nearer, whatever the twin's kind; NaN without depth.
        depth_span: half the spread (p10..p90) of the object's own depth.
        depth_scale: (frames,) spread of depth over all objects in the frame, the unit of depth margins.
        near_over_time: `near_side` made comparable between frames by the twin's `depth_alignment`, in units
            of the background's depth range; NaN on frames that no alignment fits; None where the twin has
            no alignment at all.
        sx, sy: centroid in the coordinates of frame 0, camera motion removed.
        camera_scale: (frames,) how much the camera magnified since frame 0.
        camera_block: (frames,) int; frames of different blocks cannot be compared by position.
        camera_shift: (frames,) how far the camera moved the image since frame 0, pixels.
        edge: (instances, frames) whether the box touches the frame's border.
    """

    ids: tuple[int, ...]
    confirmed: Bools
    width: int
    height: int
    diagonal: float
    pts: Floats
    state: npt.NDArray[np.int8]
    seen: Bools
    gone: Bools
    unsure: Bools
    x0: Floats
    y0: Floats
    x1: Floats
    y1: Floats
    cx: Floats
    cy: Floats
    area: Floats
    depth_kind: DepthKind
    near_side: Floats
    depth_span: Floats
    depth_scale: Floats
    near_over_time: Floats | None
    sx: Floats
    sy: Floats
    camera_offset: npt.NDArray[np.complex128]
    camera_turn: npt.NDArray[np.complex128]
    camera_scale: Floats
    camera_block: npt.NDArray[np.int64]
    camera_shift: Floats
    edge: Bools

    @property
    def num_frames(self) -> int:
        """Frames of the clip."""
        return len(self.pts)

    def stabilise(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Pixel positions of shape (..., frames) in the coordinates of frame 0."""
        centre = complex((self.width - 1) / 2, (self.height - 1) / 2)
        fixed = (x + 1j * y - centre - self.camera_offset) / self.camera_turn + centre
        return fixed.real, fixed.imag


def _camera(
    twin: DigitalTwin, diagonal: float
) -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128], npt.NDArray[np.int64], Floats]:
    """Offset, turn-and-zoom, block and shift of every frame against frame 0.

    With q = p - centre as a complex number, one step is q' = a q + b; frame t against frame 0 is
    q_t = turn_t q_0 + offset_t, where turn is the running product of a, and offset_t / turn_t the running
    sum of b_t / turn_t.
    """
    steps = twin.scene.camera
    n = twin.num_frames
    if len(steps) != n:
        still = twin.scene.camera_motion is CameraMotion.STILL
        block = np.zeros(n, np.int64) if still else np.arange(n, dtype=np.int64)
        return np.zeros(n, np.complex128), np.ones(n, np.complex128), block, np.zeros(n)
    a = np.array([complex(s.zoom * np.cos(s.roll), s.zoom * np.sin(s.roll)) for s in steps])
    b = np.array([complex(s.dx, s.dy) for s in steps])
    known = np.array([s.known for s in steps], bool)
    a[0], b[0], known[0] = 1.0, 0.0, True
    a[~known], b[~known] = 1.0, 0.0
    turn: npt.NDArray[np.complex128] = np.cumprod(a)
    offset: npt.NDArray[np.complex128] = turn * np.cumsum(b / turn)
    shift = np.abs(offset) + np.abs(turn - 1) * diagonal / 4
    return offset, turn, np.cumsum(~known).astype(np.int64), np.asarray(shift, np.float64)


def _over_time(twin: DigitalTwin, near_side: Floats) -> Floats | None:
    if not twin.depth_alignment or twin.depth_kind is not DepthKind.RELATIVE_INVERSE:
        return None
    scale, shift = np.full(twin.num_frames, np.nan), np.full(twin.num_frames, np.nan)
    for step in twin.depth_alignment:
        if step.scale is not None and step.shift is not None:
            scale[step.frame_idx], shift[step.frame_idx] = step.scale, step.shift
    aligned: Floats = near_side * scale + shift
    return aligned


def track_arrays(twin: DigitalTwin, settings: FactSettings) -> TrackArrays:
    """Lay a twin's tracks out as arrays.

    Raises:
        ValueError: a track has frames outside of the clip, or lists of differing lengths.
    """
    n, frames = len(twin.instances), twin.num_frames
    diagonal = float(np.hypot(twin.width, twin.height))
    dense = {name: np.full((n, frames), np.nan) for name in _NUMBERS}
    state = np.full((n, frames), NOT_ANNOTATED, np.int8)
    for i, instance in enumerate(twin.instances):
        track = instance.track
        at = np.asarray(track.frame_idx, np.int64)
        if at.size and (at.min() < 0 or at.max() >= frames):
            raise ValueError(
                f"twin of clip {twin.clip_id}: instance {instance.instance_id} has frames outside "
                f"0..{frames - 1}; its track and num_frames do not belong together"
            )
        try:
            for name in _NUMBERS:
                dense[name][i, at] = np.array(getattr(track, name), np.float64)
            absent = np.array([_ABSENCE[a] for a in track.absence], np.int8)
            # A null RLE says "not annotated", whatever the rest of the entry holds.
            noted = np.array([r is not None for r in track.rle], bool)
            visible = np.array(track.visible, bool)
            state[i, at] = np.where(noted, np.where(visible, VISIBLE, absent), NOT_ANNOTATED)
        except ValueError as error:
            raise ValueError(
                f"twin of clip {twin.clip_id}: instance {instance.instance_id}: "
                f"the track's lists differ in length ({error})"
            ) from error
    offset, turn, block, shift = _camera(twin, diagonal)
    x0, y0 = dense["box_x"], dense["box_y"]
    x1, y1 = x0 + dense["box_w"], y0 + dense["box_h"]
    weak = dense["score"] < settings.min_track_score
    seen = (state == VISIBLE) & ~weak & np.isfinite(dense["centroid_x"]) & np.isfinite(x1 + y1)
    gone = state >= OCCLUDED
    sign = -1.0 if twin.depth_kind is DepthKind.METRIC else 1.0
    p10, p90 = dense["depth_p10"], dense["depth_p90"]
    have = twin.depth_kind is not DepthKind.NONE
    near_side = np.where(seen, sign * dense["depth_median"], np.nan) if have else np.full((n, frames), np.nan)
    top = np.max(np.where(np.isfinite(p90) & seen, p90, -np.inf), axis=0, initial=-np.inf)
    bottom = np.min(np.where(np.isfinite(p10) & seen, p10, np.inf), axis=0, initial=np.inf)
    rim = settings.edge_px
    edge = (x0 < rim) | (y0 < rim) | (x1 > twin.width - rim) | (y1 > twin.height - rim)
    arrays = TrackArrays(
        ids=tuple(i.instance_id for i in twin.instances),
        confirmed=np.array([i.quality.status is TrackStatus.CONFIRMED for i in twin.instances], bool),
        width=twin.width,
        height=twin.height,
        diagonal=diagonal,
        pts=np.asarray(twin.pts_s, np.float64),
        state=state,
        seen=seen,
        gone=gone,
        unsure=~(seen | gone),
        x0=x0,
        y0=y0,
        x1=x1,
        y1=y1,
        cx=dense["centroid_x"],
        cy=dense["centroid_y"],
        area=dense["area"],
        depth_kind=twin.depth_kind,
        near_side=near_side,
        depth_span=np.abs(p90 - p10) / 2,
        depth_scale=np.where(top > bottom, top - bottom, np.nan),
        near_over_time=_over_time(twin, near_side),
        sx=np.empty(0),
        sy=np.empty(0),
        camera_offset=offset,
        camera_turn=turn,
        camera_scale=np.abs(turn),
        camera_block=block,
        camera_shift=shift,
        edge=edge,
    )
    sx, sy = arrays.stabilise(arrays.cx, arrays.cy)
    object.__setattr__(arrays, "sx", sx)
    object.__setattr__(arrays, "sy", sy)
    return arrays
