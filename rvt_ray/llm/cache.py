"""Replies on disk, so that the same question to the same model has one answer for ever.

Temperature 0 is not bit-stable across batches: without a cache a rerun would word a sample differently.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from rvt_ray.errors import ConfigError
from rvt_ray.llm.base import Finish, Llm, LlmReply, LlmRequest
from rvt_ray.llm.replies import finished
from rvt_ray.llm.schema import check_schema

_log = logging.getLogger(__name__)
_VERSION = 1  # raised when an entry's layout or the key's recipe changes


def request_key(model_id: str, request: LlmRequest) -> str:
    """sha256 (hex) over all that can change the reply: model id, messages, images, schema, sampling, seed."""
    content = {
        "version": _VERSION,
        "model": model_id,
        "messages": [
            [
                message.role,
                message.content,
                [[image.media_type, hashlib.sha256(image.data).hexdigest()] for image in message.images],
            ]
            for message in request.messages
        ],
        # Not sorted: a model writes properties in the schema's order, so the order can change the reply.
        "schema": request.schema,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
    }
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


class CachedLlm:
    """An `Llm` that asks `inner` only what it was not asked before.

    Only replies with `Finish.STOP` are kept. Safe for many coroutines, processes and machines on one folder:
    an entry is written whole or not at all, and of two writers the first wins and both give its reply.
    """

    def __init__(self, inner: Llm, folder: str | Path) -> None:
        self._inner = inner
        self._folder = Path(folder).expanduser()
        self._pending: dict[str, asyncio.Future[None]] = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"llm.cache: cannot make the folder {folder}: {error.strerror}") from error

    @property
    def inner(self) -> Llm:
        """The model behind the cache."""
        return self._inner

    @property
    def model_id(self) -> str:
        """The inner model's id."""
        return self._inner.model_id

    async def complete(self, request: LlmRequest) -> LlmReply:
        """The kept reply (`cached` is true), or the inner model's."""
        if request.schema is not None:
            check_schema(request.schema)
        key = request_key(self.model_id, request)
        while key in self._pending:  # the same question is being answered: wait for that answer
            await asyncio.wait([self._pending[key]])
        found = self._read(key, request)
        if found is not None:
            return found
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending[key] = done
        try:
            reply = await self._inner.complete(request)
            return self._keep(key, request, reply) if reply.finish is Finish.STOP else reply
        finally:
            del self._pending[key]
            done.set_result(None)

    async def close(self) -> None:
        """Close the inner model."""
        await self._inner.close()

    def path_of(self, key: str) -> Path:
        """The file of an entry: folders by the first two digits keep listings short."""
        return self._folder / key[:2] / f"{key}.json"

    def _read(self, key: str, request: LlmRequest) -> LlmReply | None:
        path = self.path_of(key)
        try:
            entry: dict[str, Any] = json.loads(path.read_bytes())
            if entry["key"] != key or entry["version"] != _VERSION:
                raise ValueError("the entry belongs to another request or version")
            reply = finished(
                str(entry["text"]),
                request.schema,
                prompt_tokens=int(entry["prompt_tokens"]),
                completion_tokens=int(entry["completion_tokens"]),
                meta=dict(entry["meta"]),
            )
            if reply.finish is not Finish.STOP:
                raise ValueError(reply.error)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:  # JSONDecodeError, UnicodeDecodeError too
            _log.warning("reply cache: %s is not usable (%s); the model is asked again", path, error)
            return None
        return dataclasses.replace(reply, cached=True)

    def _keep(self, key: str, request: LlmRequest, reply: LlmReply) -> LlmReply:
        """Write the entry; gives the reply that stands in the cache afterwards."""
        path = self.path_of(key)
        entry = {
            "version": _VERSION,
            "key": key,
            "model": self.model_id,
            "text": reply.text,
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "meta": reply.meta,
        }
        try:
            path.parent.mkdir(exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
            temporary = Path(name)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(entry, file, ensure_ascii=False)
                try:
                    os.link(temporary, path)  # fails when the entry exists: the first writer wins
                except FileExistsError:
                    standing = self._read(key, request)
                    if standing is not None:
                        return standing
                    os.replace(temporary, path)  # what stands there is corrupt
                except OSError:  # a file system without hard links: the last writer wins
                    os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("reply cache: cannot write %s: %s", path, error)
        return reply
