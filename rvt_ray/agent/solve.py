"""RVTagent: Y = E(T(Q), X, Q). A query and a twin in; masks, boxes or text out, with the whole trace."""

from __future__ import annotations

from dataclasses import dataclass, field

from rvt_ray.agent import answers
from rvt_ray.agent.model import Model, judged_twin, plan_text
from rvt_ray.agent.plan import FORM_TASK, Plan, Question
from rvt_ray.agent.reply import ReplyError
from rvt_ray.agent.report import constraint_text, explain, relaxed
from rvt_ray.agent.rules import RulePlanner, form_by_keyword
from rvt_ray.agent.trace import How, JudgementMade, Run, Solution, TaskFinding, Trace, Verdict
from rvt_ray.agent.view import TwinView
from rvt_ray.config.settings import AgentSettings, FactSettings
from rvt_ray.llm.base import Llm
from rvt_ray.queries.lexicon import Lexicon, load_lexicon
from rvt_ray.reasoning import Program, execute
from rvt_ray.records import DigitalTwin, Task

_ENDS: tuple[Verdict, ...] = ("found", "nothing")


@dataclass
class _Work:
    """The state of one question."""

    question: Question
    view: TwinView
    model: Model | None
    task: TaskFinding | None = None
    runs: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Outcome:
    plan: Plan
    view: TwinView
    ids: list[int]
    others: list[int]
    chosen: int | None
    how: How


