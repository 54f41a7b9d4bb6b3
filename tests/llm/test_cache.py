"""The reply cache: one answer per question, whoever asks and whatever breaks."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvt_ray.errors import ConfigError
from rvt_ray.llm import CachedLlm, Finish, Image, LlmReply, LlmRequest, Message
from rvt_ray.llm.cache import request_key
from rvt_ray.llm.endpoint import EndpointLlm
from tests.llm.fake_server import FakeServer, Reply

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 10**9}},
    "required": ["n"],
}
REQUEST = LlmRequest((Message("user", "count"),), schema=SCHEMA, temperature=0.7, seed=4)


class Counter:
    """A server whose every answer differs, as a sampled model's do."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, body: dict[str, Any]) -> Reply:
        self.n += 1
        return Reply(json.dumps({"n": self.n}), hang_s=0.05)


def cached(server: FakeServer, folder: Path, model: str = "fake") -> CachedLlm:
    return CachedLlm(EndpointLlm(EndpointLlm.Options(base_url=server.url, model=model)), folder)


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_trap_14_the_same_question_is_asked_once_and_answered_alike(tmp_path: Path) -> None:
    with FakeServer(Counter()) as server:
        first = asyncio.run(cached(server, tmp_path).complete(REQUEST))
        again = asyncio.run(cached(server, tmp_path).complete(REQUEST))
    assert (first.cached, again.cached) == (False, True)
    assert again.data == first.data == {"n": 1}
    assert len(server.requests) == 1
    [entry] = entries(tmp_path)
    assert entry.parent.name == entry.name[:2]


def test_the_same_question_at_the_same_time_is_asked_once(tmp_path: Path) -> None:
    async def many(llm: CachedLlm) -> list[LlmReply]:
        return list(await asyncio.gather(*(llm.complete(REQUEST) for _ in range(10))))

    with FakeServer(Counter()) as server:
        replies = asyncio.run(many(cached(server, tmp_path)))
    assert len(server.requests) == 1
    assert {reply.data["n"] for reply in replies} == {1}


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\x00", b"[]", b'{"key": "other"}', b'{"text": "{}"}'])
def test_a_damaged_entry_is_ignored_and_rewritten(tmp_path: Path, damage: bytes) -> None:
    with FakeServer(Counter()) as server:
        llm = cached(server, tmp_path)
        asyncio.run(llm.complete(REQUEST))
        [entry] = entries(tmp_path)
        entry.write_bytes(damage)
        second = asyncio.run(llm.complete(REQUEST))
        third = asyncio.run(llm.complete(REQUEST))
    assert (second.cached, second.data) == (False, {"n": 2})
    assert (third.cached, third.data) == (True, {"n": 2})


@pytest.mark.parametrize(
    "bad", [Reply('{"n": 1', finish="length"), Reply("no", status=400), Reply('{"n": -1}')]
)
def test_a_failed_reply_is_not_kept(tmp_path: Path, bad: Reply) -> None:
    with FakeServer(lambda body: bad) as server:
        reply = asyncio.run(cached(server, tmp_path).complete(REQUEST))
    assert reply.finish is not Finish.STOP
    assert entries(tmp_path) == []


def test_another_model_or_question_has_another_entry(tmp_path: Path) -> None:
    with FakeServer(Counter()) as server:
        asyncio.run(cached(server, tmp_path).complete(REQUEST))
        asyncio.run(cached(server, tmp_path, model="other").complete(REQUEST))
        asyncio.run(cached(server, tmp_path).complete(dataclasses.replace(REQUEST, seed=5)))
    assert len(server.requests) == len(entries(tmp_path)) == 3


def test_trap_14_every_part_of_a_request_is_in_its_key() -> None:
    image = Message("user", "count", (Image(b"a"),))
    variants = [
        REQUEST,
        dataclasses.replace(REQUEST, seed=5),
        dataclasses.replace(REQUEST, temperature=0.0),
        dataclasses.replace(REQUEST, max_tokens=10),
        dataclasses.replace(REQUEST, schema=None),
        dataclasses.replace(REQUEST, messages=(Message("system", "count"),)),
        dataclasses.replace(REQUEST, messages=(Message("user", "count "),)),
        dataclasses.replace(REQUEST, messages=(Message("user", "co"), Message("user", "unt"))),
        dataclasses.replace(REQUEST, messages=(image,)),
        dataclasses.replace(REQUEST, messages=(Message("user", "count", (Image(b"b"),)),)),
        dataclasses.replace(REQUEST, messages=(Message("user", "count", (Image(b"a", "image/jpeg"),)),)),
    ]
    keys = {request_key("model", request) for request in variants} | {request_key("model@2", REQUEST)}
    assert len(keys) == len(variants) + 1


@given(st.text(), st.text())
def test_a_key_is_stable_and_injective_on_text(a: str, b: str) -> None:
    keys = [request_key("m", LlmRequest((Message("user", text),))) for text in (a, b, a)]
    assert keys[0] == keys[2]
    assert (keys[0] == keys[1]) == (a == b)


def _ask_from_another_process(url: str, folder: str, queue: Any) -> None:
    llm = CachedLlm(EndpointLlm(EndpointLlm.Options(base_url=url, model="fake")), folder)
    requests = [dataclasses.replace(REQUEST, seed=i) for i in range(20)]

    async def run() -> list[int]:
        return [reply.data["n"] for reply in await asyncio.gather(*map(llm.complete, requests))]

    queue.put(asyncio.run(run()))


def test_of_two_processes_that_race_both_give_the_reply_that_stands(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with FakeServer(Counter()) as server:
        arguments = (server.url, str(tmp_path), queue)
        workers = [context.Process(target=_ask_from_another_process, args=arguments) for _ in range(2)]
        for worker in workers:
            worker.start()
        answers = [queue.get(timeout=60) for _ in workers]
        for worker in workers:
            worker.join(timeout=10)
    assert answers[0] == answers[1]
    kept = [json.loads(path.read_text())["text"] for path in entries(tmp_path)]
    assert sorted(json.loads(text)["n"] for text in kept) == sorted(answers[0])


def test_a_cache_folder_that_cannot_be_made_is_the_users_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"llm\.cache"):
        CachedLlm(
            EndpointLlm(EndpointLlm.Options(base_url="http://h/v1", model="m")), tmp_path / "file" / "x"
        )
