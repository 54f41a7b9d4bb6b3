"""Guards the weight-free segmenter on scenes with exact truth."""

from __future__ import annotations

import numpy as np
import pytest

from rvt_ray.masks import rle
from rvt_ray.perception.base import Segmentation, TrackDraft
from rvt_ray.perception.segment.motion import MotionSegmenter
from rvt_ray.records import ClipRecord, TrackStatus
from rvt_ray.video.frames import ArrayFrames
from tests.perception.scenes import BLUE, GREEN, RED, disc_clip, line
from tests.twin.helpers import make_clip

H, W = 120, 160


def segment(frames: ArrayFrames, **options: object) -> tuple[ClipRecord, Segmentation]:
    clip = make_clip(frames.num_frames, frames.width, frames.height, list(frames.pts_s))
    segmenter = MotionSegmenter(MotionSegmenter.Options.model_validate(options))
    return clip, segmenter.segment(clip, frames, [0, frames.num_frames // 2])


def ious(track: TrackDraft, truth: np.ndarray) -> np.ndarray:
    """Per frame IoU; NaN where the truth is not visible and neither is the track."""
    out = np.full(len(truth), np.nan)
    for t, mask in enumerate(truth):
        found = rle.decode(track.rle[t], *mask.shape)
        union = (found | mask).sum()
        if union:
            out[t] = (found & mask).sum() / union
    return out


def best(segmentation: Segmentation, truth: np.ndarray) -> tuple[TrackDraft, np.ndarray]:
    scored = [(float(np.nanmean(ious(t, truth))), t) for t in segmentation.tracks]
    assert scored, "nothing was found"
    track = max(scored, key=lambda item: item[0])[1]
    return track, ious(track, truth)


@pytest.mark.parametrize("pan", [0.0, 0.8])
def test_two_things_are_two_tracks_all_along_with_or_without_a_panning_camera(pan: float) -> None:
    frames, truth = disc_clip(
        [line((20, 35), (140, 35), 50), line((140, 88), (20, 88), 50)], [RED, BLUE], pan=pan
    )
    _, found = segment(frames)
    first, iou_first = best(found, truth[0])
    second, iou_second = best(found, truth[1])
    assert first.instance_id != second.instance_id
    assert np.nanmean(iou_first) > 0.8
    assert np.nanmean(iou_second) > 0.8
    confirmed = [t for t in found.tracks if t.status is not TrackStatus.UNCERTAIN]
    assert {t.instance_id for t in confirmed} == {first.instance_id, second.instance_id}


def test_a_thing_that_rests_before_and_after_it_moves_is_there_all_the_time() -> None:
    path = np.concatenate(
        [np.tile([40.0, 60.0], (25, 1)), line((40, 60), (110, 60), 20), np.tile([110.0, 60.0], (25, 1))]
    )
    frames, truth = disc_clip([path], [RED])
    _, found = segment(frames)
    track, iou = best(found, truth[0])
    assert (iou > 0.6).mean() > 0.95
    assert sum(s is not None for s in track.score) >= 66


def test_crossing_things_keep_their_ids() -> None:
    n = 60
    frames, truth = disc_clip([line((20, 58), (140, 58), n), line((140, 64), (20, 64), n)], [RED, BLUE])
    _, found = segment(frames)
    for k in range(2):
        _, iou = best(found, truth[k])
        assert np.nanmean(iou[:15]) > 0.6, f"thing {k} before"
        assert np.nanmean(iou[-15:]) > 0.6, f"thing {k} after"


def test_a_thing_that_leaves_is_absent_with_a_reason() -> None:
    path = line((80, 60), (220, 60), 50)
    frames, truth = disc_clip([path], [GREEN])
    _, found = segment(frames)
    track, _ = best(found, truth[0])
    gone = [t for t in range(50) if not truth[0, t].any()]
    assert all(track.absence[t] is not None for t in gone[3:])
    assert all(track.score[t] is None for t in gone[3:])
    assert {str(track.absence[t]) for t in gone[3:]} == {"out"}


def test_nothing_moves_nothing_is_found() -> None:
    frames, _ = disc_clip([np.full((30, 2), np.nan)], [RED])
    assert segment(frames)[1].tracks == []
    panned, _ = disc_clip([np.full((30, 2), np.nan)], [RED], pan=1.0)
    assert [t for t in segment(panned)[1].tracks if t.status is not TrackStatus.UNCERTAIN] == []


@pytest.mark.parametrize("n", [1, 2, 7])
def test_very_short_clips_are_empty_not_errors(n: int) -> None:
    frames, _ = disc_clip([line((30, 60), (60, 60), n)], [RED])
    clip, found = segment(frames)
    assert clip.num_frames == n
    assert found.tracks == []


def test_blank_clips_are_empty_not_errors() -> None:
    blank = ArrayFrames(np.zeros((12, H, W, 3), np.uint8), np.arange(12) / 25)
    assert segment(blank)[1].tracks == []


def test_masks_have_the_clips_size_and_the_same_input_gives_the_same_tracks() -> None:
    frames, _ = disc_clip([line((20, 35), (140, 35), 24)], [RED])
    clip, first = segment(frames, working_side=96)
    _, second = segment(frames, working_side=96)
    assert first == second
    assert first.tracks
    for track in first.tracks:
        assert len(track.rle) == clip.num_frames
        for text in track.rle:
            rle.check(text, clip.height, clip.width)
