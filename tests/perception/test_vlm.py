"""Guards what a vision-language model is shown and asked, over the real protocol, and what comes of it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from rvt_ray.config import Config, fingerprint
from rvt_ray.errors import ClipError, ConfigError
from rvt_ray.perception.base import Segmentation
from rvt_ray.perception.caption.vlm import VlmCaptioner, VlmOptions
from rvt_ray.pipeline.preflight import check_perception
from rvt_ray.records import Attribute, DigitalTwin, FailureCode, ModelWeights, Scored, Stage
from rvt_ray.twin.build import Backends, Perception
from rvt_ray.video.frames import ArrayFrames
from tests.llm.fake_server import FakeServer, Reply
from tests.perception.scenes import texture
from tests.twin.helpers import IDENTITY, box_masks, make_clip, make_draft

HEIGHT, WIDTH, FRAMES = 90, 120, 10
GREEN, BLUE = (40, 160, 60), (40, 70, 200)
LABEL = "zebrafish"  # a word that the prompt cannot hold by chance
SAID = {"sure": "clear", "what": "fish", "attributes": [], "doing": "", "caption": "A fish swims."}
SCENE = {"caption": "Two things on grey.", "tags": ["Indoors", "indoors", "studio"]}


def pictures(body: dict[str, Any]) -> list[np.ndarray]:
    """The request's images, decoded, RGB."""
    found = []
    for part in body["messages"][-1]["content"]:
        if part["type"] == "image_url":
            head, _, data = part["image_url"]["url"].partition(",")
            assert head == "data:image/jpeg;base64"
            image = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
            found.append(cv2.cvtColor(image, cv2.COLOR_BGR2RGB))
    return found


def text_of(body: dict[str, Any]) -> str:
    parts = [m["content"] for m in body["messages"]]
    return " ".join(p if isinstance(p, str) else " ".join(q.get("text", "") for q in p) for p in parts)


def is_scene(body: dict[str, Any]) -> bool:
    return "tags" in body["response_format"]["json_schema"]["schema"]["properties"]


def magenta(image: np.ndarray) -> int:
    r, g, b = (image[..., k].astype(int) for k in range(3))
    return int(((r > 180) & (b > 180) & (g < 110)).sum())


def shows_green(body: dict[str, Any]) -> bool:
    crop = pictures(body)[1].reshape(-1, 3).mean(axis=0)
    return bool(crop[1] > crop[2])


def answer(said: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], Reply]:
    return lambda body: Reply(json.dumps(SCENE if is_scene(body) else said(body)))


def scene() -> tuple[Any, ArrayFrames, Segmentation]:
    """A green box that crosses, and a small blue one that rests."""
    clip = make_clip(FRAMES, WIDTH, HEIGHT)
    masks = [
        box_masks([(5 + 6 * t, 20, 30, 24) for t in range(FRAMES)], WIDTH, HEIGHT),
        box_masks([(80, 62, 9, 8)] * FRAMES, WIDTH, HEIGHT),
    ]
    frames = np.repeat(texture(HEIGHT, WIDTH)[None], FRAMES, axis=0)
    for mask, colour in zip(masks, (GREEN, BLUE), strict=True):
        frames[mask] = colour
    drafts = [
        make_draft(1, masks[0], category=LABEL, category_score=0.9),
        make_draft(2, masks[1]),
    ]
    return clip, ArrayFrames(frames, np.array(clip.pts_s)), Segmentation(drafts, [0, 5])


def captioner(url: str, **options: Any) -> VlmCaptioner:
    endpoint = {"base_url": url, "model": "eye", "max_retries": 0, "timeout_s": 20}
    cache = options.pop("cache", None)
    llm = {"backend": "endpoint", "options": endpoint, "cache": cache}
    return VlmCaptioner(VlmOptions.model_validate({"llm": llm, **options}))


class _Masks:
    name = "detector:test"
    weights = (ModelWeights(part="segment", model="m", license="MIT"),)

    def segment(self, clip: Any, frames: Any, key_frames: Any) -> Segmentation:
        return scene()[2]


def perceive(who: VlmCaptioner) -> DigitalTwin:
    from rvt_ray.perception.depth.none import NoDepth

    clip, frames, _ = scene()
    by = Backends(_Masks(), NoDepth(), who)
    return Perception(by, by, Config().perceive, "0" * 16).twin(clip, frames)


