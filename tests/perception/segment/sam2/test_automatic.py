"""The raw stage is that of sam2's automatic mask generator; cleaning and deduplication are ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.sam2_common import moving_pictures, torchvision_or_stub
from rvt_ray.masks import rle
from rvt_ray.perception.proposals import Proposal
from rvt_ray.perception.segment.sam2 import checkpoints
from rvt_ray.perception.segment.sam2.automatic import AutomaticMasks, GridSettings, RawMask
from rvt_ray.perception.segment.sam2.dedupe import Candidate
from rvt_ray.perception.segment.sam2.network import Network
from tests.perception.segment.sam2.conftest import IMAGE_SIZE

HEIGHT, WIDTH = 90, 140
SIDE = 6
# Random weights are unsure of themselves: thresholds in the middle of what they say, so that both filters
# keep some masks and drop others.
LOOSE = GridSettings(points_per_side=SIDE, min_quality=0.44, min_stability=0.3, same_iou=0.8)


def _stock(checkpoint: Path, image: np.ndarray, settings: GridSettings) -> list[dict[str, np.ndarray]]:
    from sam2.automatic_mask_generator import SAM2AutomaticMaskGenerator

    model, _ = checkpoints.load(checkpoint, "tiny", IMAGE_SIZE, 4)
    generator = SAM2AutomaticMaskGenerator(
        model,
        points_per_side=settings.points_per_side,
        pred_iou_thresh=settings.min_quality,
        stability_score_thresh=settings.min_stability,
    )
    n = IMAGE_SIZE // 16
    generator.predictor._bb_feat_sizes = [(4 * n, 4 * n), (2 * n, 2 * n), (n, n)]  # it knows 1024 only
    return generator.generate(image)


def test_raw_masks_are_those_of_the_stock_generator(checkpoint: Path, network: Network) -> None:
    image = moving_pictures(1, HEIGHT, WIDTH)
    with torchvision_or_stub(keep_all=True):
        expected = _stock(checkpoint, image[0], LOOSE)
    assert 5 < len(expected) < 3 * SIDE * SIDE - 5, "the thresholds keep or drop everything: proves nothing"
    finder = AutomaticMasks(network, LOOSE)
    got = [raw for _, raw in finder.raw(network.encode([0], image), HEIGHT, WIDTH)]
    assert len(got) == len(expected)
    for ours, stock in zip(got, expected, strict=True):
        mask = stock["segmentation"]
        assert 0.01 < mask.mean() < 0.99
        assert (ours.mask & mask).sum() / (ours.mask | mask).sum() >= 0.999
        assert ours.quality == pytest.approx(float(stock["predicted_iou"]), abs=1e-4)
        assert ours.stability == pytest.approx(float(stock["stability_score"]), abs=2e-3)
        x, y = stock["point_coords"][0]
        assert ours.point == pytest.approx((x / WIDTH, y / HEIGHT), abs=1e-4)


@pytest.mark.parametrize("at_once", [5, 2 * SIDE * SIDE])
def test_neither_batch_size_nor_batching_of_frames_changes_the_masks(at_once: int, network: Network) -> None:
    images = moving_pictures(3, HEIGHT, WIDTH, seed=3)
    features = network.encode([0, 1, 2], images)
    one_by_one = list(
        AutomaticMasks(network, LOOSE, prompts_at_once=SIDE * SIDE).raw(features, HEIGHT, WIDTH)
    )
    together = list(AutomaticMasks(network, LOOSE, prompts_at_once=at_once).raw(features, HEIGHT, WIDTH))
    assert {place for place, _ in together} == {0, 1, 2}
    assert [(p, r.point) for p, r in together] == [(p, r.point) for p, r in one_by_one]
    for (_, a), (_, b) in zip(together, one_by_one, strict=True):
        assert (a.mask & b.mask).sum() / (a.mask | b.mask).sum() >= 0.999


def test_masks_in_boxes_are_those_of_the_stock_predictor(checkpoint: Path, network: Network) -> None:
    image = moving_pictures(1, HEIGHT, WIDTH, seed=4)
    boxes = [(5.0, 8.0, 50.0, 40.0), (60.0, 20.0, 70.0, 60.0)]
    with torchvision_or_stub():
        from sam2.sam2_image_predictor import SAM2ImagePredictor

        model, _ = checkpoints.load(checkpoint, "tiny", IMAGE_SIZE, 4)
        predictor = SAM2ImagePredictor(model)
        n = IMAGE_SIZE // 16
        predictor._bb_feat_sizes = [(4 * n, 4 * n), (2 * n, 2 * n), (n, n)]
        predictor.set_image(image[0])
        corners = np.array([[x, y, x + w, y + h] for x, y, w, h in boxes])
        expected = predictor.predict(box=corners, multimask_output=False)[0][:, 0] > 0
    settings = GridSettings(min_fragment_share=0, max_hole_share=0, same_iou=1.0, max_area_share=1.0)
    finder = AutomaticMasks(network, settings)
    features = network.encode([4], image)[0]
    found = finder.from_boxes(features, boxes, ["cat", "dog"], [0.4, 0.9], HEIGHT, WIDTH)
    assert [(p.frame, p.label, p.score) for p in found] == [(4, "dog", 0.9), (4, "cat", 0.4)]
    for proposal, mask in zip(found, expected[::-1], strict=True):
        assert 0.01 < mask.mean() < 0.99
        got = rle.decode(proposal.rle, HEIGHT, WIDTH)
        assert (got & mask).sum() / (got | mask).sum() >= 0.999


def _propose(finder: AutomaticMasks, *masks: tuple[np.ndarray, float]) -> list[Proposal]:
    """The stages after the raw one."""
    candidates: list[Candidate] = []
    for mask, score in masks:
        finder._collect(candidates, mask, score, source=0)
    return finder._proposals(0, candidates, HEIGHT, WIDTH)


def test_trap_6_fragments_and_holes_are_cleaned_without_the_cuda_extension(network: Network) -> None:
    finder = AutomaticMasks(network, GridSettings(min_fragment_share=0.1, max_hole_share=0.02))
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[20:60, 20:60] = True
    mask[40:42, 40:42] = False
    mask[80:84, 130:134] = True  # would blow the box up to the frame's corner
    (proposal,) = _propose(finder, (mask, 0.9))
    assert rle.bbox(proposal.rle, HEIGHT, WIDTH) == (20, 20, 40, 40)
    assert rle.area(proposal.rle) == 1600


def test_trap_7_near_equal_masks_are_one_and_parts_keep_their_whole(network: Network) -> None:
    whole, again, part = (np.zeros((HEIGHT, WIDTH), bool) for _ in range(3))
    whole[10:80, 20:120] = True
    again[11:80, 20:119] = True
    part[12:78, 22:80] = True  # nearly the whole's box height: box NMS at 0.5 would delete it
    finder = AutomaticMasks(network, GridSettings())
    found = _propose(finder, (part, 0.7), (again, 0.8), (whole, 0.9))
    assert [p.score for p in found] == [0.9, 0.7]
    assert [p.parent for p in found] == [None, 0]


def test_only_one_of_many_like_masks_is_cleaned(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleaning at video size costs more than the network does."""
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[20:60, 20:60] = True
    raws = [
        (0, RawMask((0.3, 0.4), quality, 1.0, np.roll(mask, i, 1))) for i, quality in enumerate((0.7, 0.9))
    ]
    finder = AutomaticMasks(network, GridSettings())
    monkeypatch.setattr(finder, "raw", lambda *_: iter(raws * 50))
    cleaned: list[float] = []
    collect = finder._collect

    def count(into: list[Candidate], mask: np.ndarray, score: float, source: int) -> None:
        cleaned.append(score)
        collect(into, mask, score, source)

    monkeypatch.setattr(finder, "_collect", count)
    ((proposal,),) = finder.find(network.encode([0], moving_pictures(1, HEIGHT, WIDTH)), HEIGHT, WIDTH)
    assert (cleaned, proposal.score) == ([0.9], 0.9)


def test_masks_too_small_or_covering_the_frame_are_no_proposals(network: Network) -> None:
    speck, everything = np.zeros((HEIGHT, WIDTH), bool), np.ones((HEIGHT, WIDTH), bool)
    speck[3:5, 3:5] = True
    finder = AutomaticMasks(network, GridSettings())
    assert _propose(finder, (speck, 0.9), (everything, 0.9)) == []


def test_a_frame_without_any_good_mask_gives_an_empty_list(network: Network) -> None:
    finder = AutomaticMasks(network, GridSettings(points_per_side=2, min_quality=0.999))
    features = network.encode([0], moving_pictures(1, HEIGHT, WIDTH))
    assert finder.find(features, HEIGHT, WIDTH) == [[]]
    assert finder.from_boxes(features[0], [], [], [], HEIGHT, WIDTH) == []


def test_frames_are_scaled_as_the_stock_image_predictor_scales_them(network: Network) -> None:
    image = moving_pictures(1, 200, 333)
    with torchvision_or_stub(keep_all=True):
        from sam2.utils.transforms import SAM2Transforms

        expected = SAM2Transforms(IMAGE_SIZE, 0.0)(image[0])
    assert torch.allclose(network.prepare(image)[0], expected, atol=1e-5)
