"""Language models behind one interface: vLLM in the process, any OpenAI-compatible server, a reply cache."""

from __future__ import annotations

from typing import Any

from rvt_ray import backends
from rvt_ray.config.settings import LlmSettings
from rvt_ray.errors import ConfigError
from rvt_ray.llm.base import EngineDeadError, Finish, Image, Llm, LlmReply, LlmRequest, Message
from rvt_ray.llm.cache import CachedLlm
from rvt_ray.llm.schema import SchemaError, check_schema

BACKENDS: dict[str, str] = {
    "vllm": "rvt_ray.llm.vllm:VllmLlm",
    "endpoint": "rvt_ray.llm.endpoint:EndpointLlm",
}
TEMPLATE = "template"
_WHAT = "generate.llm"


def check_llm(settings: LlmSettings, what: str = _WHAT) -> None:
    """Refuse early: everything about the LLM settings that can be known without loading or asking a model.

    `what` names the settings in messages. A backend of one's own may have a classmethod `preflight(options)`
    that raises `ConfigError`.

    Raises:
        ConfigError: unknown backend or option, malformed URL, no model at the path.
        MissingDependencyError: a package or the weights are absent; the message has the remedy.
    """
    if settings.backend == TEMPLATE:
        if settings.options:
            raise ConfigError(
                f"{what}.options: the template backend takes none; got {', '.join(settings.options)}"
            )
        return
    cls, options = _resolve(settings, what)
    preflight = getattr(cls, "preflight", None)
    if preflight is not None:
        preflight(options)


def build_llm(settings: LlmSettings, what: str = _WHAT) -> Llm | None:
    """The model of the settings, behind the reply cache when one is set; None for `template`.

    Cheap: vLLM's engine starts with the first request that the cache cannot answer.

    Raises:
        ConfigError, MissingDependencyError: as `check_llm`.
    """
    if settings.backend == TEMPLATE:
        check_llm(settings, what)
        return None
    cls, options = _resolve(settings, what)
    llm: Llm = cls(options)
    return CachedLlm(llm, settings.cache) if settings.cache else llm


def _resolve(settings: LlmSettings, what: str) -> tuple[type[Any], Any]:
    names = {**BACKENDS, TEMPLATE: ""}
    if settings.backend not in BACKENDS and ":" not in settings.backend:
        raise ConfigError(
            f"{what}.backend: unknown backend {settings.backend!r}; "
            f"{backends.nearest(settings.backend, list(names))} "
            "An own class is named as 'package.module:Class'."
        )
    cls = backends.resolve(settings.backend, BACKENDS, f"{what}.backend")
    return cls, backends.check_options(cls, settings.options, what)


__all__ = [
    "BACKENDS",
    "TEMPLATE",
    "CachedLlm",
    "EngineDeadError",
    "Finish",
    "Image",
    "Llm",
    "LlmReply",
    "LlmRequest",
    "Message",
    "SchemaError",
    "build_llm",
    "check_llm",
    "check_schema",
]
