"""The `vlm` captioner: a vision-language model looks at each instance several times; its answers are votes.

What can be measured (colour, size, motion) is measured besides; `rvt_ray.twin.opinions` merges the two.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rvt_ray import backends
from rvt_ray.config.settings import LlmSettings
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.llm import TEMPLATE, build_llm, check_llm
from rvt_ray.llm.base import Finish, LlmReply, LlmRequest
from rvt_ray.llm.prompting import load_prompt
from rvt_ray.masks import rle
from rvt_ray.perception.base import Captions, Segmentation, TrackDraft
from rvt_ray.perception.caption import looks, votes
from rvt_ray.perception.caption.appearance import AppearanceCaptioner
from rvt_ray.records import CameraStep, ClipRecord, FailureCode, ModelWeights
from rvt_ray.video.frames import FrameArray, FrameStream

log = logging.getLogger(__name__)

_WHAT = "perceive.caption.options.llm"
_PACKAGE = "rvt_ray.perception"
_T = TypeVar("_T")
_SCENE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "caption": {"type": "string", "maxLength": 400},
        "tags": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 24}},
    },
    "required": ["caption", "tags"],
}


class VlmModel(BaseModel):
    """Which model looks: as `generate.llm`, see docs/llm.md."""

    model_config = ConfigDict(extra="forbid")

    backend: str
    options: dict[str, object] = Field(default_factory=dict)
    cache: str | None = None

    def settings(self) -> LlmSettings:
        """As the llm room takes it."""
        return LlmSettings(backend=self.backend, options=self.options, cache=self.cache)


class VlmOptions(backends.Options):
    """How a vision-language model is asked.

    Attributes:
        llm: the model: `{backend: vllm | endpoint, options: {...}, cache: FOLDER}`.
        license: of the model's weights, for the twin.
        votes: frames on which each instance is looked at.
        scene_frames: frames that the scene's caption is made from.
        max_instances: the largest so many are asked about; the others stay as measured.
        frame_side, crop_side: longer side of the whole frame and of the close-up, pixels.
        temperature, max_tokens: of each reply.
        measured: options of the `appearance` captioner, which measures besides.
    """

    llm: VlmModel
    license: str = "unknown"
    votes: int = Field(default=3, ge=3)
    scene_frames: int = Field(default=4, ge=1, le=16)
    max_instances: int = Field(default=48, ge=1)
    frame_side: int = Field(default=768, ge=64)
    crop_side: int = Field(default=384, ge=32)
    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=300, ge=64)
    measured: AppearanceCaptioner.Options = Field(default_factory=AppearanceCaptioner.Options)


class VlmCaptioner:
    """Opinions of a vision-language model.

    Attributes:
        measured: who measures what needs no opinion.
    """

    Options = VlmOptions

    def __init__(self, options: VlmOptions) -> None:
        self.preflight(options)
        self.options = options
        llm = build_llm(options.llm.settings(), _WHAT)
        assert llm is not None, "preflight refuses the template"
        self._llm = llm
        self.measured = AppearanceCaptioner(options.measured)
        self.name = f"vlm:{llm.model_id}"
        self.weights = (ModelWeights(part="caption", model=llm.model_id, license=options.license),)
        self._own_loop: _Loop | None = None

    @classmethod
    def preflight(cls, options: VlmOptions) -> None:
        """Whether the model can be asked, as far as that is known without asking it.

        Raises:
            ConfigError, MissingDependencyError: as `check_llm`.
        """
        if options.llm.backend == TEMPLATE:
            raise ConfigError(
                f"{_WHAT}.backend: 'template' sees nothing; valid are vllm and endpoint. Without a model set "
                "perceive.caption.backend=appearance"
            )
        try:
            check_llm(options.llm.settings(), _WHAT)
        except ConfigError as error:
            if _WHAT in str(error):
                raise
            raise type(error)(f"perceive.caption: {error}") from error

    def caption(
        self,
        clip: ClipRecord,
        frames: FrameStream,
        segmentation: Segmentation,
        camera: Sequence[CameraStep],
    ) -> Captions:
        """The opinions alone, for callers without an event loop."""
        if self._own_loop is None:
            self._own_loop = _Loop()
        return self._own_loop.run(self.opinions(clip, frames, segmentation.tracks))

    async def opinions(self, clip: ClipRecord, frames: FrameStream, tracks: Sequence[TrackDraft]) -> Captions:
        """What the model says of the clip and of its instances; an instance it could not be asked about, or
        that it did not recognise, has no category.

        Raises:
            ClipError: the clip cannot be decoded; LLM_ERROR: not one question was answered.
            ConfigError, EngineDeadError: as `Llm.complete`.
        """
        scene, asked = await asyncio.to_thread(self._questions, clip, frames, tracks)
        replies = await asyncio.gather(*(self._llm.complete(request) for _, _, request in asked))
        words = await self._llm.complete(scene)
        self._check(clip, [words, *replies])
        seen: dict[int, list[votes.Look]] = {track.instance_id: [] for track in tracks}
        for (instance_id, frame, _), reply in zip(asked, replies, strict=True):
            if reply.finish is Finish.STOP and reply.data is not None:
                seen[instance_id].append(votes.read(frame, reply.data))
        said = words.data if words.finish is Finish.STOP and words.data is not None else {}
        tags = [votes.plain(tag) for tag in said.get("tags", ())]
        return Captions(
            scene=" ".join(str(said.get("caption", "")).split()),
            tags=list(dict.fromkeys(tag for tag in tags if tag)),
            instances=[votes.decide(instance_id, found) for instance_id, found in seen.items()],
        )

    async def close(self) -> None:
        """Let the model go; idempotent."""
        await self._llm.close()

    def _questions(
        self, clip: ClipRecord, frames: FrameStream, tracks: Sequence[TrackDraft]
    ) -> tuple[LlmRequest, list[tuple[int, int, LlmRequest]]]:
        """The question about the scene, and those about instances: (instance id, frame, question). Frames are
        decoded once, and only pictures of a few hundred pixels are kept."""
        o = self.options
        areas = {t.instance_id: rle.areas(t.rle) for t in tracks}
        largest = sorted(tracks, key=lambda t: (-int(areas[t.instance_id].max(initial=0)), t.instance_id))
        chosen = {
            t.instance_id: looks.spread(t.frame_idx, areas[t.instance_id], o.votes)
            for t in largest[: o.max_instances]
        }
        scene_frames = sorted(
            {(2 * k + 1) * clip.num_frames // (2 * o.scene_frames) for k in range(o.scene_frames)}
        )
        prompt = load_prompt("vlm_instance", _PACKAGE)
        asked: list[tuple[int, int, LlmRequest]] = []
        pictures = []
        for index, frame in frames.frames_at(
            sorted({*scene_frames, *(f for fs in chosen.values() for f in fs)})
        ):
            if index in scene_frames:
                pictures.append(looks.whole(frame, o.frame_side))
            for track in tracks:
                if index in chosen.get(track.instance_id, ()):
                    images = self._pictures(clip, track, index, frame)
                    request = self._request(
                        clip, prompt.messages(), images, votes.SCHEMA, track.instance_id, index
                    )
                    asked.append((track.instance_id, index, request))
        text = load_prompt("vlm_scene", _PACKAGE).messages(count=len(pictures))
        return self._request(clip, text, pictures, _SCENE_SCHEMA, 0, 0), asked

    def _pictures(self, clip: ClipRecord, track: TrackDraft, index: int, frame: FrameArray) -> list[Any]:
        mask = rle.decode(track.rle[track.frame_idx.index(index)], clip.height, clip.width)
        o = self.options
        return [looks.outlined(frame, mask, o.frame_side), looks.close_up(frame, mask, o.crop_side)]

    def _request(
        self,
        clip: ClipRecord,
        messages: Sequence[Any],
        images: Sequence[Any],
        schema: dict[str, Any],
        *key: int,
    ) -> LlmRequest:
        system, user = messages
        # The seed follows from what is asked, so that the order of questions changes no answer.
        digest = hashlib.sha256("/".join([clip.clip_id, *map(str, key)]).encode()).digest()
        return LlmRequest(
            messages=(system, type(user)(user.role, user.content, tuple(images))),
            schema=schema,
            max_tokens=self.options.max_tokens,
            temperature=self.options.temperature,
            seed=int.from_bytes(digest[:4]) % 2**31,
        )

    def _check(self, clip: ClipRecord, replies: Sequence[LlmReply]) -> None:
        """A model that answers nothing has no opinion: the clip fails, and can be tried again."""
        failed = [reply for reply in replies if reply.finish is not Finish.STOP]
        if len(failed) == len(replies):
            raise ClipError(
                FailureCode.LLM_ERROR,
                f"{clip.uri} (clip {clip.clip_id}): {self.name} answered none of {len(replies)} questions; "
                f"the first: {failed[0].finish}: {failed[0].error}",
            )
        if failed:
            log.info(
                "clip %s: %d of %d questions to %s unanswered; the first: %s",
                clip.clip_id,
                len(failed),
                len(replies),
                self.name,
                failed[0].error,
            )


class _Loop:
    """An event loop in a thread of its own: an engine's connections and tasks live in one loop for good."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="vlm", daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