class Agent:
    """Answers implicit queries over digital twins; lives in one worker for many clips.

    Args:
        settings: the `agent` part of the config: who plans, how often it may revise.
        facts: thresholds of the facts.
        llm: the model behind planner `llm` and `auto`; null: rules only.
        lexicon: words for kinds; null takes the built-in one.
    """

    def __init__(
        self,
        settings: AgentSettings | None = None,
        facts: FactSettings | None = None,
        llm: Llm | None = None,
        lexicon: Lexicon | None = None,
    ) -> None:
        self._settings = settings or AgentSettings()
        self._facts = facts or FactSettings()
        self._llm = llm
        self._lexicon = lexicon or load_lexicon()
        self._rules = RulePlanner()

    def look(self, twin: DigitalTwin) -> TwinView:
        """A twin made ready for questions; reuse it for all questions on one clip."""
        return TwinView(twin, self._facts, self._lexicon)

    async def solve(self, question: Question, twin: DigitalTwin | TwinView) -> Solution:
        """Answer one question.

        Args:
            question: the words, and the choices where it is a closed one.
            twin: the clip's twin, or a view of it from `look`.

        Returns:
            The answer in the form of the task that the words ask for. Never raises for a question that cannot
            be answered: the solution is then empty and flagged.

        Raises:
            EngineDeadError: the engine behind the model died.
        """
        view = twin if isinstance(twin, TwinView) else self.look(twin)
        model = None
        if self._llm is not None:
            llm = self._settings.llm
            model = Model(self._llm, llm.temperature, self._settings.seed, llm.max_tokens)
        work = _Work(question, view, model)
        await self._plan(work)
        outcome = await self._decide(work)
        return self._present(work, outcome)

    # -- planning ---------------------------------------------------------------------------------

    async def _plan(self, work: _Work) -> None:
        planner = self._settings.planner
        rules = planner != "llm" or work.model is None
        plans: list[Plan] = []
        if rules:
            plans = self._rules.plan(work.question, work.view)
        if plans and (plans[0].complete or work.model is None):
            work.task = TaskFinding(task=plans[0].task, form=plans[0].form, by="rules")
            for plan in plans[: 1 + self._settings.max_revisions]:
                run = await self._run(work, plan, "rules")
                if run.verdict in _ENDS:
                    break
            return
        await self._plan_by_model(work)
        if plans and not any(run.verdict in _ENDS for run in work.runs):
            await self._run(work, plans[0], "rules")

    async def _plan_by_model(self, work: _Work) -> None:
        assert work.model is not None
        guess = form_by_keyword(work.question)
        form, by = guess, "rules"
        if self._settings.llm.task_choice:
            form, by = await work.model.form(work.question, guess), work.model.name
        work.task = TaskFinding(task=FORM_TASK[form], form=form, by=by)
        feedback, last = "", None
        for attempt in range(1 + self._settings.max_revisions):
            try:
                plan = await work.model.plan(work.question, work.view, form, feedback, attempt)
            except ReplyError as error:
                feedback = str(error)
                work.runs.append(Run(planner=work.model.name, plan=None, verdict="invalid", report=feedback))
                continue
            # The same plan again, after the executor's report: it is meant so.
            insisted = plan == last
            run = await self._run(work, plan, work.model.name, insisted=insisted)
            if run.verdict in _ENDS:
                return
            feedback, last = f"It was: {plan_text(plan)}. {run.report}", plan

    async def _run(self, work: _Work, plan: Plan, planner: str, *, insisted: bool = False) -> Run:
        """Execute one plan and judge what came out."""
        made: list[JudgementMade] = []
        view = work.view
        if plan.judged:
            if work.model is None:
                run = Run(planner=planner, plan=plan, verdict="invalid", report="no model to judge by")
                work.runs.append(run)
                return run
            for judgement in plan.judged:
                made.append(await work.model.judge(judgement, work.question, view))
            view = self.look(judged_twin(view.twin, made))
        found = execute(plan.program, view.facts)
        others, missing = self._others(plan, view)
        verdict: Verdict
        if missing:
            verdict = "empty"
        elif plan.form in ("count", "exists") or (insisted and not found.possible):
            sure = found.certain == found.possible and plan.complete
            verdict = "found" if sure else "possible"
        elif not found.possible:
            # A query that was understood to the last word and finds nothing asks for something not there.
            verdict = "nothing" if planner == "rules" and plan.complete else "empty"
        elif not found.certain:
            verdict = "possible"
        elif plan.many is False and len(found.certain) > 1:
            verdict = "ambiguous"
        elif not plan.complete:
            verdict = "possible"  # what was not understood may rule it out
        else:
            verdict = "found"
        report = explain(plan.program, found, view.facts)
        if missing:
            report += f"\nThe second object was not found: {missing}."
        if plan.note:
            report += f"\n{plan.note}"
        run = Run(
            planner=planner,
            plan=plan,
            certain=sorted(found.certain),
            possible=sorted(found.possible),
            other=others,
            judged=made,
            verdict=verdict,
            report=report,
        )
        work.runs.append(run)
        return run

    @staticmethod
    def _others(plan: Plan, view: TwinView) -> tuple[list[int], str]:
        """Instances of the second object; and, where there are none, what was looked for."""
        if plan.other is None:
            return [], ""
        found = execute(plan.other, view.facts)
        ids = sorted(found.certain or found.possible)
        return ids, "" if ids else ", ".join(constraint_text(c) for c in plan.other.constraints)

    # -- decision ---------------------------------------------------------------------------------

    async def _decide(self, work: _Work) -> _Outcome:
        """The run that counts: one that ended well, else the best of what is only possible, else a weaker
        program, else the model's direct choice, else nothing."""
        for i, run in enumerate(work.runs):
            if run.verdict in _ENDS and run.plan is not None:
                return self._outcome(work, i, run.certain, "program")
        for i, run in enumerate(work.runs):
            if run.plan is not None and run.plan.complete and (run.certain or run.possible):
                ids = self._likeliest(work, run)
                if ids:
                    return self._outcome(work, i, ids, "possible")
        direct = await self._choose(work)
        if direct is not None:
            return direct
        for i, run in enumerate(work.runs):
            if run.plan is None or (not run.plan.complete and not run.plan.program.constraints):
                continue  # of a query of which no word was understood, everything would be the answer
            ids = self._likeliest(work, run)
            if ids:
                return self._outcome(work, i, ids, "possible")
            weaker = relaxed(run.plan.program, work.view.facts) if not run.plan.judged else None
            if weaker is not None:
                program, dropped = weaker
                found = execute(program, work.view.facts)
                work.notes.append(f"left out {constraint_text(dropped)}, with which nothing is found")
                plan = run.plan.model_copy(update={"program": program})
                ids = self._fewest(plan, work.view, sorted(found.certain or found.possible))
                return _Outcome(plan, work.view, ids, run.other, i, "relaxed")
        form = work.task.form if work.task is not None else form_by_keyword(work.question)
        plan = next((r.plan for r in work.runs if r.plan is not None), _empty_plan(form))
        return _Outcome(plan, work.view, [], [], None, "nothing")

    def _outcome(self, work: _Work, index: int, ids: list[int], how: How) -> _Outcome:
        run = work.runs[index]
        assert run.plan is not None
        view = work.view if not run.judged else self.look(judged_twin(work.view.twin, run.judged))
        return _Outcome(run.plan, view, ids, run.other, index, how)

    def _likeliest(self, work: _Work, run: Run) -> list[int]:
        """Of what a run found: the certain ones, else the possible ones; of several, where the words speak of
        one thing, those for which most of the target's own facts are certain."""
        assert run.plan is not None
        ids = run.certain or run.possible
        return self._fewest(run.plan, work.view, ids) if not run.judged else ids

    @staticmethod
    def _fewest(plan: Plan, view: TwinView, ids: list[int]) -> list[int]:
        if plan.many is not False or len(ids) < 2:
            return ids
        own = [c for c in plan.program.constraints if c.args == (plan.program.target,)]
        sure = {
            i: sum(view.know.is_true(c.predicate, i, value=c.value, scope=c.scope) for c in own) for i in ids
        }
        return [max(ids, key=lambda i: (sure[i], -i))]

    async def _choose(self, work: _Work) -> _Outcome | None:
        """The model's direct choice among what is possible, or among all things."""
        if work.model is None or not self._settings.direct_choice:
            return None
        run = next((r for r in reversed(work.runs) if r.plan is not None), None)
        among = list(run.possible) if run is not None and len(run.possible) > 1 else []
        among = among or [i.instance_id for i in work.view.twin.instances]
        report = run.report if run is not None else "no plan could be run"
        ids, note = await work.model.choose(work.question, work.view, among[:60], report)
        if note:
            work.notes.append(f"direct choice: {note}")
        if not ids:
            return None
        assert work.task is not None
        plan = run.plan if run is not None and run.plan is not None else _empty_plan(work.task.form)
        return _Outcome(plan, work.view, ids, run.other if run else [], None, "direct_choice")

    # -- presentation -----------------------------------------------------------------------------

    @staticmethod
    def _present(work: _Work, outcome: _Outcome) -> Solution:
        plan, ids = outcome.plan, outcome.ids
        task = plan.task
        trace = Trace(
            query=work.question.query,
            choices=list(work.question.choices),
            task=work.task or TaskFinding(task=task, form=plan.form, by="rules"),
            runs=work.runs,
            chosen=outcome.chosen,
            how=outcome.how,
            notes=work.notes,
            model=work.model.name if work.model is not None else None,
            model_calls=work.model.calls if work.model is not None else 0,
        )
        solution = Solution(task=task, target_ids=ids, flagged=outcome.how != "program", trace=trace)
        if task is Task.SEGMENTATION:
            solution.masks = answers.masks(outcome.view, ids)
        elif task is Task.GROUNDING:
            solution.boxes = answers.boxes(outcome.view, ids)
        else:
            choices = work.question.choices
            solution.answer = answers.answer(outcome.view, plan, ids, outcome.others, choices)
        return solution


def _empty_plan(form: str) -> Plan:
    return Plan(form=form, program=Program(target="x", variables=("x",), constraints=()), complete=False)
