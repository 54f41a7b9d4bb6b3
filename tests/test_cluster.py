"""The shipped configs and cluster files fit each other: every config loads, and the clusters hold
configs/full.yaml."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rvt_ray.config import Config, load_config
from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.pipeline.preflight import check_perception
from rvt_ray.pipeline.resources import check_resources
from rvt_ray.records import Stage

ROOT = Path(__file__).parents[1]
_GIB = 1024**3
_UNITS = {"Gi": _GIB, "Mi": 1024**2}


def full() -> Config:
    return load_config(ROOT / "configs" / "full.yaml")


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda p: p.name)
def test_every_shipped_config_loads(path: Path) -> None:
    load_config(path)


@pytest.mark.parametrize("name", ["smoke", "demo"])
def test_the_small_configs_fit_two_cores_and_need_no_weights_for_perception(name: str) -> None:
    config = load_config(ROOT / "configs" / f"{name}.yaml")
    check_resources(config, list(Stage), {"CPU": 2.0, "memory": 4 * _GIB})
    check_perception(config)


def test_the_full_config_names_every_missing_weight_and_its_remedy_before_any_video(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers", reason="without packages they are what is missing")
    pytest.importorskip("sam2", reason="without packages they are what is missing")
    monkeypatch.setenv("RVT_RAY_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("rvt_ray.llm.models._hub_snapshot", lambda *_: None)
    monkeypatch.setattr("rvt_ray.llm.models.require_package", lambda *_: None)  # vllm may be absent
    with pytest.raises(MissingDependencyError) as caught:
        check_perception(full())
    segment, depth, caption = str(caught.value).splitlines()
    assert "rvt-ray models pull sam2.1-large" in segment
    assert "rvt-ray models pull depth-anything-v2-small" in depth
    assert caption.startswith("perceive.caption")
    assert "rvt-ray models pull Qwen/Qwen2.5-VL-7B-Instruct" in caption


def test_the_cluster_launcher_file_holds_the_full_config() -> None:
    cluster = yaml.safe_load((ROOT / "cluster" / "ray-cluster.yaml").read_text())
    needed = {
        "cluster_name",
        "provider",
        "auth",
        "head_node_type",
        "available_node_types",
        "head_start_ray_commands",
        "worker_start_ray_commands",
    }
    assert needed <= set(cluster)
    types = cluster["available_node_types"]
    assert cluster["head_node_type"] in types
    there = {"CPU": 0.0, "GPU": 0.0, "memory": 0.0}
    for name, node in types.items():
        count = 1 if name == cluster["head_node_type"] else node["min_workers"]
        for resource in there:
            there[resource] += count * node["resources"].get(resource, 0)
    assert sum(n["max_workers"] for n in types.values()) <= cluster["max_workers"]
    check_resources(full(), list(Stage), there)
    starts = [*cluster["head_start_ray_commands"], *cluster["worker_start_ray_commands"]]
    assert all("RAY_AUTH_MODE=" in c for c in starts if "ray start" in c)
    assert f":{pinned_ray()}-" in cluster["docker"]["image"]


def test_the_rayjob_holds_the_full_config_and_runs_a_job_that_exists() -> None:
    job = yaml.safe_load((ROOT / "cluster" / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    words = spec["entrypoint"].split()
    home = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["workingDir"]
    for path in (words[1], words[words.index("--config") + 1]):
        assert (ROOT / Path(path).relative_to(home)).exists()
    cluster = spec["rayClusterSpec"]
    assert cluster["rayVersion"] == pinned_ray()
    groups = [(1, cluster["headGroupSpec"])]
    groups += [(group["minReplicas"], group) for group in cluster["workerGroupSpecs"]]
    there = {"CPU": 0.0, "GPU": 0.0, "memory": 0.0}
    for count, group in groups:
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
        assert "RAY_AUTH_MODE" in {e["name"] for e in container["env"]}
        resources = container["resources"]
        assert resources["requests"] == resources["limits"], "Ray sizes a pod by its limits"
        there["CPU"] += count * float(resources["limits"]["cpu"])
        there["GPU"] += count * float(resources["limits"].get("nvidia.com/gpu", 0))
        # Ray keeps 30 % of a pod's memory for the object store.
        there["memory"] += count * 0.7 * memory_of(resources["limits"]["memory"])
    check_resources(full(), list(Stage), there)


def test_a_cluster_that_is_too_small_for_the_full_config_is_noticed() -> None:
    with pytest.raises(ConfigError, match="perceive"):
        check_resources(full(), list(Stage), {"CPU": 144.0, "GPU": 8.0, "memory": 900.0 * _GIB})


def test_no_actor_of_the_full_config_is_larger_than_a_node() -> None:
    """Sums can fit where no single node does; an actor lives on one node."""
    types: dict[str, Any] = yaml.safe_load((ROOT / "cluster" / "ray-cluster.yaml").read_text())[
        "available_node_types"
    ]
    for stage in Stage:
        pool = getattr(full().run, stage.value)
        slots = 0
        for node in types.values():
            count, have = max(1, node["min_workers"]), node["resources"]
            by_cpu = have["CPU"] // pool.num_cpus
            by_gpu = have.get("GPU", 0) // pool.num_gpus if pool.num_gpus else by_cpu
            by_memory = have["memory"] // ((pool.memory_gb or 0) * _GIB or 1)
            slots += count * int(min(by_cpu, by_gpu, by_memory))
        assert slots >= pool.actors, stage


def memory_of(text: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(Gi|Mi)", text).groups()  # type: ignore[union-attr]
    return float(number) * _UNITS[unit]


def pinned_ray() -> str:
    text = (ROOT / "requirements" / "gpu.txt").read_text()
    match = re.search(r"^ray(?:\[[^\]]*\])?==(\S+)", text, re.MULTILINE)
    assert match, "requirements/gpu.txt pins no ray"
    return match.group(1)
