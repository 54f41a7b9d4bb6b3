"""The form in which a language model writes a plan: a bounded JSON schema whose vocabulary is this twin's."""

from __future__ import annotations

from typing import Any

from rvt_ray.agent.plan import FORM_TASK, OTHER, Judgement, Plan
from rvt_ray.agent.view import TwinView
from rvt_ray.queries.wording.phrases import REGION_PLACES
from rvt_ray.reasoning import Constraint, Program
from rvt_ray.twin.facts import CATALOGUE, EXTREMES

TARGET = "x"
ANCHORS = ("a", "b", "c", "d")
MAX_FACTS = 12
MAX_VALUES = 60
MAX_TEXT = 120
JUDGED = "judged"
"""Predicate name, in replies, of a description that the model itself is to judge."""


class ReplyError(ValueError):
    """A reply that fits the schema and yet is no program; the message is the feedback."""


def plan_schema(view: TwinView, forms: tuple[str, ...] = tuple(FORM_TASK)) -> dict[str, Any]:
    """The schema of a plan for one twin.

    `facts` describe the target `x` and whatever it is told apart by (`a` to `d`); `asked` is the fact that a
    yes/no question is about, `other` the facts of the second object `o` that a question names.
    """
    variables = [TARGET, *ANCHORS]
    fact = {"anyOf": _fact_shapes(view, variables)}
    about_other = {"anyOf": _fact_shapes(view, [OTHER])}
    asked = {"anyOf": _fact_shapes(view, [TARGET, OTHER])}
    attributes = sorted(
        {"colour", "material", *(v.partition(":")[0] for v in view.facts.values("attribute"))}
    )
    properties: dict[str, Any] = {
        "form": {"enum": list(forms)},
        "many": {"enum": ["one", "several", "open"]},
        "facts": {"type": "array", "items": fact, "minItems": 0, "maxItems": MAX_FACTS},
        "asked": {"type": "array", "items": asked, "minItems": 0, "maxItems": 1},
        "other": {"type": "array", "items": about_other, "minItems": 0, "maxItems": 3},
        "attribute": {"enum": ["none", *attributes]},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _fact_shapes(view: TwinView, variables: list[str]) -> list[dict[str, Any]]:
    """One shape per kind of predicate, so that a reply that fits can nearly always be run."""
    shapes = []
    groups: dict[tuple[int, str | None, tuple[str, ...], bool], list[str]] = {}
    for spec in CATALOGUE.values():
        key = (spec.arity, spec.value, spec.scopes, spec.name in EXTREMES)  # "the largest object" is said
        groups.setdefault(key, []).append(spec.name)
    subject = {"enum": variables}
    for (arity, value, scopes, _), names in groups.items():
        if arity == 2 and len(variables) < 2:
            continue
        properties: dict[str, Any] = {"fact": {"enum": names}, "of": subject}
        if arity == 2:
            properties["to"] = {"enum": variables}
        if value is not None:
            values = list(REGION_PLACES) if value == "region" else view.facts.values(names[0])[:MAX_VALUES]
            if not values:
                continue
            properties["value"] = {"enum": values}
        if scopes:
            properties["when"] = {"enum": list(scopes)}
        shapes.append(_object(properties))
    text = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
    shapes.append(_object({"fact": {"enum": [JUDGED]}, "of": subject, "text": text}))
    return shapes


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_plan(data: dict[str, Any]) -> Plan:
    """The plan of a reply that fits the schema.

    Raises:
        ReplyError: it is no program, and why.
    """
    judged: list[Judgement] = []
    constraints = [_constraint(f, judged) for f in data["facts"]]
    program = _program(constraints, TARGET)
    asked = [_constraint(f, judged) for f in data["asked"]]
    other = [_constraint(f, judged) for f in data["other"]]
    form = data["form"]
    if form == "check" and not asked:
        raise ReplyError("a question of form 'check' needs the fact it asks about, in 'asked'")
    if form == "order" and not other:
        raise ReplyError("a question of form 'order' needs the second object, in 'other'")
    return Plan(
        form=form,
        program=program,
        many={"one": False, "several": True}.get(data["many"]),
        asked=asked[0] if asked else None,
        other=_program(other, OTHER) if other else None,
        attribute=None if data["attribute"] == "none" else data["attribute"],
        judged=tuple(judged),
    )


def write_plan(plan: Plan) -> dict[str, Any]:
    """The reply that stands for a plan: for examples in prompts, and for tests."""
    names = {plan.program.target: TARGET, OTHER: OTHER}
    rest = [v for v in plan.program.variables if v != plan.program.target]
    names |= dict(zip(rest, ANCHORS, strict=False))
    judged = {j.value: j.text for j in plan.judged}

    def fact(c: Constraint, called: dict[str, str]) -> dict[str, Any]:
        if c.value in judged:
            return {"fact": JUDGED, "of": called[c.args[0]], "text": judged[c.value]}
        written: dict[str, Any] = {"fact": c.predicate, "of": called[c.args[0]]}
        if len(c.args) == 2:
            written["to"] = called[c.args[1]]
        if c.value is not None:
            written["value"] = c.value
        if c.scope is not None:
            written["when"] = c.scope
        return written

    other = plan.other
    return {
        "form": plan.form,
        "many": "open" if plan.many is None else "several" if plan.many else "one",
        "facts": [fact(c, names) for c in plan.program.constraints],
        "asked": [fact(plan.asked, names)] if plan.asked is not None else [],
        "other": [fact(c, {other.target: OTHER}) for c in other.constraints if len(c.args) == 1]
        if other
        else [],
        "attribute": plan.attribute or "none",
    }


def _constraint(fact: dict[str, Any], judged: list[Judgement]) -> Constraint:
    if fact["fact"] == JUDGED:
        known = next((j for j in judged if j.text == fact["text"]), None)
        if known is None:
            known = Judgement(name=f"q{len(judged) + 1}", text=fact["text"])
            judged.append(known)
        return Constraint(predicate="attribute", args=(fact["of"],), value=known.value)
    args = (fact["of"],) if "to" not in fact else (fact["of"], fact["to"])
    return Constraint(predicate=fact["fact"], args=args, value=fact.get("value"), scope=fact.get("when"))


def _program(constraints: list[Constraint], target: str) -> Program:
    """Variables in the order in which relations lead to them; what is not tied to the target is refused."""
    order = [target]
    grown = True
    while grown:
        grown = False
        for c in constraints:
            for v in c.args:
                if v not in order and any(w in order for w in c.args):
                    order.append(v)
                    grown = True
    strays = sorted({v for c in constraints for v in c.args} - set(order))
    if strays:
        raise ReplyError(f"{', '.join(strays)}: no relation ties it to {target}; add one or leave it out")
    program = Program(target=target, variables=tuple(order), constraints=tuple(dict.fromkeys(constraints)))
    try:
        program.check()
    except ValueError as error:
        raise ReplyError(str(error)) from error
    return program
