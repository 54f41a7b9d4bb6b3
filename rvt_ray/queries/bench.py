"""All gates of one clip, in order; each can be switched off and then says `not_run`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property

from rvt_ray.config.settings import GenerateSettings
from rvt_ray.llm.base import Llm
from rvt_ray.queries.draft import Draft
from rvt_ray.queries.gates.base import Finding, judge, not_run
from rvt_ray.queries.gates.cues import find_misstatements
from rvt_ray.queries.gates.faithful import check_faithful
from rvt_ray.queries.gates.form import check_form
from rvt_ray.queries.gates.leak import find_leaks
from rvt_ray.queries.gates.necessity import check_necessity
from rvt_ray.queries.gates.program import check_program
from rvt_ray.queries.gates.shortcut import Favourites, check_shortcut, favourites
from rvt_ray.queries.gates.stability import Stability
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.wording.template import Words
from rvt_ray.reasoning import Candidate
from rvt_ray.records import Wording

_OFF = not_run("switched off")


class Bench:
    """The gates, with what they share over a clip (jittered twins, simple solvers)."""

    def __init__(
        self, know: Knowledge, settings: GenerateSettings, judge_llm: Llm | None, rng: random.Random
    ) -> None:
        self._know = know
        self._settings = settings
        self._gates = settings.gates
        self._judge = judge_llm
        self._rng = rng
        self._stability = Stability(know.facts, settings.gates.stability_draws, rng.randrange(2**31))

    @cached_property
    def _favourites(self) -> Favourites:
        return favourites(self._know.facts)

    def shortcuts(self, candidate: Candidate) -> Sequence[str]:
        """The simple solvers that would find this target, for balance."""
        return self._favourites.solve(candidate.target_ids) if self._gates.shortcut else ()

    def check_truth(self, draft: Draft) -> dict[str, Finding]:
        """Gates 1, 2, 3 and 7, which need no words. Stops at the first refusal."""
        gates = self._gates
        found: dict[str, Finding] = {}
        found["program"] = check_program(self._know.facts, draft) if gates.program else _OFF
        if not found["program"].failed:
            found["necessity"] = check_necessity(self._know.facts, draft) if gates.necessity else _OFF
        if not any(f.failed for f in found.values()):
            found["stability"] = (
                self._stability.check(draft, gates.stability_share) if gates.stability else _OFF
            )
        if not any(f.failed for f in found.values()):
            found["shortcut"] = check_shortcut(self._favourites, draft) if gates.shortcut else _OFF
        return found

    def problems(self, draft: Draft, text: str, wording: Wording, kept: Sequence[str] = ()) -> list[str]:
        """What gates 4, 5 and 6a have against a text."""
        return [
            finding.detail for finding in self._cheap(draft, text, wording, kept).values() if finding.failed
        ]

    async def check_words(
        self, draft: Draft, words: Words, wording: Wording, kept: Sequence[str]
    ) -> dict[str, Finding]:
        """Gates 4, 5 and 6; paraphrases must pass the cheap ones too. Stops at the first refusal."""
        found = self._cheap(draft, words.query, wording, kept)
        if any(f.failed for f in found.values()):
            return found
        for paraphrase in words.paraphrases:
            for gate, finding in self._cheap(draft, paraphrase, wording, ()).items():
                if finding.failed:
                    found[gate] = judge([f"paraphrase {paraphrase!r}: {finding.detail}"])
                    return found
        if not self._gates.faithful:
            found["faithful"] = _OFF
        elif self._judge is None:
            found["faithful"] = not_run("needs a language model")
        else:
            found["faithful"] = await check_faithful(
                self._judge, self._know, draft, words.query, self._gates.faithful_draws, self._rng
            )
        return found

    def _cheap(self, draft: Draft, text: str, wording: Wording, kept: Sequence[str]) -> dict[str, Finding]:
        gates, know = self._gates, self._know
        found: dict[str, Finding] = {}
        if gates.leak:
            context = know.leak_context(draft.candidate, draft.answer_words)
            kinds = ", ".join(sorted(context.target_kinds)) or "no named kind"
            found["leak"] = judge(find_leaks(text, context, know.lexicon), f"checked against {kinds}")
        else:
            found["leak"] = _OFF
        if gates.form:
            problems = check_form(text, draft.form, draft.task, draft.candidate.level, kept)
            found["form"] = judge(problems, f"{len(text.split())} words")
        else:
            found["form"] = _OFF
        if not gates.cues:
            found["cues"] = _OFF
        elif wording is Wording.TEMPLATE:
            # The template says the program by construction; a test holds it to the same cues.
            found["cues"] = not_run("template wording is made from the program itself")
        else:
            found["cues"] = judge(find_misstatements(text, draft, know), "every hop is said, nothing else")
        return found
