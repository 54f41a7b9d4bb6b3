"""The detector segmenter from end to end: rendered clips with a detector that knows them, and a real one."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest

from rvt_ray import backends
from rvt_ray.backends import BackendSpec
from rvt_ray.config import Config, load_config
from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.masks import rle
from rvt_ray.perception.base import Segmentation, TrackDraft
from rvt_ray.perception.detect import Detection
from rvt_ray.perception.segment.detector import DetectorSegmenter
from rvt_ray.perception.segment.detector.options import DetectorOptions
from rvt_ray.perception.segment.detector.segmenter import choose_looks
from rvt_ray.pipeline.preflight import check_perception
from rvt_ray.records import Absence
from rvt_ray.video.frames import ArrayFrames, FrameArray
from tests.perception.segment.detector_scene import Actor, H, OracleDetector, Stage, W
from tests.twin.helpers import make_clip

SHARED = Path(os.environ.get("RVT_SHARED", Path(__file__).parents[3] / "../shared"))
MODEL = "yolox_nano.onnx"

RED = Actor("cup", (200, 40, 40), (30, 50), (1.5, 0))
BLUE = Actor("dog", (40, 60, 210), (180, 60), (-1.5, 0), (18, 18))


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    cv2.setNumThreads(1)


@pytest.fixture(scope="module")
def crossing() -> Stage:
    """A cup and a dog change sides; the dog passes in front."""
    return Stage([RED, BLUE], 80)


def run(stage: Stage, detector: OracleDetector, **options: object) -> Segmentation:
    segmenter = DetectorSegmenter(DetectorOptions.model_validate({"plate_samples": 9} | options), detector)
    return segmenter.segment(stage.clip(), stage.frames, list(range(0, stage.num_frames, 25)))


@pytest.fixture(scope="module")
def watched(crossing: Stage) -> tuple[OracleDetector, Segmentation]:
    detector = OracleDetector(crossing)
    return detector, run(crossing, detector)


def iou(track: TrackDraft, stage: Stage, actor: int) -> list[float]:
    """Of the frames on which at least half of the actor can be seen."""
    out = []
    for t, truth in enumerate(stage.truth[actor]):
        if truth.any() and truth.sum() >= 0.5 * stage.actors[actor].mask(t).sum():
            found = rle.decode(track.rle[t], H, W)
            out.append(float((found & truth).sum() / max((found | truth).sum(), 1)))
    return out


def test_things_that_cross_keep_their_ids_names_and_outlines(
    crossing: Stage, watched: tuple[OracleDetector, Segmentation]
) -> None:
    found = watched[1]
    by_name = {d.category: d for d in found.tracks}
    assert len(found.tracks) == 2
    assert np.mean(iou(by_name["cup"], crossing, 0)) > 0.8
    assert np.mean(iou(by_name["dog"], crossing, 1)) > 0.8
    assert all(d.status is None and d.category_score > 0.6 for d in found.tracks)
    scores = [s for s in by_name["dog"].score if s is not None]
    assert np.mean(scores) > 0.7


def test_the_frames_between_looks_are_nearly_as_good_as_the_looks(
    crossing: Stage, watched: tuple[OracleDetector, Segmentation]
) -> None:
    detector, found = watched
    dog = next(d for d in found.tracks if d.category == "dog")
    values = iou(dog, crossing, 1)
    at_looks = [v for t, v in enumerate(values) if t in detector.looks]
    between = [v for t, v in enumerate(values) if t not in detector.looks]
    assert len(between) > 2 * len(at_looks)
    assert np.mean(between) > np.mean(at_looks) - 0.1


def test_a_thing_that_the_detector_overlooks_for_a_while_keeps_its_id(crossing: Stage) -> None:
    found = run(crossing, OracleDetector(crossing, missed={1: range(10, 22)}))
    dogs = [d for d in found.tracks if d.category == "dog"]
    assert len(dogs) == 1
    during = dogs[0].score[16]
    before = dogs[0].score[5]
    assert before is not None
    assert during is None or during < before


def test_what_is_behind_another_is_occluded_not_gone() -> None:
    stage = Stage([Actor("cup", (200, 40, 40), (100, 60), (0, 0), (8, 10)), BLUE], 80)
    found = run(stage, OracleDetector(stage))
    cup = next(d for d in found.tracks if d.category == "cup")
    hidden = [t for t in range(80) if not stage.truth[0][t].any()]
    assert hidden
    middle = hidden[len(hidden) // 2]
    assert cup.absence[middle] is Absence.OCCLUDED
    assert rle.area(cup.rle[78]) > 0


def test_a_thing_that_leaves_is_out() -> None:
    stage = Stage([Actor("dog", (40, 60, 210), (120, 70), (3, 0), (18, 18)), RED], 70)
    dog = next(d for d in run(stage, OracleDetector(stage)).tracks if d.category == "dog")
    assert dog.absence[-1] is Absence.OUT
    assert np.mean(iou(dog, stage, 0)) > 0.7


def test_phantoms_and_wrong_names_now_and_then_change_nothing_but_the_score(
    crossing: Stage, watched: tuple[OracleDetector, Segmentation]
) -> None:
    phantom = {25: Detection(5, 100, 30, 30, "cat", 0.95)}
    detector = OracleDetector(crossing, phantom=phantom, names={(0, 25): "vase", (0, 75): "vase"})
    found = {d.category: d for d in run(crossing, detector).tracks}
    clear = {d.category: d for d in watched[1].tracks}
    assert found.keys() == clear.keys() == {"cup", "dog"}
    assert 0.6 < found["cup"].category_score < clear["cup"].category_score


def test_the_same_clip_gives_the_same_tracks(
    crossing: Stage, watched: tuple[OracleDetector, Segmentation]
) -> None:
    assert run(crossing, OracleDetector(crossing)).tracks == watched[1].tracks


@pytest.mark.parametrize("num_frames", [1, 2, 7])
def test_very_short_clips_are_clips(num_frames: int) -> None:
    stage = Stage([RED, BLUE], num_frames)
    segmenter = DetectorSegmenter(DetectorOptions(), OracleDetector(stage))
    found = segmenter.segment(stage.clip(), stage.frames, [0])
    assert {d.category for d in found.tracks} == {"cup", "dog"}
    assert all(len(d.rle) == num_frames for d in found.tracks)


def test_nothing_found_is_no_track_and_no_error() -> None:
    stage = Stage([], 12)
    assert run(stage, OracleDetector(stage)).tracks == []


def test_masks_have_the_clips_size_when_work_is_done_smaller(crossing: Stage) -> None:
    found = run(crossing, OracleDetector(crossing), working_side=108)
    assert np.mean(iou(next(d for d in found.tracks if d.category == "dog"), crossing, 1)) > 0.7


def test_no_gap_between_looks_is_longer_than_asked_for() -> None:
    pts = np.cumsum(np.random.default_rng(0).uniform(0.02, 0.09, 100))
    looks = choose_looks(pts, [0, 30, 60], 0.2)
    assert {0, 30, 60, 99} <= set(looks)
    assert all(b == a + 1 or pts[b] - pts[a] <= 0.2 + 1e-6 for a, b in pairwise(looks))
    assert choose_looks(np.array([0.0]), [0], 0.2) == [0]


def settings(folder: Path, **options: object) -> Config:
    detector = {"backend": "yolox", "options": {"models": str(folder), **options}}
    spec = {"backend": "detector", "options": {"detector": detector}}
    return Config.model_validate({"perceive": {"segment": spec}})


def test_missing_weights_end_before_any_video_is_read_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match=r"yolox_nano\.onnx.*RVT_RAY_MODELS"):
        check_perception(settings(tmp_path))


@pytest.mark.parametrize("content", [b"", b"not onnx at all", b"\x08\x07\x12\x04abcd" * 200])
def test_corrupt_weights_end_before_any_video_is_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MODEL).write_bytes(content)
    with pytest.raises(ConfigError, match=r"yolox_nano\.onnx cannot be used.*get it again"):
        check_perception(settings(tmp_path))


class Nobody:
    """A detector of a user's own, named in the config."""

    name = "nobody"

    class Options(backends.Options):
        loud: bool = False

    def __init__(self, options: Options) -> None:
        self.options = options

    def detect(self, frame: FrameArray) -> list[Detection]:
        return []


