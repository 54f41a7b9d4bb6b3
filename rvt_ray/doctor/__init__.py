"""What this machine can do: every part that the pipeline may need, and the remedy for each that is missing.

Nothing here may fail because something is absent or broken: heavy or native packages are tried in child
processes, side by side, with a deadline.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rvt_ray.doctor import checks
from rvt_ray.doctor.checks import Check, Status

_PROBE_S = 120.0
_PROBED = (("codecs", checks.video), ("torch", checks.torch), ("vllm", checks.vllm))


def examine() -> list[Check]:
    """Look at everything; takes as long as the slowest import (vLLM's, some seconds), two minutes at most."""
    probes = [(name, look, _Probe(name)) for name, look in _PROBED]
    findings = [
        *checks.machine(),
        *checks.ray(),
        *checks.packages(),
        *checks.weights(),
        *checks.onnx_models(),
    ]
    deadline = time.monotonic() + _PROBE_S
    for name, look, probe in probes:
        found = probe.result(deadline)
        if "crash" in found or "late" in found:
            findings.append(checks.no_answer(name, found))
        else:
            findings += look(found)
    return findings


def to_json(findings: list[Check]) -> str:
    """The findings as a JSON list."""
    return json.dumps([asdict(check) for check in findings], indent=1)


def to_text(findings: list[Check], *, terminal: bool | None = None) -> str:
    """The findings as text: a coloured table on a terminal, else one plain line each.

    Args:
        terminal: None looks at standard output.
    """
    if terminal is None:
        terminal = sys.stdout.isatty()
    missing = sum(check.status is Status.MISSING for check in findings)
    last = "everything is here" if not missing else f"{missing} of {len(findings)} are missing"
    last += "; only the backends that a config names must be here"
    if not terminal:
        return "\n".join([*(_plain(check) for check in findings), last])
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    colours = {Status.OK: "green", Status.WARN: "yellow", Status.MISSING: "red"}
    table = Table(box=None, padding=(0, 1), show_header=False)
    for check in findings:
        text = Text(check.detail)
        if check.remedy:
            text.append(f"\n→ {check.remedy}", style="cyan")
        table.add_row(Text(check.status.value, style=colours[check.status]), Text(check.name), text)
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, width=shutil.get_terminal_size((110, 24)).columns)
    console.print(table)
    console.print(Text(last, style="bold"))
    return buffer.getvalue().rstrip("\n")


def _plain(check: Check) -> str:
    remedy = f"  -> {check.remedy}" if check.remedy else ""
    return f"{check.status.value:<8}{check.name:<32} {check.detail}{remedy}"


class _Probe:
    """A child process that runs one `probe_*.py` file, which prints one JSON object."""

    def __init__(self, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).parent / f"probe_{name}.py")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"},
        )

    def result(self, deadline: float) -> dict[str, Any]:
        """What the script found; `{"crash": why}` or `{"late": why}` when it did not get that far."""
        try:
            output, errors = self._process.communicate(timeout=max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return {"late": f"not known: no answer within {_PROBE_S:g} s"}
        try:
            found: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
        except (IndexError, json.JSONDecodeError):
            words = errors.strip().splitlines()[-1:] or ["no output"]
            return {"crash": f"exit code {self._process.returncode}: {words[0][:200]}"}
        return found


__all__ = ["Check", "Status", "examine", "to_json", "to_text"]
