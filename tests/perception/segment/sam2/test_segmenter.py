"""The segmenter as the job uses it, on random weights: shapes, bookkeeping, bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.sam2_common import first_masks, moving_pictures
from rvt_ray.masks import rle
from rvt_ray.perception.linking import TrackLinker
from rvt_ray.perception.proposals import KeyFrameDecision, Proposal
from rvt_ray.perception.segment.sam2 import Sam2Options, Sam2Segmenter
from rvt_ray.perception.segment.sam2.engine import Propagator
from rvt_ray.perception.segment.sam2.network import Network
from rvt_ray.perception.segment.sam2.passes import Passes, PassSettings
from rvt_ray.records import ClipRecord
from rvt_ray.video.frames import ArrayFrames, FrameArray, FrameWindow
from tests.perception.segment.sam2.conftest import IMAGE_SIZE

HEIGHT, WIDTH = 72, 96
SETTINGS = PassSettings(
    frames_per_batch=2,
    objects_per_batch=None,
    window=4,
    lost_frames=3,
    min_fragment_share=0.1,
    max_hole_share=0.02,
)


def stream(num_frames: int, seed: int = 0) -> ArrayFrames:
    frames = moving_pictures(num_frames, HEIGHT, WIDTH, seed)
    return ArrayFrames(frames, np.arange(num_frames) / 25)


class CountingFrames(ArrayFrames):
    """Counts what is decoded, and how much at a time."""

    def __init__(self, num_frames: int) -> None:
        super().__init__(moving_pictures(num_frames, HEIGHT, WIDTH), np.arange(num_frames) / 25)
        self.windowed: list[int] = []
        self.single: list[int] = []

    def windows(self, size: int = 16) -> Iterator[FrameWindow]:
        for window in super().windows(size):
            assert len(window.indices) <= 4
            self.windowed.extend(window.indices.tolist())
            yield window

    def frames_at(self, indices: list[int]) -> Iterator[tuple[int, FrameArray]]:
        assert indices == sorted(indices)
        self.single.extend(indices)
        return super().frames_at(indices)


@pytest.fixture(scope="module")
def segmenter(checkpoint: Path) -> Sam2Segmenter:
    return Sam2Segmenter(
        Sam2Options(
            checkpoint=str(checkpoint),
            model="tiny",
            image_size=IMAGE_SIZE,
            device="cpu",
            points_per_side=4,
            min_quality=0.3,
            min_stability=0.2,
            max_objects=6,
            window=4,
            frames_per_batch=2,
        )
    )


def test_a_clip_becomes_whole_tracks_twice_the_same(segmenter: Sam2Segmenter, clip: ClipRecord) -> None:
    first = segmenter.segment(clip, stream(clip.num_frames), [0, 5])
    assert first.key_frames == [0, 5]
    assert first.tracks
    for track in first.tracks:
        assert track.frame_idx == list(range(clip.num_frames))
        assert len(track.rle) == len(track.absence) == len(track.score) == clip.num_frames
        for text, absence, score in zip(track.rle, track.absence, track.score, strict=True):
            rle.check(text, HEIGHT, WIDTH)
            assert (rle.area(text) == 0) == (absence is not None)
            assert score is None or 0 <= score <= 1
        assert any(score is not None for score in track.score), "trap 4: the confidence is not handed on"
    assert segmenter.segment(clip, stream(clip.num_frames), [0, 5]) == first
    assert segmenter.name.startswith("sam2:sam2.1-tiny@")


def test_a_clip_of_one_frame_is_a_clip(segmenter: Sam2Segmenter, clip: ClipRecord) -> None:
    one = clip.model_copy(update={"num_frames": 1, "pts_s": clip.pts_s[:1]})
    result = segmenter.segment(one, stream(1), [0])
    assert all(track.score == [None] for track in result.tracks)


@pytest.fixture
def clip() -> ClipRecord:
    from rvt_ray.records.clip import ClipRecord

    fields = {
        "clip_id": "c",
        "video_id": "v",
        "source": "s",
        "uri": "memory",
        "sha256": "0" * 64,
        "license": "CC0-1.0",
        "start_frame": 0,
        "num_frames": 8,
        "pts_s": [i / 25 for i in range(8)],
        "fps_nominal": 25.0,
        "width": WIDTH,
        "height": HEIGHT,
        "rotation": 0,
        "decoder": "test",
        "decoder_version": "0",
        "num_frames_header": 8,
        "flags": [],
    }
    return ClipRecord.model_construct(**fields)


class _Script(TrackLinker):
    """Gives birth to what the script says, whatever was found."""

    def observe(self, frame, seen):  # type: ignore[no-untyped-def]
        assert all(sight.score is not None for sight in seen.values())

    def key_frame(self, frame, proposals, seen):  # type: ignore[no-untyped-def]
        return KeyFrameDecision(born={10 * frame + i: p for i, p in enumerate(proposals, 1)})


def _proposals(frame: int, count: int) -> list[Proposal]:
    masks = first_masks(count, HEIGHT, WIDTH, seed=frame)
    return [Proposal(frame, text, 0.9) for text in rle.encode_batch(np.stack(masks))]


def test_trap_2_every_frame_of_every_track_comes_once_forwards_and_backwards(network: Network) -> None:
    frames = CountingFrames(11)
    passes = Passes(network, frames, SETTINGS)
    proposals = {0: _proposals(0, 1), 6: _proposals(6, 2), 9: _proposals(9, 1)}
    sights, starts = passes.forward(_Script(HEIGHT, WIDTH, 11), proposals)
    assert frames.windowed == list(range(11))
    assert {i: sorted(s) for i, s in sights.items()} == {
        1: list(range(11)),
        61: list(range(6, 11)),
        62: list(range(6, 11)),
        91: [9, 10],
    }
    before = {i: dict(s) for i, s in sights.items()}
    passes.backward(sights, starts)
    assert {i: sorted(s) for i, s in sights.items()} == {i: list(range(11)) for i in (1, 61, 62, 91)}
    for i, track in before.items():
        assert all(sights[i][t] == sight for t, sight in track.items()), "the forward pass was overwritten"
    assert sights[61][6].score is None
    assert sights[61][6].rle == proposals[6][0].rle
    # Nothing after the last birth is decoded again, nothing twice.
    assert sorted(frames.single) == list(range(10))


def test_what_was_lost_and_is_back_is_followed_back_to_where_it_was_lost(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forward pass loses the object on frames 4..9; it is given anew on 10."""
    first, again = _proposals(0, 1)[0], _proposals(0, 1)[0]

    class _Back(TrackLinker):
        def observe(self, frame, seen):  # type: ignore[no-untyped-def]
            pass

        def key_frame(self, frame, proposals, seen):  # type: ignore[no-untyped-def]
            if frame == 0:
                return KeyFrameDecision(born={1: first})
            return KeyFrameDecision(found={1: again}, corrected={1: again})

    step, ways = Propagator.step, []

    def lose(self: Propagator, features):  # type: ignore[no-untyped-def]
        tracked = step(self, features)
        forward = self._direction > 0
        ways.append((forward, features.frame, list(tracked.ids)))
        tracked.logits.fill_(-10.0 if forward and 4 <= features.frame <= 10 else 10.0)
        return tracked

    monkeypatch.setattr(Propagator, "step", lose)
    passes = Passes(network, stream(14), SETTINGS)
    sights, starts = passes.forward(_Back(HEIGHT, WIDTH, 14), {0: [first], 10: [again]})
    assert sorted(starts) == [0, 10]
    assert [t for t in range(14) if rle.area(sights[1][t].rle) == 0] == [4, 5, 6, 7, 8, 9]
    before = {t: sights[1][t] for t in range(4)}
    passes.backward(sights, starts)
    assert all(rle.area(sights[1][t].rle) > 0 for t in range(14)), "the gap was left as it was"
    assert {t: sights[1][t] for t in range(4)} == before, "what the forward pass knew was overwritten"
    assert [t for forward, t, ids in ways if not forward and ids] == [9, 8, 7, 6, 5, 4, 3]


