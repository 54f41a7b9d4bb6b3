"""Run as a child process: whether vLLM imports, and on what it would run. One JSON object on stdout."""

from __future__ import annotations

import importlib.util
import json
import sys


def main() -> None:
    """Probe and print."""
    out: dict[str, str | None] = {"error": None, "platform": None}
    if importlib.util.find_spec("vllm") is None:
        out["error"] = "not installed"
    else:
        try:
            from vllm import SamplingParams  # noqa: F401 - the import is the test
            from vllm.platforms import current_platform

            out["platform"] = current_platform.device_type or "unspecified"
        except Exception as error:  # noqa: BLE001 - a broken native package may raise anything
            out["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:160]
    sys.stdout.write(json.dumps(out) + "\n")


if __name__ == "__main__":
    main()
