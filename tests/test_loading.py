"""`rvt_ray.load`: what a training loop sees of a corpus."""

from __future__ import annotations

import copy
import pickle
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import rvt_ray
from rvt_ray.config.settings import IndexSettings
from rvt_ray.corpus import Corpus, CorpusError
from rvt_ray.errors import ConfigError
from rvt_ray.loading import Item, split_of
from rvt_ray.masks import rle
from rvt_ray.records import Coverage, Task
from rvt_ray.video import SourceItem, index_video
from tests.corpora import make_clip, make_instance, make_sample, make_twin, write_corpus, write_video

TASKS = list(Task)
FRAMES, HEIGHT, WIDTH = 12, 48, 64
VIDEOS = 12


def masks(offset: int) -> list[np.ndarray]:
    found = []
    for frame in range(FRAMES):
        mask = np.zeros((HEIGHT, WIDTH), bool)
        mask[10:20, offset + frame : offset + frame + 10] = frame != 3
        found.append(mask)
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve one-clip videos with a sample of each task; the first one's video exists."""
    root = tmp_path_factory.mktemp("load")
    frames = np.zeros((FRAMES, HEIGHT, WIDTH, 3), np.uint8)
    frames[:] = (np.arange(FRAMES) * 20)[:, None, None, None]
    write_video(root / "v.mp4", frames)
    item = SourceItem(source="test", name="v", uri=str(root / "v.mp4"), license="CC0-1.0")
    clips = index_video(item, IndexSettings())
    clips += [make_clip(f"{i:016x}", FRAMES, HEIGHT, WIDTH) for i in range(1, VIDEOS)]
    twins = [
        make_twin(c, [make_instance(1, "cup", masks(0)), make_instance(2, "box", masks(30))]) for c in clips
    ]
    samples = [
        make_sample(f"s{i:02d}-{task}", twin, task, [1]) for i, twin in enumerate(twins) for task in TASKS
    ]
    return write_corpus(root / "out", clips, twins, samples, row_group_size=5)


def test_it_is_a_sequence_in_the_corpus_order(corpus: Path) -> None:
    data = rvt_ray.load(corpus)
    assert len(data) == VIDEOS * len(TASKS)
    assert [item.sample.sample_id for item in data] == data.sample_ids
    assert data[-1].sample.sample_id == data.sample_ids[-1]
    assert [i.sample.sample_id for i in data[3:6]] == data.sample_ids[3:6]
    with pytest.raises(IndexError):
        data[len(data)]


def test_random_access_reads_the_right_rows(corpus: Path) -> None:
    data = rvt_ray.load(corpus)
    order = np.random.default_rng(0).permutation(len(data)).tolist()
    for i in order:
        item = data[i]
        assert item.sample.sample_id == data.sample_ids[i]
        assert item.clip.clip_id == item.twin.clip_id == item.sample.clip_id


@pytest.mark.parametrize("task", TASKS)
def test_only_the_wanted_task_comes(corpus: Path, task: Task) -> None:
    data = rvt_ray.load(corpus, task=task)
    assert len(data) == VIDEOS
    assert {item.sample.task for item in data} == {task}


def test_splits_are_by_video_disjoint_complete_and_seeded(corpus: Path) -> None:
    parts = {name: rvt_ray.load(corpus, split=name) for name in ("train", "validation", "test")}
    ids = [i for part in parts.values() for i in part.sample_ids]
    assert sorted(ids) == sorted(rvt_ray.load(corpus).sample_ids)
    videos = {name: {item.clip.video_id for item in part} for name, part in parts.items()}
    assert sum(len(v) for v in videos.values()) == VIDEOS
    assert len(parts["train"]) % len(TASKS) == 0
    other = rvt_ray.load(corpus, split="train", seed=1)
    assert other.sample_ids != parts["train"].sample_ids
    assert rvt_ray.load(corpus, split="a", fractions={"a": 1.0}).sample_ids == rvt_ray.load(corpus).sample_ids


def test_split_shares_are_as_asked_and_stay_when_the_corpus_grows() -> None:
    fractions = {"train": 0.7, "validation": 0.2, "test": 0.1}
    videos = [f"{i:016x}" for i in range(4000)]
    counts = Counter(split_of(v, 5, fractions) for v in videos)
    for name, fraction in fractions.items():
        assert abs(counts[name] / len(videos) - fraction) < 0.03
    # Known values: a changed hash would leak test videos of published corpora into training.
    known = ["validation", "train", "train", "train", "test", "test", "train", "train", "test", "train"]
    assert [split_of(v) for v in videos[:10]] == known
    assert split_of("00000000000000ff", 0, {"a": 0.0, "b": 1.0}) == "b"


