"""Which things, and which groups of things, a twin is asked about."""

from __future__ import annotations

import itertools
import random
from collections import Counter

from rvt_ray.reasoning.pool import Pool
from rvt_ray.twin.facts import kinds
from rvt_ray.twin.facts.logic import members

GROUP_SHARE = 0.25
MAX_GROUP = 6


def choose_targets(pool: Pool, count: int, rng: random.Random) -> list[int]:
    """All target sets as bit masks of instance rows, in the order in which to try them. Of the first `count`,
    about a quarter are groups, the others single confirmed things; what is left over follows, for twins on
    which some of the first cannot be described.

    Things are drawn so that rare kinds and sizes come as often as frequent ones. Groups are sets that one
    or two attributes pick out exactly.
    """
    singles = _singles(pool, rng)
    groups = _groups(pool, rng)
    n_groups = min(len(groups), round(count * GROUP_SHARE))
    alone = min(len(singles), count - n_groups)
    grouped = min(len(groups), count - alone)
    return singles[:alone] + groups[:grouped] + singles[alone:] + groups[grouped : grouped + count]


def _singles(pool: Pool, rng: random.Random) -> list[int]:
    facts = pool.facts
    tracks = facts.view.tracks
    rows = members(pool.confirmed)
    sizes = {
        r: int(_size_class(tracks.area[r][tracks.seen[r]].tolist(), tracks.width * tracks.height))
        for r in rows
    }
    names = {r: kinds.normal(facts.twin.instances[r].category) for r in rows}
    drawn: Counter[str] = Counter()
    chosen: list[int] = []
    left = list(rows)
    while left:
        weights = [
            (1 / (1 + drawn[names[r]]) / (1 + 0.5 * drawn[f"size {sizes[r]}"]), i) for i, r in enumerate(left)
        ]
        row = left.pop(pool.pick(weights, rng, 1)[0])
        drawn[names[row]] += 1
        drawn[f"size {sizes[row]}"] += 1
        chosen.append(1 << row)
    return chosen


def _size_class(areas: list[float], pixels: int) -> int:
    """0 small, 1 medium, 2 large: COCO's 32² and 96² pixels, taken for a 640 x 480 image."""
    if not areas:
        return 0
    share = sorted(areas)[len(areas) // 2] / pixels
    return int(share > 32**2 / (640 * 480)) + int(share > 96**2 / (640 * 480))


def _groups(pool: Pool, rng: random.Random) -> list[int]:
    def fits(mask: int) -> bool:
        return 2 <= mask.bit_count() <= MAX_GROUP and mask != pool.everyone

    exact = {s.certain for s in pool.unary.values() if s.certain == s.possible and fits(s.certain)}
    terms = list(pool.unary.items())
    picked = pool.pick([(pool.weight(t), i) for i, (t, _) in enumerate(terms)], rng, 60)
    for i, j in itertools.combinations(picked, 2):
        both = terms[i][1].meet(terms[j][1])
        if both.certain == both.possible and fits(both.certain):
            exact.add(both.certain)
    # Size after size: most groups are pairs, and "how many" would be answered without looking.
    by_size: dict[int, list[int]] = {}
    for mask in sorted(exact):
        by_size.setdefault(mask.bit_count(), []).append(mask)
    for masks in by_size.values():
        rng.shuffle(masks)
    found: list[int] = []
    while by_size:
        sizes = sorted(by_size)
        rng.shuffle(sizes)
        for size in sizes:
            found.append(by_size[size].pop())
            if not by_size[size]:
                del by_size[size]
    return found
