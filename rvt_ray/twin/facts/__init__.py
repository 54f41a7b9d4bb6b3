"""Three-valued facts, read off a digital twin. `docs/predicates.md` defines every predicate."""

from rvt_ray.twin.facts.catalogue import CATALOGUE, EXTREMES, REGIONS
from rvt_ray.twin.facts.facts import Fact, Facts
from rvt_ray.twin.facts.logic import Truth
from rvt_ray.twin.facts.naming import check, fact_id, statement
from rvt_ray.twin.facts.spec import PredicateSpec
from rvt_ray.twin.facts.table import Table

__all__ = [
    "CATALOGUE",
    "EXTREMES",
    "REGIONS",
    "Fact",
    "Facts",
    "PredicateSpec",
    "Table",
    "Truth",
    "check",
    "fact_id",
    "statement",
]
