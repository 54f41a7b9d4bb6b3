"""Which candidate and which draft come next: an even spread over task, level and category."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from rvt_ray.queries.draft import Draft
from rvt_ray.queries.tasks.fair import even_odds
from rvt_ray.reasoning import Candidate
from rvt_ray.records import Task

LEVELS = (1, 2, 3, 4)
_TWO_ANSWERS = {"check": ("yes", "no"), "order": ("before", "after")}


class Chooser:
    """Hands out candidates so that what was kept stays balanced.

    A clip has few samples and a corpus many clips: ties are broken by the clip's seeded `rng`, so that the
    balance over a corpus does not depend on what each clip happens to offer first.

    Args:
        candidates: all that the search found.
        samples: how many samples are wanted.
        no_target_share: the expected share of no-target queries among them.
        shortcuts: the simple solvers that find a candidate's target; what they find is not asked too often.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        samples: int,
        no_target_share: float,
        rng: random.Random,
        shortcuts: Callable[[Candidate], Sequence[str]] = lambda _: (),
    ) -> None:
        self._rng = rng
        self._shortcuts = shortcuts
        self._solved: Counter[tuple[str, int]] = Counter()
        pool = list(candidates)
        rng.shuffle(pool)
        self._targets = [c for c in pool if not c.no_target]
        self._empty = [c for c in pool if c.no_target]
        expected = samples * no_target_share
        self._quota = int(expected) + (rng.random() < expected % 1)
        self._levels: Counter[int] = Counter()
        self._categories: Counter[str] = Counter()
        self._targeted: Counter[tuple[int, ...]] = Counter()
        self._tasks: Counter[Task] = Counter()
        self._cells: Counter[tuple[Task, int, str]] = Counter()
        self._forms: Counter[tuple[str, str | None]] = Counter()
        self._samples = samples
        self._sizes = Counter(str(len(c.target_ids)) for c in pool)
        self._due_answer = {form: rng.choice(answers) for form, answers in _TWO_ANSWERS.items()}

    def next(self) -> Candidate | None:
        """The candidate that the balance asks for; null when there is none left."""
        if self._quota > 0 and self._empty and (not self._targets or self._rng.random() < self._due()):
            self._quota -= 1
            return self._empty.pop()
        if not self._targets:
            return None
        best = min(range(len(self._targets)), key=lambda i: (self._crowding(self._targets[i]), i))
        return self._targets.pop(best)

    def _due(self) -> float:
        left = max(1, self._samples - sum(self._tasks.values()))
        return self._quota / left

    def _crowding(self, candidate: Candidate) -> float:
        categories = [self._categories[c] for c in candidate.categories] or [0]
        return (
            self._levels[candidate.level]
            + sum(categories) / len(categories)
            + self._targeted[candidate.target_ids]
            + max((self._solvable(name, candidate.level) for name in self._shortcuts(candidate)), default=0.0)
        )

    def _solvable(self, name: str, level: int) -> float:
        """How often a simple solver would have been right so far: in all, and on this level."""
        return (sum(self._solved[name, k] for k in LEVELS) + self._solved[name, level]) / 2

    def rank(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Drafts, the one that the balance asks for first."""
        shuffled = self._rng.sample(list(drafts), len(drafts))
        return sorted(shuffled, key=self._draft_crowding)

    def _draft_crowding(self, draft: Draft) -> tuple[float, ...]:
        candidate = draft.candidate
        cells = [self._cells[(draft.task, candidate.level, c)] for c in candidate.categories] or [0]
        answers = self._forms[(draft.form, draft.answer)] if draft.form in ("exists", "check", "count") else 0
        form = sum(n for (name, _), n in self._forms.items() if name == draft.form)
        return (
            self._is_other_answer(draft),
            self._tasks[draft.task],
            sum(cells) / len(cells),
            self._dullness(draft),
            form + 2 * answers,
        )

    @property
    def sizes(self) -> list[int]:
        """How many things a query of this clip may be for."""
        return sorted(map(int, self._sizes))

    def _is_other_answer(self, draft: Draft) -> bool:
        """Whether the question would rather be asked with another answer.

        Of two answers one is due, drawn at first and then in turn, until a question with it was kept: the one
        that gates refuse more often would else be the rarer one. Numbers: most targets are single things, and
        "how many" would mostly be answered with one.
        """
        if draft.form == "count" and draft.answer is not None:
            return not even_odds(self._sizes, draft.answer, draft.choices, self._rng)
        return self._due_answer.get(draft.form, draft.answer) != draft.answer

    def _dullness(self, draft: Draft) -> int:
        """Whether anything is there at all is the dullest question: it is asked where the answer is no, and
        then once, before all others, where it is yes; else the question alone would tell the answer."""
        if draft.form != "exists" or not draft.candidate.target_ids:
            return 0
        return -1 if self._forms[("exists", "no")] > self._forms[("exists", "yes")] else 2

    def open_tasks(self, drafts: Sequence[Draft]) -> list[Task]:
        """The tasks that fit and have not had more than their share: what the LLM may choose from."""
        fitting = list(dict.fromkeys(d.task for d in drafts))
        fewest = min(self._tasks[t] for t in fitting)
        return [t for t in fitting if self._tasks[t] <= fewest + 1]

    def kept(self, draft: Draft) -> None:
        """A sample came of it."""
        candidate = draft.candidate
        self._levels[candidate.level] += 1
        self._targeted[candidate.target_ids] += 1
        self._solved.update((name, candidate.level) for name in self._shortcuts(candidate))
        self._tasks[draft.task] += 1
        self._forms[(draft.form, draft.answer)] += 1
        if draft.form in _TWO_ANSWERS and draft.answer == self._due_answer[draft.form]:
            first, second = _TWO_ANSWERS[draft.form]
            self._due_answer[draft.form] = second if draft.answer == first else first
        for category in candidate.categories:
            self._categories[category] += 1
            self._cells[(draft.task, candidate.level, category)] += 1
