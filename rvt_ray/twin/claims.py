"""Merging what several parties claim about one instance, with provenance and nothing thrown away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rvt_ray.records import Attribute, Scored

NEUTRAL_CATEGORY = "object"
"""The category of an instance that nobody could name. It never appears among the scored alternatives."""

# Who is believed when claims about the same property differ.
PRECEDENCE = ("annotation", "detector", "vlm", "measured")


def _rank(source: str) -> int:
    return PRECEDENCE.index(source) if source in PRECEDENCE else len(PRECEDENCE)


def merge_attributes(claims: Iterable[Attribute]) -> list[Attribute]:
    """One ordered list of attributes; the first entry of a name is what the twin holds for true.

    Per name the most trusted source wins (annotation, detector, vlm, measured). Its own entries keep their
    scores, best first (one source may give several values of a name with a score each). Values that only
    other sources claim follow as alternatives, each with its source; their score is bounded by what the
    winner leaves (1 - its score), since values of one name exclude each other. A value that several
    sources agree on appears once, with the best score any of them gave.
    """
    by_name: dict[str, list[Attribute]] = {}
    for claim in claims:
        by_name.setdefault(claim.name, []).append(claim)
    merged: list[Attribute] = []
    for name in sorted(by_name):
        ranked = sorted(by_name[name], key=lambda a: (_rank(a.source), a.source, -a.score, a.value))
        source, best = ranked[0].source, ranked[0].score
        chosen: dict[str, Attribute] = {}
        for claim in ranked:
            known = chosen.get(claim.value)
            if known is not None:
                if known.source == source:
                    known.score = max(known.score, claim.score)
                continue
            score = claim.score if claim.source == source else min(claim.score, max(0.0, 1.0 - best))
            chosen[claim.value] = claim.model_copy(update={"score": score})
        merged.extend(chosen.values())
    return merged


def merge_category(
    label: str | None, label_score: float, opinion: str | None, alternatives: Sequence[Scored]
) -> tuple[str, list[Scored]]:
    """The category of an instance, and every scored name for it, the chosen one first.

    Args:
        label, label_score: what the segmenter knows (annotation or detector).
        opinion: the captioner's category; null: unclear.
        alternatives: the captioner's scored names, its own choice included when it has a score for it.

    Returns:
        The category (`NEUTRAL_CATEGORY` with no alternatives when nobody could name it) and the list.
    """
    scores: dict[str, float] = {}
    for item in alternatives:
        scores[item.value] = max(scores.get(item.value, 0.0), item.score)
    if opinion is not None and opinion != NEUTRAL_CATEGORY:
        # A captioner that names without a score is one voice without a number: it can't settle a fact.
        scores.setdefault(opinion, 0.0)
    scores.pop(NEUTRAL_CATEGORY, None)
    if label is not None:
        category = label
        scores[label] = max(label_score, scores.get(label, 0.0) if opinion == label else 0.0)
    elif opinion is not None and opinion != NEUTRAL_CATEGORY:
        category = opinion
    else:
        category = NEUTRAL_CATEGORY
    ordered = sorted(scores.items(), key=lambda kv: (kv[0] != category, -kv[1], kv[0]))
    return category, [Scored(value=value, score=score) for value, score in ordered]
