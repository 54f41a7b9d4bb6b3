"""Identity metrics of tracks: HOTA, IDF1, switches and fragmentations, by mask IoU.

* **HOTA** (Luiten et al., "HOTA: A Higher Order Metric for Evaluating Multi-Object Tracking", IJCV 2020). For
  each localisation threshold alpha in .05, .10 ... .95: DetA = TP / (TP + FN + FP); AssA is the mean over all
  TPs c of |TPA(c)| / (|TPA(c)| + |FNA(c)| + |FPA(c)|), where TPA(c) are the TPs with the same two ids as c;
  HOTA = sqrt(DetA * AssA). All are means over alpha. As in the authors' reference code, a frame is matched
  once, by IoU weighted with how well two ids agree over the whole clip; a pair counts at each alpha that its
  IoU reaches.
* **IDF1** (Ristani et al., "Performance Measures and a Data Set for Multi-Target, Multi-Camera Tracking",
  2016). The one-to-one pairing of truth and predicted ids with the most frames in common (IoU >= 0.5) gives
  IDTP; IDF1 = 2 IDTP / (truth masks + predicted masks).
* **Switches** (CLEAR MOT, Bernardin and Stiefelhagen 2008). Frame by frame pairing at IoU >= 0.5 in which a
  pair of the frame before goes on as long as it can; a switch is a truth id whose partner is another than the
  last it had.
* **Fragmentations**: how often a truth id that was found goes unfound, on frames where it is visible, and is
  found again. An object's own absence is no fragmentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from rvt_ray.masks import rle
from rvt_ray.masks.matching import match

Floats = npt.NDArray[np.float64]
TrackMasks = Mapping[int, Mapping[int, str]]
"""Track id -> frame -> COCO compressed RLE. A missing frame and an empty mask both mean: not there."""

ALPHAS = np.round(np.arange(0.05, 0.99, 0.05), 2)
_SAME = 0.5
_EPS = 1e-9


@dataclass(frozen=True)
class IdentityScores:
    """How well predicted tracks are the true ones.

    Attributes:
        hota, det_a, ass_a: 0..1, means over `ALPHAS`; 1 where neither truth nor prediction has a mask.
        loc_a: mean IoU of the pairs that count, averaged over `ALPHAS`; 1 where none does.
        idf1, id_precision, id_recall: 0..1.
        switches, fragmentations: counts over all truth ids.
        truth_masks, predicted_masks: masks with a pixel.
    """

    hota: float
    det_a: float
    ass_a: float
    loc_a: float
    idf1: float
    id_precision: float
    id_recall: float
    switches: int
    fragmentations: int
    truth_masks: int
    predicted_masks: int


@dataclass(frozen=True)
class _Frame:
    """Masks of one frame: positions of their ids, and IoU of shape (truth, predicted)."""

    truth: npt.NDArray[np.int64]
    predicted: npt.NDArray[np.int64]
    iou: Floats


def identity_scores(truth: TrackMasks, predicted: TrackMasks, height: int, width: int) -> IdentityScores:
    """Score predicted tracks of one clip.

    Args:
        truth, predicted: tracks of the same clip; ids of the two need not correspond.
        height, width: of all masks, pixels.

    Raises:
        ValueError: a string that is no RLE of this size.
    """
    frames = list(_frames(truth, predicted, height, width))
    sizes = (len(truth), len(predicted))
    hota = _hota(frames, *sizes)
    common = np.zeros(sizes)
    for f in frames:
        common[np.ix_(f.truth, f.predicted)] += f.iou >= _SAME - _EPS
    rows, columns = linear_sum_assignment(common, maximize=True)
    id_tp = float(common[rows, columns].sum())
    n, m = sum(len(f.truth) for f in frames), sum(len(f.predicted) for f in frames)
    switches, fragmentations = _interruptions(frames, len(truth))
    return IdentityScores(
        *hota,
        idf1=_share(2 * id_tp, n + m),
        id_precision=_share(id_tp, m),
        id_recall=_share(id_tp, n),
        switches=switches,
        fragmentations=fragmentations,
        truth_masks=n,
        predicted_masks=m,
    )


def _frames(truth: TrackMasks, predicted: TrackMasks, height: int, width: int) -> Iterator[_Frame]:
    """Every frame with a mask, ascending. Memory: one matrix per frame, no mask is decoded."""
    by_frame: dict[int, tuple[list[tuple[int, str]], list[tuple[int, str]]]] = {}
    for side, tracks in enumerate((truth, predicted)):
        for place, i in enumerate(sorted(tracks)):
            for t, text in tracks[i].items():
                if rle.area(text) > 0:
                    by_frame.setdefault(t, ([], []))[side].append((place, text))
    for t in sorted(by_frame):
        ours, theirs = by_frame[t]
        iou = rle.iou_matrix([text for _, text in ours], [text for _, text in theirs], height, width)
        yield _Frame(
            np.array([place for place, _ in ours], np.int64),
            np.array([place for place, _ in theirs], np.int64),
            iou,
        )


def _hota(frames: list[_Frame], n: int, m: int) -> tuple[float, float, float, float]:
    """HOTA, DetA, AssA, LocA."""
    together = np.zeros((n, m))
    count, count_predicted = np.zeros(n), np.zeros(m)
    for f in frames:
        count[f.truth] += 1
        count_predicted[f.predicted] += 1
        rivals = f.iou.sum(axis=0, keepdims=True) + f.iou.sum(axis=1, keepdims=True) - f.iou
        together[np.ix_(f.truth, f.predicted)] += np.divide(
            f.iou, rivals, out=np.zeros_like(f.iou), where=rivals > _EPS
        )
    either = count[:, None] + count_predicted[None, :]
    agreement = together / np.maximum(either - together, _EPS)
    pairs = np.zeros((len(ALPHAS), n, m))
    located = np.zeros(len(ALPHAS))
    for f in frames:
        rows, columns = linear_sum_assignment(agreement[np.ix_(f.truth, f.predicted)] * f.iou, maximize=True)
        for row, column in zip(rows, columns, strict=True):
            iou = f.iou[row, column]
            reached = iou >= ALPHAS - _EPS
            pairs[reached, f.truth[row], f.predicted[column]] += 1
            located[reached] += iou
    tp = pairs.sum(axis=(1, 2))
    everything = count.sum() + count_predicted.sum() - tp  # TP + FN + FP
    if count.sum() + count_predicted.sum() == 0:
        return 1.0, 1.0, 1.0, 1.0
    det_a = tp / everything
    jaccard = pairs / np.maximum(either[None] - pairs, 1)
    ass_a = (pairs * jaccard).sum(axis=(1, 2)) / np.maximum(tp, 1)
    loc_a = np.divide(located, tp, out=np.ones_like(located), where=tp > 0)
    return (
        float(np.sqrt(det_a * ass_a).mean()),
        float(det_a.mean()),
        float(ass_a.mean()),
        float(loc_a.mean()),
    )


def _interruptions(frames: list[_Frame], n: int) -> tuple[int, int]:
    """Switches and fragmentations."""
    last: dict[int, int] = {}  # truth -> the partner it had last
    going: dict[int, int] = {}  # pairs of the frame before; an unseen object keeps its own
    lost: set[int] = set()  # found before, unfound where it was visible
    switches = fragmentations = 0
    for f in frames:
        place = {int(k): column for column, k in enumerate(f.predicted)}
        score = np.where(f.iou >= _SAME - _EPS, f.iou, 0.0)
        for row, k in enumerate(f.truth):
            column = place.get(going.get(int(k), -1))
            if column is not None and score[row, column] > 0:
                score[row, column] += 1000.0  # what goes on comes before what would fit a little better
        partner = {int(f.truth[r]): int(f.predicted[c]) for r, c in match(score, _EPS)}
        for k in map(int, f.truth):
            if k not in partner:
                if k in last:
                    lost.add(k)
                going.pop(k, None)
                continue
            if k in last and last[k] != partner[k]:
                switches += 1
            if k in lost:
                fragmentations += 1
                lost.discard(k)
            last[k] = going[k] = partner[k]
    return switches, fragmentations


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0
