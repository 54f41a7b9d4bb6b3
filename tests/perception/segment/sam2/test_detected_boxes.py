"""Objects found by a detector's boxes instead of by a grid: they carry its names, in the sam2 segmenter."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from benchmarks.sam2_common import moving_pictures
from rvt_ray import backends
from rvt_ray.errors import ConfigError, MissingDependencyError
from rvt_ray.perception.detect import Detection
from rvt_ray.perception.segment.sam2 import Sam2Options, Sam2Segmenter
from rvt_ray.records import ClipRecord
from rvt_ray.video.frames import ArrayFrames, FrameArray
from tests.perception.segment.sam2.conftest import IMAGE_SIZE
from tests.twin.helpers import make_clip

SHARED = Path(os.environ.get("RVT_SHARED", Path(__file__).parents[4] / "../shared"))
HEIGHT, WIDTH, NUM_FRAMES = 72, 96, 8


@pytest.fixture
def clip() -> ClipRecord:
    return make_clip(NUM_FRAMES, WIDTH, HEIGHT)


class Boxes:
    """A detector that sees the same two things on every frame."""

    class Options(backends.Options):
        word: str = "cat"

    name = "boxes"

    def __init__(self, options: Options) -> None:
        self.options = options

    @classmethod
    def preflight(cls, options: Options) -> None:
        if options.word == "nothing":
            raise ConfigError("weights of nothing are not on this machine")

    def detect(self, frame: FrameArray) -> list[Detection]:
        assert frame.shape == (HEIGHT, WIDTH, 3)
        return [
            Detection(5.0, 5.0, 40.0, 35.0, self.options.word, 0.9),
            Detection(50.0, 30.0, 40.0, 40.0, "dog", 0.6),
            Detection(0.0, 0.0, 20.0, 20.0, "ghost", 0.2),
        ]


def _with_boxes(checkpoint: Path, **options: str) -> Sam2Options:
    return Sam2Options(
        checkpoint=str(checkpoint),
        model="tiny",
        image_size=IMAGE_SIZE,
        device="cpu",
        detector=backends.BackendSpec(backend=f"{__name__}:Boxes", options=options),
        min_fragment_share=0,
    )


def _with_yolox(checkpoint: Path, models: Path) -> Sam2Options:
    detector = backends.BackendSpec(backend="yolox", options={"models": str(models), "tiles": False})
    return _with_boxes(checkpoint).model_copy(update={"detector": detector})


def models_folder() -> Path:
    folder = SHARED / "models"
    if not (folder / "yolox_nano.onnx").is_file():
        pytest.skip(f"yolox_nano.onnx is not in {folder}; set RVT_SHARED to the folder that holds models/")
    return folder


def street() -> ArrayFrames:
    """The first two frames of a clip of a woman and a dog."""
    video = SHARED / "videos/01_dog.mp4"
    if not video.is_file():
        pytest.skip(f"{video} is absent; set RVT_SHARED to the folder that holds videos/")
    capture = cv2.VideoCapture(str(video))
    images = [np.asarray(cv2.resize(capture.read()[1], (480, 270)))[:, :, ::-1] for _ in range(2)]
    return ArrayFrames(np.ascontiguousarray(images), np.arange(2) / 29.97)


def test_a_detectors_boxes_become_tracks_with_its_words(checkpoint: Path, clip: ClipRecord) -> None:
    segmenter = Sam2Segmenter(_with_boxes(checkpoint, word="lynx"))
    assert segmenter.name.endswith("+boxes")
    result = segmenter.segment(
        clip, ArrayFrames(moving_pictures(NUM_FRAMES, HEIGHT, WIDTH), np.arange(NUM_FRAMES) / 25), [0, 5]
    )
    words = {track.category: track.category_score for track in result.tracks}
    assert words
    assert words.items() <= {"lynx": 0.9, "dog": 0.6}.items()
    for track in result.tracks:
        assert track.score[0] is None, "it was given on the first frame"


def test_yolox_names_the_tracks_of_a_real_frame_and_its_weights_stand_in_the_twin(checkpoint: Path) -> None:
    options = _with_yolox(checkpoint, models_folder())
    Sam2Segmenter.preflight(options)
    segmenter = Sam2Segmenter(options)
    assert "+yolox_nano@" in segmenter.name
    assert [(w.model.split("@")[0], w.license) for w in segmenter.weights] == [
        ("sam2.1-tiny", "unknown"),
        ("yolox_nano", "Apache-2.0"),
    ]
    frames = street()
    found = segmenter.segment(make_clip(2, frames.width, frames.height), frames, [0])
    # Random weights may draw the same mask in both boxes; the names are the detector's doing.
    words = {str(track.category): track.category_score for track in found.tracks}
    assert words
    assert words.keys() <= {"person", "dog"}
    assert all(score > 0.5 for score in words.values())


def test_where_yolox_sees_nothing_that_it_knows_there_is_no_track(checkpoint: Path, clip: ClipRecord) -> None:
    segmenter = Sam2Segmenter(_with_yolox(checkpoint, models_folder()))
    noise = np.random.default_rng(0).integers(0, 256, (NUM_FRAMES, HEIGHT, WIDTH, 3), np.uint8)
    found = segmenter.segment(clip, ArrayFrames(noise, np.arange(NUM_FRAMES) / 25), [0])
    assert found.tracks == []


def test_missing_weights_of_the_detector_end_before_any_video_is_read(
    checkpoint: Path, tmp_path: Path
) -> None:
    with pytest.raises(MissingDependencyError, match=r"perceive.segment.options.detector.options"):
        Sam2Segmenter.preflight(_with_yolox(checkpoint, tmp_path))


def test_a_wrong_detector_ends_before_any_video_is_read(checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match=r"perceive.segment.options.detector.*unknown key 'wrod'.*'word'"):
        Sam2Segmenter.preflight(_with_boxes(checkpoint, wrod="lynx"))
    with pytest.raises(ConfigError, match="weights of nothing"):
        Sam2Segmenter.preflight(_with_boxes(checkpoint, word="nothing"))
