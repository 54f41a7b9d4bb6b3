from __future__ import annotations

from pathlib import Path

import pytest

from rvt_ray.backends import BackendSpec, build
from rvt_ray.perception.base import Captions, Segmentation, TrackDraft
from rvt_ray.perception.caption import BACKENDS
from rvt_ray.records import Attribute
from tests.perception.test_annotations_segment import NO_PIXELS, clip_of


def track(instance_id: int, category: str | None, **attributes: str) -> TrackDraft:
    return TrackDraft(
        instance_id,
        [],
        [],
        [],
        [],
        category=category,
        category_score=1.0 if category else 0.0,
        attributes=[
            Attribute(name=n, value=v, score=1.0, source="annotation") for n, v in attributes.items()
        ],
    )


def caption(*tracks: TrackDraft) -> Captions:
    backend = build(BackendSpec(backend="annotations"), BACKENDS, "perceive.caption")
    result = backend.caption(clip_of(Path("x"), None), NO_PIXELS, Segmentation(list(tracks), [0]), [])
    assert isinstance(result, Captions)
    return result


def test_given_labels_are_passed_on_unchanged() -> None:
    ball = track(3, "ball", colour="red", material="rubber", size="small")
    (item,) = caption(ball).instances
    assert (item.instance_id, item.category) == (3, "ball")
    assert item.attributes == ball.attributes
    assert [(a.value, a.score) for a in item.alternatives] == [("ball", 1.0)]
    assert item.caption == "a small red rubber ball"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (track(1, None), "an object"),
        (track(1, "airplane"), "an airplane"),
        (track(1, "cup", colour="orange", size="medium"), "an orange cup"),
        (track(1, "dog", pose="sitting"), "a dog"),
    ],
)
def test_captions_read_like_english(given: TrackDraft, expected: str) -> None:
    assert caption(given).instances[0].caption == expected


def test_a_track_without_a_label_is_an_object_and_claims_no_score() -> None:
    result = caption(track(1, None), track(2, "dog"), track(4, "dog"))
    assert result.instances[0].category == "object"
    assert result.instances[0].alternatives == []
    assert result.tags == ["dog"]
    assert result.scene == "an object; a dog; a dog"
    assert caption().scene == ""