def test_a_detector_of_ones_own_is_named_in_the_config(crossing: Stage) -> None:
    own = BackendSpec(backend=f"{__name__}:Nobody", options={"loud": True})
    options = DetectorOptions(detector=own, plate_samples=9)
    DetectorSegmenter.preflight(options)
    segmenter = DetectorSegmenter(options)
    assert segmenter.name == "detector:nobody"
    assert segmenter.weights == ()
    assert segmenter.segment(crossing.clip(), crossing.frames, [0]).tracks == []


@pytest.mark.parametrize(
    ("detector", "why"),
    [
        ({"backend": "yolx"}, "unknown backend 'yolx'; did you mean 'yolox'"),
        ({"backend": "yolox", "options": {"tile": True}}, "unknown key 'tile'; did you mean 'tiles'"),
    ],
)
def test_a_mistyped_detector_or_option_ends_before_any_video_is_read(
    detector: dict[str, object], why: str
) -> None:
    spec = {"backend": "detector", "options": {"detector": detector}}
    config = Config.model_validate({"perceive": {"segment": spec}})
    with pytest.raises(ConfigError, match=rf"perceive\.segment\.options\.detector.*{re.escape(why)}"):
        check_perception(config)


def test_the_shipped_config_runs_with_the_shared_models(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model_folder()
    if not (folder / "tcmonodepth_tcsmallnet_192x320.onnx").is_file():
        pytest.skip(f"the depth model is not in {folder}")
    monkeypatch.setenv("RVT_RAY_MODELS", str(folder))
    check_perception(load_config(Path(__file__).parents[3] / "configs/cpu.yaml"))


def model_folder() -> Path:
    folder = SHARED / "models"
    if not (folder / MODEL).is_file():
        pytest.skip(f"{MODEL} is not in {folder}; set RVT_SHARED to the folder that holds models/")
    return folder


def test_weights_cut_short_end_before_any_video_is_read(tmp_path: Path) -> None:
    whole = (model_folder() / MODEL).read_bytes()
    (tmp_path / MODEL).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match="cannot be used"):
        check_perception(settings(tmp_path))


