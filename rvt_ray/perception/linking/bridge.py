"""Masks on the frames on which a track was missed for a moment, between two on which it was seen."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from rvt_ray.masks import rle
from rvt_ray.perception.linking.memory import shifted
from rvt_ray.perception.proposals import Sight

_SCORE = 0.5  # of a mask that nobody saw
_STEADY = 2.0  # a thing whose area changed by more over the gap went behind something, or out
_FREE = 0.5  # share of the moved mask that must not be another track's


def bridge_gaps(tracks: Mapping[int, dict[int, Sight]], longest: int, height: int, width: int) -> None:
    """Fill short gaps with the nearer neighbour's mask, moved to where the track should be.

    A frame is left as it is where other tracks are seen in that place: then it was hidden, not missed.

    Args:
        tracks: track id -> frame -> sight with a pixel; filled in place.
        longest: frames of a gap.
    """
    seen = {i: set(sights) for i, sights in tracks.items()}
    for i, sights in tracks.items():
        present = sorted(seen[i])
        for first, last in pairwise(present):
            if 1 < last - first <= longest + 1:
                for t in range(first + 1, last):
                    text = _between(
                        sights[first].rle, sights[last].rle, (t - first) / (last - first), height, width
                    )
                    others = [tracks[k][t].rle for k in tracks if k != i and t in seen[k]]
                    text = _uncovered(text, others, height, width)
                    if text is not None:
                        sights[t] = Sight(text, _SCORE)


def _between(a: str, b: str, share: float, height: int, width: int) -> str | None:
    first, last = rle.centroid(a, height, width), rle.centroid(b, height, width)
    areas = rle.area(a), rle.area(b)
    if first is None or last is None or max(areas) > _STEADY * min(areas):
        return None
    dx, dy = last[0] - first[0], last[1] - first[1]
    near, part = (a, share) if share <= 0.5 else (b, share - 1)
    return shifted(near, round(part * dx), round(part * dy), height, width)


def _uncovered(text: str | None, others: list[str], height: int, width: int) -> str | None:
    if text is None or rle.area(text) == 0:
        return None
    shared = rle.area(rle.intersection([text, rle.union(others, height, width)], height, width))
    if shared > (1 - _FREE) * rle.area(text):
        return None
    if shared == 0:
        return text
    mask = rle.decode(text, height, width) & ~rle.decode(rle.union(others, height, width), height, width)
    return rle.encode(mask)
