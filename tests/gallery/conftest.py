"""A corpus with everything that a page can show: occlusion, tasks, rejects, failures, hostile text."""

from __future__ import annotations

import hashlib
import http.server
import threading
from functools import partial

import cv2
import numpy as np
import pytest

from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.records import (
    Absence,
    Attribute,
    Category,
    Failure,
    FailureCode,
    GateVerdict,
    Stage,
    Task,
    Tree,
    TreeNode,
    Verdict,
    Wording,
)
from tests.corpora import (
    make_clip,
    make_instance,
    make_reject,
    make_sample,
    make_twin,
    write_corpus,
    write_video,
)

N, H, W = 36, 180, 320
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)> Which & why?"


def render():
    """Frames and masks: a red ball passes behind a pillar, a blue crate comes in late."""
    frames = np.zeros((N, H, W, 3), np.uint8)
    masks = {1: [], 2: [], 3: []}
    rows = np.linspace(0, 1, H)[:, None, None]
    for i in range(N):
        frame = (np.array([150, 178, 205]) * (1 - rows) + np.array([92, 112, 84]) * rows).astype(np.uint8)
        frame = np.ascontiguousarray(np.broadcast_to(frame, (H, W, 3)))
        ball, crate, pillar = (np.zeros((H, W), np.uint8) for _ in range(3))
        cv2.circle(ball, (20 + 8 * i, 105), 22, 1, -1)
        cv2.rectangle(pillar, (140, 20), (200, 170), 1, -1)
        if i >= 14:
            cv2.rectangle(crate, (W - (i - 14) * 4, 130), (W - (i - 14) * 4 + 46, 168), 1, -1)
        crate &= 1 - pillar
        ball &= (1 - pillar) & (1 - crate)
        frame[ball > 0] = (205, 48, 40)
        frame[pillar > 0] = (148, 140, 130)
        frame[crate > 0] = (40, 84, 190)
        frames[i] = frame
        for key, mask in ((1, ball), (2, pillar), (3, crate)):
            masks[key].append(mask.astype(bool))
    return frames, masks


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """The corpus folder."""
    root = tmp_path_factory.mktemp("gallery") / "demo"
    root.mkdir()
    frames, masks = render()
    video = root.parent / "ball.mp4"
    write_video(video, frames)
    digest = hashlib.sha256(video.read_bytes()).hexdigest()
    clip = make_clip(digest[:16], N, H, W, name="ball behind a pillar", uri=str(video), sha256=digest)
    hidden = {i: Absence.OCCLUDED for i in range(N) if not masks[1][i].any()}
    masks[3][20] = None
    red = Attribute(name="colour", value="red", score=0.9, source="measured")
    twin = make_twin(
        clip,
        [
            make_instance(1, "ball", masks[1], hidden, attributes=[red], caption="a red ball"),
            make_instance(2, "pillar", masks[2]),
            make_instance(3, "crate", masks[3], caption="a blue crate <b>bold</b>"),
        ],
    )
    deep = Program(
        target="x",
        variables=("x", "a", "b"),
        constraints=(
            Constraint(predicate="moves_right", args=("x",)),
            Constraint(predicate="hidden_by", args=("x", "a")),
            Constraint(predicate="appears_before", args=("x", "b")),
            Constraint(predicate="left_of", args=("a", "b"), scope="end"),
            Constraint(predicate="colour", args=("b",), value="blue"),
            Constraint(predicate="region", args=("a",), value="centre"),
        ),
    )
    tree = Tree(
        tree_id="t2",
        nodes=[
            TreeNode(node=n, instance_ids=[i], role=r, level=1)
            for n, i, r in (("x", 1, "target"), ("a", 2, "anchor"), ("b", 3, "anchor"))
        ],
        edges=[],
    )
    every = [Category.SEMANTIC, Category.SPATIAL, Category.TEMPORAL]
    gates = [
        GateVerdict(gate=g, verdict=v, detail=d)
        for g, v, d in (
            ("program", Verdict.PASS, "certain = possible = {1}"),
            ("stability", Verdict.PASS, "20 of 20 draws"),
            ("necessity", Verdict.PASS, "every hop"),
            ("leak", Verdict.PASS, ""),
            ("form", Verdict.PASS, ""),
            ("faithful", Verdict.NOT_RUN, "no model"),
            ("shortcut", Verdict.FAIL, "the one that moves most gives the same answer; kept for balance"),
        )
    ]
    samples = [
        make_sample(
            "s1", twin, Task.SEGMENTATION, [1], program=deep.to_json(), tree=tree, level=4, categories=every,
            gates=gates, wording=Wording.LLM,
            query="What slips out of sight behind the support before the late arrival turns up on the right?",
        ),
        make_sample("s2", twin, Task.GROUNDING, [1, 3], query="Find everything that moves."),
        make_sample("s3", twin, Task.VQA, [1], gates=gates),
        make_sample("s4", twin, Task.SUMMARY, [3], query=HOSTILE, categories=[Category.TEMPORAL], level=1),
        make_sample("s5", twin, Task.SEGMENTATION, [], query="Which thing rolls to the left?", level=1),
    ]  # fmt: skip
    rejects = [make_reject(samples[0], "leak", "the wording names the kind 'ball'"),
               make_reject(samples[3], "form", HOSTILE)]  # fmt: skip
    gone = make_clip("f" * 16, 10, 90, 160, name="gone")
    square = np.zeros((90, 160), bool)
    square[30:60, 40:80] = True
    gone_twin = make_twin(gone, [make_instance(1, "box", [square] * 10)])
    failed = make_clip("a" * 16, 10, 90, 160, name="failed one")
    failures = [
        Failure(clip_id=failed.clip_id, video_id=failed.video_id, source="test", uri=failed.uri,
                stage=Stage.PERCEIVE, code=FailureCode.CLIP_TIMEOUT, message="took too long", attempt=1),
        Failure(clip_id=None, video_id=None, source="test", uri="broken.mp4", stage=Stage.INDEX,
                code=FailureCode.CORRUPT, message="no frame", attempt=1),
    ]  # fmt: skip
    return write_corpus(
        root,
        [clip, gone, failed],
        [twin, gone_twin],
        [*samples, make_sample("s6", gone_twin, Task.SEGMENTATION, [1])],
        rejects,
        failures,
    )


@pytest.fixture(scope="session")
def opener():
    """Frames of the rendered clip without a decoder; the other clip's video is gone."""
    from rvt_ray.errors import ClipError
    from rvt_ray.video.frames import ArrayFrames

    frames, _ = render()

    def open_frames(clip):
        if clip.num_frames != N:
            raise ClipError(FailureCode.UNREADABLE, f"{clip.uri}: no such file")
        return ArrayFrames(frames, np.array(clip.pts_s))

    return open_frames


@pytest.fixture(scope="session")
def serve():
    """Serves folders over HTTP for the browser: folder -> address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    running = []

    def start(folder):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in running:
        server.shutdown()
