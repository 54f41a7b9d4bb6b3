"""Files: the video decodes to the rendered frames, and the truth beside it is the renderer's."""

from __future__ import annotations

from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from rvt_ray.masks import rle
from rvt_ray.synthetic import ClipAnnotation, ClipPaths, SceneSpec, random_scene, render, write_clip
from rvt_ray.synthetic.__main__ import main
from rvt_ray.synthetic.annotation import depth_file, quantise_depth


@pytest.fixture(scope="module")
def spec() -> SceneSpec:
    return random_scene(7, num_objects=5, num_frames=20, width=160, height=120, fps=23.976, camera="pan")


@pytest.fixture(scope="module")
def paths(spec: SceneSpec, tmp_path_factory: pytest.TempPathFactory) -> ClipPaths:
    return write_clip(spec, tmp_path_factory.mktemp("clips"), "clip")


def decode(path: Path) -> tuple[np.ndarray, list[float]]:
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    return np.stack([f.to_ndarray(format="rgb24") for f in frames]), [float(f.time) for f in frames]


def test_the_video_holds_every_frame_at_its_time_and_close_to_the_render(
    spec: SceneSpec, paths: ClipPaths
) -> None:
    pixels, times = decode(paths.video)
    assert pixels.shape == (20, 120, 160, 3)
    assert times == pytest.approx([i / 23.976 for i in range(20)], abs=1e-3)
    for frame in render(spec):
        error = np.mean((pixels[frame.index].astype(float) - frame.rgb) ** 2)
        assert 10 * np.log10(255**2 / error) > 30


def test_masks_and_depth_beside_the_video_are_exact(spec: SceneSpec, paths: ClipPaths) -> None:
    truth = ClipAnnotation.model_validate_json(paths.annotation.read_text())
    assert truth.spec == spec
    assert paths.depth is not None
    assert truth.depth is not None
    assert (paths.annotation.parent / truth.depth.folder) == paths.depth
    assert truth.depth.frames == list(range(20))
    for frame in render(spec):
        for item in truth.objects:
            own = frame.instances == item.instance_id
            assert (rle.decode(item.rle[frame.index], 120, 160) == own).all()
            assert (item.absence[frame.index] is None) == own.any()
            assert item.amodal_area[frame.index] == frame.amodal[item.instance_id].sum()
        steps = cv2.imread(str(depth_file(paths.depth, frame.index)), cv2.IMREAD_UNCHANGED)
        assert steps.dtype == np.uint16
        assert np.abs(steps * truth.depth.scale - frame.depth).max() <= truth.depth.scale / 2 + 1e-6


def test_kinds_attributes_camera_and_events_are_there(spec: SceneSpec, paths: ClipPaths) -> None:
    truth = ClipAnnotation.model_validate_json(paths.annotation.read_text())
    by_id = {o.instance_id: o for o in spec.objects}
    for item in truth.objects:
        o = by_id[item.instance_id]
        assert (item.category, item.colour, item.material, item.size) == (
            o.kind,
            o.colour,
            o.material,
            o.size,
        )
    assert len(truth.camera) == 20
    assert any(abs(step.dx) > 0.5 for step in truth.camera)
    assert {e.event for e in truth.events} & {"moves", "approaches", "enters"}


def test_writing_again_gives_the_same_bytes(spec: SceneSpec, paths: ClipPaths, tmp_path: Path) -> None:
    again = write_clip(spec, tmp_path, "clip")
    assert again.video.read_bytes() == paths.video.read_bytes()
    assert again.annotation.read_bytes() == paths.annotation.read_bytes()
    assert not list(tmp_path.rglob("*.partial*"))


def test_odd_sizes_and_a_single_frame_can_be_written(tmp_path: Path) -> None:
    spec = random_scene(1, num_objects=2, num_frames=1, width=121, height=75)
    paths = write_clip(spec, tmp_path, "odd", depth_every=0)
    pixels, _ = decode(paths.video)
    assert pixels.shape == (1, 75, 121, 3)
    assert paths.depth is None
    assert ClipAnnotation.model_validate_json(paths.annotation.read_text()).depth is None


def test_a_scene_without_objects_can_be_written(tmp_path: Path) -> None:
    paths = write_clip(SceneSpec(num_frames=3, width=64, height=48), tmp_path, "bare", depth_every=2)
    truth = ClipAnnotation.model_validate_json(paths.annotation.read_text())
    assert truth.objects == truth.events == []
    assert truth.depth is not None
    assert truth.depth.frames == [0, 2]


def test_depth_beyond_sixteen_bits_is_refused_and_never_wraps() -> None:
    with pytest.raises(ValueError, match="beyond 16 bits"):
        quantise_depth(np.array([[66.0]]), 0.001)


def test_an_annotation_with_a_missing_frame_is_refused(paths: ClipPaths) -> None:
    truth = ClipAnnotation.model_validate_json(paths.annotation.read_text())
    data = truth.model_dump(mode="json")
    data["objects"][0]["rle"].pop()
    with pytest.raises(ValueError, match=r"rle: 19 entries for 20 frames"):
        ClipAnnotation.model_validate(data)


def test_the_command_writes_as_many_scenes_as_asked(tmp_path: Path) -> None:
    args = [
        "--scenes",
        "2",
        "--seed",
        "5",
        "--frames",
        "2",
        "--objects",
        "3",
        "--width",
        "64",
        "--height",
        "48",
    ]
    assert main(["--out", str(tmp_path), *args]) == 0
    assert sorted(p.name for p in tmp_path.glob("*.mp4")) == ["scene_0005.mp4", "scene_0006.mp4"]
    assert len(list(tmp_path.glob("annotations/*.json"))) == 2
