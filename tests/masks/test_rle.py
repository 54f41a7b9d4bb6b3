"""The codec against dense NumPy, and its refusal of what would make the C codec read wild memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pycocotools import mask as coco

from rvt_ray.masks import rle

Dense = npt.NDArray[np.bool_]


def masks(side: int = 24) -> st.SearchStrategy[Dense]:
    return hnp.arrays(np.bool_, st.tuples(st.integers(1, side), st.integers(1, side)))


@st.composite
def stacks(draw: st.DrawFn, min_size: int = 0) -> npt.NDArray[np.bool_]:
    n, h, w = draw(st.integers(min_size, 4)), draw(st.integers(1, 16)), draw(st.integers(1, 16))
    return draw(hnp.arrays(np.bool_, (n, h, w)))


@given(masks())
def test_decode_gives_back_what_was_encoded_in_any_memory_order(mask: Dense) -> None:
    height, width = mask.shape
    for form in (mask, np.asfortranarray(mask), mask.astype(np.uint8), mask[::-1][::-1]):
        assert (rle.decode(rle.encode(form), height, width) == mask).all()
    assert (rle.decode(rle.encode(mask.T), width, height) == mask.T).all()


@given(masks())
def test_the_string_is_the_one_that_pycocotools_writes(mask: Dense) -> None:
    reference = coco.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"].decode()
    assert rle.encode(mask) == reference


@given(masks())
def test_measures_without_decoding_agree_with_dense_measures(mask: Dense) -> None:
    height, width = mask.shape
    text = rle.encode(mask)
    ys, xs = np.nonzero(mask)
    assert rle.area(text) == mask.sum()
    if xs.size == 0:
        assert rle.bbox(text, height, width) is None
        assert rle.centroid(text, height, width) is None
        return
    expected = (xs.min(), ys.min(), xs.max() - xs.min() + 1, ys.max() - ys.min() + 1)
    assert rle.bbox(text, height, width) == expected
    assert rle.centroid(text, height, width) == pytest.approx((xs.mean(), ys.mean()))


@given(masks())
def test_runs_round_trip(mask: Dense) -> None:
    height, width = mask.shape
    text = rle.encode(mask)
    flat = mask.T.ravel()
    lengths = rle.counts(text).tolist()
    assert np.array_equal(np.repeat(np.arange(len(lengths)) % 2 == 1, lengths), flat)
    assert rle.from_counts(lengths, height, width) == text


@given(stacks())
def test_batches_agree_with_single_calls(stack: npt.NDArray[np.bool_]) -> None:
    _, height, width = stack.shape
    texts = rle.encode_batch(stack)
    assert texts == [rle.encode(mask) for mask in stack]
    assert (rle.decode_batch(texts, height, width) == stack).all()
    assert rle.areas(texts).tolist() == [mask.sum() for mask in stack]


@given(stacks(min_size=1))
def test_union_and_intersection_agree_with_dense(stack: npt.NDArray[np.bool_]) -> None:
    _, height, width = stack.shape
    texts = rle.encode_batch(stack)
    assert rle.union(texts, height, width) == rle.encode(stack.any(axis=0))
    assert rle.intersection(texts, height, width) == rle.encode(stack.all(axis=0))


@given(stacks())
def test_iou_agrees_with_dense_and_is_one_for_two_empty_masks(stack: npt.NDArray[np.bool_]) -> None:
    _, height, width = stack.shape
    texts = [*rle.encode_batch(stack), rle.empty(height, width)]
    dense = np.concatenate([stack, np.zeros((1, height, width), np.bool_)])
    matrix = rle.iou_matrix(texts, texts, height, width)
    for i, a in enumerate(dense):
        for j, b in enumerate(dense):
            joint = (a | b).sum()
            assert matrix[i, j] == pytest.approx((a & b).sum() / joint if joint else 1.0)


def test_iou_of_two_empty_masks_is_one_as_in_davis() -> None:
    nothing = rle.empty(7, 5)
    assert rle.iou(nothing, nothing, 7, 5) == 1.0
    assert rle.iou(nothing, rle.encode(np.ones((7, 5), bool)), 7, 5) == 0.0


def test_no_masks_have_an_empty_union_and_an_empty_matrix() -> None:
    assert rle.union([], 4, 3) == rle.empty(4, 3) == rle.encode(np.zeros((4, 3), bool))
    assert rle.iou_matrix([], [rle.empty(4, 3)], 4, 3).shape == (0, 1)
    with pytest.raises(ValueError, match="intersection of no masks"):
        rle.intersection([], 4, 3)


@pytest.mark.parametrize(("height", "width"), [(5, 6), (7, 6), (6, 5), (6000, 7000)])
def test_a_wrong_size_is_refused_with_both_sizes_in_the_message(height: int, width: int) -> None:
    text = rle.encode(np.ones((6, 6), bool))
    for call in (rle.decode, rle.bbox, rle.centroid, rle.check):
        with pytest.raises(ValueError, match=f"fills 36 pixels.*height {height} x width {width}"):
            call(text, height, width)
    with pytest.raises(ValueError, match="rescale the mask"):
        rle.iou(text, rle.empty(height, width), height, width)
    with pytest.raises(ValueError, match="rescale the mask"):
        rle.union([text, rle.empty(height, width)], height, width)


@pytest.mark.parametrize("text", ["", "é", "~~~", "P", "o" * 40, "52\n", "no rle"])
def test_foreign_text_is_refused_and_never_reaches_the_c_codec(text: str) -> None:
    with pytest.raises(ValueError, match="RLE"):
        rle.decode(text, 6, 6)


@given(st.text(st.characters(min_codepoint=48, max_codepoint=111), min_size=1, max_size=30))
def test_random_rle_text_either_decodes_or_is_refused(text: str) -> None:
    try:
        decoded = rle.decode(text, 8, 8)
    except ValueError:
        return
    assert decoded.shape == (8, 8)
    assert decoded.sum() == rle.area(text)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (0, 4), (4, 0)])
def test_what_is_not_a_mask_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="mask"):
        rle.encode(np.zeros(shape, bool))


def test_runs_that_do_not_fill_the_size_are_refused() -> None:
    wrong: list[Any] = [[3, 4], [40, -4], []]
    for lengths in wrong:
        with pytest.raises(ValueError, match="pixels"):
            rle.from_counts(lengths, 6, 6)
