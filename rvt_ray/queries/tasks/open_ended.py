"""Summaries: what the target does over the clip, each sentence resting on certain facts that it cites."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from rvt_ray.queries.draft import Draft, Use
from rvt_ray.queries.english import Form, inflect, listing, sentence
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.wording.phrases import PHRASES, REGION_PLACES
from rvt_ray.reasoning import Candidate
from rvt_ray.records import Evidence, Task
from rvt_ray.twin.facts import CATALOGUE

MIN_SENTENCES, MAX_SENTENCES = 2, 6
_MAX_MET = 3
_MOTIONS = (
    "moves_left",
    "moves_right",
    "moves_up",
    "moves_down",
    "moves_towards_camera",
    "moves_away_from_camera",
)
_MEETINGS = ("passes", "hidden_by", "follows", "approaches", "changes_sides_with", "moves_away_from")


@dataclass
class _Sentence:
    """Verb phrases of one sentence, the facts that each needs, and the first frame that shows them."""

    phrases: list[str] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    when: int = 0


def summary(know: Knowledge, candidate: Candidate, rng: random.Random) -> Draft | None:
    """The draft, or null where fewer than two sentences can be told, or none of them tells of time."""
    if len(candidate.target_ids) != 1:
        return None
    (target,) = candidate.target_ids
    sentences = _story(know, target, rng)
    temporal = any(CATALOGUE[u.predicate].category == "temporal" for s in sentences for u in s.uses)
    if len(sentences) < MIN_SENTENCES or not temporal:
        return None
    subject, subject_uses = _subject(know, target)
    texts: list[str] = []
    evidence: list[Evidence] = []
    uses: list[Use] = []
    for i, item in enumerate(sentences[:MAX_SENTENCES]):
        clause = inflect(listing(item.phrases), Form.SINGULAR)
        text = sentence(f"{subject if i == 0 else 'It'} {clause}")
        if i == 0:
            item.uses = [*subject_uses, *item.uses]
        texts.append(text)
        for use in item.uses:
            fact = know.fact(use.predicate, *use.ids, value=use.value, scope=use.scope)
            evidence.append(know.evidence(fact, f"sentence {i + 1} of the answer"))
        uses += item.uses
    return Draft(
        candidate, Task.SUMMARY, "summary", answer=" ".join(texts), evidence=tuple(evidence), uses=tuple(uses)
    )


def _subject(know: Knowledge, target: int) -> tuple[str, list[Use]]:
    labels = know.labels(target)
    if not labels or not know.is_true("category", target, value=labels[0]):
        return "It", []
    words, uses = [labels[0]], [Use("category", (target,), labels[0])]
    for attribute in know.instances[target].attributes:
        value = attribute.value.lower()
        if (
            attribute.name in ("colour", "color")
            and not know.is_person(target)
            and know.is_true("colour", target, value=value)
        ):
            words.insert(0, value)
            uses.append(Use("colour", (target,), value))
            break
    return f"the {' '.join(words)}", uses


def _story(know: Knowledge, target: int, rng: random.Random) -> list[_Sentence]:
    """What can be told (the most telling first, as room is short), in the order in which it happens."""
    story: list[_Sentence] = []

    def tell(phrases: list[str], uses: list[Use]) -> None:
        frames = [frame for use in uses for frame in _frames(know, use)]
        # What no frame shows happens where it is told.
        story.append(_Sentence(phrases, uses, min(frames, default=story[-1].when if story else 0)))

    def say(*items: tuple[Use, str]) -> None:
        true = [(use, text) for use, text in items if _holds(know, use)]
        if true:
            tell([text for _, text in true], [use for use, _ in true])

    def event(predicate: str) -> tuple[Use, str]:
        return Use(predicate, (target,)), _phrase(predicate, rng)

    def place(scope: str) -> tuple[Use, str] | None:
        for region in ("left", "right", "top", "bottom", "centre"):
            use = Use("region", (target,), region, scope)
            if _holds(know, use):
                words = rng.choice(REGION_PLACES[region])
                verb = "<start> out" if scope == "start" else "<end> up"
                return use, f"{verb} {words}"
        return None

    enters, leaves = event("enters"), event("leaves")
    begin, end = place("start"), place("end")
    back = _comes_back(know, enters[0], leaves[0], begin)
    if back:
        enters = enters[0], "<come> back into view"
    say(enters)
    if not story:
        say(event("present_throughout"))
    if begin is not None:
        say(begin)
    say(event("still"))
    say(event("starts_moving"))
    say(*(event(p) for p in _MOTIONS))
    meetings = _meetings(know, target, rng)
    if meetings:
        tell([text for _, text in meetings], [use for uses, _ in meetings for use in uses])
    say(event("gets_hidden"))
    say(event("stops_moving"))
    say(leaves)
    elsewhere = end is not None and (begin is None or begin[0].value != end[0].value)
    if end is not None and elsewhere and (back or not _holds(know, leaves[0])):
        say(end)
    return sorted(story[:MAX_SENTENCES], key=lambda s: s.when)


def _comes_back(know: Knowledge, enters: Use, leaves: Use, begin: tuple[Use, str] | None) -> bool:
    """Whether what enters was there at the start, or had left before."""
    if not _holds(know, enters):
        return False
    entered = max(_frames(know, enters), default=0)
    known = [frame for use in [*([begin[0]] if begin else []), leaves] for frame in _frames(know, use)]
    return any(frame < entered for frame in known)


def _frames(know: Knowledge, use: Use) -> list[int]:
    """The frames that show a fact; none where it is not certain."""
    if not _holds(know, use):
        return []
    return know.fact(use.predicate, *use.ids, value=use.value, scope=use.scope).frames


def _meetings(know: Knowledge, target: int, rng: random.Random) -> list[tuple[list[Use], str]]:
    """Per kind of meeting the others that are met, in one phrase: "passes the bird and the chair"."""
    found: list[tuple[list[Use], str]] = []
    met: set[int] = set()
    still = know.is_true("still", target)
    for predicate in _MEETINGS:
        # That others move past it is their story.
        if predicate == "changes_sides_with" and still:
            continue
        names: list[str] = []
        uses: list[Use] = []
        for other in know.instances:
            name = know.name(other) if other != target else None
            use = Use(predicate, (target, other))
            if name is None or other in met or len(met) == _MAX_MET or not _holds(know, use):
                continue
            met.add(other)
            names.append(name)
            uses.append(use)
        if uses:
            found.append((uses, _phrase(predicate, rng).replace("{o}", listing(names))))
    return found


def _phrase(predicate: str, rng: random.Random) -> str:
    return rng.choice(PHRASES[predicate].events)


def _holds(know: Knowledge, use: Use) -> bool:
    return know.is_true(use.predicate, *use.ids, value=use.value, scope=use.scope)
