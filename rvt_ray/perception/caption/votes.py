"""From several looks at one thing to one opinion: every look is a vote, and what was outvoted is kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rvt_ray.perception.base import InstanceCaption
from rvt_ray.records import Attribute, Scored

SOURCE = "vlm"
FULL_VOTE = 3
"""Looks; with fewer, every score is scaled down: what was seen once is not sure."""

ATTRIBUTES = ("colour", "material", "pattern", "shape", "state", "clothing")
_NOTHING = {"", "none", "n/a", "na", "null", "nothing", "unknown", "unclear", "unsure", "not visible"}
_ARTICLE = re.compile(r"^(?:an?|the|some)\s+")
# Words that name nothing: a model that says them has not recognised the thing.
_EMPTY_NAMES = _NOTHING | {"object", "thing", "item", "something", "outlined thing", "outlined object"}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sure": {"enum": ["clear", "unclear"]},
        "what": {"type": "string", "maxLength": 40},
        "attributes": {
            "type": "array",
            "maxItems": 6,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"enum": list(ATTRIBUTES)},
                    "value": {"type": "string", "maxLength": 24},
                },
                "required": ["name", "value"],
            },
        },
        "doing": {"type": "string", "maxLength": 60},
        "caption": {"type": "string", "maxLength": 200},
    },
    "required": ["sure", "what", "attributes", "doing", "caption"],
}
"""What one look must answer. Grammar-valid is not meaning-valid: `read` cleans it."""


@dataclass(frozen=True)
class Look:
    """What a model said of one thing on one frame.

    Attributes:
        frame: clip frame index.
        category: its name; null: unclear.
        claims: (attribute name, value), each once.
    """

    frame: int
    category: str | None
    claims: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    caption: str = ""


def read(frame: int, data: dict[str, Any]) -> Look:
    """A reply that follows `SCHEMA`, in lower case, without articles and without words that say nothing."""
    name = plain(data["what"])
    category = None if data["sure"] != "clear" or name in _EMPTY_NAMES else name
    claims = {(item["name"], plain(item["value"])) for item in data["attributes"]}
    claims.add(("action", plain(data["doing"])))
    caption = " ".join(str(data["caption"]).split())
    return Look(frame, category, frozenset(c for c in claims if c[1] not in _NOTHING), caption)


def plain(words: str) -> str:
    """'The  Dog.' -> 'dog'."""
    text = " ".join(str(words).lower().split()).strip(" .,;:!\"'")
    return _ARTICLE.sub("", text)


def decide(instance_id: int, looks: Sequence[Look]) -> InstanceCaption:
    """One opinion from the looks that were answered.

    A score is the share of the looks that say so, times min(1, looks / `FULL_VOTE`). The category is the name
    with most votes, provided that it has at least two (or there was but one look) and no other name has
    as many; else it is null, and the names stay as alternatives. `unclear` is a vote against every name.
    """
    looks = sorted(looks, key=lambda look: look.frame)
    if not looks:
        return InstanceCaption(instance_id, None, [], [], "")
    weight = min(1.0, len(looks) / FULL_VOTE) / len(looks)
    names = Counter(look.category for look in looks if look.category is not None)
    ranked = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    category = None
    if ranked:
        name, votes = ranked[0]
        tied = len(ranked) > 1 and ranked[1][1] == votes
        category = name if not tied and votes >= min(2, len(looks)) else None
    claims = Counter(claim for look in looks for claim in look.claims)
    attributes = [
        Attribute(name=name, value=value, score=votes * weight, source=SOURCE)
        for (name, value), votes in sorted(
            claims.items(), key=lambda item: (item[0][0], -item[1], item[0][1])
        )
    ]
    # The sentence of a look that agrees with the verdict, from the middle of the clip.
    fitting = [look.caption for look in looks if look.category == category and look.caption]
    return InstanceCaption(
        instance_id=instance_id,
        category=category,
        alternatives=[Scored(value=n, score=votes * weight, source=SOURCE) for n, votes in ranked],
        attributes=attributes,
        caption=fitting[len(fitting) // 2] if fitting and category is not None else "",
    )
