"""Gate 5 over a whole corpus: opening shares and near-duplicates. Pure; used when a corpus is finalised."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rvt_ray.queries.gates.form import NEAR_DUPLICATE
from rvt_ray.queries.gates.text import opening, shingles, similarity

_PRIME = (1 << 61) - 1
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
    number of queries (about 1 kB each), time too: only pairs that share a MinHash band are compared.

    Args:
        queries: (sample id, query).
    """
    ordered = sorted(queries)
    n = len(ordered)
    counts = Counter(opening(text, opening_ngram) for _, text in ordered)
    crowded = {o: c / n for o, c in sorted(counts.items()) if c > 1 and c / n > max_opening_share}
    sets = [shingles(text) for _, text in ordered]
    buckets: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    duplicates: dict[str, str] = {}
    rng = np.random.default_rng(20240117)  # fixed: part of the definition
    a = rng.integers(1, _PRIME, _BANDS * _ROWS, dtype=np.uint64)
    b = rng.integers(0, _PRIME, _BANDS * _ROWS, dtype=np.uint64)
    for k, mine in enumerate(sets):
        signature = _signature(mine, a, b)
        keys = [(band, signature[band].tobytes()) for band in range(_BANDS)]
        rivals = sorted({j for key in keys for j in buckets[key]})
        earlier = next((j for j in rivals if similarity(mine, sets[j]) >= NEAR_DUPLICATE), None)
        if earlier is None:
            for key in keys:
                buckets[key].append(k)
        else:
            duplicates[ordered[k][0]] = ordered[earlier][0]
    return CorpusForm(crowded, duplicates, n)


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
