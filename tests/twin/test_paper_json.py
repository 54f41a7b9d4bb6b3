"""Guards that the paper's per-frame form holds everything that the table holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvt_ray.config.settings import TwinSettings
from rvt_ray.perception.base import Captions, InstanceCaption, Segmentation
from rvt_ray.records import (
    Attribute,
    Coverage,
    DepthKind,
    DepthStep,
    DigitalTwin,
    FrameFlag,
    FrameMeasure,
    ModelWeights,
    Scored,
)
from rvt_ray.twin.assemble import assemble
from rvt_ray.twin.paper_json import from_paper_json, to_paper_json
from tests.twin.helpers import IDENTITY, PROVENANCE, box_masks, make_clip, make_draft

BOXES = st.lists(
    st.none() | st.tuples(st.integers(0, 39), st.integers(0, 29), st.integers(1, 20), st.integers(1, 20)),
    min_size=4,
    max_size=4,
)


def make_twin(boxes: list[list[tuple[int, int, int, int] | None]]) -> DigitalTwin:
    clip = make_clip(4, pts=[0.0, 0.04, 0.11, 0.5])
    drafts = [make_draft(k + 1, box_masks(b)) for k, b in enumerate(boxes)]
    words = [
        InstanceCaption(1, "dog", [Scored(value="dog", score=0.7)],
                        [Attribute(name="colour", value="red", score=0.8, source="measured")], "A dog.")
    ]  # fmt: skip
    return assemble(
        clip,
        Segmentation(drafts, [0, 3], Coverage.EVERYTHING),
        [],
        DepthKind.NONE,
        Captions("A scene.", ["bright"], words),
        [IDENTITY] * 4,
        TwinSettings(),
        PROVENANCE,
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(BOXES, max_size=3))
def test_the_round_trip_through_json_text_loses_nothing(boxes: list) -> None:
    twin = make_twin(boxes)
    assert from_paper_json(json.loads(json.dumps(to_paper_json(twin)))) == twin


def test_json_from_before_the_claim_claims_nothing() -> None:
    data = to_paper_json(make_twin([[(1, 1, 5, 5)] * 4]))
    assert data.pop("coverage") == "everything"
    assert from_paper_json(data).coverage is Coverage.SOME


def test_frames_that_are_not_annotated_stay_so() -> None:
    twin = make_twin([[(1, 1, 5, 5)] * 4])
    track = twin.instances[0].track
    for name in type(track).model_fields:
        setattr(track, name, getattr(track, name)[1:3])
    track.rle[0] = None
    data = to_paper_json(twin)
    assert [len(f["instances"]) for f in data["frames"]] == [0, 1, 1, 0]
    assert from_paper_json(data) == twin


def test_a_frame_holds_what_the_paper_names() -> None:
    frame = to_paper_json(make_twin([[(1, 1, 5, 5)] * 4]))["frames"][1]
    assert frame["time_s"] == 0.04
    entry = frame["instances"][0]
    assert entry["bbox"] == [1.0, 1.0, 5.0, 5.0]
    assert entry["mask"]["size"] == [30, 40]
    assert {"instance_id", "centroid", "velocity", "beta", "depth", "area"} <= set(entry)


def test_another_document_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="format"):
        from_paper_json({"frames": []})
    broken = to_paper_json(make_twin([]))
    del broken["scene"]
    with pytest.raises(ValueError, match="scene"):
        from_paper_json(broken)


def test_what_was_measured_of_frames_survives_the_round_trip() -> None:
    twin = make_twin([[(3, 4, 5, 6)] * 4])
    twin.depth_alignment = [
        DepthStep(frame_idx=1, scale=0.5, shift=-1.0, residual=0.01),
        DepthStep(frame_idx=3, scale=None, shift=None, residual=0.4),
    ]
    twin.frame_measures = [
        FrameMeasure(brightness=0.4, sharpness=1.5, change=None if i == 0 else 0.1, flags=[])
        for i in range(4)
    ]
    twin.frame_measures[2].flags = twin.flags = [FrameFlag.FROZEN]
    twin.weights = [ModelWeights(part="depth", model="m@1", license="Apache-2.0")]
    assert from_paper_json(json.loads(json.dumps(to_paper_json(twin)))) == twin
    assert DigitalTwin.from_table(DigitalTwin.to_table([twin])) == [twin]
