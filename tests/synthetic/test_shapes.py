"""Ray against solid, checked with the solids' own inside tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.synthetic import CameraSpec, Key, ObjectSpec, SceneSpec, SceneTruth
from rvt_ray.synthetic.kinds import KINDS, Shape
from rvt_ray.synthetic.shapes import intersect, normal

SOLIDS: list[tuple[Shape, float]] = [
    ("sphere", 1.0),
    ("box", 1.0),
    ("frustum", 1.0),
    ("frustum", 0.1),
    ("frustum", 1.4),
    ("torus", 0.4),
]


def gap(shape: Shape, ratio: float, p: np.ndarray) -> np.ndarray:
    """Negative inside, zero on the surface, positive outside."""
    x, y, z = p
    if shape == "sphere":
        return np.sqrt(x * x + y * y + z * z) - 1
    if shape == "box":
        return np.abs(p).max(axis=0) - 1
    if shape == "torus":
        return np.hypot(np.hypot(x, z) - 1, y) - ratio
    radius = 1 + (ratio - 1) / 2 * (y + 1)
    return np.maximum(np.abs(y) - 1, np.hypot(x, z) - radius)


@settings(max_examples=60)
@given(st.sampled_from(SOLIDS), st.integers(0, 2**32 - 1))
def test_the_hit_is_the_first_point_of_the_ray_on_the_surface(solid: tuple[Shape, float], seed: int) -> None:
    shape, ratio = solid
    rng = np.random.default_rng(seed)
    eye = rng.normal(size=3)
    eye *= rng.uniform(3, 8) / np.linalg.norm(eye)
    aim = rng.uniform(-1.3, 1.3, (3, 50))
    d = aim - eye[:, None]
    t = intersect(shape, ratio, eye, (d[0], d[1], d[2]))
    along = np.linspace(0, 1, 400)[:, None]
    for i in range(d.shape[1]):
        if np.isfinite(t[i]):
            on = eye + t[i] * d[:, i]
            assert gap(shape, ratio, on) == pytest.approx(0, abs=2e-4)
            # Nothing of the solid lies before the hit.
            before = eye[:, None] + (along.T * (t[i] - 1e-3)) * d[:, i : i + 1]
            assert (gap(shape, ratio, before) > -1e-3).all()
            n = np.array(normal(shape, ratio, (on[:1], on[1:2], on[2:]))).ravel()
            assert n @ d[:, i] < 1e-6  # it faces the eye
            if shape in ("sphere", "torus"):
                out = on + 1e-2 * n / np.linalg.norm(n)
                assert gap(shape, ratio, out) == pytest.approx(1e-2, abs=1e-3)
        else:
            through = eye[:, None] + along.T * 2.5 * d[:, i : i + 1]
            assert (gap(shape, ratio, through) > -0.05).all()


def test_a_tube_is_open_at_the_top_and_shows_its_inside() -> None:
    down = (np.array([0.02]), np.array([-1.0]), np.array([0.01]))
    eye = np.array([0.0, 5.0, 0.0])
    assert intersect("frustum", 1.0, eye, down)[0] == pytest.approx(4)
    assert intersect("tube", 1.0, eye, down)[0] == pytest.approx(6)


def test_solids_behind_the_eye_are_not_hit() -> None:
    away = (np.zeros(1), np.zeros(1), np.ones(1))
    for shape, ratio in SOLIDS:
        assert np.isinf(intersect(shape, ratio, np.array([0.0, 0.0, 6.0]), away)).all()


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_kind_stands_on_the_ground_and_fits_its_stated_size(name: str) -> None:
    kind = KINDS[name]
    assert 0.5 < kind.height < 1.5
    assert 0.2 < kind.radius < 1.3
    spec = SceneSpec(
        num_frames=1,
        width=160,
        height=160,
        camera=CameraSpec(height=0.5, focal=3.0, horizon=0.5),
        objects=(
            ObjectSpec(
                instance_id=1,
                kind=name,
                colour="red",
                size="medium",
                heading=-0.7,
                path=(Key(frame=0, x=0, z=9, y=0.2),),
            ),
        ),
    )
    truth = SceneTruth.of(spec)
    left, top, width, height = truth.objects[1].box[0]
    pixel = 9 / (3.0 * 160)  # metres
    middle = 79.5 + (0.5 - 0.2) / pixel
    bottom = top + height
    assert kind.flies or bottom == pytest.approx(middle, abs=6)
    assert height * pixel <= 1.1 * 0.8 * kind.height
    assert kind.flies or height * pixel >= 0.8 * 0.8 * kind.height
    assert width * pixel <= 2.2 * 0.8 * kind.radius
    assert left + width / 2 == pytest.approx(80, abs=0.35 * width)
    assert any(p.role == "main" for p in kind.parts), "the colour of the object must show"


def test_there_is_enough_to_tell_apart() -> None:
    assert len(KINDS) >= 10
