"""Where a torch backend runs, and in what numbers."""

from __future__ import annotations

from rvt_ray.errors import ConfigError


def choose(device: str, dtype: str, half: str, what: str) -> tuple[str, str]:
    """Resolve `auto`.

    Args:
        device: `auto` (a GPU if torch sees one), `cpu`, `cuda`, `cuda:1`.
        dtype: name of a torch type; `auto` is `half` on a GPU and float32 on a CPU.
        what: the config field of the backend's options, for the error text.

    Returns:
        The device and the name of the type.

    Raises:
        ConfigError: a GPU is asked for, and torch sees none.
    """
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    elif device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(
            f"{what}.device: {device!r}, but torch {torch.__version__} sees no GPU; use 'auto' or 'cpu', or "
            "install a CUDA build (requirements/gpu.txt)"
        )
    if dtype == "auto":
        dtype = "float32" if device == "cpu" else half
    return device, dtype
