"""Depth of an ONNX network: what is missing, corrupt or of another size ends before any video is read."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from rvt_ray.config import Config
from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.perception.depth.onnx import OnnxDepth, OnnxDepthOptions
from rvt_ray.pipeline.preflight import check_perception
from rvt_ray.records import DepthKind
from rvt_ray.video.frames import ArrayFrames
from tests.twin.helpers import make_clip

SHARED = Path(os.environ.get("RVT_SHARED", Path(__file__).parents[2] / "../shared"))
MODEL = "tcmonodepth_tcsmallnet_192x320.onnx"


def config(folder: Path, **options: object) -> Config:
    spec = {"backend": "onnx", "options": {"models": str(folder), **options}}
    return Config.model_validate({"perceive": {"depth": spec}})


def model_folder() -> Path:
    folder = SHARED / "models"
    if not (folder / MODEL).is_file():
        pytest.skip(f"{MODEL} is not in {folder}; set RVT_SHARED to the folder that holds models/")
    return folder


def floor_and_wall(n: int = 3) -> ArrayFrames:
    """A tiled floor that runs to the horizon below a pale wall, in perspective, 320 x 180."""
    height, width, horizon = 180, 320, 80
    y, x = np.mgrid[:height, :width].astype(np.float64)
    far = 900 / np.maximum(y - horizon, 1)
    tile = (np.floor(far / 6) + np.floor((x - width / 2) * far / 900)) % 2
    image = np.full((height, width, 3), (205, 215, 225), np.uint8)
    floor = y > horizon
    image[floor] = np.where(tile[floor][:, None] > 0, (120, 90, 60), (190, 160, 120))
    return ArrayFrames(np.stack([image] * n), np.arange(n) / 10)


def test_missing_weights_name_file_folder_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        MissingDependencyError, match=rf"perceive\.depth\.options: .*{MODEL}: no such file.*RVT_RAY"
    ):
        check_perception(config(tmp_path))
    with pytest.raises(MissingDependencyError, match="no such folder"):
        check_perception(config(tmp_path / "nowhere"))


def test_the_folder_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVT_RAY_MODELS", str(tmp_path / "mine"))
    with pytest.raises(MissingDependencyError, match=str(tmp_path / "mine")):
        OnnxDepth.preflight(OnnxDepthOptions())


@pytest.mark.parametrize("content", [b"", b"<html>404</html>", bytes(1000)])
def test_corrupt_weights_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MODEL).write_bytes(content)
    with pytest.raises(ConfigError, match=r"cannot be used.*Delete it and get it again"):
        check_perception(config(tmp_path))


def test_weights_cut_short_are_refused(tmp_path: Path) -> None:
    whole = (model_folder() / MODEL).read_bytes()
    (tmp_path / MODEL).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match="cannot be used"):
        check_perception(config(tmp_path))


def test_kind_none_and_zero_std_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"perceive\.depth\.options\.kind"):
        check_perception(config(tmp_path, kind="none"))
    with pytest.raises(ConfigError, match=r"perceive\.depth\.options\.std"):
        check_perception(config(tmp_path, std=[1, 0, 1]))


def test_a_network_that_gives_no_map_is_refused() -> None:
    folder = model_folder()
    if not (folder / "yolox_nano.onnx").is_file():
        pytest.skip("yolox_nano.onnx is not there")
    with pytest.raises(ConfigError, match="cannot be used"):
        check_perception(config(folder, file="yolox_nano.onnx", height=416, width=416))


def test_a_floor_comes_nearer_from_the_horizon_to_the_feet() -> None:
    cv2.setNumThreads(1)
    estimator = OnnxDepth(OnnxDepthOptions(models=str(model_folder())))
    frames = floor_and_wall()
    assert estimator.kind is DepthKind.RELATIVE_INVERSE
    assert estimator.name.startswith("onnx:tcmonodepth_tcsmallnet_192x320@")
    assert [w.license for w in estimator.weights] == ["MIT"]
    maps = dict(estimator.depth(make_clip(3, 320, 180), frames, [0]))
    assert sorted(maps) == [0, 1, 2]
    assert all(m.shape == (180, 320) and m.dtype == np.float32 for m in maps.values())
    rows = maps[0][:, 80:240].mean(axis=1)
    assert rows[175] > rows[130] > rows[95]  # bigger is nearer
    assert np.array_equal(maps[0], maps[2])


def test_key_frames_only_when_asked_for() -> None:
    cv2.setNumThreads(1)
    estimator = OnnxDepth(OnnxDepthOptions(models=str(model_folder()), frames="key"))
    assert [i for i, _ in estimator.depth(make_clip(3, 320, 180), floor_and_wall(), [0, 2])] == [0, 2]


def test_trap_12_a_licence_that_nobody_knows_is_called_unknown(tmp_path: Path) -> None:
    (tmp_path / "mine.onnx").write_bytes((model_folder() / MODEL).read_bytes())
    assert OnnxDepth(OnnxDepthOptions(models=str(tmp_path), file="mine.onnx")).weights[0].license == "unknown"
