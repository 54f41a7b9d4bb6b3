"""The formats as people publish them: real DAVIS-style masks and a real SA-V file."""

from __future__ import annotations

import os
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from rvt_ray.masks import rle
from tests.perception.test_annotations_segment import clip_of, segment

VIDEOS = Path(os.environ.get("RVT_SHARED", Path(__file__).parents[2] / "../shared")) / "videos"


def needs(name: str) -> Path:
    path = VIDEOS / name
    if not path.exists():
        pytest.skip(f"{name} is not next to the repository (set RVT_SHARED to the folder that holds videos/)")
    return path


def test_schoolgirls_masks_equal_their_label_maps_and_lie_on_things_in_the_video() -> None:
    folder = needs("schoolgirls")
    clip = clip_of(folder / "masks", "davis", name="schoolgirls", width=432, height=240, num_frames=80)
    tracks = segment(clip).tracks
    assert [t.instance_id for t in tracks] == [1, 2, 3, 4, 5, 6, 7]
    assert all(t.frame_idx == list(range(80)) for t in tracks)
    files = sorted((folder / "masks").glob("*.png"))
    for t in (0, 41, 79):
        with Image.open(files[t]) as image:
            labels = np.asarray(image)
        for track in tracks:
            assert (rle.decode(track.rle[t], 240, 432) == (labels == track.instance_id)).all()
    with av.open(str(folder / "schoolgirls.mp4")) as container:
        frame = next(container.decode(video=0)).to_ndarray(format="rgb24").astype(float)
    # An outline between object and background shows: colours jump more across masks than elsewhere.
    union = rle.decode(rle.union([t.rle[0] for t in tracks], 240, 432), 240, 432)
    jump = np.abs(np.diff(frame, axis=1)).sum(axis=2)
    across = union[:, 1:] != union[:, :-1]
    assert jump[across].mean() > 1.5 * jump[~across].mean()


@pytest.mark.parametrize(("kind", "count"), [("manual", 5), ("auto", 9)])
def test_sav_masklets_are_read_at_their_frames(kind: str, count: int) -> None:
    folder = needs("sav_example")
    clip = clip_of(folder, "sav", name="sav_000001", width=480, height=848, num_frames=483)
    tracks = segment(clip, sav_masklets=kind).tracks
    assert [t.instance_id for t in tracks] == list(range(1, count + 1))
    assert all(t.frame_idx == list(range(0, 483, 4)) for t in tracks)
    piece = clip_of(folder, "sav", name="sav_000001", width=480, height=848, start_frame=101, num_frames=10)
    assert segment(piece, sav_masklets=kind).tracks[0].frame_idx == [3, 7]
    small = clip_of(folder, "sav", name="sav_000001", width=240, height=424, num_frames=9)
    for track in segment(small, sav_masklets=kind).tracks:
        rle.check(track.rle[0], 424, 240)
