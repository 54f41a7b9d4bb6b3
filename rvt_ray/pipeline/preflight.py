"""Everything that can be known to be wrong before any work is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from rvt_ray import backends
from rvt_ray.backends import BackendSpec
from rvt_ray.config import Config
from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import Stage


def check_config(config: Config, stages: Sequence[Stage], storage: Storage) -> None:
    """Check the settings of the given stages against this machine, without loading any model.

    Raises:
        ConfigError: every problem found, one per line.
    """
    problems: list[str] = []
    checks: list[Callable[[], None]] = [storage.check_writable, lambda: check_lexicon(config)]
    if Stage.INDEX in stages:
        checks.append(lambda: check_sources(config))
    if Stage.PERCEIVE in stages:
        checks.append(lambda: check_perception(config))
    if Stage.GENERATE in stages:
        checks.append(lambda: _check_llm(config))
    if Stage.SOLVE in stages:
        checks.append(lambda: _check_agent(config))
    for check in checks:
        try:
            check()
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))


def check_sources(config: Config) -> None:
    """Every source is there.

    Raises:
        ConfigError: no source at all, or local paths that do not exist.
    """
    if not config.sources:
        raise ConfigError("no sources: give --source PATH (repeatable), or `sources:` in the config")
    missing = []
    for i, source in enumerate(config.sources):
        for name, path in (("path", source.path), ("annotations", source.annotations)):
            if path is not None and "://" not in path and not os.path.exists(path):
                missing.append(f"sources.{i}.{name}: {path}: no such file or folder")
    if missing:
        raise ConfigError("\n".join(missing))


def check_perception(config: Config) -> None:
    """The perception backends exist, their options are right, and what a class knows of its needs is there (a
    classmethod `preflight(options)`, where it has one).

    Raises:
        ConfigError: naming the setting; every problem, one per line.
        MissingDependencyError: only weights or packages are absent.
    """
    from rvt_ray.perception import caption, depth, segment

    rooms = (
        ("segment", config.perceive.segment, segment.BACKENDS),
        ("depth", config.perceive.depth, depth.BACKENDS),
        ("caption", config.perceive.caption, caption.BACKENDS),
    )
    annotated = config.perceive.annotated
    problems: list[ConfigError] = []
    for name, spec, builtin in rooms:
        checks = [(f"perceive.{name}", spec), (f"perceive.annotated.{name}", getattr(annotated, name, None))]
        for what, chosen in checks:
            try:
                if chosen is not None:
                    _check_backend(chosen, builtin, what)
            except ConfigError as error:
                problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        absent = all(isinstance(problem, MissingDependencyError) for problem in problems)
        raise (MissingDependencyError if absent else ConfigError)("\n".join(map(str, problems)))


def check_lexicon(config: Config) -> None:
    """The user's lexicon can be read and is one.

    Raises:
        ConfigError: naming the file, the key in it and the remedy.
    """
    from rvt_ray.queries.lexicon import load_lexicon

    # What an earlier run of this process has read may have been edited since.
    load_lexicon.cache_clear()
    load_lexicon(config.generate.queries.lexicon)


def _check_backend(spec: BackendSpec, builtin: dict[str, str], what: str) -> None:
    cls = backends.resolve(spec.backend, builtin, what)
    options = backends.check_options(cls, spec.options, what)
    preflight = getattr(cls, "preflight", None)
    if preflight is not None:
        preflight(options)


def _check_llm(config: Config) -> None:
    from rvt_ray.llm import check_llm

    check_llm(config.generate.llm)


def _check_agent(config: Config) -> None:
    from rvt_ray.llm import TEMPLATE, check_llm

    agent = config.agent
    check_llm(agent.llm, "agent.llm")
    if agent.planner == "llm" and agent.llm.backend == TEMPLATE:
        raise ConfigError(
            "agent.planner 'llm' needs a model: set agent.llm.backend (docs/llm.md), or agent.planner=rules"
        )
    if agent.twin == "own":
        check_perception(config)
