"""Any OpenAI-compatible chat server as an `Llm`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from rvt_ray import backends
from rvt_ray.errors import ConfigError
from rvt_ray.llm.base import Finish, LlmReply, LlmRequest
from rvt_ray.llm.models import require_package
from rvt_ray.llm.replies import failed, finished, openai_message, retry_when_cut
from rvt_ray.llm.schema import bare_pattern, check_schema, close_objects

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)

_RETRIED = {408, 425, 429, 500, 502, 503, 504, 529}
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 60.0
_BARE = "reply"


class EndpointLlm:
    """A client of one model on one server. Requests share a connection pool and a concurrency limit."""

    class Options(backends.Options):
        """Which server and model.

        Attributes:
            base_url: up to and including the version: `http://host:8000/v1`.
            model: the name the server knows it by.
            revision: stands in the model id; the protocol cannot ask a server for it.
            api_key_env: name of the environment variable that holds the key; never the key itself.
            timeout_s: one attempt, from sending to the last byte.
            max_retries: further attempts after 408, 429, 5xx, a timeout or a broken connection.
            retry_wait_s: before the first retry; doubled each time; a server's Retry-After goes before.
            concurrency: requests in flight at most.
            response_format: how the schema is sent; `json_object` for servers without schemas, `none` for
                those without either. The reply is checked against the schema in any case.
            extra_body: further fields of the request (e.g. `top_p`).
        """

        base_url: str
        model: str
        revision: str | None = None
        api_key_env: str | None = None
        timeout_s: float = Field(default=120.0, gt=0)
        max_retries: int = Field(default=4, ge=0)
        retry_wait_s: float = Field(default=_FIRST_WAIT_S, ge=0)
        concurrency: int = Field(default=16, ge=1)
        response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
        extra_body: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, options: Options) -> None:
        self.preflight(options)
        self._options = options
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(options.concurrency)

    @classmethod
    def preflight(cls, options: Options) -> None:
        """Check the options that can be checked without a request.

        Raises:
            ConfigError: malformed URL, or a key variable that is not set.
            MissingDependencyError: httpx is not installed.
        """
        require_package("httpx", "the endpoint backend", "pip install 'rvt-ray[endpoint]'")
        parts = urlsplit(options.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"llm.options.base_url: {options.base_url!r} is no http(s) URL; write it as http://host:8000/v1"
            )
        if parts.path.rstrip("/").endswith("/completions"):
            raise ConfigError(
                f"llm.options.base_url: {options.base_url!r} names a route; stop at the version, e.g. "
                "http://host:8000/v1"
            )
        if options.api_key_env and not os.environ.get(options.api_key_env):
            raise ConfigError(
                f"llm.options.api_key_env: the environment variable {options.api_key_env} is not set (on a "
                "cluster it must be set on every worker, e.g. through the job's runtime environment)"
            )

    @property
    def model_id(self) -> str:
        """`model@revision`; the host is left out: the same model may move."""
        revision = f"@{self._options.revision}" if self._options.revision else ""
        return f"{self._options.model}{revision}"

    async def complete(self, request: LlmRequest) -> LlmReply:
        """Answer one request; what the server or network does wrong ends in `Finish.ERROR`.

        Raises:
            SchemaError: the request's schema is unbounded or unsupported.
        """
        if request.schema is not None:
            check_schema(request.schema)
        return await retry_when_cut(self._once, request)

    async def close(self) -> None:
        """Close the connections; idempotent."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    def _http(self) -> httpx.AsyncClient:
        import httpx

        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # connections belong to one event loop
            headers = {}
            if self._options.api_key_env:
                headers["Authorization"] = f"Bearer {os.environ.get(self._options.api_key_env, '')}"
            self._client = httpx.AsyncClient(
                headers=headers,
                timeout=httpx.Timeout(self._options.timeout_s),
                limits=httpx.Limits(max_connections=self._options.concurrency),
            )
            self._slots = asyncio.Semaphore(self._options.concurrency)
            self._loop = loop
        return self._client

    def _body(self, request: LlmRequest) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {
            "model": options.model,
            "messages": [openai_message(message) for message in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "stream": False,
        }
        schema, bare = request.schema, bare_pattern(request.schema) is not None
        if schema is not None and options.response_format == "json_schema":
            if bare:  # the protocol knows no patterns but those inside of an object
                schema = {"type": "object", "properties": {_BARE: schema}, "required": [_BARE]}
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "strict": True, "schema": close_objects(schema)},
            }
        elif schema is not None and options.response_format == "json_object" and not bare:
            body["response_format"] = {"type": "json_object"}
        return body | options.extra_body

    async def _once(self, request: LlmRequest) -> LlmReply:
        client = self._http()
        body = self._body(request)
        url = f"{self._options.base_url.rstrip('/')}/chat/completions"
        problem = ""
        for attempt in range(self._options.max_retries + 1):
            async with self._slots:
                response, problem = await self._post(client, url, body)
            if response is not None and response.status_code not in _RETRIED:
                return _to_reply(response, request)
            if attempt < self._options.max_retries:
                wait = self._wait_s(attempt, response)
                _log.debug("%s: %s; again in %.1f s", url, problem, wait)
                await asyncio.sleep(wait)
        return failed(f"{url}: gave up after {self._options.max_retries + 1} attempts; the last: {problem}")

    async def _post(
        self, client: httpx.AsyncClient, url: str, body: dict[str, Any]
    ) -> tuple[httpx.Response | None, str]:
        import httpx

        try:
            # httpx counts each read apart: a server that drips bytes would never time out.
            async with asyncio.timeout(self._options.timeout_s):
                response = await client.post(url, json=body)
        except (TimeoutError, httpx.TimeoutException):
            return None, f"no answer within {self._options.timeout_s:g} s (llm.options.timeout_s)"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return None, f"{type(error).__name__}: {error}"
        return response, _status_text(response)

    def _wait_s(self, attempt: int, response: httpx.Response | None) -> float:
        asked = response.headers.get("retry-after", "") if response is not None else ""
        try:
            return min(max(float(asked), 0.0), _LONGEST_WAIT_S)
        except ValueError:  # absent, or a date
            # Jitter keeps a thousand coroutines from coming back at the same moment; it touches no result.
            backoff: float = self._options.retry_wait_s * 2**attempt
            return min(backoff, _LONGEST_WAIT_S) * random.uniform(0.75, 1.25)


