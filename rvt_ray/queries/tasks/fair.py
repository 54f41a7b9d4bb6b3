"""Keeps a question's words from telling its answer: each of its choices must be as likely to be right.

A reader who knows the corpus but not the clip guesses what is right most often. Where most things of a clip
are of rubber, most answers would be "rubber"; so a target whose answer is common is asked about less often.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

_T = TypeVar("_T")

RARE = 0.1
"""How many things, at least, are taken to have the other answer: else what is the same for all things of a
clip could never be asked."""


def holders(values: Iterable[Collection[str]]) -> Counter[str]:
    """Given each thing's values: how many things have each value."""
    return Counter(value for own in values for value in own)


def even_odds(have: Counter[str], answer: str, choices: Sequence[str], rng: random.Random) -> bool:
    """Whether to ask a thing for which `answer` is right, so that over the things of the clip each choice is
    right equally often.

    Args:
        have: for each answer the number of things for which it is right; choices of which nothing is known
            do not count.
    """
    fewest = min(have[c] for c in choices if have[c]) if have[answer] else 0
    return rng.random() * have[answer] < fewest


def pick_telling(options: Sequence[tuple[_T, int, int]], rng: random.Random) -> _T | None:
    """One of the options (what, things with the same answer, things with the other answer), rather one whose
    answer differs between things: what holds for nearly all, or for none, one need not look for."""
    weights = [min(1.0, (other + RARE) / max(1, same)) for _, same, other in options]
    return rng.choices([what for what, _, _ in options], weights)[0] if options else None
