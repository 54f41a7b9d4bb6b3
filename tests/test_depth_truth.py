"""Relative depth against the truth of rendered scenes: whatever is said beyond the margin is right, in every
frame, although each frame has a scale and shift of its own and the network is not exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from rvt_ray.config.settings import FactSettings
from rvt_ray.records import ClipRecord, DepthKind, DigitalTwin
from rvt_ray.synthetic import Frame
from rvt_ray.twin.build import Perception
from rvt_ray.twin.facts import Facts
from rvt_ray.twin.facts.spatial import in_front_of
from rvt_ray.twin.facts.view import View
from rvt_ray.video.frames import ArrayFrames, FrameStream
from tests.scenes import EXACT, Seen, perceived, small_scene

SETTINGS = FactSettings()
SCENES = range(8)
NOISE = 0.01  # of the inverse depth, smooth over the picture


@dataclass
class FlickeringDepth:
    """The renderer's depth as a network gives it: inverse, noisy, each frame in units of its own."""

    frames: Sequence[Frame]
    seed: int
    name: str = "flickering"
    kind: DepthKind = DepthKind.RELATIVE_INVERSE

    def depth(
        self, clip: ClipRecord, frames: FrameStream, key_frames: Sequence[int]
    ) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        rng = np.random.default_rng(self.seed)
        for frame in self.frames:
            inverse = 1.0 / np.maximum(frame.depth, 0.1)
            noise = cv2.resize(rng.normal(size=(6, 8)), inverse.shape[::-1], interpolation=cv2.INTER_CUBIC)
            inverse = inverse * (1 + NOISE * noise)
            scale, shift = rng.uniform(0.4, 2.5), rng.uniform(-1, 1)
            yield frame.index, (scale * inverse + shift).astype(np.float32)


@dataclass(frozen=True)
class Looked:
    seen: Seen
    twin: DigitalTwin
    view: View

    def position_z(self, i: int) -> npt.NDArray[np.float64]:
        return self.seen.truth.objects[self.view.tracks.ids[i]].position[:, 2]

    def in_full(self, i: int) -> npt.NDArray[np.int64]:
        """Frames on which all of it can be seen: a visible part may be nearer than the rest."""
        truth = self.seen.truth.objects[self.view.tracks.ids[i]]
        return np.flatnonzero((truth.visible_fraction() > 0.95) & ~self.view.tracks.edge[i])


@pytest.fixture(scope="module", params=SCENES)
def looked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Looked:
    seen = perceived(small_scene(request.param), tmp_path_factory.mktemp("scene"))
    perception = Perception.from_config(EXACT)
    perception.annotated = replace(perception.annotated, depth=FlickeringDepth(seen.frames, request.param))
    pixels = ArrayFrames(np.stack([f.rgb for f in seen.frames]), np.array(seen.clip.pts_s))
    twin = perception.twin(seen.clip, pixels)
    return Looked(seen, twin, View(twin, SETTINGS))


def test_trap_12_the_order_in_depth_is_right_in_every_frame_that_exceeds_the_margin(looked: Looked) -> None:
    ids = looked.view.tracks.ids
    said = 0
    for i, a in enumerate(ids):
        facts = in_front_of(looked.view, i)
        for j, t in zip(*np.nonzero(facts.truth), strict=True):
            if j == i or not facts.together[j, t]:
                continue
            said += 1
            assert looked.seen.truth.in_front_of(a, ids[j], int(t)) == (facts.truth[j, t] > 0), (a, ids[j], t)
    assert said > 100


def test_trap_12_approach_and_recede_are_right_between_any_two_frames_beyond_the_margin(
    looked: Looked,
) -> None:
    near = looked.view.tracks.near_over_time
    assert near is not None
    for i in range(len(near)):
        z, at = looked.position_z(i), looked.in_full(i)
        for k, before in enumerate(at):
            change = near[i, at[k + 1 :]] - near[i, before]
            nearer = z[before] - z[at[k + 1 :]]
            clear = np.abs(change) >= SETTINGS.depth_margin
            assert np.all(np.sign(change[clear]) == np.sign(nearer[clear])), looked.view.tracks.ids[i]


def test_towards_and_away_from_the_camera_are_never_wrong(looked: Looked) -> None:
    facts = Facts(looked.twin, SETTINGS)
    for name, sign in (("moves_towards_camera", -1), ("moves_away_from_camera", 1)):
        truth = np.asarray(facts.table(name).truth)
        for i in range(len(truth)):
            z = looked.position_z(i)[np.flatnonzero(looked.view.tracks.seen[i])]
            if truth[i] > 0:
                assert sign * (z[-1] - z[0]) > 0, (name, looked.view.tracks.ids[i])


def test_every_frame_of_these_scenes_is_aligned(looked: Looked) -> None:
    assert [step.frame_idx for step in looked.twin.depth_alignment] == list(range(looked.twin.num_frames))
    fits = [step.scale is not None for step in looked.twin.depth_alignment]
    assert np.mean(fits) > 0.9


def test_without_a_fit_nothing_is_said_over_time(tmp_path: Path) -> None:
    seen = perceived(small_scene(7), tmp_path)
    perception = Perception.from_config(EXACT)
    perception.annotated = replace(perception.annotated, depth=FlickeringDepth(seen.frames, 7))
    pixels = ArrayFrames(np.stack([f.rgb for f in seen.frames]), np.array(seen.clip.pts_s))
    twin = perception.twin(seen.clip, pixels)
    said = {
        name: int(np.count_nonzero(Facts(twin, SETTINGS).table(name).truth > 0))
        for name in ("moves_towards_camera", "moves_away_from_camera")
    }
    assert sum(said.values()) > 0
    for step in twin.depth_alignment[::3]:
        step.scale = step.shift = None
    for name in said:
        assert not np.any(Facts(twin, SETTINGS).table(name).truth > 0)
