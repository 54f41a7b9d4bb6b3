"""Guards the twin: what goes in comes out right, what does not fit is refused with its reason."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from rvt_ray.config.settings import TwinSettings
from rvt_ray.errors import ClipError
from rvt_ray.perception.base import Captions, Segmentation, TrackDraft
from rvt_ray.records import Absence, ClipRecord, DepthKind, DigitalTwin, FailureCode, TrackStatus
from rvt_ray.twin.assemble import assemble
from tests.twin.helpers import IDENTITY, PROVENANCE, box_masks, make_clip, make_draft

SETTINGS = TwinSettings()
NO_WORDS = Captions(scene="A scene.", tags=[], instances=[])


def put_together(
    clip: ClipRecord, *drafts: TrackDraft, keys: list[int] | None = None, depth: object = ()
) -> DigitalTwin:
    return assemble(
        clip,
        Segmentation(list(drafts), keys or [0]),
        depth,  # type: ignore[arg-type]
        DepthKind.METRIC if depth else DepthKind.NONE,
        NO_WORDS,
        [IDENTITY] * clip.num_frames,
        SETTINGS,
        PROVENANCE,
    )


def test_a_moving_box_has_its_box_centroid_and_velocity() -> None:
    clip = make_clip(6)
    twin = put_together(clip, make_draft(3, box_masks([(2 * i, 4, 5, 6) for i in range(6)])))
    track = twin.instance(3).track
    assert track.box_x == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert set(track.box_w) == {5.0}
    assert set(track.area) == {30.0}
    assert track.centroid_x[1] == pytest.approx(4.0)
    assert track.velocity_x == pytest.approx([20.0] * 6)
    assert track.depth_median == [None] * 6


def test_absence_has_nulls_and_a_reason_and_visibility_has_none() -> None:
    masks = box_masks([(1, 1, 9, 9)] * 5 + [None] * 2 + [(1, 1, 9, 9)] * 3)
    draft = make_draft(1, masks)
    draft.absence[5] = Absence.OCCLUDED
    draft.absence[6] = None  # a backend that forgot to say why
    instance = put_together(make_clip(10), draft, keys=[0, 5, 9]).instance(1)
    track = instance.track
    assert track.visible[4:8] == [True, False, False, True]
    assert track.absence[4:8] == [None, Absence.OCCLUDED, Absence.UNKNOWN, None]
    assert track.area[5] == 0.0
    assert track.box_x[5] is None
    assert track.score[5] is None
    assert instance.quality.fragments == 2
    assert instance.quality.redetection_rate == pytest.approx(2 / 3)


def test_short_faint_or_tiny_tracks_are_uncertain_and_stay_in_the_twin() -> None:
    full = box_masks([(1, 1, 9, 9)] * 10)
    short = box_masks([(1, 1, 9, 9)] * 4 + [None] * 6)
    faint = make_draft(3, full)
    faint.score = [0.3] * 10
    doubted = make_draft(4, full, status=TrackStatus.UNCERTAIN)
    twin = put_together(make_clip(10), make_draft(1, full), make_draft(2, short), faint, doubted)
    status = {i.instance_id: i.quality.status for i in twin.instances}
    assert status[1] is TrackStatus.CONFIRMED
    assert {status[k] for k in (2, 3, 4)} == {TrackStatus.UNCERTAIN}


def test_a_still_can_have_a_confirmed_instance() -> None:
    twin = put_together(make_clip(1), make_draft(1, box_masks([(1, 1, 9, 9)])))
    assert twin.instances[0].quality.status is TrackStatus.CONFIRMED
    assert twin.instances[0].track.velocity_x == [None]


def test_a_clip_without_instances_is_a_valid_twin() -> None:
    twin = put_together(make_clip(3))
    assert twin.instances == []
    assert DigitalTwin.from_table(DigitalTwin.to_table([twin])) == [twin]


def test_a_track_that_is_never_visible_is_left_out_and_no_part_of_it_dangles() -> None:
    never = make_draft(1, box_masks([None] * 3))
    part = make_draft(2, box_masks([(1, 1, 9, 9)] * 3), parent_id=1)
    twin = put_together(make_clip(3), never, part)
    assert [i.instance_id for i in twin.instances] == [2]
    assert twin.instances[0].parent_id is None


def test_depth_is_read_under_the_mask_of_its_own_frame() -> None:
    def maps() -> Iterator[tuple[int, np.ndarray]]:
        for frame in (0, 2):
            depth = np.full((30, 40), 9.0, np.float32)
            depth[:, :20] = 1.0 + frame
            yield frame, depth

    clip = make_clip(3)
    twin = put_together(clip, make_draft(1, box_masks([(2, 2, 10, 10)] * 3)), depth=maps())
    assert twin.instance(1).track.depth_median == [1.0, None, 3.0]
    assert twin.depth_kind is DepthKind.METRIC


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.score.append(0.5), "differ in length"),
        (lambda d: d.frame_idx.__setitem__(0, 2), "ascend"),
        (lambda d: d.frame_idx.__setitem__(2, 9), "outside"),
        (lambda d: d.score.__setitem__(0, 1.5), "score"),
        (lambda d: d.rle.__setitem__(0, "0001"), "instance 1"),
    ],
)
def test_a_draft_that_does_not_fit_is_refused_with_its_reason(change: object, words: str) -> None:
    draft = make_draft(1, box_masks([(1, 1, 4, 4)] * 3))
    change(draft)  # type: ignore[operator]
    with pytest.raises(ClipError, match=words) as error:
        put_together(make_clip(3), draft)
    assert error.value.code is FailureCode.BACKEND_ERROR


def test_ids_that_are_used_twice_are_refused() -> None:
    masks = box_masks([(1, 1, 4, 4)] * 3)
    with pytest.raises(ClipError, match="two tracks"):
        put_together(make_clip(3), make_draft(1, masks), make_draft(1, masks))


def test_a_depth_map_of_another_size_is_refused() -> None:
    depth = [(0, np.zeros((3, 4), np.float32))]
    with pytest.raises(ClipError, match="depth map"):
        put_together(make_clip(3), make_draft(1, box_masks([(1, 1, 4, 4)] * 3)), depth=depth)


def test_twenty_instances_over_eighty_frames_take_a_moment_only() -> None:
    clip = make_clip(80, width=640, height=360)
    drafts = [
        make_draft(k + 1, box_masks([(10 * k + i, 10 + i, 60, 90) for i in range(80)], 640, 360))
        for k in range(20)
    ]
    start = time.process_time()
    put_together(clip, *drafts)
    assert time.process_time() - start < 4.0  # about 0.5 s; decoding every mask would take longer
