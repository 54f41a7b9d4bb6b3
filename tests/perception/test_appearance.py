"""Guards the measured words: right colours, doubt where there is doubt, no invented kinds, plain English."""

from __future__ import annotations

import numpy as np
import pytest

from rvt_ray.perception.base import Captions, Segmentation
from rvt_ray.perception.caption.appearance import AppearanceCaptioner
from rvt_ray.perception.caption.colour import NAMES, name_shares
from rvt_ray.perception.caption.phrases import count_word, describe_instance, plural, with_article
from rvt_ray.records import Attribute, CameraStep
from rvt_ray.video.frames import ArrayFrames
from tests.twin.helpers import IDENTITY, box_masks, make_clip, make_draft

CLEAR_COLOURS = {
    "black": [(5, 5, 5), (20, 20, 22)],
    "white": [(255, 255, 255), (240, 240, 238)],
    "grey": [(128, 128, 128), (90, 90, 92)],
    "red": [(220, 20, 30), (180, 10, 20)],
    "orange": [(255, 130, 0)],
    "yellow": [(255, 235, 0), (240, 210, 40)],
    "green": [(0, 140, 20), (60, 170, 60)],
    "blue": [(10, 30, 220), (50, 110, 210)],
    "purple": [(120, 20, 140)],
    "pink": [(255, 130, 190)],
    "brown": [(120, 70, 30), (90, 55, 25)],
}


@pytest.mark.parametrize("name", CLEAR_COLOURS)
def test_a_clear_colour_has_its_name(name: str) -> None:
    for rgb in CLEAR_COLOURS[name]:
        shares = name_shares(np.tile(np.array(rgb, np.uint8), (10, 1)))
        assert NAMES[int(shares.argmax())] == name, f"{rgb} is called {NAMES[int(shares.argmax())]}"
        assert shares.max() >= 0.5


def test_shares_sum_to_one_and_nothing_has_none() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (500, 3)).astype(np.uint8)
    assert name_shares(pixels).sum() == pytest.approx(1.0, abs=1e-5)
    assert name_shares(np.zeros((0, 3), np.uint8)).sum() == 0


def words(colour_per_frame: list[tuple[int, int, int]], camera: list[CameraStep] | None = None, step: int = 0,
          category: str | None = None) -> Captions:  # fmt: skip
    n = len(colour_per_frame)
    masks = box_masks([(5 + step * i, 5, 12, 12) for i in range(n)], 80, 60)
    frames = np.full((n, 60, 80, 3), 200, np.uint8)
    for i, colour in enumerate(colour_per_frame):
        frames[i][masks[i]] = colour
    clip = make_clip(n, 80, 60)
    draft = make_draft(1, masks, category=category)
    captioner = AppearanceCaptioner(AppearanceCaptioner.Options())
    return captioner.caption(
        clip, ArrayFrames(frames, np.array(clip.pts_s)), Segmentation([draft], [0]), camera or [IDENTITY] * n
    )


def attributes(captions: Captions, name: str) -> list[Attribute]:
    return [a for a in captions.instances[0].attributes if a.name == name]


def test_colour_is_measured_with_its_source_and_score() -> None:
    (colour,) = attributes(words([(210, 20, 30)] * 6), "colour")
    assert (colour.value, colour.source) == ("red", "measured")
    assert colour.score > 0.9


def test_a_colour_seen_once_stays_doubtful() -> None:
    (colour,) = attributes(words([(210, 20, 30)]), "colour")
    assert colour.score < 0.4


def test_a_colour_that_changes_is_not_sure() -> None:
    found = attributes(words([(210, 20, 30)] * 3 + [(20, 40, 220)] * 3), "colour")
    assert max(a.score for a in found) < 0.5


def test_the_camera_is_removed_before_motion_is_named() -> None:
    grey = [(210, 20, 30)] * 12
    pan = [IDENTITY] + [CameraStep(dx=3, dy=0, zoom=1, roll=0, known=True)] * 11
    lost = [IDENTITY] + [CameraStep(dx=0, dy=0, zoom=1, roll=0, known=False)] * 11
    assert attributes(words(grey, step=3), "motion")[0].value == "moving right"
    assert attributes(words(grey, pan, step=3), "motion")[0].value == "still"
    assert attributes(words(grey, pan), "motion")[0].value == "moving left"
    assert attributes(words(grey, lost, step=3), "motion") == []


def test_a_kind_is_never_invented_and_a_given_one_is_used() -> None:
    unnamed, named = words([(210, 20, 30)] * 6), words([(210, 20, 30)] * 6, category="ball")
    assert unnamed.instances[0].category is None
    assert unnamed.instances[0].caption == "A red object staying in place."
    assert named.instances[0].caption == "A red ball staying in place."
    assert "one ball" in named.scene
    assert "ball" in named.tags


def test_a_scene_without_things_is_a_sentence() -> None:
    clip = make_clip(4, 80, 60)
    frames = ArrayFrames(np.full((4, 60, 80, 3), 250, np.uint8), np.array(clip.pts_s))
    captioner = AppearanceCaptioner(AppearanceCaptioner.Options())
    captions = captioner.caption(clip, frames, Segmentation([], [0]), [IDENTITY] * 4)
    assert captions.scene == "A bright scene filmed with a still camera."


def test_english() -> None:
    assert [plural(w) for w in ("cup", "person", "box", "baby", "knife", "teddy bear", "sheep")] == [
        *("cups", "people", "boxes", "babies", "knives", "teddy bears", "sheep")
    ]
    assert count_word(1, "person") == "one person"
    assert count_word(12, "cup") == "12 cups"
    assert with_article("orange ball") == "an orange ball"
    two = [Attribute(name="colour", value=v, score=0.4, source="measured") for v in ("black", "white")]
    assert describe_instance("dog", two) == "A black and white dog."
