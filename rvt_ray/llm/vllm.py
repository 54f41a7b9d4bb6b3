"""vLLM in the process: one `AsyncLLM` engine that serves many coroutines at once."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import uuid
import weakref
from typing import TYPE_CHECKING, Any, Literal

import psutil  # type: ignore[import-untyped]
from pydantic import Field

from rvt_ray import backends
from rvt_ray.errors import ConfigError
from rvt_ray.llm import models
from rvt_ray.llm.base import EngineDeadError, Finish, LlmReply, LlmRequest
from rvt_ray.llm.replies import failed, finished, openai_message, retry_when_cut
from rvt_ray.llm.schema import bare_pattern, check_schema, close_objects

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.outputs import RequestOutput

_log = logging.getLogger(__name__)

_ENVIRONMENT = {
    # fork is not safe after torch, Ray or gRPC have started their threads.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
_SHUTDOWN_S = 30.0


class VllmLlm:
    """A vLLM (V1) engine owned by this object.

    The engine lives in child processes. It starts with the first request that is not answered from the cache,
    or with `start()`, which blocks for the model's load (45-60 s for a small model on two cores).

    What an actor that holds one must do: call `start()` in its constructor when it wants to fail early; run
    all requests in one event loop; on `EngineDeadError` let the exception end the actor, so that it starts
    anew; call `shutdown()` (or await `close()`) before it ends. An actor that is killed instead takes the
    engine with it, within about a second. Ray kills an actor's children before it drops the actor's objects,
    unless RAY_kill_child_processes_on_worker_exit=0 was set where Ray was started: then `__del__` is in time.
    """

    class Options(backends.Options):
        """How to run the engine.

        Attributes:
            model: folder in Hugging Face layout, hub id (`owner/name`) or a name of `rvt-ray models list`.
            revision: commit or branch of a hub id.
            dtype: `auto` takes the model's own.
            max_model_len: prompt plus reply in tokens; null takes the model's own, which may not fit.
            tensor_parallel_size: GPUs that share one model.
            gpu_memory_utilization: share of a GPU that the engine may take (weights plus KV cache).
            kv_cache_gb: size of the KV cache, GiB; null: vLLM decides. Set it on a CPU.
            max_num_seqs: requests decoded together.
            enforce_eager: no CUDA graphs and no compilation: slower, starts faster.
            seed: of the engine; each request has an own seed besides.
            trust_remote_code: run code that comes with the model.
            engine_args: any further argument of vLLM's `AsyncEngineArgs`.
        """

        model: str
        revision: str | None = None
        dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
        max_model_len: int | None = Field(default=None, ge=64)
        tensor_parallel_size: int = Field(default=1, ge=1)
        gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
        kv_cache_gb: float | None = Field(default=None, gt=0)
        max_num_seqs: int = Field(default=64, ge=1)
        enforce_eager: bool = False
        seed: int = 0
        trust_remote_code: bool = False
        engine_args: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, options: Options) -> None:
        self.preflight(options)
        self._options = options
        self._model = models.locate_llm(options.model, options.revision)
        self._engine: Any = None
        self._processes: list[psutil.Process] = []
        self._starting = asyncio.Lock()
        self._closed = False
        self._failure: ConfigError | None = None

    @classmethod
    def preflight(cls, options: Options) -> None:
        """Check packages and weights without loading them.

        Raises:
            MissingDependencyError: vLLM or the model is not on this machine.
            ConfigError: a model folder that is none.
        """
        models.require_package(
            "vllm", "the vllm backend", "pip install 'rvt-ray[gpu]' (requirements/cpu.txt)"
        )
        models.check_llm_model(options.model, options.revision)

    @property
    def model_id(self) -> str:
        """Name, revision and digest of the weights."""
        return self._model.model_id

    def start(self) -> None:
        """Load the model and start the engine; a second call does nothing.

        Raises:
            ConfigError: vLLM refuses the model or the options, or the engine does not come up.
        """
        if self._failure is not None:
            raise self._failure  # every coroutine that waited for the start gets the cause
        if self._closed:
            raise ConfigError("llm: this vLLM engine was closed; build a new one")
        if self._engine is not None:
            return
        path = self._model.ensure()
        for key, value in _ENVIRONMENT.items():
            os.environ.setdefault(key, value)
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.executor import Executor

        from rvt_ray.llm.engine_process import guarded

        arguments = self._arguments(path)
        known = set(AsyncEngineArgs.__dataclass_fields__)
        for key in arguments:
            if key not in known:
                hint = backends.nearest(key, sorted(known))
                raise ConfigError(f"llm.options.engine_args: vLLM has no argument {key!r}; {hint}")
        try:
            config = AsyncEngineArgs(**arguments).create_engine_config()
            self._engine = AsyncLLM(
                vllm_config=config,
                executor_class=guarded(Executor.get_class(config)),
                log_stats=False,
                log_requests=False,
            )
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            self.shutdown()
            self._failure = ConfigError(
                f"llm: vLLM cannot run {self._options.model!r} with these options: {error}. The engine's own "
                "log above names the cause; often memory: lower max_model_len, max_num_seqs or kv_cache_gb"
            )
            raise self._failure from error
        self._processes = _engine_processes()
        logging.getLogger(AsyncLLM.__module__).addFilter(_is_not_a_dead_engine)
        atexit.register(_shutdown_at_exit, weakref.ref(self))
        _log.info("vLLM engine up: %s", self.model_id)

    async def complete(self, request: LlmRequest) -> LlmReply:
        """Answer one request; a reply that is cut is asked for once more with another seed.

        Raises:
            SchemaError: the request's schema is unbounded or unsupported; the engine never sees it.
            ConfigError: the engine does not start, or images for a model that takes none.
            EngineDeadError: the engine's process died; this object is of no more use.
        """
        if request.schema is not None:
            check_schema(request.schema)
        async with self._starting:
            self.start()  # blocks the loop on purpose: nothing can run before the engine does
        return await retry_when_cut(self._once, request)

    async def close(self) -> None:
        """Stop the engine and wait until its processes are gone; idempotent."""
        engine = self._engine
        self.shutdown()
        handler = getattr(engine, "output_handler", None)
        if handler is not None:
            await asyncio.wait([handler], timeout=5)

    def shutdown(self) -> None:
        """`close()` for callers without an event loop (an actor's `__del__`, atexit)."""
        self._closed = True
        engine, self._engine = self._engine, None
        if engine is not None:
            # A worker needs about 5 s to end, which is vLLM's own patience before it kills.
            engine.shutdown(timeout=_SHUTDOWN_S)
        # What is left are workers of an engine that died. They would end by themselves, but hold memory that
        # the next engine wants.
        for process in self._processes:
            if process.is_running():
                process.kill()
        self._processes = []

    def _arguments(self, path: str) -> dict[str, Any]:
        from vllm.platforms import current_platform

        options = self._options
        arguments: dict[str, Any] = {
            "model": path,
            "revision": options.revision if path == options.model else None,
            "dtype": options.dtype,
            "max_model_len": options.max_model_len,
            "tensor_parallel_size": options.tensor_parallel_size,
            "gpu_memory_utilization": options.gpu_memory_utilization,
            "max_num_seqs": options.max_num_seqs,
            "enforce_eager": options.enforce_eager,
            "seed": options.seed,
            "trust_remote_code": options.trust_remote_code,
            # Per request it is ignored, and a small model then writes newlines until it is cut.
            "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
        }
        if current_platform.is_cpu():
            # A prompt that is read in parts ends vLLM 0.32's engine where the request has a seed: after each
            # part it winds the seed's generator back, which PyTorch can't on a CPU.
            arguments["enable_chunked_prefill"] = False
        if options.kv_cache_gb is not None:
            arguments["kv_cache_memory_bytes"] = int(options.kv_cache_gb * 2**30)
        return arguments | options.engine_args

    async def _render(self, request: LlmRequest) -> Any:
        """The request as the engine takes it: through the model's chat template, by vLLM's own renderer,
        which knows where each family of models wants its images."""
        from vllm.renderers import ChatParams

        images = sum(len(message.images) for message in request.messages)
        if images and not self._engine.model_config.is_multimodal_model:
            raise ConfigError(
                f"llm: {self._options.model!r} takes text only, but the request has {images} images; set "
                "llm.options.model to a vision-language model"
            )
        chat = [openai_message(message) for message in request.messages]
        # Without the generation prompt the model would write the assistant's header itself.
        params = ChatParams(chat_template_kwargs={"add_generation_prompt": True})
        _, (prompt,) = await self._engine.renderer.render_chat_async([chat], params)
        return prompt

    def _sampling(self, request: LlmRequest) -> SamplingParams:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        guide = None
        pattern = bare_pattern(request.schema)
        if pattern is not None:
            guide = StructuredOutputsParams(regex=pattern[1:-1])  # it always fits the whole reply
        elif request.schema is not None:
            guide = StructuredOutputsParams(json=close_objects(request.schema))
        return SamplingParams(
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            seed=request.seed,
            structured_outputs=guide,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    async def _once(self, request: LlmRequest) -> LlmReply:
        from vllm.v1.engine.exceptions import EngineDeadError as VllmDead

        if self._engine is None:
            return failed("the engine was closed while the request waited")
        last: RequestOutput | None = None
        try:
            prompt = await self._render(request)
            async for output in self._engine.generate(
                prompt, self._sampling(request), request_id=uuid.uuid4().hex
            ):
                last = output
        except VllmDead as error:
            raise EngineDeadError(
                f"the vLLM engine of {self.model_id} died; its log above says why (out of memory is the most "
                "common cause). This worker must be started anew"
            ) from error
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - a bad request must not reach its neighbours
            cause = error.__cause__ or error
            hint = " (llm.options.max_model_len)" if getattr(cause, "parameter", "") == "input_tokens" else ""
            return failed(f"vLLM refused the request: {type(cause).__name__}: {cause}{hint}")
        return _to_reply(last, request)


def _to_reply(output: RequestOutput | None, request: LlmRequest) -> LlmReply:
    if output is None or not output.outputs:
        return failed("vLLM gave no output")
    choice = output.outputs[0]
    prompt_tokens, completion_tokens = len(output.prompt_token_ids or ()), len(choice.token_ids)
    if choice.finish_reason == "length":
        return LlmReply(
            text=choice.text,
            finish=Finish.LENGTH,
            error=f"cut after {completion_tokens} tokens",
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )
    if choice.finish_reason != "stop":
        return failed(f"vLLM ended the request with {choice.finish_reason!r}", choice.text)
    return finished(
        choice.text, request.schema, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens
    )


def _engine_processes() -> list[psutil.Process]:
    """vLLM's processes below this one, known by the titles that they give themselves."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(part.startswith("VLLM::") for part in process.cmdline()):
                found.append(process)
    return found


def _is_not_a_dead_engine(record: logging.LogRecord) -> bool:
    """A log filter. vLLM logs a stack for an engine that is gone even when nobody waits for it, which is how
    Ray ends an actor (children first); who does wait gets our `EngineDeadError`."""
    return not (record.exc_info and type(record.exc_info[1]).__name__ == EngineDeadError.__name__)


def _shutdown_at_exit(reference: weakref.ref[VllmLlm]) -> None:
    llm = reference()
    if llm is not None:
        llm.shutdown()
