"""What the agent knows of one clip: the twin, its facts, its words. One per clip, for all its questions."""

from __future__ import annotations

from functools import cached_property

from rvt_ray.agent.language.grammar import Grammar
from rvt_ray.agent.language.vocabulary import Vocabulary
from rvt_ray.config.settings import FactSettings
from rvt_ray.queries.knowledge import Knowledge
from rvt_ray.queries.lexicon import Lexicon
from rvt_ray.records import DigitalTwin
from rvt_ray.twin.facts import Facts


class TwinView:
    """A twin with its facts; everything is computed when asked for, and kept.

    Args:
        twin: the digital twin; must not change.
        settings: thresholds of the facts.
        lexicon: the words for kinds.
    """

    def __init__(self, twin: DigitalTwin, settings: FactSettings, lexicon: Lexicon) -> None:
        self.twin = twin
        self.settings = settings
        self.lexicon = lexicon

    @cached_property
    def facts(self) -> Facts:
        """Three-valued facts."""
        return Facts(self.twin, self.settings)

    @cached_property
    def know(self) -> Knowledge:
        """Names and kinds, as the query room sees them."""
        return Knowledge(self.facts, self.lexicon)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Nouns, adjectives and functions."""
        return Vocabulary(self.facts, self.lexicon)

    @cached_property
    def grammar(self) -> Grammar:
        """Everything that may be said of things."""
        return Grammar(self.vocabulary)
