from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from rvt_ray.backends import BackendSpec, build
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.perception.depth import BACKENDS
from rvt_ray.records import ClipRecord, DepthKind, FailureCode
from rvt_ray.synthetic import ClipPaths, SceneSpec, random_scene, render, write_clip
from tests.perception.test_annotations_segment import FRAMES, HEIGHT, NO_PIXELS, WIDTH, clip_of

Maps = dict[int, np.ndarray]


def depth(
    clip: ClipRecord, keys: tuple[int, ...] = (0, 4), name: str = "annotations", **options: Any
) -> Maps:
    backend = build(BackendSpec(backend=name, options=options), BACKENDS, "perceive.depth")
    found = list(backend.depth(clip, NO_PIXELS, list(keys)))
    assert [i for i, _ in found] == sorted(i for i, _ in found)
    return dict(found)


@pytest.fixture(scope="module")
def spec() -> SceneSpec:
    return random_scene(4, num_objects=4, num_frames=FRAMES, width=WIDTH, height=HEIGHT)


@pytest.fixture(scope="module")
def paths(spec: SceneSpec, tmp_path_factory: pytest.TempPathFactory) -> ClipPaths:
    return write_clip(spec, tmp_path_factory.mktemp("depth"), "scene")


def test_synthetic_depth_is_the_renderers_to_half_a_millimetre(spec: SceneSpec, paths: ClipPaths) -> None:
    maps = depth(clip_of(paths.annotation, "synthetic"))
    assert list(maps) == list(range(FRAMES))
    for frame in render(spec):
        found = maps[frame.index]
        assert found.dtype == np.float32
        assert np.abs(found - frame.depth).max() < 0.00051


def test_a_clip_in_the_middle_gets_its_own_maps_and_only_key_frames_when_asked(
    spec: SceneSpec, paths: ClipPaths
) -> None:
    clip = clip_of(paths.annotation, "synthetic", start_frame=3, num_frames=6)
    maps = depth(clip, frames="key")
    assert list(maps) == [0, 4]
    frames = list(render(spec))
    assert np.abs(maps[4] - frames[7].depth).max() < 0.00051


def test_maps_of_a_scaled_video_are_scaled_and_never_blended(paths: ClipPaths) -> None:
    clip = clip_of(paths.annotation, "synthetic", width=WIDTH // 2, height=HEIGHT // 2)
    small, big = depth(clip)[0], depth(clip_of(paths.annotation, "synthetic"))[0]
    assert small.shape == (HEIGHT // 2, WIDTH // 2)
    assert np.isin(small, big).all()
    with pytest.raises(ClipError, match="another aspect"):
        depth(clip_of(paths.annotation, "synthetic", width=HEIGHT))


def test_a_folder_of_png_or_npz_maps_is_read_by_frame_number(tmp_path: Path) -> None:
    folder = tmp_path / "scene"
    folder.mkdir()
    steps = np.full((HEIGHT, WIDTH), 2500, np.uint16)
    steps[0, 0] = 0
    cv2.imwrite(str(folder / "frame_00003.png"), steps)
    np.savez(folder / "00007.npz", depth=np.full((HEIGHT, WIDTH), 1.5))
    maps = depth(clip_of(tmp_path, "davis"), path=str(tmp_path), scale=0.002)
    assert list(maps) == [3, 7]
    assert np.isnan(maps[3][0, 0])  # zero: no measurement
    assert np.nanmin(maps[3]) == np.nanmax(maps[3]) == pytest.approx(5.0)
    assert (maps[7] == 1.5).all()


def test_the_kind_of_foreign_maps_is_what_the_config_says(tmp_path: Path) -> None:
    spec = BackendSpec(backend="annotations", options={"path": str(tmp_path), "kind": "relative_inverse"})
    assert build(spec, BACKENDS, "perceive.depth").kind is DepthKind.RELATIVE_INVERSE
    assert build(BackendSpec(backend="annotations"), BACKENDS, "perceive.depth").kind is DepthKind.METRIC
    for options in ({"kind": "none"}, {"kind": "relative_inverse"}):
        with pytest.raises(ConfigError, match=r"perceive.depth.options.kind"):
            build(BackendSpec(backend="annotations", options=options), BACKENDS, "perceive.depth")


def broken(folder: Path, case: str) -> None:
    if case == "bytes":
        (folder / "0.png").write_bytes(b"rubbish")
    if case == "empty":
        (folder / "0.png").write_bytes(b"")
    if case == "eight bits":
        cv2.imwrite(str(folder / "0.png"), np.zeros((HEIGHT, WIDTH), np.uint8))
    if case == "no number":
        cv2.imwrite(str(folder / "map.png"), np.zeros((HEIGHT, WIDTH), np.uint16))
    if case == "no array":
        np.savez(folder / "0.npz", z=np.zeros((HEIGHT, WIDTH)))
    if case == "no zip":
        (folder / "0.npz").write_bytes(b"rubbish")
    if case == "stack":
        np.savez(folder / "0.npz", depth=np.zeros((2, HEIGHT, WIDTH)))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("nothing", "holds no .png or .npz depth maps for the video 'scene'"),
        ("bytes", "0.png: not a readable PNG"),
        ("empty", "0.png: not a readable PNG"),
        ("eight bits", "0.png: a depth PNG has one channel of 16 bits, not uint8"),
        ("no number", "map.png: the name of a depth map must end in the number"),
        ("no array", "0.npz: needs a numeric array 'depth'"),
        ("no zip", "0.npz: needs a numeric array 'depth'"),
        ("stack", r"0.npz: depth: must have shape \(height, width\), not \(2, "),
    ],
)
def test_a_broken_map_is_named(tmp_path: Path, case: str, message: str) -> None:
    broken(tmp_path, case)
    with pytest.raises(ClipError, match=message) as caught:
        depth(clip_of(tmp_path, "davis"), path=str(tmp_path))
    assert caught.value.code is FailureCode.BAD_ANNOTATION


def test_depth_that_is_not_there_is_never_made_up(tmp_path: Path, spec: SceneSpec) -> None:
    with pytest.raises(ClipError, match="no synthetic truth to take depth from"):
        depth(clip_of(tmp_path, "davis"))
    bare = write_clip(spec, tmp_path, "scene", depth_every=0).annotation
    with pytest.raises(ClipError, match="depth: was not written"):
        depth(clip_of(bare, "synthetic"))


def test_a_missing_map_is_named(tmp_path: Path, spec: SceneSpec) -> None:
    paths = write_clip(spec, tmp_path, "scene", depth_every=6)
    assert paths.depth is not None
    (paths.depth / "00006.png").unlink()
    with pytest.raises(ClipError, match=r"00006.png: cannot be read"):
        depth(clip_of(paths.annotation, "synthetic"))


def test_no_depth_says_so_and_yields_nothing(tmp_path: Path) -> None:
    assert depth(clip_of(tmp_path, None), name="none") == {}
    assert build(BackendSpec(backend="none"), BACKENDS, "perceive.depth").kind is DepthKind.NONE
    with pytest.raises(ConfigError, match="it takes no options"):
        build(BackendSpec(backend="none", options={"path": "x"}), BACKENDS, "perceive.depth")
