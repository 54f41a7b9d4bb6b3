"""Runs inside vLLM's engine process: it ends when the process that started it is gone.

vLLM's workers watch the engine, but the engine does not watch the process that owns it: kill -9 of a Ray
actor leaves the engine behind, holding its memory (seen with vLLM 0.32). So the executor class that the
engine is given is one of these, and the engine's process watches its parent from the moment it imports them.

Imports vLLM at module level: only `rvt_ray.llm.vllm` imports this module, when it starts an engine.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import time

from vllm.v1.executor import Executor
from vllm.v1.executor.multiproc_executor import MultiprocExecutor
from vllm.v1.executor.uniproc_executor import UniProcExecutor

_log = logging.getLogger(__name__)
_CHECK_S = 1.0
_WATCH = "end-with-parent"


def end_with_parent() -> None:
    """Start a thread that ends this process soon (about a second) after its parent process died. For children
    of multiprocessing."""
    if any(thread.name == _WATCH for thread in threading.enumerate()):
        return

    def watch() -> None:
        # A child that is still unpickling what it was given does not know its parent yet.
        while (parent := multiprocessing.parent_process()) is None:
            time.sleep(_CHECK_S)
        # join() wakes at once through the sentinel pipe; getppid() also sees a death that the pipe hides
        # because another child of the parent inherited its end.
        while parent.is_alive() and os.getppid() == parent.pid:
            parent.join(timeout=_CHECK_S)
        # No cleanup: it would wait for a peer that is gone. The workers would end on their own death pipe,
        # but only once they are loaded, and slowly; their memory may be wanted at once.
        for worker in multiprocessing.active_children():
            worker.kill()
        os._exit(1)

    threading.Thread(target=watch, name=_WATCH, daemon=True).start()


class _EndsWithParent:
    def _init_executor(self) -> None:
        if multiprocessing.parent_process() is not None:  # else the engine runs in its owner's process
            end_with_parent()
        super()._init_executor()  # type: ignore[misc]  # a mixin: the executor comes next


class GuardedMultiprocExecutor(_EndsWithParent, MultiprocExecutor):  # type: ignore[misc]
    """vLLM's executor for several worker processes, guarded."""


class GuardedUniProcExecutor(_EndsWithParent, UniProcExecutor):  # type: ignore[misc]
    """vLLM's executor inside the engine process, guarded."""


_GUARDED: dict[type[Executor], type[Executor]] = {
    MultiprocExecutor: GuardedMultiprocExecutor,
    UniProcExecutor: GuardedUniProcExecutor,
}


def guarded(executor_class: type[Executor]) -> type[Executor]:
    """The guarded form of vLLM's executor class; others (Ray, plugins) are returned as they are."""
    found = _GUARDED.get(executor_class)
    if found is None:
        _log.warning("no guard for %s: a killed actor may leave its engine behind", executor_class.__name__)
        return executor_class
    return found


if multiprocessing.current_process().name.startswith("EngineCore"):
    # A spawned engine imports this module when it unpickles its executor class, before vLLM's handshake, in
    # which it would wait five minutes for an owner that was killed meanwhile.
    end_with_parent()
