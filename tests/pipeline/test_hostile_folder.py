"""One folder of 40 files, 15 of them hostile, through the real job: nobody is lost, nobody is harmed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rvt_ray.config import load_config
from rvt_ray.pipeline import run as job
from rvt_ray.pipeline.validate import validate_corpus
from tests.video.media import moving, write_audio, write_video

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]

PLAIN = 25
TURNED = (96, 128)

# Usable: name, how it is made, the flag that must stand in its clip.
ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "quarter_turn.mp4": (lambda p: write_video(p, size=TURNED, stored=90), "rotated"),
    "half_turn.mp4": (lambda p: write_video(p, stored=180), "rotated"),
    "three_quarter_turn.mp4": (lambda p: write_video(p, size=TURNED, stored=270), "rotated"),
    "vfr.mp4": (lambda p: write_video(p, 12, times=[i * 40 + (i // 3) * 90 for i in range(12)]), "vfr"),
    "wide_pixels.mp4": (lambda p: write_video(p, sar=Fraction(3, 2)), "non_square_pixels"),
    "hdr.mp4": (lambda p: write_video(p, pix_fmt="yuv420p10le", transfer=16), "hdr"),
    "alpha.mov": (lambda p: write_video(p, codec="qtrle", pix_fmt="argb"), "alpha"),
    "odd_size.mp4": (lambda p: write_video(p, size=(127, 95), pix_fmt="yuv444p"), "odd_size"),
    "one_frame.mp4": (lambda p: write_video(p, 1), "single_frame"),
    "truncated.mkv": (lambda p: cut_short(p), "truncated"),
}
# Unusable: name, how it is made, the code that its failure must carry.
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "zero_frames.mp4": (
        lambda p: write_video(p, 0, container_options={"movflags": "frag_keyframe+empty_moov"}),
        "no_frames",
    ),
    "audio_only.mp4": (write_audio, "no_video_stream"),
    "text.mp4": (lambda p: p.write_text("not a film\n" * 50), "not_a_video"),
    "hang.mp4": (lambda p: write_video(p, moving(30, seed=101)), "decode_timeout"),
    "segv.mp4": (lambda p: write_video(p, moving(30, seed=102)), "decoder_crash"),
}


def cut_short(path: Path) -> None:
    write_video(path, moving(40, seed=103))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * 0.6)])


def test_fifteen_hostile_files_of_forty_cost_only_themselves(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    for i in range(PLAIN):
        write_video(folder / f"plain_{i:02d}.mp4", moving(12, seed=i))
    for name, (make, _) in {**ODD, **BAD}.items():
        make(folder / name)
    assert len(list(folder.iterdir())) == 40

    out = tmp_path / "out"
    config = load_config(
        None,
        [
            f"sources=[{{path: {folder}, license: CC0-1.0}}]",
            "index.decoder=tests.video.hostile:HostileDecoder",
            "index.decode_timeout_s=3",
            "index.shots.detector=none",
            "run.max_failed_share=0.5",
            *(f"run.{stage}.num_cpus=0.5" for stage in ("index", "perceive", "generate")),
            "run.index.actors=2",
            "run.perceive.actors=2",
        ],
    )
    with job.open_run(config, out, list(job.Stage), bar=False) as run:
        catalogue = run.index()
        run.perceive(catalogue)
        run.generate(catalogue)
        run.finalise(catalogue)

    clips = {Path(c["uri"]).name: c for c in pq.read_table(out / "clips").to_pylist()}
    twins = set(pq.read_table(out / "twins", columns=["clip_id"])["clip_id"].to_pylist())
    failures = {Path(f["uri"]).name: f["code"] for f in pq.read_table(out / "failures").to_pylist()}
    assert failures == {name: code for name, (_, code) in BAD.items()}
    assert len(set(failures.values())) == len(BAD)
    assert set(clips) == {p.name for p in folder.iterdir()} - set(BAD)
    assert {c["clip_id"] for c in clips.values()} == twins
    for name, (_, flag) in ODD.items():
        assert flag in clips[name]["flags"], name
    assert validate_corpus(out).problems == []
