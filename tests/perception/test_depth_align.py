"""Guards depth over time: flicker by scale and shift is undone, and what cannot be undone says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.perception.depth.align import MAX_RESIDUAL, DepthAligner
from rvt_ray.records import CameraStep, DepthStep

HEIGHT, WIDTH, FRAMES = 90, 120, 12
STILL = CameraStep(dx=0.0, dy=0.0, zoom=1.0, roll=0.0, known=True)


def ground(shift: float = 0.0, travelled: float = 0.0) -> np.ndarray:
    """Inverse depth of a wall 12 m away above a floor, with a box on it; the camera panned by `shift`
    pixels and travelled metres nearer."""
    rows = np.repeat(np.arange(HEIGHT, dtype=float)[:, None], WIDTH, axis=1)
    floor = 160.0 / np.maximum(rows - 25, 1e-6)
    metres = np.where(rows > 25, np.minimum(floor, 12.0), 12.0)
    left = 50 - shift
    columns = np.arange(WIDTH)[None]
    metres = np.where((rows > 30) & (rows < 55) & (columns > left) & (columns < left + 25), 5.0, metres)
    return 1.0 / np.maximum(metres - travelled, 0.3)


def aligned(
    maps: list[np.ndarray], camera: list[CameraStep] | None = None, hidden: list[np.ndarray] | None = None
) -> list[DepthStep]:
    aligner = DepthAligner(HEIGHT, WIDTH, camera or [STILL] * len(maps))
    pairs = ((i, depth.astype(np.float32)) for i, depth in enumerate(maps))
    passed = list(aligner.watch(pairs, lambda i: None if hidden is None else hidden[i]))
    assert [i for i, _ in passed] == list(range(len(maps)))
    return aligner.result()


def read(steps: list[DepthStep], t: int, value: float) -> float:
    scale, shift = steps[t].scale, steps[t].shift
    assert scale is not None
    assert shift is not None
    return scale * value + shift


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.2, 5), st.floats(-3, 3)), min_size=3, max_size=8),
    st.floats(0.05, 1.0),
)
def test_trap_12_flicker_of_scale_and_shift_is_undone(
    flicker: list[tuple[float, float]], inverse: float
) -> None:
    steps = aligned([a * ground() + b for a, b in flicker])
    values = [read(steps, t, a * inverse + b) for t, (a, b) in enumerate(flicker)]
    assert np.ptp(values) < 0.01 * max(1.0, abs(values[0]))


def test_the_unit_is_the_backgrounds_depth_range() -> None:
    steps = aligned([3 * ground() - 7] * 3)
    far, near = (3 * np.quantile(ground(), q) - 7 for q in (0.05, 0.95))
    assert read(steps, 0, far) == pytest.approx(0.0, abs=0.05)
    assert read(steps, 0, near) == pytest.approx(1.0, abs=0.05)


def test_a_pan_is_followed() -> None:
    camera = [STILL, *[CameraStep(dx=-6.0, dy=0.0, zoom=1.0, roll=0.0, known=True)] * (FRAMES - 1)]
    rng = np.random.default_rng(0)
    flicker = [(rng.uniform(0.5, 2), rng.uniform(-1, 1)) for _ in range(FRAMES)]
    steps = aligned([a * ground(6.0 * t) + b for t, (a, b) in enumerate(flicker)], camera)
    values = [read(steps, t, a * 0.5 + b) for t, (a, b) in enumerate(flicker)]
    assert np.ptp(values) < 0.02


def test_a_large_thing_that_comes_nearer_does_not_bend_the_background() -> None:
    """Nobody segmented it; it covers a fifth of the picture."""
    maps, objects = [], []
    for t in range(FRAMES):
        depth = ground()
        depth[20:70, 70:115] = near = 1.0 / (6 - 0.35 * t)
        maps.append((1 + 0.1 * t) * depth - 0.2 * t)
        objects.append((1 + 0.1 * t) * near - 0.2 * t)
    steps = aligned(maps)
    line = [read(steps, t, v) for t, v in enumerate(objects)]
    assert np.all(np.diff(line) > 0)
    assert np.all(np.diff(objects) < 0)  # what the raw numbers would have said


def test_masks_of_objects_are_left_out() -> None:
    hidden = np.zeros((HEIGHT, WIDTH), bool)
    hidden[:, 30:110] = True
    maps = []
    for t in range(FRAMES):
        depth = ground()
        depth[hidden] = 0.1 + 0.08 * t
        maps.append(depth)
    steps = aligned(maps, hidden=[hidden] * FRAMES)
    assert all(step.scale is not None for step in steps)
    assert read(steps, 0, 0.2) == pytest.approx(read(steps, FRAMES - 1, 0.2), abs=0.01)


def test_a_camera_that_travels_is_not_aligned() -> None:
    """Near things grow nearer faster than far ones: no scale and shift undoes that."""
    steps = aligned([ground(travelled=0.22 * t) for t in range(FRAMES)])
    assert sum(step.scale is None for step in steps) >= FRAMES / 2
    assert all(step.scale is None for step in steps if (step.residual or 0) > MAX_RESIDUAL)


def test_a_flat_or_hidden_background_fixes_nothing() -> None:
    flat = aligned([np.full((HEIGHT, WIDTH), 0.5)] * 3)
    covered = aligned([ground()] * 3, hidden=[np.ones((HEIGHT, WIDTH), bool)] * 3)
    unmeasured = aligned([np.full((HEIGHT, WIDTH), np.nan)] * 3)
    for steps in (flat, covered, unmeasured):
        assert [(s.scale, s.shift, s.residual) for s in steps] == [(None, None, None)] * 3
    assert DepthAligner(HEIGHT, WIDTH, [STILL] * 3).result() == []


def test_frames_of_another_scene_are_told_apart() -> None:
    other = ground()[::-1, ::-1].copy()
    steps = aligned([ground()] * 8 + [other] * 4)
    assert [step.scale is not None for step in steps] == [True] * 8 + [False] * 4