def _status_text(response: httpx.Response) -> str:
    if response.status_code == 200:
        return ""
    try:
        data = response.json()
        detail = data["error"]["message"] if isinstance(data.get("error"), dict) else data.get("message", "")
    except (ValueError, KeyError, AttributeError, TypeError):
        detail = response.text
    return f"HTTP {response.status_code} {response.reason_phrase}: {str(detail)[:300]}".strip()


def _unwrapped(text: str) -> str:
    """The text inside the object that was asked for; bare text from a server that knows no schemas stays."""
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return text
    inner = data.get(_BARE) if isinstance(data, dict) else data
    return inner if isinstance(inner, str) else text


def _to_reply(response: httpx.Response, request: LlmRequest) -> LlmReply:
    if response.status_code != 200:
        return failed(f"{response.request.url}: {_status_text(response)}")
    try:
        data = response.json()
        choice = data["choices"][0]
        text = choice["message"].get("content") or ""
        reason = choice.get("finish_reason")
        usage = data.get("usage") or {}
        prompt_tokens = int(usage.get("prompt_tokens") or 0)
        completion_tokens = int(usage.get("completion_tokens") or 0)
        refusal = choice["message"].get("refusal")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        return failed(
            f"{response.request.url}: the answer is no chat completion ({type(error).__name__}: {error}): "
            f"{response.text[:200]!r}"
        )
    if refusal:
        return failed(f"the model refused: {str(refusal)[:200]}", text)
    if reason == "length":
        return LlmReply(
            text=text,
            finish=Finish.LENGTH,
            error=f"cut at max_tokens={request.max_tokens}",
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )
    if reason != "stop":
        return failed(f"the server ended the reply with finish_reason {reason!r}", text)
    if bare_pattern(request.schema) is not None:
        text = _unwrapped(text)
    return finished(text, request.schema, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
