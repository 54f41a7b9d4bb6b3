"""The endpoint client against a real server on a real socket."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from rvt_ray.errors import ConfigError
from rvt_ray.llm import Finish, Image, LlmReply, LlmRequest, Message, SchemaError
from rvt_ray.llm.endpoint import EndpointLlm
from tests.llm.fake_server import FakeServer, Reply

SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string", "maxLength": 40}},
    "required": ["query"],
}


def ask(schema: dict[str, Any] | None = None, **changes: Any) -> LlmRequest:
    return LlmRequest((Message("system", "be brief"), Message("user", "hello")), schema=schema, **changes)


def complete(server: FakeServer, *requests: LlmRequest, **options: Any) -> list[LlmReply]:
    settings = {"base_url": server.url, "model": "fake", "retry_wait_s": 0.01, **options}

    async def run() -> list[LlmReply]:
        llm = EndpointLlm(EndpointLlm.Options(**settings))
        try:
            return list(await asyncio.gather(*(llm.complete(request) for request in requests)))
        finally:
            await llm.close()
            await llm.close()

    return asyncio.run(run())


def script(*replies: Reply) -> Any:
    """Answers in turn; the last one for ever."""
    turns: Iterator[int] = count()
    return lambda body: replies[min(next(turns), len(replies) - 1)]


def test_the_wire_carries_messages_sampling_schema_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_KEY", "s3cret")
    with FakeServer(lambda body: Reply('{"query": "the red car"}')) as server:
        request = ask(SCHEMA, max_tokens=17, temperature=0.3, seed=5)
        [reply] = complete(server, request, api_key_env="FAKE_KEY", extra_body={"top_p": 0.9})
    assert reply.finish is Finish.STOP
    assert reply.data == {"query": "the red car"}
    assert reply.prompt_tokens == 3
    [body] = server.requests
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
    ]
    assert (body["max_tokens"], body["temperature"], body["seed"], body["top_p"]) == (17, 0.3, 5, 0.9)
    sent = body["response_format"]["json_schema"]["schema"]
    assert sent["additionalProperties"] is False
    assert server.headers[0]["Authorization"] == "Bearer s3cret"


def test_images_travel_as_data_urls_before_the_text() -> None:
    with FakeServer(lambda body: Reply("a dog")) as server:
        message = Message("user", "what is this?", (Image(b"\x89PNG", "image/png"),))
        [reply] = complete(server, LlmRequest((message,)))
    assert reply.text == "a dog"
    image, text = server.requests[0]["messages"][0]["content"]
    assert image["image_url"]["url"] == "data:image/png;base64,iVBORw=="
    assert text == {"type": "text", "text": "what is this?"}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(status: int) -> None:
    with FakeServer(script(Reply("busy", status=status), Reply("fine"))) as server:
        [reply] = complete(server, ask())
    assert (reply.finish, reply.text, len(server.requests)) == (Finish.STOP, "fine", 2)


def test_retry_after_is_obeyed() -> None:
    busy = Reply("busy", status=429, headers={"Retry-After": "0.4"})
    with FakeServer(script(busy, Reply("fine"))) as server:
        start = time.monotonic()
        [reply] = complete(server, ask())
    assert reply.text == "fine"
    assert time.monotonic() - start >= 0.4


def test_a_server_that_stays_down_is_an_error_not_an_endless_loop() -> None:
    with FakeServer(lambda body: Reply("overloaded", status=503)) as server:
        [reply] = complete(server, ask(), max_retries=2)
    assert reply.finish is Finish.ERROR
    assert "gave up after 3 attempts" in reply.error
    assert "overloaded" in reply.error
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_not_repeated(status: int) -> None:
    with FakeServer(lambda body: Reply("no such model", status=status)) as server:
        [reply] = complete(server, ask())
    assert reply.finish is Finish.ERROR
    assert f"HTTP {status}" in reply.error
    assert "no such model" in reply.error
    assert len(server.requests) == 1


def test_a_hanging_server_times_out_while_its_neighbour_is_answered() -> None:
    def hang_for_one(body: dict[str, Any]) -> Reply:
        return Reply("late", hang_s=30) if body["seed"] == 1 else Reply("quick")

    with FakeServer(hang_for_one) as server:
        slow, quick = complete(server, ask(seed=1), ask(seed=2), timeout_s=0.5, max_retries=1)
    assert quick.text == "quick"
    assert slow.finish is Finish.ERROR
    assert "no answer within 0.5 s" in slow.error


def test_a_dead_port_is_an_error_with_its_address() -> None:
    with FakeServer(script(Reply())) as server:
        url = server.url
    llm = EndpointLlm(EndpointLlm.Options(base_url=url, model="m", max_retries=1, retry_wait_s=0.01))
    reply = asyncio.run(llm.complete(ask()))
    assert reply.finish is Finish.ERROR
    assert url in reply.error


@pytest.mark.parametrize(
    "bad",
    [
        Reply(raw=b"<html>gateway</html>"),
        Reply(raw=b'{"choices": []}'),
        Reply(raw=b'{"choices": [{"message": null}]}'),
        Reply(raw=b"[1, 2]"),
        Reply(raw=b"\xff\xfe\x00"),
    ],
)
def test_a_body_that_is_no_completion_is_an_error(bad: Reply) -> None:
    with FakeServer(lambda body: bad) as server:
        [reply] = complete(server, ask())
    assert reply.finish is Finish.ERROR
    assert "no chat completion" in reply.error


def test_a_truncated_body_is_asked_for_again() -> None:
    with FakeServer(script(Reply("fine", cut_at=20), Reply("fine"))) as server:
        [reply] = complete(server, ask())
    assert (reply.finish, len(server.requests)) == (Finish.STOP, 2)


def test_trap_13_a_cut_reply_is_tried_once_more_with_another_seed_and_then_given_up() -> None:
    with FakeServer(lambda body: Reply('{"query": "the', finish="length")) as server:
        [reply] = complete(server, ask(SCHEMA, seed=3))
    assert reply.finish is Finish.LENGTH
    assert reply.data is None
    first, second = server.requests
    assert first["seed"] == 3
    assert second["seed"] != 3
    assert second["temperature"] > 0, "a greedy retry would repeat the cut reply"


def test_a_cut_reply_whose_second_try_ends_is_used() -> None:
    with FakeServer(script(Reply('{"q', finish="length"), Reply('{"query": "ok"}'))) as server:
        [reply] = complete(server, ask(SCHEMA))
    assert reply.data == {"query": "ok"}
    assert reply.meta["tries"] == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sure! {}", "not JSON"),
        ("{}", "'query' is missing"),
        (json.dumps({"query": "x" * 41}), "41 characters"),
        ('{"query": "a", "extra": 1}', "unexpected property"),
        ('{"query": 3}', "expected a string"),
    ],
)
def test_a_server_that_ignores_the_schema_is_caught(text: str, why: str) -> None:
    with FakeServer(lambda body: Reply(text)) as server:
        [reply] = complete(server, ask(SCHEMA))
    assert reply.finish is Finish.ERROR
    assert why in reply.error
    assert reply.data is None


@pytest.mark.parametrize("said", ['{"reply": "Find it."}', '"Find it."', "Find it.", " Find it.\n"])
def test_one_patterned_string_comes_back_as_bare_text_however_the_server_wrote_it(said: str) -> None:
    schema = {"type": "string", "pattern": "^(?:Find|Spot) it[.]$"}
    with FakeServer(lambda body: Reply(said)) as server:
        [reply] = complete(server, ask(schema))
        complete(server, ask(schema), response_format="json_object")
    assert reply.finish is Finish.STOP
    assert reply.data == reply.text.strip() == "Find it."
    sent = server.requests[0]["response_format"]["json_schema"]["schema"]
    assert sent["type"] == "object", "top-level strings are refused by servers that check"
    assert sent["properties"]["reply"] == schema
    assert "response_format" not in server.requests[1], "it would have to be an object"


@pytest.mark.parametrize("said", ['{"reply": "Find it!"}', "Find it, please.", '{"other": "Find it."}', "7"])
def test_text_outside_of_its_pattern_is_an_error(said: str) -> None:
    with FakeServer(lambda body: Reply(said)) as server:
        [reply] = complete(server, ask({"type": "string", "pattern": "^(?:Find|Spot) it[.]$"}))
    assert reply.finish is Finish.ERROR
    assert "does not fit the pattern" in reply.error
    assert reply.data is None


def test_a_filtered_reply_is_an_error() -> None:
    with FakeServer(lambda body: Reply("", finish="content_filter")) as server:
        [reply] = complete(server, ask())
    assert reply.finish is Finish.ERROR
    assert "content_filter" in reply.error


def test_never_more_requests_in_flight_than_allowed() -> None:
    with FakeServer(lambda body: Reply("ok", hang_s=0.05)) as server:
        replies = complete(server, *(ask(seed=i) for i in range(12)), concurrency=3)
    assert all(reply.finish is Finish.STOP for reply in replies)
    assert server.most_in_flight == 3


def test_trap_13_an_unbounded_schema_never_reaches_the_server() -> None:
    with FakeServer(lambda body: Reply("{}")) as server, pytest.raises(SchemaError, match="maxLength"):
        complete(server, ask({"type": "object", "properties": {"a": {"type": "string"}}}))
    assert server.requests == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"base_url": "localhost:8000"}, "no http"),
        ({"base_url": "http://host/v1/chat/completions"}, "names a route"),
        ({"base_url": "http://host/v1", "api_key_env": "RVT_NO_SUCH_KEY"}, "RVT_NO_SUCH_KEY is not set"),
    ],
)
def test_a_wrong_option_is_refused_before_any_work(options: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        EndpointLlm.preflight(EndpointLlm.Options(model="m", **options))
