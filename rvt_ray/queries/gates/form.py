"""Gate 5: one well-formed question or request of the task's type, of a length that fits its level."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rvt_ray.queries.gates.text import ngrams, shingles, similarity, tokens
from rvt_ray.records import Task

MIN_WORDS = 3
MAX_WORDS = {1: 42, 2: 52, 3: 64, 4: 76}
"""Words a query of a level may have. A hop takes about ten words, an anchor's own clause included."""
NEAR_DUPLICATE = 0.9
"""Jaccard similarity of word 3-grams from which two queries count as the same."""
MAX_TOKEN_LENGTH = 24

_REQUESTS = re.compile(
    r"^(please |now |kindly |then )?(segment|outline|trace|cut|highlight|mark|colou?r|separate|pick|show"
    r"|follow|paint|isolate|select|locate|point|draw|put|find|keep|spot|tell|box|give|help|pinpoint|say|count|name"
    r"|choose|estimate|describe|sum|summari[sz]e|write|report|explain|recount|identify|indicate|track|extract"
    r"|state|list|decide|look|take|consider|think|watch|provide|determine|detect|search|capture|narrate|detail)\b"
    r"|\b(could|can|would|will) you\b|\bi (am|need|want|would)\b|\bwe (are|need|want)\b"
    r"|\b(outline|highlight|segment|find|locate|describe|retell|tell|mark|show|name|count|pick|select) "
)
_QUESTION = re.compile(
    r"\b(what|which|who|whose|where|when|how|why|is|are|does|do|did|can|could|would|will|has|have|was|were)\b"
)
_TYPES: dict[str, re.Pattern[str]] = {
    "count": re.compile(r"\bhow many\b|\bcount\b|\bnumber of\b|\bhow much\b"),
    "exists": re.compile(r"\b(is|are|does|do|can|could|would|has|have|was|were|will)\b"),
    "check": re.compile(r"\b(is|are|does|do|can|could|would|has|have|was|were|will|might|may)\b"),
    "attribute": re.compile(r"\b(what|which|name|tell|say|state|how)\b"),
    "material": re.compile(r"\b(what|which|material|made)\b"),
    "kind": re.compile(r"\b(what|which|name|call|identify|who)\b"),
    "order": re.compile(r"\bbefore\b|\bafter\b|\bfirst\b|\bearlier\b|\blater\b"),
    "direction": re.compile(r"\b(which way|direction|where|heading|headed|whither)\b"),
    "which_of": re.compile(r"\b(which|choose|pick|what|who|select)\b"),
    "duration": re.compile(r"\bhow (long|many)\b|\bhow much time\b|\bduration\b"),
    "summary": re.compile(
        r"\b(describe|sum|summari[sz]e|tell|happens?|becomes?|account|recount|retell|report|explain|do|does|story|narrate"
        r"|detail|give)\b"
    ),
}
_FORBIDDEN_CHARS = re.compile(r"[{}<>\[\]|\\`~^=_*]|https?:|\n")
_COUNTING = re.compile(r"^(how many|count|describe|summari[sz]e)\b")


def check_form(query: str, form: str, task: Task, level: int, earlier: Sequence[str] = ()) -> list[str]:
    """What is wrong with the query's form, in words; empty when nothing is.

    Args:
        form: the form of question (`masks`, `count`, ...).
        earlier: the queries of this clip that were kept so far.
    """
    found: list[str] = []
    text = query.strip()
    low = text.lower()
    words = tokens(text)
    if not text:
        return ["it is empty"]
    if text[0] != text[0].upper() or not text[0].isalpha():
        found.append("it does not begin with a capital letter")
    if text[-1] not in ".?":
        found.append("it does not end in a full stop or question mark")
    stops = re.findall(r"[.?!]+(?=\s|$)", text)
    if len(stops) > 1:
        found.append(f"it has {len(stops)} sentences; one question or request is wanted")
    if _FORBIDDEN_CHARS.search(text):
        found.append("it holds mark-up or placeholders")
    if any(len(word) > MAX_TOKEN_LENGTH for word in words):
        found.append("it holds a word that is none")
    limit = MAX_WORDS[level]
    if not MIN_WORDS <= len(words) <= limit:
        found.append(f"it has {len(words)} words; level {level} allows {MIN_WORDS} to {limit}")
    if any(n >= 3 for n in Counter(ngrams(words, 4)).values()):
        found.append("it repeats itself")
    if any(a == b == c for a, b, c in zip(words, words[1:], words[2:], strict=False)):
        found.append("it stutters")
    asks = text.endswith("?") and bool(_QUESTION.search(low))
    requests = bool(_REQUESTS.search(low))
    if not asks and not requests:
        found.append("it is neither a question nor a request")
    found += _type(low, form, task)
    mine = shingles(text)
    for other in earlier:
        if similarity(mine, shingles(other)) >= NEAR_DUPLICATE:
            found.append(f"it nearly repeats {other!r}")
            break
    return found


def _type(low: str, form: str, task: Task) -> list[str]:
    if task in (Task.SEGMENTATION, Task.GROUNDING):
        return ["it asks for words, not for a place"] if _COUNTING.search(low) else []
    pattern = _TYPES.get(form)
    if pattern is not None and not pattern.search(low):
        return [f"it does not ask for what the task wants ({form.replace('_', ' ')})"]
    return []