def test_masks_are_decoded_when_asked_for(corpus: Path) -> None:
    item = rvt_ray.load(corpus, task="segmentation")[1]
    expected = np.stack(masks(0))
    assert np.array_equal(item.masks(), expected)
    assert np.array_equal(item.masks([5, 2]), expected[[5, 2]])
    assert not item.masks([3]).any()
    found = item.mask(4)
    assert found is not None
    assert np.array_equal(found, expected[4])
    assert item.masks([]).shape == (0, HEIGHT, WIDTH)


def test_a_frame_that_is_not_annotated_is_null_and_not_empty(corpus: Path) -> None:
    item = copy.copy(rvt_ray.load(corpus, task="segmentation")[0])
    item.sample = item.sample.model_copy(update={"masks": [None] * FRAMES})
    assert item.mask(0) is None
    assert not item.masks().any()


def test_other_tasks_have_boxes_or_text_and_say_that_they_have_no_masks(corpus: Path) -> None:
    item = rvt_ray.load(corpus, task="grounding")[0]
    assert [(b.x, b.y, b.w, b.h) for b in item.boxes(0)] == [(0, 10, 10, 10)]
    assert item.boxes(3) == []
    assert item.mask(0) is None
    with pytest.raises(ValueError, match="is a grounding sample: it has no masks"):
        item.masks()
    assert rvt_ray.load(corpus, task="vqa")[0].answer == "red"


def test_frames_come_decoded_in_the_order_asked_for(corpus: Path) -> None:
    by_clip = {item.sample.clip_id: item for item in rvt_ray.load(corpus, task="vqa")}
    item = next(i for i in by_clip.values() if i.clip.uri.endswith("v.mp4"))
    frames = item.frames()
    assert frames.shape == (FRAMES, HEIGHT, WIDTH, 3)
    assert frames.dtype == np.uint8
    assert np.array_equal(item.frames([7, 1, 7]), frames[[7, 1, 7]])
    assert np.all(np.diff(frames[:, 5, 5, 0].astype(int)) > 10)


def first_area(item: Item) -> int:
    return int(item.masks([0]).sum())


def test_a_transform_shapes_what_comes_out_and_everything_travels_to_workers(corpus: Path) -> None:
    data: Any = rvt_ray.load(corpus, task="segmentation", transform=first_area)
    assert data[0] == 100
    data[1]
    again = pickle.loads(pickle.dumps(data))
    assert len(pickle.dumps(data)) < 50_000  # what was read stays behind
    assert [again[i] for i in range(3)] == [data[i] for i in range(3)]


def test_it_feeds_a_torch_data_loader(corpus: Path) -> None:
    torch = pytest.importorskip("torch")
    data = rvt_ray.load(corpus, task="segmentation", transform=first_area)
    loader = torch.utils.data.DataLoader(data, batch_size=5, shuffle=True)
    assert sum(len(batch) for batch in loader) == VIDEOS


def test_no_torch_is_needed_or_imported() -> None:
    import subprocess
    import sys

    code = "import sys, rvt_ray; rvt_ray.load; sys.exit('torch' in sys.modules or 'ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_files_can_be_read_without_this_package(corpus: Path) -> None:
    """What docs/loading.md promises of plain Parquet readers."""
    import pyarrow.dataset as ds

    table = ds.dataset(corpus / "samples", format="parquet").to_table(["sample_id", "query", "masks"])
    assert table.num_rows == VIDEOS * len(TASKS)
    clips = pq.read_table(corpus / "clips")
    row = next(r for r in table.to_pylist() if r["masks"] is not None)
    assert rle.decode(row["masks"][0], clips["height"][0].as_py(), clips["width"][0].as_py()).sum() == 100
    datasets = pytest.importorskip("datasets")
    found = datasets.load_dataset("parquet", data_files=str(corpus / "samples" / "*.parquet"), split="train")
    assert len(found) == table.num_rows


def test_a_corpus_from_before_a_column_can_be_read_but_not_one_that_lacks_others(
    corpus: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    shutil.copytree(corpus, old)
    (shard,) = (old / "twins").glob("*.parquet")
    table = pq.read_table(shard)
    pq.write_table(table.drop_columns(["coverage", "weights"]), shard)
    found = Corpus(old)
    twin = found.twin(table["clip_id"][0].as_py())
    assert twin is not None
    assert (twin.coverage, twin.weights) == (Coverage.SOME, [])
    pq.write_table(table.drop_columns(["instances"]), shard)
    with pytest.raises(CorpusError, match="no column instances"):
        Corpus(old)


def test_wrong_names_and_folders_are_told(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no split 'dev'; there are train, validation, test"):
        rvt_ray.load(corpus, split="dev")
    with pytest.raises(ConfigError, match="no task 'boxes'; there are segmentation"):
        rvt_ray.load(corpus, task="boxes")
    with pytest.raises(ConfigError, match="add up to 1"):
        rvt_ray.load(corpus, split="a", fractions={"a": 0.5})
    with pytest.raises(CorpusError, match=r"no manifest\.json"):
        rvt_ray.load(tmp_path)
