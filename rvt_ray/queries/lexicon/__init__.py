"""What kinds of things are called, and how to speak of them without naming them."""

from rvt_ray.queries.lexicon.lexicon import Kind, Lexicon, load_lexicon

__all__ = ["Kind", "Lexicon", "load_lexicon"]
