"""What the query room knows of one clip: its facts, the names of its things, and what may not be said."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rvt_ray.queries.gates.leak import LeakContext, names_in
from rvt_ray.queries.gates.text import tokens
from rvt_ray.queries.lexicon import Lexicon
from rvt_ray.reasoning import Candidate, Constraint, Program, execute
from rvt_ray.records import DigitalTwin, Evidence, Instance
from rvt_ray.twin.facts import Fact, Facts, Truth

ALTERNATIVE_SCORE = 0.3
"""An alternative label with at least this score counts among an instance's names."""
_PERSON = ("speak", "cry")


class Knowledge:
    """Facts, kinds and names of one clip; everything is cached, nothing is changed."""

    def __init__(self, facts: Facts, lexicon: Lexicon) -> None:
        self.facts = facts
        self.twin: DigitalTwin = facts.twin
        self.lexicon = lexicon
        self._answers: dict[str, tuple[frozenset[int], frozenset[int]]] = {}
        self._names: dict[int, str | None] = {}
        self._row = {instance_id: row for row, instance_id in enumerate(facts.ids)}

    # -- truth ------------------------------------------------------------------------------------

    def fact(self, predicate: str, *ids: int, value: str | None = None, scope: str | None = None) -> Fact:
        """One fact of the twin."""
        return self.facts.value(predicate, ids, value, scope)

    def truth(self, predicate: str, *ids: int, value: str | None = None, scope: str | None = None) -> Truth:
        """A fact's truth alone: much cheaper than the fact with its frames."""
        rows = tuple(self._row[i] for i in ids)
        return Truth(int(self.facts.table(predicate, value, scope).truth[rows]))

    def is_true(self, predicate: str, *ids: int, value: str | None = None, scope: str | None = None) -> bool:
        """Whether the fact is certain."""
        return self.truth(predicate, *ids, value=value, scope=scope) is Truth.TRUE

    def is_false(self, predicate: str, *ids: int, value: str | None = None, scope: str | None = None) -> bool:
        """Whether its contrary is certain."""
        return self.truth(predicate, *ids, value=value, scope=scope) is Truth.FALSE

    def answers(self, program: Program) -> tuple[frozenset[int], frozenset[int]]:
        """(certain, possible) of a program."""
        key = program.to_json()
        if key not in self._answers:
            result = execute(program, self.facts)
            self._answers[key] = (frozenset(result.certain), frozenset(result.possible))
        return self._answers[key]

    def is_exactly(self, program: Program, ids: Sequence[int]) -> bool:
        """Whether certain = possible = `ids`."""
        certain, possible = self.answers(program)
        return certain == possible == frozenset(ids)

    def identifies(self, program: Program, variable: str, instance_id: int) -> bool:
        """Whether what the program says of an anchor (and of what hangs on it) fits that instance alone,
        so that words may say "the"."""
        below = _descendants(program, variable)
        constraints = tuple(c for c in program.constraints if set(c.args) <= below)
        if not constraints:
            return False
        variables = tuple(v for v in program.variables if v in below)
        return self.is_exactly(
            Program(target=variable, variables=variables, constraints=constraints), [instance_id]
        )

    @staticmethod
    def evidence(fact: Fact, note: str = "") -> Evidence:
        """A fact as a row's evidence; `note` says what it is cited for."""
        text = f"{note}: {fact.statement}" if note else fact.statement
        return Evidence(fact_id=fact.fact_id, statement=text, margin=fact.margin, frames=fact.frames)

    # -- kinds ------------------------------------------------------------------------------------

    @cached_property
    def instances(self) -> dict[int, Instance]:
        """By id."""
        return {i.instance_id: i for i in self.twin.instances}

    def labels(self, instance_id: int) -> tuple[str, ...]:
        """The names that an instance may go by, the chosen one first, without "object"."""
        instance = self.instances[instance_id]
        names = [instance.category]
        names += [a.value for a in instance.alternatives if a.score >= ALTERNATIVE_SCORE]
        return tuple(dict.fromkeys(n for n in names if not self.lexicon.is_nameless(n)))

    def is_person(self, instance_id: int) -> bool:
        """Whether it is named as a human being."""
        labels = self.labels(instance_id)
        return bool(labels) and any(f in _PERSON for f in self.lexicon.entry(labels[0]).functions)

    def generic_nouns(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Neutral nouns for these instances; living beings are never "things"."""
        labels = [self.labels(i)[:1] for i in ids]
        if any(not found for found in labels):
            return ("object", "one")
        if any(self.lexicon.animate(label) for (label,) in labels):
            return ("one",)
        return ("thing", "object", "one")

    def function_means_kind(self, function: str, kind: str) -> bool:
        """Whether, in this clip, "serves this function" says the same as "is of this kind": nothing that is
        surely not of the kind may serve the function."""
        return all(
            not any(self.lexicon.shares_function(label, function) for label in self.labels(i))
            for i in self.instances
            if self.is_false("category", i, value=kind)
        )

    def general_means_kind(self, general: str, kind: str, candidate: Candidate) -> bool:
        """Whether a broader term says the same as the kind in this clip, and yet gives nothing away: some
        other object falls under it too."""
        shared = False
        for i in self.instances:
            under = any(
                self.lexicon.canonical(label) is None
                or general in self.lexicon.general(label)
                or self.lexicon.normal(label) == general
                for label in self.labels(i)
            )
            if under and self.is_false("category", i, value=kind):
                return False
            shared = shared or (under and i not in candidate.target_ids)
        return shared

    def is_everything(self, kind: str) -> bool:
        """Whether everything in the clip is of this kind."""
        return self.twin.holds_everything and all(
            self.is_true("category", i, value=kind) for i in self.instances
        )

    # -- what must not be said --------------------------------------------------------------------

    def target_kinds(self, candidate: Candidate) -> frozenset[str]:
        """Labels of the targets; for a no-target query the kind that the program speaks of."""
        found = {label for i in candidate.target_ids for label in self.labels(i)}
        if not candidate.target_ids:
            target = candidate.program.target
            found |= {
                c.value for c in candidate.program.constraints
                if c.predicate == "category" and c.args == (target,) and c.value
            }  # fmt: skip
        return frozenset(found)

    def forbidden_names(self, candidate: Candidate) -> frozenset[str]:
        """Every name that would give the target away."""
        kinds = self.target_kinds(candidate)
        return frozenset(name for kind in kinds for name in self.lexicon.names(kind))

    def names_in(self, text: str, names: frozenset[str]) -> list[str]:
        """Which of the names occur in a text."""
        return names_in(tokens(text), names, self.lexicon)

    def leak_context(self, candidate: Candidate, answer_words: frozenset[str] = frozenset()) -> LeakContext:
        """What the leak gate needs to know."""
        others = tuple(
            label for i in self.instances if i not in candidate.target_ids for label in self.labels(i)[:1]
        )
        return LeakContext(self.target_kinds(candidate), others, answer_words)

    # -- naming -----------------------------------------------------------------------------------

    def name(self, instance_id: int) -> str | None:
        """A short name that fits this instance and surely no other ("the red ball"), article included;
        null where none is found."""
        if instance_id not in self._names:
            self._names[instance_id] = self._find_name(instance_id)
        return self._names[instance_id]

    def _find_name(self, instance_id: int) -> str | None:
        labels = self.labels(instance_id)
        if not labels or not self.is_true("category", instance_id, value=labels[0]):
            return None
        kind = Constraint(predicate="category", args=("x",), value=labels[0])
        colours = [
            a.value
            for a in self.instances[instance_id].attributes
            if a.name in ("colour", "color") and self.is_true("colour", instance_id, value=a.value.lower())
        ]
        trials: list[tuple[tuple[Constraint, ...], str]] = [((kind,), labels[0])]
        for colour in colours:
            worded = f"{labels[0]} in {colour}" if self.is_person(instance_id) else f"{colour} {labels[0]}"
            constraint = Constraint(predicate="colour", args=("x",), value=colour.lower())
            trials.append(((kind, constraint), worded))
        for constraints, text in trials:
            program = Program(target="x", variables=("x",), constraints=constraints)
            if self.is_exactly(program, [instance_id]):
                return f"the {text}"
        return None


def variable_depths(program: Program) -> dict[str, int]:
    """Relations between each variable and the target; variables that are not tied to it are left out."""
    depth = {program.target: 0}
    frontier = [program.target]
    while frontier:
        following = []
        for v in frontier:
            for c in program.constraints:
                for other in c.args if v in c.args else ():
                    if other not in depth:
                        depth[other] = depth[v] + 1
                        following.append(other)
        frontier = following
    return depth


def _descendants(program: Program, variable: str) -> set[str]:
    """The variable and all that is reached from it without passing one nearer to the target."""
    depth = variable_depths(program)
    found, frontier = {variable}, [variable]
    while frontier:
        v = frontier.pop()
        for c in program.constraints:
            for other in c.args if v in c.args else ():
                if other not in found and depth.get(other, 0) > depth.get(v, 0):
                    found.add(other)
                    frontier.append(other)
    return found
