"""Ray: starting or joining it, what the actor pools ask for, and whether that is there."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.data import ActorPoolStrategy, DataContext

from rvt_ray.config.settings import Config, PoolSettings, RunSettings
from rvt_ray.errors import ConfigError
from rvt_ray.llm import TEMPLATE
from rvt_ray.records import Stage

logger = logging.getLogger(__name__)

_GIB = 1024**3
_IN_FLIGHT = 8


@contextlib.contextmanager
def ray_session(run: RunSettings, *, verbose: bool = False) -> Iterator[None]:
    """Start a Ray for this run (`run.address: local`) or join one, and leave it at the end. A Ray that this
    process already joined (a test's, a notebook's) is used as it is.

    Raises:
        ConfigError: no Ray answers at the address.
    """
    if ray.is_initialized():
        quieten()
        yield
        return
    kwargs: dict[str, Any] = {"address": run.address}
    if run.address == "local":
        # Engines that a worker started must not outlive it, however it dies.
        os.environ.setdefault("RAY_process_group_cleanup_enabled", "1")
        kwargs |= {"num_cpus": run.num_cpus, "include_dashboard": False}
        if not verbose:
            os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        ray.init(**kwargs, log_to_driver=verbose, logging_level=logging.INFO if verbose else logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"run.address {run.address!r}: no Ray there: {error}. "
            "`--set run.address=local` starts one for this run"
        ) from error
    quieten()
    # `ray job stop` and most schedulers end a job by SIGTERM: leave as on Ctrl-C, everything shut down in
    # order. Ray's own handler, which `ray.init` has just put in place, would abort the process.
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if in_main_thread else None
    try:
        yield
    finally:
        ray.shutdown()
        if in_main_thread:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def quieten() -> None:
    """Settings of Ray Data that every graph here runs under: no progress bars (the pipeline has its own
    progress), no time limit on progress (each row has its own deadline), no chatter."""
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.enable_operator_progress_bars = False
    context.execution_options.preserve_order = False
    for name, value in (
        ("execution_no_progress_timeout_s", -1),
        ("memory_usage_poll_interval_s", None),  # a thread per row, for statistics that nobody reads
        ("print_on_execution_start", False),
        ("enable_rich_progress_bars", False),
    ):
        if hasattr(context, name):  # newer than the oldest Ray that we allow
            setattr(context, name, value)
    for name in ("ray.data", "ray.data._internal.execution.streaming_executor"):
        logging.getLogger(name).setLevel(logging.ERROR)


def pool_options(pool: PoolSettings, rows: int, max_attempts: int, in_flight: int = 1) -> dict[str, Any]:
    """Arguments of `map_batches` for an actor pool: the only place that knows Ray's names for these things.

    Every bad row may take its process with it up to `max_attempts` times, and each time the rows that wait
    behind it on the same actor are started again: so Ray's own counters are sized by the rows, and the
    real bound on each row's starts is the marker file that `attempts` keeps.

    Args:
        rows: how many rows the graph has.
        in_flight: rows at once in one actor.
    """
    restarts = rows * (max_attempts + 1) + 1
    size = min(pool.actors, rows)
    options: dict[str, Any] = {
        "compute": ActorPoolStrategy(
            min_size=size, max_size=size, initial_size=size, **_concurrency(in_flight)
        ),
        "num_cpus": pool.num_cpus,
        # Deprecated in newer Rays, without a replacement so far (the graph keeps the warning quiet).
        "max_restarts": restarts,
        "max_task_retries": restarts,
    }
    if pool.num_gpus:
        options["num_gpus"] = pool.num_gpus
    if pool.memory_gb:
        options["memory"] = pool.memory_gb * _GIB
    return options


def _concurrency(in_flight: int) -> dict[str, int]:
    # One row waits in the actor, so that it never idles for the driver; more would only lengthen the tail.
    return {"max_concurrent_calls_per_actor": in_flight, "max_tasks_in_flight_per_actor": in_flight + 1}


def rows_in_flight(config: Config, stage: Stage) -> int:
    """Rows at once in one actor of an asynchronous stage. Several help only while a model is waited for:
    else their threads take the interpreter from each other, and a death has more suspects than it need be."""
    if config.run.in_flight is not None:
        return config.run.in_flight
    asks = {
        Stage.CAPTION: True,
        Stage.GENERATE: config.generate.llm.backend != TEMPLATE,
        Stage.SOLVE: config.agent.llm.backend != TEMPLATE,
    }
    return _IN_FLIGHT if asks[stage] else 1


def devices_of(pool: PoolSettings, rows: int) -> float:
    """How many devices the actors of a pool share: fractions of a GPU add up to GPUs, and any other actor
    has its own (several GPUs of one actor work on one row)."""
    size = max(1, min(pool.actors, rows))
    return float(math.ceil(size * pool.num_gpus - 1e-9)) if 0 < pool.num_gpus < 1 else float(size)


@dataclass(frozen=True)
class Need:
    """What the actor pool of a stage asks for, all actors together."""

    stage: Stage
    cpus: float
    gpus: float
    memory_gb: float


def needs(config: Config) -> list[Need]:
    """What each graph asks for. Graphs run one after the other, so each has the whole cluster."""
    found = []
    for stage in Stage:
        pool: PoolSettings = getattr(config.run, stage.value)
        found.append(
            Need(
                stage,
                pool.actors * pool.num_cpus,
                pool.actors * pool.num_gpus,
                pool.actors * (pool.memory_gb or 0.0),
            )
        )
    return found


def check_resources(
    config: Config,
    stages: list[Stage],
    there: Mapping[str, float],
    nodes: Sequence[Mapping[str, float]] | None = None,
) -> None:
    """Refuse a run whose pools can never start, instead of letting Ray wait for ever.

    Args:
        there: `ray.cluster_resources()`.
        nodes: the resources of each node; None: one node that has everything.

    Raises:
        ConfigError: what is asked, what is there, and which setting to lower.
    """
    problems = []
    have = {
        "num_cpus": there.get("CPU", 0.0),
        "num_gpus": there.get("GPU", 0.0),
        "memory_gb": there.get("memory", 0.0) / _GIB,
    }
    for need in needs(config):
        if need.stage not in stages:
            continue
        pool: PoolSettings = getattr(config.run, need.stage.value)
        if pool.num_gpus > 1 and pool.num_gpus != int(pool.num_gpus):
            problems.append(
                f"run.{need.stage}.num_gpus = {pool.num_gpus}: above 1 Ray takes whole numbers only"
            )
        for name, asked in (
            ("num_cpus", need.cpus),
            ("num_gpus", need.gpus),
            ("memory_gb", need.memory_gb),
        ):
            if asked > have[name] + 1e-9:
                each = getattr(pool, name)
                fit = int(have[name] // each) if each else 0
                advice = (
                    f"set run.{need.stage}.actors to at most {fit}, or lower run.{need.stage}.{name}"
                    if fit
                    else f"lower run.{need.stage}.{name}, or run where there is more"
                )
                problems.append(
                    f"{need.stage}: {pool.actors} actor(s) x {name} {each:g} = {asked:g}, "
                    f"but Ray has {have[name]:g}: {advice}"
                )
        if not any(problem.startswith((f"{need.stage}:", f"run.{need.stage}.")) for problem in problems):
            fit = sum(_fit_on(node, pool) for node in nodes or [there])
            if fit < pool.actors:
                advice = f"set run.{need.stage}.actors={fit}" if fit else f"lower run.{need.stage}'s sizes"
                problems.append(
                    f"{need.stage}: of {pool.actors} actor(s) with {_in_words(pool)} each only {fit} fit, "
                    f"since an actor lives on one node, and a share of a GPU on one GPU: {advice}"
                )
    if problems:
        raise ConfigError("not enough resources:\n  " + "\n  ".join(problems))


def _fit_on(node: Mapping[str, float], pool: PoolSettings) -> int:
    """How many actors of a pool one node holds. Ray gives a share of a GPU from one GPU: of 0.4 each GPU
    holds two, and the last fifth stays unused."""
    limits = [_times(node.get("CPU", 0.0), pool.num_cpus)]
    if pool.num_gpus:
        whole = int(node.get("GPU", 0.0) + 1e-9)
        fraction = pool.num_gpus < 1
        limits.append(whole * _times(1.0, pool.num_gpus) if fraction else _times(whole, pool.num_gpus))
    if pool.memory_gb:
        limits.append(_times(node.get("memory", 0.0) / _GIB, pool.memory_gb))
    return min(limits)


def _times(have: float, each: float) -> int:
    return int(have / each + 1e-9)


def _in_words(pool: PoolSettings) -> str:
    sizes = {"num_cpus": pool.num_cpus, "num_gpus": pool.num_gpus, "memory_gb": pool.memory_gb}
    return ", ".join(f"{name} {size:g}" for name, size in sizes.items() if size)
