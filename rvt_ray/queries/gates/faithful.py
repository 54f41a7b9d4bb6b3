"""Gate 6b: answer the wording blind. A model that sees notes on the twin but not the target must find it."""

from __future__ import annotations

import itertools
import random
import string

from rvt_ray.llm.base import Finish, Llm, LlmRequest
from rvt_ray.llm.prompting import load_prompt
from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.base import Finding, not_run, passed, refused
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.twin.facts import CATALOGUE
from rvt_ray.twin.facts.naming import SCOPE_WORDS

_PACKAGE = "rvt_ray.queries"
MAX_NOTES = 60
MAX_THINGS = 20
_TEMPERATURE = 0.4


async def check_faithful(
    llm: Llm, know: Knowledge, draft: Draft, query: str, draws: int, rng: random.Random
) -> Finding:
    """Let the model pick out what the query is about, `draws` times, letters shuffled each time.

    More than half of the draws right: pass. None right: refused. Between: kept, marked for audit. The
    notes hold only certain facts: those of the program's predicates and their opposites, for all things.
    """
    ids = list(know.instances)
    if len(ids) > MAX_THINGS:
        return not_run(f"{len(ids)} things are more than {MAX_THINGS} letters allow")
    right = usable = 0
    for _ in range(draws):
        letters = dict(zip(rng.sample(ids, len(ids)), string.ascii_uppercase, strict=False))
        wanted = {letters[i] for i in draft.candidate.target_ids}
        request = LlmRequest(
            messages=load_prompt("faithful", _PACKAGE).messages(
                letters=", ".join(sorted(letters.values())),
                notes="\n".join(_notes(know, draft, letters, rng)),
                query=query,
            ),
            schema=_schema(sorted(letters.values())),
            max_tokens=16 + 8 * len(letters),
            temperature=_TEMPERATURE,
            seed=rng.randrange(2**31),
        )
        reply = await llm.complete(request)
        picked = reply.data.get("letters") if isinstance(reply.data, dict) else None
        if reply.finish is not Finish.STOP or not isinstance(picked, list):
            continue
        usable += 1
        right += set(picked) == wanted
    text = f"{right} of {usable} blind answers find the target set ({llm.model_id})"
    if not usable:
        return not_run(f"no usable reply in {draws} draws ({llm.model_id})")
    if right == 0:
        return refused(text)
    return passed(text if 2 * right > usable else f"audit: {text}")


def _schema(letters: list[str]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {
            "letters": {
                "type": "array",
                "items": {"type": "string", "enum": letters},
                "minItems": 0,
                "maxItems": len(letters),
            }
        },
        "required": ["letters"],
        "additionalProperties": False,
    }


def _notes(know: Knowledge, draft: Draft, letters: dict[int, str], rng: random.Random) -> list[str]:
    """Certain facts in plain words, about letters."""
    notes = [f"{letters[i]} is a {label}." for i in letters for label in know.labels(i)[:1]]
    asked: dict[tuple[str, str | None, str | None], None] = {}
    for c in draft.candidate.program.constraints:
        for predicate in (c.predicate, CATALOGUE[c.predicate].opposite):
            if predicate is None or predicate == "category":
                continue
            spec = CATALOGUE[predicate]
            scope = c.scope if not spec.scopes or c.scope in spec.scopes else spec.scopes[0]
            values = know.facts.values(predicate) if spec.value else [None]
            for value in values:
                asked[(predicate, value, scope if spec.scopes else None)] = None
    for predicate, value, scope in asked:
        spec = CATALOGUE[predicate]
        for args in itertools.permutations(letters, spec.arity):
            if know.is_true(predicate, *args, value=value, scope=scope):
                words = spec.phrase.format(
                    x=letters[args[0]],
                    y=letters[args[-1]],
                    value=(value or "").replace(":", " "),
                )
                when = f" {SCOPE_WORDS[scope].format(x=letters[args[0]])}" if scope else ""
                notes.append(f"{words}{when}.")
    names, facts = notes[: len(letters)], notes[len(letters) :]
    kept = facts if len(facts) <= MAX_NOTES else rng.sample(facts, MAX_NOTES)
    return [*names, *kept]
