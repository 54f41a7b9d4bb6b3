"""A cut in a video is the end of every track: clips are shots, and a segmenter knows one clip."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from rvt_ray.masks import rle
from rvt_ray.perception.detect import Detection
from rvt_ray.perception.segment.detector import DetectorSegmenter
from rvt_ray.perception.segment.detector.options import DetectorOptions
from rvt_ray.video.frames import FrameArray
from rvt_ray.video.stream import open_clip
from tests.video.helpers import index, settings
from tests.video.media import write_video

SHOT = 30
BOX = (60, 40, 40, 50)  # x, y, w, h of a red thing that stands at the same place before and after the cut


class Red:
    """A detector that sees the red thing."""

    name = "red"

    def detect(self, frame: FrameArray) -> list[Detection]:
        x, y, w, h = BOX
        assert frame[y + h // 2, x + w // 2, 0] > 120
        return [Detection(*(float(v) for v in BOX), "cup", 0.9)]


def test_trap_8_no_id_crosses_a_shot_cut(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x, y, w, h = BOX
    images = []
    for shot, light in enumerate((40, 170)):
        wall = cv2.resize(random.integers(light, light + 60, (12, 16, 3), np.uint8), (192, 144))
        for t in range(SHOT):
            image = np.roll(wall, t if shot else -t, axis=1)
            image[y : y + h, x : x + w] = (200, 30, 30)
            images.append(image)
    clips = index(write_video(tmp_path / "cut.mp4", images), shots={"detector": "adaptive"})
    assert [(c.start_frame, c.num_frames) for c in clips] == [(0, SHOT), (SHOT, SHOT)]
    segmenter = DetectorSegmenter(DetectorOptions(plate_samples=5), Red())
    found = [segmenter.segment(clip, open_clip(clip, settings()), [0]).tracks for clip in clips]
    for tracks in found:
        (track,) = tracks
        assert track.instance_id == 1
        assert track.frame_idx == list(range(SHOT))
        assert rle.area(track.rle[0]) > 0
    assert clips[0].clip_id != clips[1].clip_id, "one id would stand for both shots' things"
