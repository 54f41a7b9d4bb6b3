"""Guards the Depth Anything backend on small random weights in the published layout: same numbers as the
reference code, and no clip is opened when the weights cannot do it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="depth_anything needs torch")
transformers = pytest.importorskip("transformers", reason="depth_anything needs transformers")

from rvt_ray.config import Config  # noqa: E402
from rvt_ray.errors import ClipError, ConfigError, MissingDependencyError  # noqa: E402
from rvt_ray.perception.base import Segmentation  # noqa: E402
from rvt_ray.perception.depth.depth_anything import DepthAnything, DepthAnythingOptions  # noqa: E402
from rvt_ray.pipeline.preflight import check_perception  # noqa: E402
from rvt_ray.records import DepthKind  # noqa: E402
from rvt_ray.twin.build import Perception  # noqa: E402
from rvt_ray.video.frames import ArrayFrames  # noqa: E402
from tests.perception.scenes import disc_clip, texture  # noqa: E402
from tests.twin.helpers import make_clip, make_draft  # noqa: E402

HEIGHT, WIDTH, FRAMES = 60, 90, 5
PREPROCESSING = {
    "image_processor_type": "DPTImageProcessor",
    "do_resize": True,
    "size": {"height": 70, "width": 70},
    "keep_aspect_ratio": True,
    "ensure_multiple_of": 14,
    "resample": 3,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
}


def save(folder: Path, hidden: int = 32, **changes: Any) -> Path:
    backbone = transformers.Dinov2Config(
        hidden_size=hidden,
        num_hidden_layers=4,
        num_attention_heads=4,
        image_size=70,
        patch_size=14,
        out_features=["stage1", "stage2", "stage3", "stage4"],
        apply_layernorm=True,
        reshape_hidden_states=False,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone,
        reassemble_hidden_size=hidden,
        neck_hidden_sizes=[8, 16, 24, 32],
        fusion_hidden_size=16,
        head_hidden_size=8,
        **changes,
    )
    torch.manual_seed(0)
    model = transformers.DepthAnythingForDepthEstimation(config)
    with torch.no_grad():
        for parameter in model.parameters():  # the defaults leave the head dead: depth would be 0 everywhere
            parameter.normal_(0.02, 0.06)
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSING))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("weights") / "tiny-depth")


@pytest.fixture(scope="module")
def video() -> ArrayFrames:
    frames = np.stack([texture(HEIGHT, WIDTH, seed) for seed in range(FRAMES)])
    return ArrayFrames(frames, np.arange(FRAMES) / 10)


def maps(folder: Path, video: ArrayFrames, keys: tuple[int, ...] = (0, 3), **options: Any) -> dict[int, Any]:
    backend = DepthAnything(DepthAnythingOptions(checkpoint=str(folder), device="cpu", **options))
    return dict(backend.depth(make_clip(FRAMES, WIDTH, HEIGHT), video, keys))


def test_the_numbers_are_those_of_the_reference_code(folder: Path, video: ArrayFrames) -> None:
    ours = maps(folder, video)
    assert sorted(ours) == list(range(FRAMES))
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    model = transformers.AutoModelForDepthEstimation.from_pretrained(folder).eval()
    for t, frame in enumerate(video.windows(FRAMES).__next__().frames):
        inputs = processor(images=frame, return_tensors="pt")
        with torch.no_grad():
            out = model(**inputs)
        theirs = processor.post_process_depth_estimation(out, target_sizes=[(HEIGHT, WIDTH)])
        reference = theirs[0]["predicted_depth"].numpy()
        assert ours[t].shape == (HEIGHT, WIDTH)
        assert ours[t].dtype == np.float32
        assert np.ptp(reference) > 0
        # PIL and torch round the resized pixels differently by a grey level or two.
        assert np.abs(ours[t] - reference).max() < 0.02 * np.ptp(reference)


def test_batches_change_nothing(folder: Path, video: ArrayFrames) -> None:
    one, many = maps(folder, video, frames_per_batch=1), maps(folder, video, frames_per_batch=3)
    assert list(one) == list(many)
    for t in one:
        np.testing.assert_allclose(one[t], many[t], rtol=1e-4, atol=1e-5)


def test_key_frames_only_are_those_key_frames(folder: Path, video: ArrayFrames) -> None:
    every = maps(folder, video)
    key = maps(folder, video, keys=(0, 1, 4), frames="key", frames_per_batch=2)
    assert list(key) == [0, 1, 4]
    for t in key:
        np.testing.assert_allclose(key[t], every[t], rtol=1e-4, atol=1e-5)


def test_a_metric_checkpoint_says_so(tmp_path: Path) -> None:
    metric = save(tmp_path / "m", depth_estimation_type="metric", max_depth=20)
    options = DepthAnythingOptions(checkpoint=str(metric))
    assert DepthAnything.preflight(options).kind is DepthKind.METRIC


def test_numbers_that_are_none_fail_the_clip(folder: Path, video: ArrayFrames) -> None:
    backend = DepthAnything(DepthAnythingOptions(checkpoint=str(folder), device="cpu"))
    with torch.no_grad():
        next(iter(backend._model.parameters())).fill_(float("nan"))
    with pytest.raises(ClipError, match="frame 0 is not finite"):
        list(backend.depth(make_clip(FRAMES, WIDTH, HEIGHT), video, [0]))


def test_trap_12_the_licence_of_the_weights_is_known_and_told(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def license_of(**options: Any) -> str:
        return DepthAnything.preflight(DepthAnythingOptions(**options)).license

    assert license_of(checkpoint=str(folder)) == "unknown"
    assert license_of(checkpoint=str(folder), license="MIT") == "MIT"
    base = save(tmp_path / "base")
    config = json.loads((base / "config.json").read_text())
    config["backbone_config"]["hidden_size"] = 768
    (base / "config.json").write_text(json.dumps(config))
    with caplog.at_level(logging.WARNING):
        assert license_of(checkpoint=str(base)) == "CC-BY-NC-4.0"
    assert "CC-BY-NC-4.0" in caplog.text
    (base / "README.md").write_text("---\nlicense: apache-2.0\n---\n# A model\n")
    assert license_of(checkpoint=str(base)) == "Apache-2.0"

    monkeypatch.setenv("RVT_RAY_CACHE", str(tmp_path / "cache"))
    save(tmp_path / "cache" / "models" / "depth-anything-v2-small")
    assert license_of() == "Apache-2.0"
    backend = DepthAnything(DepthAnythingOptions(device="cpu"))
    (weights,) = backend.weights
    assert (weights.part, weights.license) == ("depth", "Apache-2.0")
    assert weights.model.startswith("depth-anything-v2-small@")
    assert backend.name == f"depth_anything:{weights.model}"


def config_of(**options: Any) -> Config:
    return Config.model_validate({"perceive": {"depth": {"backend": "depth_anything", "options": options}}})


def test_missing_weights_end_before_any_video_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RVT_RAY_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="rvt-ray models pull depth-anything-v2-small"):
        check_perception(config_of())
    with pytest.raises(ConfigError, match=r"no such folder.*models pull"):
        check_perception(config_of(checkpoint=str(tmp_path / "nowhere")))


def test_corrupt_or_foreign_weights_end_before_any_video_is_read(folder: Path, tmp_path: Path) -> None:
    def copy(name: str) -> Path:
        other = tmp_path / name
        other.mkdir()
        for file in folder.iterdir():
            (other / file.name).write_bytes(file.read_bytes())
        return other

    cut = copy("cut")
    whole = (cut / "model.safetensors").read_bytes()
    (cut / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match=r"cannot be used.*models pull"):
        check_perception(config_of(checkpoint=str(cut)))
    gone = copy("gone")
    (gone / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="is not there"):
        check_perception(config_of(checkpoint=str(gone)))
    foreign = copy("foreign")
    (foreign / "config.json").write_text('{"model_type": "dpt"}')
    with pytest.raises(ConfigError, match="'dpt' model"):
        check_perception(config_of(checkpoint=str(foreign)))


def test_a_weight_that_is_missing_is_not_made_up(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    weights = load_file(folder / "model.safetensors")
    del weights["head.conv1.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"lacks 1 of the network's weights \(head.conv1.weight\)"):
        DepthAnything(DepthAnythingOptions(checkpoint=str(tmp_path), device="cpu"))


def test_the_twin_has_depth_its_alignment_and_the_licence(folder: Path) -> None:
    path = np.stack([np.linspace(20, 70, 8), np.full(8, 30.0)], axis=1)
    frames, masks = disc_clip([path], [(40, 160, 60)], radius=10, height=HEIGHT, width=WIDTH)
    options = {"checkpoint": str(folder), "license": "MIT", "device": "cpu"}
    perception = Perception.from_config(config_of(**options))

    class Masks:
        name = "given"

        def segment(self, clip: Any, frames: Any, key_frames: Any) -> Segmentation:
            return Segmentation([make_draft(1, masks[0])], list(key_frames))

    perception.plain.segmenter = Masks()
    clip = make_clip(8, WIDTH, HEIGHT, list(frames.pts_s))
    seconds: dict[str, float] = {}
    twin = perception.twin(clip, frames, seconds)
    assert twin.depth_kind is DepthKind.RELATIVE_INVERSE
    assert all(value is not None for value in twin.instances[0].track.depth_median)
    assert [step.frame_idx for step in twin.depth_alignment] == list(range(8))
    assert [(w.part, w.license) for w in twin.weights] == [("depth", "MIT")]
    assert twin.provenance.depth == f"depth_anything:{twin.weights[0].model}"
    assert seconds["depth"] > 0
