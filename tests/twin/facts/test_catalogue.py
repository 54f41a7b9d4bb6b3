"""docs/predicates.md says of every predicate what the catalogue says, and of every setting its value."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from rvt_ray.config.settings import FactSettings
from rvt_ray.twin.facts import CATALOGUE, EXTREMES, PredicateSpec
from rvt_ray.twin.facts.encounters import ENCOUNTERS
from rvt_ray.twin.facts.kinds import colour_neighbours, functions, general_kinds, is_a, normal
from rvt_ray.twin.facts.spatial import RELATIONS
from rvt_ray.twin.facts.temporal import EVENTS

DOC = Path(__file__).parents[3] / "docs" / "predicates.md"


def row(spec: PredicateSpec) -> str:
    """The line of the table that the document must hold."""
    signature = f"{spec.name}(x{', y' if spec.arity == 2 else ''})" + (
        f" = {spec.value}" if spec.value else ""
    )
    inverse = "symmetric" if spec.symmetric else spec.inverse or ""
    definition = spec.definition.format(x="x", y="y", value="value")
    return (
        f"| `{signature}` | {spec.category.value} | {', '.join(spec.scopes) or '-'} | {definition} "
        f"| {spec.unit} | {', '.join(spec.needs) or '-'} | {inverse or '-'} |"
    )


@pytest.mark.parametrize("spec", CATALOGUE.values(), ids=list(CATALOGUE))
def test_the_document_defines_the_predicate_as_the_code_does(spec: PredicateSpec) -> None:
    assert row(spec) in DOC.read_text(encoding="utf-8").splitlines()


def test_the_document_names_no_predicate_that_is_gone() -> None:
    lines = DOC.read_text(encoding="utf-8").splitlines()
    named = {line.split("`")[1].split("(")[0] for line in lines if line.startswith("| `") and "(x" in line}
    assert named == set(CATALOGUE)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_document_tells_in_full_when_the_predicate_is_true_and_when_false(name: str) -> None:
    """The table's one line is a summary: nobody could write the predicate from it."""
    full = DOC.read_text(encoding="utf-8").split("## In full")[1].split("## Settings")[0]
    heads = re.findall(r"\*\*([^*]+)\*\*(?: \(([^)]*)\))?", full)  # **left_of, above** (and right_of, below)
    table = re.findall(r"^\| ([a-z, ]+) \| [a-z_, ]+ \|$", full, re.MULTILINE)
    named = {word for text in (*itertools.chain(*heads), *table) for word in re.findall(r"\w+", text)}
    assert name in named


def test_the_document_gives_every_setting_with_its_default_and_reason() -> None:
    text = DOC.read_text(encoding="utf-8").splitlines()
    for name, field in FactSettings.model_fields.items():
        rows = [line for line in text if line.startswith(f"| `{name}` | {field.default} |")]
        assert len(rows) == 1, f"{name} = {field.default} needs one row in docs/predicates.md"
        assert len(rows[0].split("|")[3].strip()) > 20, f"{name}: say why"


def test_the_catalogue_hangs_together() -> None:
    settings = set(FactSettings.model_fields)
    for spec in CATALOGUE.values():
        assert set(spec.needs) <= settings, spec.name
        assert spec.opposite is None or CATALOGUE[spec.opposite].arity == spec.arity
        if spec.inverse:
            assert spec.arity == 2
            assert CATALOGUE[spec.inverse].inverse == spec.name
        placeholders = {"x", "y"} if spec.arity == 2 else {"x"}
        assert all(f"{{{p}}}" in spec.phrase for p in placeholders), spec.name
    assert set(RELATIONS) | set(EVENTS) | set(ENCOUNTERS) | set(EXTREMES) <= set(CATALOGUE)


def test_kinds_form_no_circle_and_synonyms_are_resolved() -> None:
    from rvt_ray.twin.facts.kinds import _data

    for general, special in _data()["general"].items():
        assert general not in general_kinds(general), general
        for kind in special:
            assert is_a(kind, general)
    for word, kind in _data()["synonyms"].items():
        assert normal(word) == kind == normal(kind), word
    assert functions("armchair") >= {"sit on"}
    assert "orange" in colour_neighbours("red")
    assert "red" in colour_neighbours("orange")
