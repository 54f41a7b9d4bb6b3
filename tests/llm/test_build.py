"""From settings to a model: what is wrong is said before any work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rvt_ray.backends import Options
from rvt_ray.config.settings import LlmSettings
from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.llm import CachedLlm, LlmReply, LlmRequest, Message, build_llm, check_llm
from rvt_ray.llm.replies import finished


class OwnLlm:
    """A user's own backend, named by its dotted path."""

    class Options(Options):
        words: str = "own"
        bad: bool = False

    def __init__(self, options: Options) -> None:
        self._words = getattr(options, "words", "")

    @classmethod
    def preflight(cls, options: Any) -> None:
        if options.bad:
            raise ConfigError("own backend: bad")

    @property
    def model_id(self) -> str:
        return "own@1"

    async def complete(self, request: LlmRequest) -> LlmReply:
        return finished(self._words, request.schema)

    async def close(self) -> None:
        """Nothing to close."""


OWN = f"{__name__}:OwnLlm"


def test_template_is_no_model() -> None:
    check_llm(LlmSettings())
    assert build_llm(LlmSettings()) is None


def test_template_takes_no_options() -> None:
    with pytest.raises(ConfigError, match="takes none"):
        build_llm(LlmSettings(options={"model": "x"}))


def test_a_cache_folder_puts_the_cache_in_front(tmp_path: Path) -> None:
    settings = LlmSettings(backend=OWN, options={"words": "hello"}, cache=str(tmp_path / "cache"))
    llm = build_llm(settings)
    assert isinstance(llm, CachedLlm)
    request = LlmRequest((Message("user", "hi"),))
    assert asyncio.run(llm.complete(request)).text == "hello"
    assert asyncio.run(llm.complete(request)).cached
    assert llm.model_id == "own@1"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (LlmSettings(backend="vlm"), "did you mean 'vllm'"),
        (LlmSettings(backend="templates"), "did you mean 'template'"),
        (LlmSettings(backend="no.such:Thing"), "cannot import"),
        (LlmSettings(backend="endpoint", options={"base_url": "http://h/v1"}), "model"),
        (LlmSettings(backend="endpoint", options={"base_ulr": "x", "model": "m"}), "base_url"),
        (LlmSettings(backend="endpoint", options={"base_url": "nonsense", "model": "m"}), "no http"),
        (LlmSettings(backend="vllm", options={"model": "smollm2", "max_len": 3}), "max_model_len"),
        (LlmSettings(backend="vllm", options={"model": "nowhere"}), "neither an existing folder"),
        (LlmSettings(backend=OWN, options={"bad": True}), "own backend: bad"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings: LlmSettings, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_llm(settings)


def test_a_missing_package_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for backend, options in (
        ("vllm", {"model": "smollm2"}),
        ("endpoint", {"base_url": "http://h/v1", "model": "m"}),
    ):
        with pytest.raises(MissingDependencyError, match="pip install"):
            check_llm(LlmSettings(backend=backend, options=dict(options)))
