"""The one interface through which any stage talks to a language (or vision-language) model."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from rvt_ray.errors import RvtError


class Finish(StrEnum):
    """Why the model stopped. Only `stop` carries a usable reply."""

    STOP = "stop"
    LENGTH = "length"  # cut by max_tokens: never parsed, never used
    ERROR = "error"  # the engine or endpoint failed; `error` says how


class EngineDeadError(RvtError):
    """The engine behind an `Llm` is gone for good: the worker that holds it must be started anew.

    The one failure of the model side that is raised and not returned: every later request would fail too.
    """


@dataclass(frozen=True)
class Image:
    """An image for a multimodal request: PNG or JPEG bytes."""

    data: bytes
    media_type: str = "image/png"


@dataclass(frozen=True)
class Message:
    """One chat turn. `role`: system | user | assistant."""

    role: str
    content: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True)
class LlmRequest:
    """A chat completion.

    `schema` is a JSON schema that the reply must follow; every string and array in it must be bounded
    (`maxLength`, `maxItems`), since a guided model can run in white space for ever. A schema that is one
    string with a `pattern` is answered in bare text, and `data` is that text. `seed` makes a sampled
    reply repeatable as far as the engine allows.
    """

    messages: tuple[Message, ...]
    schema: dict[str, Any] | None = None
    max_tokens: int = 200
    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class LlmReply:
    """What came back. `data` is the parsed JSON when the request had a schema and `finish` is `stop`."""

    text: str
    finish: Finish
    data: Any = None
    error: str = ""
    cached: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    meta: dict[str, Any] = field(default_factory=dict)


class Llm(Protocol):
    """A model behind an engine or endpoint. One object serves many coroutines at once."""

    @property
    def model_id(self) -> str:
        """Name, revision and digest of the model, as it stands in the rows."""
        ...

    async def complete(self, request: LlmRequest) -> LlmReply:
        """Answer one request. Never raises for a bad reply: `finish` and `error` say what went wrong.

        Raises:
            SchemaError: the request's schema is unbounded or unsupported (a fault of the caller).
            ConfigError: the model cannot do what is asked of it at all (images for a text-only model).
            EngineDeadError: the engine is gone; the worker must be started anew.
        """
        ...

    async def close(self) -> None:
        """Shut the engine down cleanly; idempotent."""
        ...