def test_a_network_that_is_no_detector_is_refused(tmp_path: Path) -> None:
    folder = model_folder()
    other = "tcmonodepth_tcsmallnet_192x320.onnx"
    if not (folder / other).is_file():
        pytest.skip(f"{other} is not in {folder}")
    with pytest.raises(ConfigError, match="cannot be used"):
        check_perception(settings(folder, file=other))


def test_the_woman_and_the_dog_are_found_and_keep_their_ids() -> None:
    folder, video = model_folder(), SHARED / "videos/01_dog.mp4"
    if not video.is_file():
        pytest.skip(f"{video} is absent; set RVT_SHARED to the folder that holds videos/")
    capture = cv2.VideoCapture(str(video))
    images = []
    while len(images) < 40 and (got := capture.read())[0]:
        images.append(np.asarray(cv2.resize(got[1], (480, 270), interpolation=cv2.INTER_AREA))[:, :, ::-1])
    frames = ArrayFrames(np.ascontiguousarray(images), np.arange(len(images)) / 29.97)
    yolox = BackendSpec(backend="yolox", options={"models": str(folder), "tiles": False})
    segmenter = DetectorSegmenter(DetectorOptions(detector=yolox, plate_samples=9))
    assert segmenter.name.startswith("detector:yolox_nano@")
    assert segmenter.weights[0].license == "Apache-2.0"
    clip = make_clip(len(images), 480, 270, pts=frames.pts_s.tolist())
    found = segmenter.segment(clip, frames, [0, 30])
    sure = [d for d in found.tracks if d.status is None]
    assert sorted(str(d.category) for d in sure) == ["dog", "person"]
    assert all(d.category_score > 0.7 for d in sure)
    assert all(sum(rle.area(text) > 0 for text in d.rle) > 35 for d in sure)
