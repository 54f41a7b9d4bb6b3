"""From a draft to words: by rules, or by a language model that is told the program in plain words."""

from rvt_ray.queries.wording.phraser import CannotSay
from rvt_ray.queries.wording.speaker import Speaker
from rvt_ray.queries.wording.template import TemplateWriter, Words

__all__ = ["CannotSay", "Speaker", "TemplateWriter", "Words"]
