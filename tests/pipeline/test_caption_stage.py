"""The caption stage over real Ray and the real protocol: a pool of its own, retried and redone on its own;
the same twin as in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rvt_ray.config import Config, load_config
from rvt_ray.pipeline import run as job
from rvt_ray.pipeline.validate import validate_corpus
from rvt_ray.records import ClipRecord, DigitalTwin
from rvt_ray.synthetic import random_scene, write_clip
from rvt_ray.twin.build import Perception
from rvt_ray.video import open_clip
from tests.llm.fake_server import FakeServer, Reply

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]

SAID = {"sure": "clear", "what": "toy", "attributes": [], "doing": "resting", "caption": "A toy rests."}
SCENE = {"caption": "Toys in a room.", "tags": ["indoors"]}


def script(body: dict[str, Any]) -> Reply:
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    return Reply(json.dumps(SCENE if "tags" in properties else SAID))


def down(body: dict[str, Any]) -> Reply:
    return Reply("no model loaded", status=400)


def config_for(folder: Path, url: str, **llm: str) -> Config:
    options = {"base_url": url, "model": "eye", "max_retries": 0, **llm}
    return load_config(
        None,
        [
            f"sources=[{{path: {folder}, license: CC0-1.0, annotations: {folder / 'annotations'}, "
            "annotation_format: synthetic}]",
            "index.shots.detector=none",
            "perceive.annotated={depth: {backend: annotations}}",
            f"perceive.caption={{backend: vlm, options: {{llm: {{backend: endpoint, options: "
            f"{json.dumps(options)}}}}}}}",
            *(f"run.{stage}.num_cpus=0.5" for stage in ("index", "perceive", "caption", "generate")),
            "generate.gates.stability=false",
        ],
    )


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("videos")
    for seed in (3, 4):
        spec = random_scene(seed, num_objects=3, num_frames=12, width=96, height=72, fps=8.0)
        write_clip(spec, folder, f"scene{seed}")
    return folder


def staged(out: Path, stage: str) -> dict[str, int]:
    """Staged files of a stage, with their times of change."""
    return {p.name: p.stat().st_mtime_ns for p in (out / "_staging" / stage).rglob("*.parquet")}


def twins(out: Path) -> list[DigitalTwin]:
    return DigitalTwin.from_table(pq.read_table(out / "twins", schema=DigitalTwin.SCHEMA))


def make(config: Config, out: Path, **options: Any) -> dict[str, Any]:
    """Index, perceive, caption; shards. Returns the manifest."""
    job.perceive(config, out, bar=False, **options)
    manifest = job.finalise(config, out).manifest
    assert manifest is not None
    assert validate_corpus(out).problems == []
    return manifest


def test_captions_have_a_pool_of_their_own_that_is_retried_and_redone_alone(
    videos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with FakeServer(down) as server:
        config = config_for(videos, server.url)
        # A model that is down fails the clips.
        counts = make(config, out)["counts"]
        assert (counts["clips"], counts["twins"], counts["failed_caption"]) == (2, 0, 2)
        rows = pq.read_table(out / "failures").to_pylist()
        assert [(r["stage"], r["code"]) for r in rows] == [("caption", "llm_error")] * 2
        assert "no model loaded" in rows[0]["message"]
        perceived = staged(out, "perceive")
        assert len(perceived) == 2

        # They can be tried again.
        server.script = script
        manifest = make(config, out, retry_failed=True)
        assert manifest["stages"] == ["index", "perceive", "caption"]
        speed = manifest["speed"]["perceive"]
        assert set(speed["parts"]) >= {"open", "decode", "segment", "camera", "depth", "assemble"}
        assert 0 < sum(speed["parts"].values()) <= speed["worker_seconds"] + 0.1
        assert speed["frames"] == 24
        assert 0 < speed["device_idle_share"] < 1
        assert manifest["speed"]["caption"]["parts"]["opinions"] > 0
        progress = json.loads((out / "progress.json").read_text())["stages"]["caption"]
        assert progress["parts"]["opinions"] > 0
        found = twins(out)
        assert len(found) == 2
        for twin in found:
            assert twin.scene.caption == "Toys in a room."
            assert twin.provenance.caption == "appearance+vlm:eye"
            for instance in twin.instances:
                assert ("action", "resting") in {(a.name, a.value) for a in instance.attributes}

        # In one process, without the stage, it is the same twin.
        clip = ClipRecord.from_table(pq.read_table(out / "clips", schema=ClipRecord.SCHEMA))[0]
        alone = Perception.from_config(config).twin(clip, open_clip(clip, config.index))
        assert alone == next(t for t in found if t.clip_id == clip.clip_id)

        # Another model captions again, and perceives nothing again.
        make(config_for(videos, server.url, model="other"), out)
        assert {t.provenance.caption for t in twins(out)} == {"appearance+vlm:other"}
        assert staged(out, "perceive") == perceived
