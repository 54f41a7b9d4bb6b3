"""What the executor has to say about a program: for the trace, and as feedback for a revision."""

from __future__ import annotations

from rvt_ray.reasoning import Constraint, Execution, Program, execute
from rvt_ray.twin.facts import Facts

MAX_IDS = 12


def constraint_text(c: Constraint) -> str:
    """`colour(x)=red`, `left_of(x,a)@start`."""
    text = f"{c.predicate}({','.join(c.args)})"
    return text + (f"={c.value}" if c.value is not None else "") + (f"@{c.scope}" if c.scope else "")


def explain(program: Program, execution: Execution, facts: Facts) -> str:
    """Why a program found what it found: per constraint for how much it holds by itself, and which one,
    left out, would change the result."""
    lines = [f"certain: {_ids(execution.certain)}; possible: {_ids(execution.possible)}."]
    for c in program.constraints:
        table = facts.bits(c.predicate, c.value, c.scope)
        sure, maybe = (sum(row.bit_count() for row in rows) for rows in (table.certain, table.possible))
        what = "things" if len(c.args) == 1 else "pairs of things"
        rest = program.without(c)
        without = ""
        if c.args[0] == program.target or program.target in c.args or len(c.args) == 2:
            found = execute(rest, facts) if rest.constraints else None
            if found is not None:
                without = f"; without it: certain {_ids(found.certain)}, possible {_ids(found.possible)}"
        lines.append(f"{constraint_text(c)} is true of {sure} and not false of {maybe} {what}{without}.")
    return "\n".join(lines)


def relaxed(program: Program, facts: Facts) -> tuple[Program, Constraint] | None:
    """The program less one constraint, where that finds something: the one that leaves the fewest targets."""
    best: tuple[int, int, Program, Constraint] | None = None
    for i, c in enumerate(program.constraints):
        rest = program.without(c)
        if not rest.constraints:
            continue
        found = execute(rest, facts)
        targets = found.certain or found.possible
        if targets and (best is None or (len(targets), i) < best[:2]):
            best = (len(targets), i, rest, c)
    return None if best is None else (best[2], best[3])


def _ids(ids: frozenset[int]) -> str:
    if not ids:
        return "none"
    shown = ", ".join(f"#{i}" for i in sorted(ids)[:MAX_IDS])
    return shown if len(ids) <= MAX_IDS else f"{shown} and {len(ids) - MAX_IDS} more"
