"""The planner that needs no model: it parses the query and lets the executor choose among the readings."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from rvt_ray.agent.language import frames
from rvt_ray.agent.language.ast import Statement
from rvt_ray.agent.language.parser import Parser
from rvt_ray.agent.language.readings import Meaning, meanings, statements_program
from rvt_ray.agent.language.words import tokenise
from rvt_ray.agent.plan import FORM_TASK, Plan, Question
from rvt_ray.agent.view import TwinView
from rvt_ray.reasoning import Execution, Program, execute
from rvt_ray.records import Task

MAX_READINGS = 60
MAX_TOKENS = 120
"""Words and punctuation of the longest query that is parsed. The template's longest have about 80. The
parser goes deeper with every nested phrase: at this length by 700 calls at worst, and Python allows 1000."""
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
    return _form_and_words(question)[0]


def _form_and_words(question: Question) -> tuple[str, frozenset[str]]:
    """The form, and the words that gave it away."""
    text = question.query.lower().strip()
    closed = bool(question.choices)
    for pattern, form in _KEYWORDS:
        match = re.search(pattern, text)
        if match and not (closed and FORM_TASK[form] is not Task.VQA):
            said = match.group().split()
            return form, frozenset((said[0], said[-1]))  # what stands between may be anything
    if {c.lower() for c in question.choices} == {"yes", "no"}:
        return "check", frozenset()
    return "which_of" if closed else "masks", frozenset()


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
        when the number of what it finds fits the words. Where no reading covers all words, the last resort is
        what can be spotted in them (`complete` is then false); of a query of more than `MAX_TOKENS` nothing
        is read.
        """
        whole, polite = tokenise(question.query), tokenise(frames.plain(question.query))
        if len(whole) > MAX_TOKENS:
            return [_unread(question, len(whole))]
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
        form, asking = _form_and_words(question)
        said, left = parser.spotted(0, len(parser.tokens))
        strange = tuple(w for w in left if w not in _FILLER and w not in asking)
        whole = "how the parts belong together" if parser.tokens else "there is no English word in it"
        note = "not understood: " + (" ".join(strange) or whole)
        best: tuple[tuple[bool, bool, int], Plan] | None = None
        for i, program in enumerate(_sayable(said)):
            plan = Plan(form=form, program=program, many=None, complete=False, ignored=strange, note=note)
            found = execute(program, view.facts)
            rank = (not found.certain, not found.possible, i)
            if best is None or rank < best[0]:
                best = (rank, plan)
        assert best is not None, "a program without constraints is always one"
        return best[1]


def _sayable(said: tuple[Statement, ...]) -> list[Program]:
    """Programs for what was spotted; where it makes none together ("near it", of nothing), for as much from
    its beginning as does."""
    for end in range(len(said), -1, -1):
        programs = [program for program, _ in statements_program(said[:end])]
        if programs:
            return programs
    return []


def _unread(question: Question, length: int) -> Plan:
    program = Program(target="x", variables=("x",), constraints=())
    note = f"not understood: {length} words, and the rules read {MAX_TOKENS} at most; ask it shorter"
    return Plan(form=form_by_keyword(question), program=program, complete=False, note=note)
