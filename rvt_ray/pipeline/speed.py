"""Where a stage's time went: seconds per step, frames per second, and how long the device waited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEVICE_STEPS = ("segment", "depth")
"""Steps of perception that keep the device busy (waits for frames are not in them)."""


@dataclass
class Speed:
    """Sums over the rows of a stage that ended well.

    Attributes:
        seconds: of the workers, added up.
        parts: seconds per step.
    """

    rows: int = 0
    frames: int = 0
    seconds: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)

    def add(self, seconds: float, counts: Mapping[str, int], parts: Mapping[str, float]) -> None:
        """Another row."""
        self.rows += 1
        self.frames += int(counts.get("frames", 0))
        self.seconds += seconds
        for name, value in parts.items():
            self.parts[name] = self.parts.get(name, 0.0) + value

    def as_dict(self, device_seconds: float | None = None) -> dict[str, Any]:
        """For progress.json and the manifest.

        `device_idle_share` is the share of the devices' time without a device step: of `device_seconds` (wall
        time times devices) where given, else of the workers' own seconds.
        """
        found: dict[str, Any] = {
            "parts": {name: round(value, 2) for name, value in sorted(self.parts.items())},
        }
        if self.frames and self.seconds > 0:
            found["frames"] = self.frames
            found["frames_per_worker_s"] = round(self.frames / self.seconds, 3)
        there = self.seconds if device_seconds is None else device_seconds
        if there > 0 and any(step in self.parts for step in DEVICE_STEPS):
            busy = sum(self.parts.get(step, 0.0) for step in DEVICE_STEPS)
            found["device_idle_share"] = round(max(0.0, 1 - busy / there), 4)
        return found