def test_the_backward_pass_ends_when_everything_is_gone(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = CountingFrames(30)
    passes = Passes(network, frames, SETTINGS)
    proposals = {25: _proposals(25, 1), 4: _proposals(4, 1)}
    sights, starts = passes.forward(_Script(HEIGHT, WIDTH, 30), proposals)
    step = Propagator.step

    def vanish(self: Propagator, features):  # type: ignore[no-untyped-def]
        tracked = step(self, features)
        tracked.logits.fill_(-10)
        return tracked

    monkeypatch.setattr(Propagator, "step", vanish)
    passes.backward(sights, starts)
    assert min(sights[251]) == 25
    assert set(frames.single) >= {25, 24, 23, 22, 4, 3, 2, 1}
    assert not set(frames.single) & set(range(6, 18)), "frames that nobody waits for were decoded"


def test_frames_before_the_first_object_are_not_encoded(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    encode = Network.encode

    def count(self: Network, indices, frames):  # type: ignore[no-untyped-def]
        encoded.extend(indices)
        return encode(self, indices, frames)

    monkeypatch.setattr(Network, "encode", count)
    Passes(network, stream(10), SETTINGS).forward(_Script(HEIGHT, WIDTH, 10), {6: _proposals(6, 1)})
    assert encoded == [6, 7, 8, 9]


def test_trap_5_what_is_remembered_does_not_grow_with_the_clip(network: Network) -> None:
    frames = moving_pictures(2, HEIGHT, WIDTH)
    masks = dict(enumerate(first_masks(3, HEIGHT, WIDTH), 1))
    propagator = Propagator(network, 1000)
    features = network.encode([0], frames[:1])[0]
    propagator.prompt(features, masks)
    held = []
    for frame in range(1, 61):
        moved = type(features)(frame, features.image, features.fine)
        propagator.step(moved)
        held.append(propagator.state_bytes())
    assert held == [held[0]] * 60
    # Per object seven maps of n x 64 in bfloat16, sixteen pointers, one more of each for the frame in work.
    tokens = (IMAGE_SIZE // 16) ** 2
    assert held[-1] <= 3 * (8 * tokens * 64 * 2 + 17 * 256 * 4)


_WORKER = """
import json, pathlib, re, sys
import numpy as np, psutil, torch
torch.set_num_threads(1)
from benchmarks.sam2_common import moving_pictures
from rvt_ray.perception.segment.sam2 import Sam2Options, Sam2Segmenter
from rvt_ray.records import ClipRecord
from rvt_ray.video.frames import ArrayFrames, FrameWindow

class Endless(ArrayFrames):
    # A long clip made of a short one, so that the pictures themselves do not count.
    def __init__(self, n):
        super().__init__(moving_pictures(8, 72, 96), np.arange(8) / 25)
        self.n = n
    num_frames = property(lambda self: self.n)
    def windows(self, size=16):
        for start in range(0, self.n, size):
            index = np.arange(start, min(start + size, self.n))
            yield FrameWindow(index, self._frames[index % 8])
    def frames_at(self, indices):
        return ((i, self._frames[i % 8]) for i in indices)

segmenter = Sam2Segmenter(Sam2Options(checkpoint=sys.argv[1], model="tiny", image_size=64, device="cpu",
    points_per_side=3, min_quality=0.3, min_stability=0.1, max_objects=2, window=8))
clip = ClipRecord.model_construct(clip_id="c", num_frames=1)
seen = []
for n, repeats in json.loads(sys.argv[2]):
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak so far, of loading, is forgotten
    for _ in range(repeats):
        assert segmenter.segment(clip, Endless(n), [0]).tracks
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
    seen.append([peak, psutil.Process().memory_info().rss // 1024])
print(json.dumps(seen))
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks are measured through Linux's /proc"
)
def test_trap_5_memory_grows_neither_with_the_clip_nor_from_clip_to_clip(checkpoint: Path) -> None:
    """In a process of its own: kB of peak and of resident memory after each run."""
    runs = [(10, 1), (100, 1), (3, 3), (3, 15)]
    result = subprocess.run(
        [sys.executable, "-c", _WORKER, str(checkpoint), json.dumps(runs)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[4],
    )
    short, long, warm, later = json.loads(result.stdout.splitlines()[-1])
    assert long[0] <= 1.2 * short[0], "ten times the frames need more memory"
    assert long[0] - short[0] < 20_000, "ten times the frames need more memory"
    assert later[1] - warm[1] < 8_000, "clips leave something behind"
