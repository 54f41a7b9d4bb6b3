"""Plain English from measured words. Only what is sure enough to be said is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rvt_ray.perception.base import TrackDraft
from rvt_ray.records import Attribute, CameraMotion

_SAY_ABOVE = 0.5
_SAY_BESIDE = 0.1  # "black and grey"
_DARK, _BRIGHT = 0.42, 0.72  # OKLab lightness
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_MOTION_CLAUSES = {
    "still": "staying in place",
    "moving left": "moving to the left",
    "moving right": "moving to the right",
    "moving up": "moving upwards",
    "moving down": "moving downwards",
    "moving back and forth": "moving back and forth",
}


def with_article(noun_phrase: str) -> str:
    """'red ball' -> 'a red ball', 'orange ball' -> 'an orange ball'."""
    return f"{'an' if noun_phrase[:1].lower() in 'aeiou' else 'a'} {noun_phrase}"


def count_word(count: int, noun: str) -> str:
    """'one person', 'three people', '12 cups'."""
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"{number} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of an everyday English noun (the last word of a compound)."""
    irregular = {"person": "people", "man": "men", "woman": "women", "child": "children", "mouse": "mice"}
    head, _, last = noun.rpartition(" ")
    lead = f"{head} " if head else ""
    if last in irregular:
        return lead + irregular[last]
    if last in {"sheep", "scissors", "skis", "fish"}:
        return noun
    if last.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if last.endswith("y") and last[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    if last.endswith("fe"):
        return noun[:-2] + "ves"
    return noun + "s"


def describe_instance(category: str | None, attributes: Sequence[Attribute]) -> str:
    """One sentence, e.g. 'A large red object moving to the left.'"""
    sure = [a for a in attributes if a.score >= _SAY_ABOVE]
    size = next((a.value for a in sure if a.name == "size" and a.value != "medium-sized"), "")
    colour = next((a.value for a in sure if a.name == "colour"), "")
    if not colour:
        two = [a.value for a in attributes if a.name == "colour" and a.score >= _SAY_BESIDE][:2]
        colour = " and ".join(two) if len(two) == 2 else ""
    motion = next((_MOTION_CLAUSES[a.value] for a in sure if a.name == "motion"), "")
    noun = " ".join(word for word in (size, colour, category or "object") if word)
    text = with_article(noun) + (f" {motion}" if motion else "")
    return text[0].upper() + text[1:] + "."


def describe_scene(
    light: float,
    camera: CameraMotion,
    tracks: Sequence[TrackDraft],
    motions: Sequence[Attribute | None],
) -> str:
    """One or two sentences about light, camera and how many things there are.

    Args:
        light: mean lightness 0..1.
        motions: per track its motion word, null where it could not be said.
    """
    look = "dark" if light < _DARK else "bright" if light > _BRIGHT else "evenly lit"
    first = with_article(f"{look} scene")
    if camera is not CameraMotion.UNKNOWN:
        first += f" filmed with a {'still' if camera is CameraMotion.STILL else 'moving'} camera"
    first = first[0].upper() + first[1:]
    if not tracks:
        return f"{first}."
    counts = Counter(t.category or "object" for t in tracks)
    parts = [count_word(n, kind) for kind, n in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))]
    listed = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
    text = f"{first}, showing {listed}."
    moving = sum(m is not None and m.value != "still" and m.score >= _SAY_ABOVE for m in motions)
    if moving == len(tracks) == 1:
        return f"{text} It is moving."
    if moving == len(tracks):
        return f"{text} All of them are moving."
    if moving:
        verb = "is" if moving == 1 else "are"
        return f"{text} {_NUMBERS[moving].capitalize() if moving < 11 else moving} of them {verb} moving."
    return text


def scene_tags(light: float, camera: CameraMotion, tracks: Sequence[TrackDraft]) -> list[str]:
    """Searchable words for the scene: light, camera, kinds."""
    tags = ["dark"] if light < _DARK else ["bright"] if light > _BRIGHT else []
    if camera is not CameraMotion.UNKNOWN:
        tags.append(f"{camera.value} camera")
    return tags + sorted({t.category for t in tracks if t.category})
