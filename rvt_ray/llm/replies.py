"""What every backend does: write the messages, parse and check the text, ask once more when it was cut."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any

from rvt_ray.llm.base import Finish, LlmReply, LlmRequest, Message
from rvt_ray.llm.schema import bare_pattern, violation

# Any odd constant: the second try needs a seed that differs from the first and is the same on every run.
_RETRY_SEED_STEP = 1_000_003
# A greedy retry would repeat the cut reply word for word.
_RETRY_TEMPERATURE = 0.7


def openai_message(message: Message) -> dict[str, Any]:
    """A chat turn as the OpenAI protocol writes it; images become data URLs."""
    if not message.images:
        return {"role": message.role, "content": message.content}
    parts: list[dict[str, Any]] = []
    for image in message.images:
        data = base64.b64encode(image.data).decode("ascii")
        parts.append({"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}})
    parts.append({"type": "text", "text": message.content})
    return {"role": message.role, "content": parts}


def finished(
    text: str,
    schema: dict[str, Any] | None,
    *,
    prompt_tokens: int = 0,
    completion_tokens: int = 0,
    meta: dict[str, Any] | None = None,
) -> LlmReply:
    """A reply that the model ended by itself; with a schema it is parsed and checked.

    A schema that is one patterned string is answered in bare text. Else text that is not JSON, or JSON that
    breaks the schema, gives `Finish.ERROR` with the place and the reason.
    """
    reply = LlmReply(
        text=text,
        finish=Finish.STOP,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        meta=meta or {},
    )
    if schema is None:
        return reply
    try:
        data = text.strip() if bare_pattern(schema) is not None else json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        return dataclasses.replace(
            reply, finish=Finish.ERROR, error=f"the reply is not JSON ({error}): {text[:120]!r}"
        )
    wrong = violation(data, schema)
    if wrong is not None:
        return dataclasses.replace(reply, finish=Finish.ERROR, error=f"the reply breaks its schema: {wrong}")
    return dataclasses.replace(reply, data=data)


def failed(error: str, text: str = "", meta: dict[str, Any] | None = None) -> LlmReply:
    """A reply that says why there is none."""
    return LlmReply(text=text, finish=Finish.ERROR, error=error, meta=meta or {})


async def retry_when_cut(once: Callable[[LlmRequest], Awaitable[LlmReply]], request: LlmRequest) -> LlmReply:
    """Ask once; when the reply was cut at `max_tokens`, ask exactly once more with another seed.

    A cut reply often means that the model ran in circles; another sample may end. A second cut is final
    (`Finish.LENGTH`). `meta["tries"]` tells how often the model was asked.
    """
    reply = await once(request)
    if reply.finish is not Finish.LENGTH:
        return dataclasses.replace(reply, meta={**reply.meta, "tries": 1})
    again = dataclasses.replace(
        request,
        seed=(request.seed + _RETRY_SEED_STEP) % 2**31,
        temperature=max(request.temperature, _RETRY_TEMPERATURE),
    )
    reply = await once(again)
    return dataclasses.replace(reply, meta={**reply.meta, "tries": 2})
