"""Intervals by resampling videos: the samples of one video are not independent, so videos are drawn."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
DRAWS = 1000
_CHUNK = 64


@dataclass(frozen=True)
class Estimate:
    """A ratio of sums over videos with its 95 % percentile interval.

    The interval is null with fewer than two videos: nothing can then be said about other videos.
    """

    value: float
    low: float | None
    high: float | None
    samples: int
    videos: int

    def to_json(self) -> dict[str, float | int | None]:
        """As it stands in a report."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "samples": self.samples,
            "videos": self.videos,
        }


def per_video(videos: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Sums of values (shape (samples, k)) per video: (video codes, sums of shape (videos, k))."""
    codes, inverse = np.unique(videos, return_inverse=True)
    sums = np.zeros((len(codes), values.shape[1]))
    np.add.at(sums, inverse, values)
    return codes, sums


def estimate_all(
    videos: Ints, numerators: Floats, denominators: Floats, has: Bools, seed: int, draws: int = DRAWS
) -> list[Estimate | None]:
    """sum(numerator) / sum(denominator) and its interval, for several metrics of the same samples.

    Args:
        videos: video code of each sample, shape (samples,).
        numerators, denominators: shape (samples, metrics); 0 where the sample lacks the metric.
        has: whether the sample has the metric, shape (samples, metrics).
        seed: the same seed and data give the same intervals.

    Returns:
        One per metric; None where no sample has it.
    """
    metrics = numerators.shape[1]
    codes, top = per_video(videos, numerators)
    bottom, count = per_video(videos, denominators)[1], per_video(videos, has.astype(np.float64))[1]
    value = ratio(top.sum(axis=0), bottom.sum(axis=0), count.sum(axis=0))
    drawn = np.zeros((0, metrics))
    if len(codes) > 1:
        drawn = np.concatenate(
            [ratio(w @ top, w @ bottom, w @ count) for w in weights(len(codes), seed, draws)]
        )
    result: list[Estimate | None] = []
    for k in range(metrics):
        samples, with_metric = int(count[:, k].sum()), int((count[:, k] > 0).sum())
        if samples == 0:
            result.append(None)
            continue
        low = high = None
        if with_metric > 1:
            usable = drawn[~np.isnan(drawn[:, k]), k]  # a draw may hold no video with this metric
            low, high = (float(v) for v in np.percentile(usable, [2.5, 97.5]))
        result.append(Estimate(float(value[k]), low, high, samples, with_metric))
    return result


def ratio(numerator: Floats, denominator: Floats, count: Floats) -> Floats:
    """Element by element. 0 / 0 over at least one sample is 1 (cIoU where nothing is and nothing was
    predicted); without a sample (`count` is 0) it is not a number."""
    safe = np.where(denominator > 0, denominator, 1)
    value = np.where(denominator > 0, numerator / safe, 1.0)
    return np.asarray(np.where(count > 0, value, np.nan), np.float64)


def weights(videos: int, seed: int, draws: int) -> Iterator[Floats]:
    """How often each video is drawn, some draws at a time, shape (some, videos)."""
    generator = np.random.default_rng([seed, videos, zlib.crc32(b"rvt-ray bootstrap")])
    share = np.full(videos, 1 / videos)
    for start in range(0, draws, _CHUNK):
        count = min(_CHUNK, draws - start)
        yield generator.multinomial(videos, share, size=count).astype(np.float64)
