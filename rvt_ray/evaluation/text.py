"""Text metrics for summaries: BLEU-4, ROUGE-L, CIDEr with a frozen IDF table.

All are per sample and between 0 and 1, so that they can be averaged and resampled like any other metric.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rvt_ray.errors import ConfigError, MissingDependencyError

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
MAX_N = 4
SIGMA = 6.0  # of CIDEr-D's length penalty, in words


def words(text: str) -> list[str]:
    """Lower-case words; punctuation is dropped, apostrophes inside a word are kept."""
    return _WORD.findall(text.lower())


class TextScorer:
    """Scores one answer against its reference.

    Args:
        idf: the frozen table; CIDEr is null without one.

    Raises:
        MissingDependencyError: sacrebleu or rouge-score is not installed.
    """

    def __init__(self, idf: Idf | None) -> None:
        try:
            from rouge_score.rouge_scorer import RougeScorer
            from sacrebleu.metrics import BLEU
        except ImportError as error:
            raise MissingDependencyError(
                f"text metrics need sacrebleu and rouge-score ({error.name} is missing): "
                "pip install 'rvt-ray[evaluation]'"
            ) from error
        # Effective order: three words have no 4-gram, which must not turn a perfect answer into 0.
        self._bleu: Any = BLEU(effective_order=True, lowercase=True)
        self._rouge: Any = RougeScorer(["rougeL"], use_stemmer=False)
        self.idf = idf

    def score(self, reference: str, answer: str) -> dict[str, float | None]:
        """`bleu4`, `rouge_l` (F1) and `cider` (CIDEr-D over 10), each 0..1."""
        if not words(answer):
            return {"bleu4": 0.0, "rouge_l": 0.0, "cider": 0.0 if self.idf else None}
        return {
            "bleu4": float(self._bleu.sentence_score(answer, [reference]).score) / 100,
            "rouge_l": float(self._rouge.score(reference, answer)["rougeL"].fmeasure),
            "cider": self.idf.cider(reference, answer) if self.idf else None,
        }


def ngrams(tokens: Sequence[str]) -> list[Counter[str]]:
    """Counts of n-grams for n = 1..4; words of an n-gram are joined by a blank."""
    return [
        Counter(" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)) for n in range(1, MAX_N + 1)
    ]


@dataclass(frozen=True)
class Idf:
    """In how many reference texts each n-gram occurs.

    Frozen: built once from a corpus's references, saved, and used for every model and every subset, since
    CIDEr values under different tables cannot be compared.

    Attributes:
        documents: number of reference texts.
        frequency: n-gram -> number of texts that hold it.
    """

    documents: int
    frequency: dict[str, int]

    @classmethod
    def build(cls, references: Iterable[str]) -> Self:
        """Count the n-grams of reference texts."""
        frequency: Counter[str] = Counter()
        documents = 0
        for text in references:
            documents += 1
            frequency.update({gram for counts in ngrams(words(text)) for gram in counts})
        return cls(documents, dict(sorted(frequency.items())))

    @property
    def digest(self) -> str:
        """16 hex digits over the table's content."""
        content = json.dumps([self.documents, self.frequency], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def save(self, path: Path) -> None:
        """Write the table as JSON."""
        content = {"documents": self.documents, "frequency": self.frequency}
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a table.

        Raises:
            ConfigError: missing, or not such a table.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return cls(int(data["documents"]), {str(k): int(v) for k, v in data["frequency"].items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{path}: not an IDF table (documents, frequency): {error}") from error

    def cider(self, reference: str, answer: str) -> float:
        """CIDEr-D of one answer against one reference, divided by its factor 10, so 0..1.

        Two things differ from the original, so that a perfect answer scores 1 whatever its length and the
        table's size: log((1 + documents) / frequency) never gets to 0, and lengths n of which the reference
        has no n-gram are left out of the mean.
        """
        wanted, given = words(reference), words(answer)
        penalty = math.exp(-((len(wanted) - len(given)) ** 2) / (2 * SIGMA**2))
        scores = []
        for a, b in zip(ngrams(wanted), ngrams(given), strict=True):
            if not a:
                continue
            weight = {g: math.log((1 + self.documents) / max(1, self.frequency.get(g, 0))) for g in a | b}
            norm_a, norm_b = (math.sqrt(sum((c * weight[g]) ** 2 for g, c in v.items())) for v in (a, b))
            dot = sum(min(b[g], c) * c * weight[g] ** 2 for g, c in a.items())
            scores.append(dot / (norm_a * norm_b) if norm_a and norm_b else 0.0)
        return penalty * sum(scores) / len(scores) if scores else float(not given)
