"""Holds a kept sample against the plain truth of its scene: targets, masks, boxes, answers, evidence.

Programs are evaluated by trying every assignment of objects to variables; nothing is shared with the
executor, the search or the answers.
"""

from __future__ import annotations

import itertools
import re

import numpy as np

from rvt_ray.masks import rle
from rvt_ray.reasoning import Program
from rvt_ray.records import Sample, Task
from tests.scenes import Seen
from tests.truth.plain import Plain, Verdict

_FACT = re.compile(r"(\w+)\(([\d,]+)\)(?:=([^@]*))?(?:@(\w+))?$")
_DIRECTIONS = {
    "to the left": "moves_left",
    "to the right": "moves_right",
    "upwards": "moves_up",
    "downwards": "moves_down",
    "towards the camera": "moves_towards_camera",
    "away from the camera": "moves_away_from_camera",
}


class Judge:
    """Finds what is wrong with samples of one scene."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.plain = Plain(seen)
        self._known: dict[tuple[object, ...], Verdict] = {}

    def complaints(self, sample: Sample) -> list[str]:
        """Everything about a sample that is not so; empty when all of it is true."""
        found = self._targets(sample)
        found += self._evidence(sample)
        if sample.masks is not None:
            found += self._masks(sample)
        if sample.boxes is not None:
            found += self._boxes(sample)
        if sample.task is Task.VQA:
            found += self._answer(sample)
        return found

    def holds(self, name: str, args: tuple[int, ...], value: str | None, scope: str | None) -> Verdict:
        """A plain fact, remembered."""
        key = (name, args, value, scope)
        if key not in self._known:
            self._known[key] = self.plain.holds(name, args, value, scope)
        return self._known[key]

    def solve(self, program: Program) -> tuple[set[int], set[int]]:
        """(surely, possibly) fitting objects: some assignment on which every constraint holds, or on which
        none fails."""
        surely, possibly = set(), set()
        for objects in itertools.permutations(self.plain.ids, len(program.variables)):
            of = dict(zip(program.variables, objects, strict=True))
            worst: Verdict = True
            for c in program.constraints:
                verdict = self.holds(c.predicate, tuple(of[v] for v in c.args), c.value, c.scope)
                if verdict is False:
                    worst = False
                    break
                if verdict is None:
                    worst = None
            if worst is not False:
                possibly.add(of[program.target])
            if worst is True:
                surely.add(of[program.target])
        return surely, possibly

    def _targets(self, sample: Sample) -> list[str]:
        surely, possibly = self.solve(Program.from_json(sample.program))
        given = set(sample.target_ids)
        if surely <= given <= possibly:
            return []
        return [f"targets {sorted(given)}, but surely {sorted(surely)} and at most {sorted(possibly)}"]

    def _evidence(self, sample: Sample) -> list[str]:
        found = []
        for item in sample.evidence:
            match = _FACT.match(item.fact_id)
            if match is None:
                found.append(f"fact id {item.fact_id!r} cannot be read")
                continue
            name, args, value, scope = match.groups()
            verdict = self.holds(name, tuple(map(int, args.split(","))), value, scope)
            if verdict is None:
                continue
            note = item.statement.split(": ")[0]
            if note in ("not so", "wrong choice"):
                expected = False
            elif note == "answer" and sample.answer in ("yes", "no", "before", "after"):
                expected = self._expected(sample, name)
            else:
                expected = True
            if verdict is not expected:
                found.append(f"{item.statement!r} ({item.fact_id}) is {verdict}")
        return found

    @staticmethod
    def _expected(sample: Sample, name: str) -> bool:
        if sample.answer in ("yes", "no"):
            return sample.answer == "yes"
        return (name == "appears_before") == (sample.answer == "before")

    def _union(self, sample: Sample, frame: int) -> np.ndarray:
        return np.isin(self.seen.frames[frame].instances, sample.target_ids)

    def _masks(self, sample: Sample) -> list[str]:
        height, width = self.seen.spec.height, self.seen.spec.width
        assert sample.masks is not None
        wrong = [
            t
            for t, text in enumerate(sample.masks)
            if text is None or (rle.decode(text, height, width) != self._union(sample, t)).any()
        ]
        short = [] if len(sample.masks) == self.seen.spec.num_frames else ["masks for other frames"]
        return short + ([f"masks of frames {wrong} differ from the renderer's"] if wrong else [])

    def _boxes(self, sample: Sample) -> list[str]:
        assert sample.boxes is not None
        wrong = []
        for t, boxes in enumerate(sample.boxes):
            expected = []
            for i in sample.target_ids:
                ys, xs = np.nonzero(self.seen.frames[t].instances == i)
                if xs.size:
                    expected.append((xs.min(), ys.min(), xs.max() - xs.min() + 1, ys.max() - ys.min() + 1))
            given = None if boxes is None else sorted((b.x, b.y, b.w, b.h) for b in boxes)
            if given != sorted(tuple(map(float, b)) for b in expected):
                wrong.append(t)
        return [f"boxes of frames {wrong} differ from the renderer's"] if wrong else []

    def _answer(self, sample: Sample) -> list[str]:
        """Answers that cite no fact: counts, existence, names, durations. And choices: one is right."""
        answer, targets = sample.answer or "", sample.target_ids
        found = [] if not sample.choices or answer in sample.choices else ["the answer is no choice"]
        if answer.isdigit() and int(answer) != len(targets):
            found.append(f"counts {answer} of {targets}")
        cited = any(e.statement.startswith("answer: ") for e in sample.evidence)
        if answer in ("yes", "no") and not cited and (answer == "yes") != bool(targets):
            found.append(f"exists: {answer}, targets {targets}")
        if "second" in answer:
            seconds = float(self.plain.truth.objects[targets[0]].visible.sum()) / self.plain.fps
            off = {c: abs(float(c.split()[1]) - seconds) for c in sample.choices}
            if min(off, key=lambda c: off[c]) != answer or off[answer] > 0.25 + 1e-9:
                found.append(f"{answer}, but it is {seconds:.2f} s")
        if answer.startswith("the "):
            for choice in sample.choices:
                named = self._called(choice)
                if (choice == answer) != (named == set(targets)) or len(named) != 1:
                    found.append(f"choice {choice!r} names {sorted(named)}, targets {targets}")
        if answer in _DIRECTIONS and self.holds(_DIRECTIONS[answer], (targets[0],), None, None) is False:
            found.append(f"it does not move {answer}")
        return found

    def _called(self, name: str) -> set[int]:
        """The objects that "the red ball" can mean."""
        words = name.removeprefix("the ").split()
        return {
            i
            for i in self.plain.ids
            if self.plain.spec_of(i).kind == words[-1]
            and all(w == self.plain.spec_of(i).colour for w in words[:-1])
        }
