"""The planner that needs no model: it parses the query and lets the executor choose among the readings."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from rvt_ray.agent.language import frames
from rvt_ray.agent.language.parser import Parser
from rvt_ray.agent.language.readings import Meaning, meanings, statements_program
from rvt_ray.agent.language.words import tokenise
from rvt_ray.agent.plan import FORM_TASK, Plan, Question
from rvt_ray.agent.view import TwinView
from rvt_ray.reasoning import Execution, execute
from rvt_ray.records import Task

MAX_READINGS = 60
_FILLER_WORDS = (
    "the a an of in on to is are be it that which who and also with for at from one thing video clip "
    "please me what where how show tell there this these those them its , . ? ! : ;"
)
_FILLER = frozenset(_FILLER_WORDS.split())

# The first that matches decides. What no frame fits is still a question of some kind.
_KEYWORDS: tuple[tuple[str, str], ...] = (
    (r"\bhow many\b|\bnumber of\b|^count\b", "count"),
    (r"\bhow long\b|\bhow many seconds\b|\bduration\b", "duration"),
    (r"\bbefore or after\b", "order"),
    (r"\b(which|what) (way|direction)\b|\bheading\b", "direction"),
    (r"\bmade of\b|\bmaterial\b", "material"),
    (r"\b(what|which|name the) (colou?r)\b|\bcolou?r of\b", "attribute"),
    (
        r"\b(describe|summari[sz]e|sum up|recount|narrate|story|account|explain|becomes of)\b"
        r"|\bwhat (happens|does|do)\b|^tell me what\b.*\bdo(es)?\b",
        "summary",
    ),
    (r"\bwhich of (these|the following)\b|\bchoices\b", "which_of"),
    (r"^(can|could|will|would) you (find|locate|spot|show|point)\b", "boxes"),
    (r"^what is it that\b", "masks"),
    (r"\bis there\b|\bare there\b", "exists"),
    (r"^(is|are|does|do|did|can|will|has|have)\b", "check"),
    (r"\bwhat kind\b|\bwhat sort\b|\bwhat would\b|\bwhat is\b|\bcalled\b", "kind"),
    (r"\b(segment|mask|outline|cut out|highlight|silhouette|pixels?|contour)\b", "masks"),
    (r"\b(where|locate|box|frame around|find|point|pinpoint|position|detect|track|spot)\b", "boxes"),
)


def form_by_keyword(question: Question) -> str:
    """The form of question by its words alone; masks where nothing says otherwise, one of the choices where
    there are choices."""
    text = question.query.lower().strip()
    closed = bool(question.choices)
    for pattern, form in _KEYWORDS:
        if re.search(pattern, text) and not (closed and FORM_TASK[form] is not Task.VQA):
            return form
    if {c.lower() for c in question.choices} == {"yes", "no"}:
        return "check"
    return "which_of" if closed else "masks"


@dataclass(frozen=True)
class Reading:
    """A meaning of the query with what it finds."""

    meaning: Meaning
    execution: Execution
    rank: tuple[bool, bool, bool, int]


class RulePlanner:
    """Reads template wording completely and simple English as far as it goes."""

    name = "rules"

    def plan(self, question: Question, view: TwinView) -> list[Plan]:
        """The readings of a query, the best first; never empty.

        A reading is better when every anchor that it calls "the" is one thing, when it finds something, and
        when
        the number of what it finds fits the words. Where no reading covers all words, the last resort is what
        can be spotted in them (`complete` is then false).
        """
        whole, polite = tokenise(question.query), tokenise(frames.plain(question.query))
        trials = [(whole, True), (polite, True), (whole, False), (polite, False)]
        for tokens, strict in dict.fromkeys((tuple(t), s) for t, s in trials):
            plans = self._complete(question, Parser(view.grammar, list(tokens), strict=strict), view)
            if plans:
                return plans
        return [self._spotted(question, Parser(view.grammar, polite, strict=False), view)]

    def _complete(self, question: Question, parser: Parser, view: TwinView) -> list[Plan]:
        parsed = frames.parse(parser, closed=bool(question.choices))
        found = itertools.islice((m for p in parsed for m in meanings(p)), MAX_READINGS)
        readings = [self._weigh(meaning, view, i) for i, meaning in enumerate(found)]
        readings.sort(key=lambda r: r.rank)
        return list(dict.fromkeys(r.meaning.plan for r in readings))

    def _weigh(self, meaning: Meaning, view: TwinView, index: int) -> Reading:
        plan = meaning.plan
        execution = execute(plan.program, view.facts)
        clear = all(
            len(execute(plan.program.description(v), view.facts).possible) == 1 for v in meaning.definite
        )
        found = len(execution.certain)
        fits = execution.certain == execution.possible and (
            found >= 1 if plan.many is None else found == 1 if plan.many is False else found >= 2
        )
        return Reading(meaning, execution, (not clear, not fits, not execution.possible, index))

    def _spotted(self, question: Question, parser: Parser, view: TwinView) -> Plan:
        form = form_by_keyword(question)
        said, left = parser.spotted(0, len(parser.tokens))
        best: tuple[tuple[bool, bool, int], Plan] | None = None
        strange = [w for w in left if w not in _FILLER]
        for i, (program, _) in enumerate(statements_program(said)):
            plan = Plan(
                form=form,
                program=program,
                many=None,
                complete=False,
                note="not understood: " + " ".join(strange),
            )
            found = execute(program, view.facts)
            rank = (not found.certain, not found.possible, i)
            if best is None or rank < best[0]:
                best = (rank, plan)
        assert best is not None, "a program without constraints is always one"
        return best[1]