def test_trap_15_outline_on_the_frame_and_a_crop_on_three_frames_without_a_hint_of_the_class() -> None:
    clip, frames, segmentation = scene()
    with FakeServer(answer(lambda body: SAID)) as server:
        captioner(server.url).caption(clip, frames, segmentation, [IDENTITY] * FRAMES)
        asked = [body for body in server.requests if not is_scene(body)]
        (about_scene,) = [body for body in server.requests if is_scene(body)]
    assert len(asked) == 6
    seen = {True: [], False: []}
    for body in asked:
        assert LABEL not in text_of(body)
        assert "green" not in text_of(body)
        schema = body["response_format"]["json_schema"]["schema"]
        assert "unclear" in schema["properties"]["sure"]["enum"]
        full, crop = pictures(body)
        assert full.shape == (HEIGHT, WIDTH, 3)
        assert max(crop.shape[:2]) == 384
        assert magenta(full) > 30
        assert magenta(crop) == 0
        seen[shows_green(body)].append(full)
    for looks in seen.values():
        assert len(looks) == 3
    # The moving one was looked at on frames that differ.
    assert not np.array_equal(seen[True][0], seen[True][1])
    images = pictures(about_scene)
    assert len(images) == 4
    assert sum(map(magenta, images)) == 0


def test_the_outline_covers_nothing_of_the_thing() -> None:
    clip, frames, segmentation = scene()
    with FakeServer(answer(lambda body: SAID)) as server:
        captioner(server.url, frame_side=240).caption(clip, frames, segmentation, [IDENTITY] * FRAMES)
        body = next(b for b in server.requests if not is_scene(b) and shows_green(b))
    full = pictures(body)[0].astype(int)
    green = (full[..., 1] > full[..., 0] + 60) & (full[..., 1] > full[..., 2] + 60)
    assert green.sum() >= 0.9 * 30 * 24


def test_label_measurement_and_opinion_are_merged_with_their_sources() -> None:
    colours = [{"name": "colour", "value": "teal"}, {"name": "material", "value": "rubber"}]

    def said(body: dict[str, Any]) -> dict[str, Any]:
        if shows_green(body):
            return SAID | {"what": "carp", "attributes": colours, "doing": "Swimming"}
        return SAID | {"what": "The Bead", "caption": "A small bead."}

    with FakeServer(answer(said)) as server:
        twin = perceive(captioner(server.url, license="Apache-2.0"))
    first, second = twin.instances
    assert first.category == LABEL
    assert first.alternatives == [
        Scored(value=LABEL, score=0.9, source="detector"),
        Scored(value="carp", score=1.0, source="vlm"),
    ]
    assert second.category == "bead"
    assert second.alternatives == [Scored(value="bead", score=1.0, source="vlm")]
    assert second.caption == "A small bead."
    found = {(a.name, a.value): a.source for a in first.attributes}
    assert found["colour", "teal"] == "vlm"
    assert found["colour", "green"] == "measured"
    assert found["material", "rubber"] == found["action", "swimming"] == "vlm"
    assert found["motion", "moving right"] == "measured"
    assert twin.scene.caption == "Two things on grey."
    assert twin.scene.tags[-2:] == ["indoors", "studio"]
    assert twin.provenance.caption == "appearance+vlm:eye"
    assert twin.weights == [*_Masks.weights, ModelWeights(part="caption", model="eye", license="Apache-2.0")]
    assert DigitalTwin.from_table(DigitalTwin.to_table([twin])) == [twin]


def test_an_opinion_that_is_a_special_case_of_the_label_is_the_name() -> None:
    def said(body: dict[str, Any]) -> dict[str, Any]:
        return SAID | {"what": "woman" if shows_green(body) else "dog"}

    class People(_Masks):
        def segment(self, clip: Any, frames: Any, key_frames: Any) -> Segmentation:
            found = scene()[2]
            for track in found.tracks:
                track.category, track.category_score = "person", 0.8
            return found

    from rvt_ray.perception.depth.none import NoDepth

    clip, frames, _ = scene()
    with FakeServer(answer(said)) as server:
        by = Backends(People(), NoDepth(), captioner(server.url))
        twin = Perception(by, by, Config().perceive, "0" * 16).twin(clip, frames)
    assert [(i.category, {a.value for a in i.alternatives}) for i in twin.instances] == [
        ("woman", {"woman", "person"}),
        ("person", {"person", "dog"}),
    ]


def test_trap_15_frames_that_disagree_leave_their_names_as_alternatives() -> None:
    turn = iter(range(100))

    def said(body: dict[str, Any]) -> dict[str, Any]:
        return SAID | {"what": "carp" if shows_green(body) else ("pea", "bead", "pea")[next(turn) % 3]}

    clip, frames, segmentation = scene()
    with FakeServer(answer(said)) as server:
        who = captioner(server.url)
        second = who.caption(clip, frames, segmentation, [IDENTITY] * FRAMES).instances[1]
    assert second.category == "pea"
    assert [(a.value, round(a.score, 2)) for a in second.alternatives] == [("pea", 0.67), ("bead", 0.33)]


