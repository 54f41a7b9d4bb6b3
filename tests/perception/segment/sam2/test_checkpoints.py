"""Weights in the official and the hub's forms; what is missing or broken ends before any video is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rvt_ray.backends import check_options, resolve
from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.perception.segment import BACKENDS
from rvt_ray.perception.segment.sam2 import Sam2Options, Sam2Segmenter, checkpoints
from tests.perception.segment.sam2.conftest import IMAGE_SIZE


def test_importing_and_checking_the_backend_loads_neither_torch_nor_sam2() -> None:
    code = (
        "import sys\n"
        "from rvt_ray.backends import resolve, check_options\n"
        "from rvt_ray.perception.segment import BACKENDS\n"
        "check_options(resolve('sam2', BACKENDS, 'x'), {'model': 'tiny'}, 'x')\n"
        "assert not {'torch', 'sam2'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_absent_weights_say_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVT_RAY_CACHE", str(tmp_path))
    monkeypatch.setattr(checkpoints.models, "_hub_snapshot", lambda *_: None)
    with pytest.raises(MissingDependencyError, match=r"rvt-ray models pull sam2\.1-small"):
        Sam2Segmenter(Sam2Options(model="small"))
    with pytest.raises(MissingDependencyError, match=r"nowhere\.pt: no such file"):
        Sam2Segmenter.preflight(Sam2Options(checkpoint=str(tmp_path / "nowhere.pt")))


def test_pulled_weights_are_found_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: Path
) -> None:
    folder = tmp_path / "models" / "sam2.1-tiny"
    folder.mkdir(parents=True)
    (folder / "sam2.1_hiera_tiny.pt").symlink_to(checkpoint)
    monkeypatch.setenv("RVT_RAY_CACHE", str(tmp_path))
    assert Sam2Segmenter.preflight(Sam2Options(model="tiny")) == folder / "sam2.1_hiera_tiny.pt"


def test_a_file_cut_short_is_told_before_it_is_loaded(tmp_path: Path, checkpoint: Path) -> None:
    path = tmp_path / "cut.pt"
    path.write_bytes(checkpoint.read_bytes()[: 2**20])
    with pytest.raises(ConfigError, match=r"cut\.pt cannot be used.*cut short.*rvt-ray models pull"):
        Sam2Segmenter.preflight(Sam2Options(checkpoint=str(path), model="tiny"))


def test_a_file_with_rotten_contents_is_told_when_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "other.pt"
    torch.save({"model": {"encoder.weight": torch.zeros(2)}}, path)
    with pytest.raises(ConfigError, match="holds no SAM 2 weights"):
        checkpoints.read(path, "tiny")
    safetensors = tmp_path / "rotten.safetensors"
    safetensors.write_bytes(b"\xff" * 64)
    with pytest.raises(ConfigError, match=r"rotten\.safetensors cannot be used"):
        checkpoints.read(safetensors, "tiny")


def test_weights_in_the_layout_of_transformers_are_told_apart(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    path = tmp_path / "model.safetensors"
    save_file({"vision_encoder.neck.weight": torch.zeros(2)}, str(path))
    with pytest.raises(ConfigError, match=r"layout of transformers; take the `\.pt` file"):
        checkpoints.read(path, "tiny")


def test_missing_weights_inside_a_file_are_named(tmp_path: Path, checkpoint: Path) -> None:
    weights = torch.load(checkpoint, weights_only=True)["model"]
    del weights["no_obj_embed_spatial"]
    weights["surplus"] = torch.zeros(1)
    path = tmp_path / "old.pt"
    torch.save({"model": weights}, path)
    with pytest.raises(ConfigError, match=r"SAM 2\.0 weights\?.*no_obj_embed_spatial.*surplus"):
        checkpoints.load(path, "tiny", IMAGE_SIZE, 4)


def test_a_safetensors_folder_gives_the_same_model(tmp_path: Path, checkpoint: Path) -> None:
    from safetensors.torch import save_file

    weights = torch.load(checkpoint, weights_only=True)["model"]
    save_file({k: v.contiguous() for k, v in weights.items()}, str(tmp_path / "weights.safetensors"))
    path = checkpoints.locate(str(tmp_path), "tiny")
    model, variant = checkpoints.load(path, "tiny", IMAGE_SIZE, 4)
    assert variant.name == "tiny"
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())


def test_a_folder_of_several_files_is_not_guessed_at(tmp_path: Path) -> None:
    for name in ("a.pt", "b.pt"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match="several weights files; name the file itself"):
        checkpoints.locate(str(tmp_path), "tiny")
    (tmp_path / "a.pt").unlink()
    (tmp_path / "b.pt").unlink()
    with pytest.raises(ConfigError, match=r"no `\.pt`"):
        checkpoints.locate(str(tmp_path), "tiny")


def test_every_released_size_is_known_by_its_weights() -> None:
    from sam2.build_sam import compose

    for variant in checkpoints.VARIANTS.values():
        trunk = compose(config_name=variant.config).model.image_encoder.trunk
        # The large and base models rely on the class's own default for what their file leaves out.
        stages = trunk.get("stages", [2, 3, 16, 3])
        assert (trunk.get("embed_dim", 96), sum(stages)) == (variant.width, variant.blocks)
        weights = {"image_encoder.trunk.patch_embed.proj.weight": torch.empty(variant.width, 3, 7, 7)}
        weights |= {
            f"image_encoder.trunk.blocks.{i}.attn.qkv.weight": torch.empty(1) for i in range(variant.blocks)
        }
        assert checkpoints.variant_of(weights, Path("x.pt")) is variant
    with pytest.raises(ConfigError, match=r"none of sam2\.1 tiny, small, base-plus, large"):
        checkpoints.variant_of({"image_encoder.trunk.patch_embed.proj.weight": torch.empty(8, 3)}, Path("x"))


def test_wrong_options_name_the_nearest_valid_one() -> None:
    cls = resolve("sam2", BACKENDS, "perceive.segment")
    with pytest.raises(ConfigError, match="points_per_side"):
        check_options(cls, {"point_per_side": 8}, "perceive.segment")
    with pytest.raises(ConfigError, match="image_size"):
        check_options(cls, {"image_size": 1000}, "perceive.segment")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_told(checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match="sees no GPU"):
        Sam2Segmenter(Sam2Options(checkpoint=str(checkpoint), device="cuda"))
