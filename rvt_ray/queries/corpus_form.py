"""Gate 5 over a whole corpus: opening shares and near-duplicates. Pure; used when a corpus is finalised."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rvt_ray.queries.gates.form import NEAR_DUPLICATE
from rvt_ray.queries.gates.text import opening, shingles, similarity

_PRIME = (1 << 61) - 1
MIN_CORPUS = 200
"""Queries from which a share of a few per cent means something."""
_BANDS, _ROWS = 16, 4
"""MinHash bands: pairs with similarity 0.9 share a band with probability > 0.9999999."""


@dataclass(frozen=True)
class CorpusForm:
    """What a corpus' queries have in common.

    Attributes:
        crowded: openings with more than the allowed share -> their share.
        duplicates: sample id -> the id of the earlier (by id) query of the corpus that it nearly repeats.
        total: queries looked at.
    """

    crowded: dict[str, float]
    duplicates: dict[str, str]
    total: int

    @property
    def duplicate_share(self) -> float:
        """Near-duplicates among all queries."""
        return len(self.duplicates) / self.total if self.total else 0.0


def corpus_form(
    queries: Iterable[tuple[str, str]], opening_ngram: int, max_opening_share: float
) -> CorpusForm:
    """Look at all queries of a corpus together.

    Independent of order: ids decide which of two like queries is the earlier one. Memory grows with the
    number of different queries (about 2 kB each), time too: only pairs that share a MinHash band are
    compared.

    Args:
        queries: (sample id, query).
    """
    ordered = sorted(queries)
    n = len(ordered)
    counts = Counter(opening(text, opening_ngram) for _, text in ordered)
    crowded = {o: c / n for o, c in sorted(counts.items()) if c > 1 and c / n > max_opening_share}
    buckets: dict[int, list[int]] = defaultdict(list)
    first: dict[str, int] = {}
    duplicates: dict[str, str] = {}
    rng = np.random.default_rng(20240117)  # fixed: part of the definition
    a = rng.integers(1, _PRIME, _BANDS * _ROWS, dtype=np.uint64)
    b = rng.integers(0, _PRIME, _BANDS * _ROWS, dtype=np.uint64)
    for k, (sample_id, text) in enumerate(ordered):
        if text in first:
            duplicates[sample_id] = ordered[first[text]][0]
            continue
        mine = shingles(text)
        keys = _bands(_signature(mine, a, b))
        rivals = sorted({j for key in keys for j in buckets[key]})
        earlier = next(
            (j for j in rivals if similarity(mine, shingles(ordered[j][1])) >= NEAR_DUPLICATE), None
        )
        first[text] = k if earlier is None else earlier
        if earlier is None:
            for key in keys:
                buckets[key].append(k)
        else:
            duplicates[sample_id] = ordered[earlier][0]
    return CorpusForm(crowded, duplicates, n)


def corpus_excess(
    queries: Sequence[tuple[str, str]],
    opening_ngram: int,
    max_opening_share: float,
    max_duplicate_share: float,
) -> dict[str, str]:
    """Which queries a corpus has too many of: sample id -> why. Independent of order.

    Shares mean little in a small corpus: one of less than `MIN_CORPUS` queries may have as many alike as one
    of that size.

    Args:
        queries: (sample id, query) of every kept sample.
        max_duplicate_share: near-duplicates of other queries that may stay.
    """
    found = corpus_form(queries, opening_ngram, max_opening_share)
    spare = int(max_duplicate_share * max(found.total, MIN_CORPUS))
    excess = {
        sample_id: f"it nearly repeats the query of sample {earlier}"
        for sample_id, earlier in sorted(found.duplicates.items())[spare:]
    }
    by_opening: dict[str, list[str]] = defaultdict(list)
    for sample_id, text in sorted(queries):
        if sample_id not in excess:
            by_opening[opening(text, opening_ngram)].append(sample_id)
    total = sum(map(len, by_opening.values()))
    allowed = int(max_opening_share * max(total, MIN_CORPUS))
    while True:  # what is taken away makes the rest a larger share
        left = sum(min(len(ids), allowed) for ids in by_opening.values())
        fewer = int(max_opening_share * max(left, MIN_CORPUS))
        if fewer >= allowed:
            break
        allowed = fewer
    for start, ids in by_opening.items():
        reason = f"{len(ids)} of {total} queries begin with {start!r}; {allowed} may"
        excess |= dict.fromkeys(ids[allowed:], reason)
    return excess


def _bands(signature: npt.NDArray[np.uint64]) -> list[int]:
    """One key per band."""
    return [
        int.from_bytes(
            hashlib.blake2b(row.tobytes(), digest_size=8, salt=band.to_bytes(2)).digest(), "little"
        )
        for band, row in enumerate(signature)
    ]


def _signature(
    mine: frozenset[tuple[str, ...]], a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """MinHash, shape (bands, rows). Hashes of shingles do not depend on the process."""
    digests = [hashlib.blake2b(" ".join(s).encode(), digest_size=4).digest() for s in mine]
    values = np.array([int.from_bytes(d, "big") for d in digests], np.uint64)
    with np.errstate(over="ignore"):
        mixed = a[:, None] * values[None, :] + b[:, None]
    mixed ^= mixed >> np.uint64(29)
    lowest: npt.NDArray[np.uint64] = mixed.min(axis=1).reshape(_BANDS, _ROWS)
    return lowest
