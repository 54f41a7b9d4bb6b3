"""Run as a child process: torch, its devices and what builds on it. One JSON object on stdout."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from typing import Any


def why_broken(module: str) -> str | None:
    """Why an installed module cannot be imported; None when it can."""
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - a CUDA build beside a CPU torch raises anything
        return f"{type(error).__name__}: {error}".splitlines()[0][:160]
    return None


def main() -> None:
    """Probe and print."""
    out: dict[str, Any] = {"torch": None, "cuda": None, "devices": [], "broken": {}, "sam2": "not installed"}
    if importlib.util.find_spec("torch") is None:
        out["error"] = "not installed"
    else:
        out["error"] = why_broken("torch")
    if out["error"] is None:
        import torch

        out["torch"] = torch.__version__
        if torch.cuda.is_available():
            out["cuda"] = torch.version.cuda
            for i in range(torch.cuda.device_count()):
                device = torch.cuda.get_device_properties(i)
                out["devices"].append(f"{device.name} {device.total_memory / 2**30:.0f} GiB")
        for package in ("torchvision", "torchaudio", "torchcodec"):
            if importlib.util.find_spec(package) is not None:
                broken = why_broken(package)
                if broken is not None:
                    out["broken"][package] = broken
        if importlib.util.find_spec("sam2") is not None:
            out["sam2"] = why_broken("sam2.build_sam")
    sys.stdout.write(json.dumps(out) + "\n")


if __name__ == "__main__":
    main()
