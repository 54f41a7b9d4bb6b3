"""Text as the gates see it: tokens, lemmas, shingles."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_TOKEN = re.compile(r"[a-z0-9]+")
_SPELLED = re.compile(r"\b(?:[a-z][\s.\-_*]){2,}[a-z]\b")


def plain(text: str) -> str:
    """Lower case, no accents, straight quotes, possessives gone, spelled-out words ("c-u-p") joined."""
    text = unicodedata.normalize("NFKD", text.lower())
    text = "".join(c for c in text if not unicodedata.combining(c))
    text = text.replace("’", "'").replace("‘", "'")
    text = re.sub(r"'s\b|(?<=s)'(?=\W|$)", "", text)
    return _SPELLED.sub(lambda m: re.sub(r"[\s.\-_*]", "", m.group(0)), text)


def tokens(text: str) -> list[str]:
    """Words and numbers; hyphenated words fall into their parts."""
    return list(_tokens(text))


@lru_cache(maxsize=8192)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(plain(text)))


@lru_cache(maxsize=65536)
def lemmas(token: str) -> frozenset[str]:
    """The token and what it may be the plural of."""
    found = {token}
    if len(token) > 3 and token.endswith("s"):
        found.add(token[:-1])
    if len(token) > 4 and token.endswith("es"):
        found.add(token[:-2])
    if len(token) > 4 and token.endswith("ies"):
        found.add(token[:-3] + "y")
    if len(token) > 4 and token.endswith("ves"):
        found |= {token[:-3] + "f", token[:-3] + "fe"}
    return frozenset(found)


def ngrams(words: list[str], n: int) -> list[tuple[str, ...]]:
    """All runs of n words."""
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def opening(text: str, n: int) -> str:
    """The first n words, as they count for the opening share."""
    return " ".join(tokens(text)[:n])


def shingles(text: str, n: int = 3) -> frozenset[tuple[str, ...]]:
    """The set of n-word runs (the whole text where it is shorter)."""
    words = tokens(text)
    return frozenset(ngrams(words, n) or [tuple(words)])


def similarity(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    """Jaccard similarity of two shingle sets, 0..1."""
    union = len(a | b)
    return len(a & b) / union if union else 1.0
