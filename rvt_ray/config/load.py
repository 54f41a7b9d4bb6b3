"""YAML plus `--set a.b=c` to one validated `Config`; fingerprints per stage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from rvt_ray.backends import explain
from rvt_ray.config.settings import Config
from rvt_ray.errors import ConfigError
from rvt_ray.records.enums import Stage

# Raised by hand when the code of a stage changes what it makes of the same input and settings.
STAGE_VERSION = {Stage.INDEX: 1, Stage.PERCEIVE: 4, Stage.CAPTION: 1, Stage.GENERATE: 4, Stage.SOLVE: 3}


def load_config(path: str | Path | None, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML config, apply `a.b=c` overrides (values are YAML) and validate.

    Raises:
        ConfigError: file missing or not YAML, a malformed override, an unknown key (with the nearest valid
            name) or a value of the wrong kind.
    """
    tree: dict[str, Any] = {}
    where = "config"
    if path is not None:
        where = str(path)
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot read the config: {error.strerror}. Try configs/smoke.yaml"
            ) from error
        try:
            loaded = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{path}: not valid YAML: {error}") from error
        if loaded is None:
            loaded = {}
        if not isinstance(loaded, dict):
            raise ConfigError(f"{path}: the top of a config is a mapping, not {type(loaded).__name__}")
        tree = loaded
    for override in overrides:
        _apply(tree, override)
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(f"{where}: {explain(error, Config)}") from error


def _apply(tree: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"--set {override!r}: write it as a.b=value")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {override!r}: the value is not valid YAML: {error}") from error
    node: Any = tree
    parts = key.strip().split(".")
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if isinstance(node, list):
            if not part.isdigit() or int(part) >= len(node):
                raise ConfigError(
                    f"--set {override!r}: {'.'.join(parts[:i])} is a list of {len(node)}; no index {part!r}"
                )
            if last:
                node[int(part)] = value
            else:
                node = node[int(part)]
            continue
        if not isinstance(node, dict):
            raise ConfigError(f"--set {override!r}: {'.'.join(parts[:i])} is a value and has no keys")
        if last:
            node[part] = value
        else:
            if node.get(part) is None:
                node[part] = {}
            node = node[part]


def fingerprint(config: Config, stage: Stage) -> str:
    """16 hex digits over every setting that can change the stage's result, upstream stages included.

    Where the videos lie, and how the job runs (`run`, `sources`, the reply cache's folder), are left out. The
    lexicon counts by its content, not by its path.

    Raises:
        ConfigError: the lexicon cannot be read.
    """
    if stage is Stage.SOLVE:
        return _digest(_solve_content(config))
    content: dict[str, Any] = {
        "version": STAGE_VERSION[Stage.INDEX],
        "index": config.index.model_dump(mode="json"),
    }
    if stage is not Stage.INDEX:
        perceive, opinions = _apart(config.perceive.model_dump(mode="json"))
        content["perceive"] = [STAGE_VERSION[Stage.PERCEIVE], config.seed, perceive]
        if stage is not Stage.PERCEIVE and opinions:
            content["caption"] = [STAGE_VERSION[Stage.CAPTION], opinions]
    if stage is Stage.GENERATE:
        generate = config.generate.model_dump(mode="json")
        generate["llm"].pop("cache")
        generate["queries"]["lexicon"] = _lexicon_content(config)
        content["generate"] = [STAGE_VERSION[Stage.GENERATE], generate]
    return _digest(content)


def _solve_content(config: Config) -> dict[str, Any]:
    """What can change an answer to a corpus's question: the corpus itself is part of each row's key."""
    agent = config.agent.model_dump(mode="json")
    agent["llm"].pop("cache")
    content: dict[str, Any] = {
        "solve": [STAGE_VERSION[Stage.SOLVE], agent],
        "facts": config.generate.facts.model_dump(mode="json"),
        "lexicon": _lexicon_content(config),
    }
    if config.agent.twin == "own":
        content["perceive"] = fingerprint(config, Stage.CAPTION)
    return content


def _lexicon_content(config: Config) -> str | None:
    path = config.generate.queries.lexicon
    if path is None:
        return None
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(
            f"generate.queries.lexicon: cannot read {path}: {error.strerror}; give a JSON file as "
            "docs/wording.md shows, or null for the built-in lexicon"
        ) from error


def _apart(perceive: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The perceive settings without those of captioners that ask a model, and these on their own.

    A captioner asks a model when it has an option `llm`; all of its options but `measured` can then change
    what the model says, and nothing else. The folder of its reply cache changes nothing.
    """
    opinions: list[dict[str, Any]] = []
    for spec in (perceive["caption"], (perceive["annotated"] or {}).get("caption")):
        if spec is None or not isinstance(spec["options"].get("llm"), dict):
            continue
        options = dict(spec["options"])
        spec["options"] = {key: value for key, value in options.items() if key == "measured"}
        options["llm"] = {key: value for key, value in options["llm"].items() if key != "cache"}
        opinions.append(options)
    return perceive, opinions


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
