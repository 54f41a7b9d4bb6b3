"""One question about one video: index, perceive (or remember), answer."""

from __future__ import annotations

import asyncio
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from rvt_ray.agent import Agent, Question, Solution
from rvt_ray.config import Config
from rvt_ray.config.settings import SourceSettings
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.llm import build_llm
from rvt_ray.pipeline.own_twins import OwnTwins
from rvt_ray.pipeline.preflight import check_config
from rvt_ray.pipeline.storage import Storage
from rvt_ray.queries.lexicon import load_lexicon
from rvt_ray.records import ClipRecord, DigitalTwin, Failure, FailureCode, Stage
from rvt_ray.sources import open_sources
from rvt_ray.video import index_video

# All else that indexing finds is wrong with the file that the user named.
_OURS = (FailureCode.DECODE_TIMEOUT, FailureCode.DECODER_CRASH, FailureCode.INTERNAL)


@dataclass(frozen=True)
class ClipAnswer:
    """The answer on one clip of the video."""

    clip: ClipRecord
    twin: DigitalTwin
    solution: Solution


def default_cache() -> Path:
    """Where twins of single videos are kept: `$RVT_RAY_CACHE`, else below `$XDG_CACHE_HOME` or ~/.cache."""
    given = os.environ.get("RVT_RAY_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rvt-ray"


def solve_video(
    source: SourceSettings, question: Question, config: Config, cache: str | Path | None = None
) -> list[ClipAnswer]:
    """Answer one question about a video, clip by clip (a clip is a shot, or a piece of one). No Ray.

    Args:
        source: one video file or folder of frames; annotations that come with it are used as in `perceive`.
        cache: folder in which twins are kept; default: `default_cache()`.

    Returns:
        One answer per clip, in order.

    Raises:
        ConfigError: a setting is wrong, or the source is not exactly one video that can be read.
        ClipError: the decoder hung or died, or the video cannot be perceived.
    """
    storage = Storage(cache if cache is not None else default_cache())
    check_config(config, [Stage.PERCEIVE, Stage.SOLVE], storage)
    videos = list(itertools.islice(open_sources([source]), 2))
    if len(videos) != 1 or isinstance(videos[0], Failure):
        what = videos[0].message if isinstance(videos[0], Failure) else "there are several"
        raise ConfigError(f"--video {source.path}: one video is wanted: {what}")
    twins = OwnTwins(config, storage, annotations=True)
    try:
        clips = index_video(videos[0], config.index)
    except ClipError as error:
        if error.code in _OURS:
            raise
        raise ConfigError(f"--video {source.path}: {error.message}") from error
    pairs = [(clip, twins.twin(clip)) for clip in clips]
    return asyncio.run(_answer(pairs, question, config))


async def _answer(
    pairs: list[tuple[ClipRecord, DigitalTwin]], question: Question, config: Config
) -> list[ClipAnswer]:
    llm = build_llm(config.agent.llm, "agent.llm")
    lexicon = load_lexicon(config.generate.queries.lexicon)
    agent = Agent(config.agent, config.generate.facts, llm, lexicon)
    try:
        return [ClipAnswer(clip, twin, await agent.solve(question, twin)) for clip, twin in pairs]
    finally:
        if llm is not None:
            await llm.close()
