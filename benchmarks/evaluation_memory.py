"""Does the memory of `rvt-ray evaluate` grow with the number of samples?

    python -m benchmarks.evaluation_memory [--clips 60] [--times 10]

Two corpora, one with ten times the clips of the other, each scored in a process of its own with one
prediction per sample (the truth, every fifth one missing). Compares peak memory, read from Linux's /proc.
Target: <= 1.3.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rvt_ray.config.settings import RunSettings
from rvt_ray.pipeline.shards import write_shards
from rvt_ray.records import ClipRecord, DigitalTwin, Record, Sample
from tests.corpora import write_corpus
from tests.evaluation.conftest import clip_and_twin, perfect_row, samples_of, write_jsonl

SHIFTS = 8
"""Different pictures that the clips of the test corpus can show."""


def prepare(folder: Path, clips: int) -> int:
    """A corpus of this many clips and its predictions; returns the number of samples."""
    pairs = []
    for number in range(clips):
        clip, twin = clip_and_twin(number % SHIFTS)
        video_id = f"{number:016x}"
        clip = clip.model_copy(
            update={"video_id": video_id, "clip_id": clip.clip_id.replace(clip.video_id, video_id)}
        )
        pairs.append((clip, twin.model_copy(update={"clip_id": clip.clip_id})))
    samples = [
        sample.model_copy(update={"sample_id": f"{number}-{sample.sample_id}"})
        for number, (_, twin) in enumerate(pairs)
        for sample in samples_of(number % SHIFTS, twin)
    ]
    corpus = write_corpus(folder / "corpus", [])
    shard(corpus, ClipRecord, [clip for clip, _ in pairs])
    shard(corpus, DigitalTwin, [twin for _, twin in pairs])
    shard(corpus, Sample, samples)
    rows = [perfect_row(s) for i, s in enumerate(samples) if i % 5]
    write_jsonl(folder / "predictions.jsonl", rows)
    return len(samples)


def shard(corpus: Path, record: type[Record], items: Sequence[Record]) -> None:
    """A table in shards and row groups as the pipeline writes them: their footers are read, too."""
    folder, run = corpus / record.TABLE, RunSettings()
    shutil.rmtree(folder)
    folder.mkdir()
    tables = (record.to_table([item]) for item in items)
    for made in write_shards(folder, record.SCHEMA, tables, run.rows_per_shard, int(run.shard_mb * 2**20)):
        made.path.rename(folder / f"part-{made.path.name}")


def child(folder: Path) -> None:
    """What is measured."""
    from rvt_ray.evaluation import EvaluationOptions, evaluate

    options = EvaluationOptions(plots=False, draws=100, baselines=())
    evaluate(folder / "corpus", folder / "predictions.jsonl", folder / "report", options)
    # Not `ru_maxrss`: a child is born with its parent's, and that has just made the corpus.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]


def main() -> None:
    """Print both peaks and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clips", type=int, default=60)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
        return
    peaks = []
    for clips in (args.clips, args.clips * args.times):
        folder = Path(tempfile.mkdtemp(prefix="rvt-bench"))
        try:
            samples = prepare(folder, clips)
            command = [sys.executable, "-m", "benchmarks.evaluation_memory", "--child", str(folder)]
            peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{clips} clips, {samples} samples: peak {peaks[-1] / 1024:.0f} MiB")
    print(f"ratio {peaks[1] / peaks[0]:.3f} for {args.times} times the samples (target <= 1.3)")


if __name__ == "__main__":
    main()