def test_trap_13_a_reply_that_is_cut_or_breaks_its_schema_is_no_vote() -> None:
    turn = iter(range(100))

    def script(body: dict[str, Any]) -> Reply:
        if is_scene(body):
            return Reply(json.dumps(SCENE)[:20], finish="length")
        if not shows_green(body):
            return Reply(json.dumps(SAID | {"sure": "perhaps"}))
        return Reply(json.dumps(SAID)) if next(turn) else Reply("no json")

    with FakeServer(script) as server:
        twin = perceive(captioner(server.url))
    first, second = twin.instances
    assert {a.value: round(a.score, 2) for a in first.alternatives} == {LABEL: 0.9, "fish": 0.67}
    assert (second.category, second.alternatives) == ("object", [])
    assert "scene" in twin.scene.caption  # the measured one stands


def test_a_model_that_answers_nothing_fails_the_clip() -> None:
    clip, frames, segmentation = scene()
    with (
        FakeServer(lambda body: Reply("overloaded", status=503)) as server,
        pytest.raises(ClipError, match=r"answered none of 7 questions.*503") as caught,
    ):
        captioner(server.url).caption(clip, frames, segmentation, [IDENTITY] * FRAMES)
    assert caught.value.code is FailureCode.LLM_ERROR


def test_trap_14_with_a_reply_cache_a_rerun_asks_nothing_and_says_the_same(tmp_path: Path) -> None:
    with FakeServer(answer(lambda body: SAID)) as server:
        first = perceive(captioner(server.url, cache=str(tmp_path)))
        asked = len(server.requests)
        second = perceive(captioner(server.url, cache=str(tmp_path)))
        assert len(server.requests) == asked == 7
    assert first == second


def test_only_the_largest_instances_are_asked_about() -> None:
    clip, frames, segmentation = scene()
    with FakeServer(answer(lambda body: SAID)) as server:
        who = captioner(server.url, max_instances=1)
        found = asyncio.run(who.opinions(clip, frames, segmentation.tracks))
        assert sum(not is_scene(body) for body in server.requests) == 3
    assert [(i.instance_id, i.category) for i in found.instances] == [(1, "fish"), (2, None)]


def config_of(**options: Any) -> Config:
    return Config.model_validate({"perceive": {"caption": {"backend": "vlm", "options": options}}})


def test_a_model_that_cannot_see_is_refused_before_any_work() -> None:
    with pytest.raises(ConfigError, match="'template' sees nothing"):
        check_perception(config_of(llm={"backend": "template"}))
    with pytest.raises(ConfigError, match=r"perceive\.caption.*llm.*required"):
        check_perception(config_of())
    with pytest.raises(ConfigError, match="no http"):
        check_perception(config_of(llm={"backend": "endpoint", "options": {"base_url": "x", "model": "m"}}))
    with pytest.raises(ConfigError, match="votes"):
        check_perception(config_of(llm={"backend": "endpoint"}, votes=2))


def test_another_model_redoes_captions_and_not_masks_and_the_cache_folder_redoes_nothing() -> None:
    def of(stage: Stage, **options: Any) -> str:
        llm = {"backend": "endpoint", **options.pop("llm", {})}
        return fingerprint(config_of(llm=llm, **options), stage)

    for stage in (Stage.PERCEIVE, Stage.CAPTION, Stage.GENERATE):
        assert of(stage, llm={"cache": "here"}) == of(stage, llm={"cache": "there"}) == of(stage)
        assert of(stage, measured={"frames_per_instance": 9}) != of(stage)
    for change in ({"llm": {"options": {"model": "other"}}}, {"votes": 5}):
        assert of(Stage.PERCEIVE, **change) == of(Stage.PERCEIVE)
        assert of(Stage.CAPTION, **change) != of(Stage.CAPTION)
        assert of(Stage.GENERATE, **change) != of(Stage.GENERATE)


def test_measured_words_stay_where_the_model_recognises_nothing() -> None:
    with FakeServer(answer(lambda body: SAID | {"sure": "unclear"})) as server:
        twin = perceive(captioner(server.url))
    first, second = twin.instances
    assert (first.category, second.category) == (LABEL, "object")
    assert any(a == Attribute(name="colour", value="blue", score=a.score, source="measured")
               for a in second.attributes)  # fmt: skip
    assert second.caption
