"""The schema checker: what could stall or end an engine never gets to it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvt_ray.llm import SchemaError, check_schema
from rvt_ray.llm.schema import close_objects, violation

STRING = {"type": "string", "maxLength": 10}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties)}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string"}, "maxLength"),
        ({"type": "string", "maxLength": True}, "maxLength"),
        ({"type": "string", "maxLength": 10**6}, "maxLength <= "),
        ({"type": "string", "minLength": 5, "maxLength": 4}, "minLength <= "),
        ({"type": "string", "maxLength": 5, "pattern": "^a$"}, "either a 'pattern' or a length"),
        ({"type": "string", "pattern": ".*"}, "what repeats"),
        ({"type": "string", "pattern": "^a+$"}, "what repeats"),
        ({"type": "string", "pattern": "^a{2,}$"}, "what repeats"),
        ({"type": "string", "pattern": "^[a-z]$"}, "what repeats"),
        ({"type": "string", "pattern": "^(?<=x)y$"}, "what repeats"),
        ({"type": "string", "pattern": "^(a)$"}, "what repeats"),
        ({"type": "string", "pattern": "^a\\d$"}, "what repeats"),
        ({"type": "string", "pattern": '^"$'}, "what repeats"),
        ({"type": "string", "pattern": "a|b"}, "what repeats"),
        ({"type": "string", "pattern": "^(?:a$"}, "no regular expression"),
        ({"type": "string", "pattern": "^" + "a" * 10**5 + "$"}, "at most"),
        ({"type": "string", "maxLength": 5, "format": "date"}, "'format'"),
        ({"type": "array", "items": STRING}, "maxItems"),
        ({"type": "array", "maxItems": 3}, "a schema is an object"),
        ({"type": "array", "maxItems": 3, "items": {"type": "string"}}, r"\$\[\]"),
        ({"type": "array", "maxItems": 3, "items": STRING, "uniqueItems": True}, "'uniqueItems'"),
        ({"type": "integer"}, "minimum"),
        ({"type": "integer", "minimum": 0}, "maximum"),
        ({"type": "integer", "minimum": 0, "maximum": 1.5}, "maximum"),
        ({"type": "integer", "minimum": 2, "maximum": 1}, "above"),
        ({"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.1}, "multipleOf"),
        ({"type": "object"}, "properties"),
        (obj(a={"type": "string"}), r"\$\.a"),
        (obj(a=STRING) | {"additionalProperties": True}, "additionalProperties"),
        (obj(a=STRING) | {"patternProperties": {}}, "patternProperties"),
        (obj(a=STRING) | {"required": ["b"]}, "'b'"),
        ({"$ref": "#/$defs/a"}, r"\$ref"),
        ({"allOf": [STRING, STRING]}, "'type' must be"),
        ({"anyOf": [STRING, {"type": "string"}]}, r"anyOf\[1\]"),
        ({"anyOf": []}, "at least one"),
        ({"enum": []}, "at least one"),
        ({"enum": ["a"], "maxLength": 3}, "alone"),
        ({"type": ["string", "null"], "maxLength": 3}, "'type' must be"),
        ({}, "'type' must be"),
        ("string", "a schema is an object"),
    ],
)
def test_trap_13_an_unbounded_or_unsupported_schema_is_refused_with_its_place(schema: Any, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        check_schema(schema)


def test_endless_nesting_is_refused() -> None:
    schema: dict[str, Any] = {"type": "boolean"}
    for _ in range(40):
        schema = {"type": "array", "maxItems": 1, "items": schema}
    with pytest.raises(SchemaError, match="nested deeper"):
        check_schema(schema)


def test_the_supported_subset_passes_and_objects_are_closed_at_every_depth() -> None:
    schema = obj(
        query={"type": "string", "minLength": 1, "maxLength": 80, "description": "one question"},
        ids={"type": "array", "minItems": 1, "maxItems": 4, "items": obj(id={"enum": [1, 2]})},
        maybe={"anyOf": [{"type": "null"}, obj(x={"type": "number", "minimum": 0, "maximum": 1})]},
        fixed={"const": "v1"},
        yes={"type": "boolean"},
        said={"type": "string", "pattern": "^(?:Where is|Find) (?:it|the one)(?:[.]|[?])$"},
    )
    check_schema(schema)
    closed = close_objects(schema)
    assert closed["additionalProperties"] is False
    assert closed["properties"]["ids"]["items"]["additionalProperties"] is False
    assert closed["properties"]["maybe"]["anyOf"][1]["additionalProperties"] is False
    assert "description" not in closed["properties"]["query"]
    assert "additionalProperties" not in schema


def test_a_property_may_be_called_like_a_note() -> None:
    schema = obj(title=STRING, description=STRING)
    check_schema(schema)
    assert set(close_objects(schema)["properties"]) == {"title", "description"}


@pytest.mark.parametrize(
    ("data", "schema", "why"),
    [
        ({"a": "x" * 11}, obj(a=STRING), "11 characters"),
        ({}, obj(a=STRING), "'a' is missing"),
        ({"a": "x", "b": 1}, obj(a=STRING), "unexpected property 'b'"),
        ([], obj(a=STRING), "expected an object"),
        (["x"] * 3, {"type": "array", "maxItems": 2, "items": STRING}, "3 items"),
        ([1], {"type": "array", "maxItems": 2, "items": STRING}, r"\$\[0\]"),
        (True, {"type": "integer", "minimum": 0, "maximum": 1}, "expected integer"),
        (True, {"enum": [0, 1]}, "none of the 2"),
        (7, {"type": "number", "minimum": 0, "maximum": 1}, "outside"),
        (1.0, {"type": "integer", "minimum": 0, "maximum": 1}, "expected integer"),
        ("b", {"const": "a"}, "expected 'a'"),
        (0, {"type": "null"}, "expected null"),
        (0, {"type": "boolean"}, "expected true or false"),
        ("y" * 11, {"anyOf": [STRING, {"type": "null"}]}, "no branch"),
    ],
)
def test_data_that_breaks_its_schema_is_named(data: Any, schema: dict[str, Any], why: str) -> None:
    check_schema(schema)
    found = violation(data, schema)
    assert found is not None
    assert re.search(why, found)


_SCHEMAS = st.recursive(
    st.one_of(
        st.builds(lambda n: {"type": "string", "maxLength": n}, st.integers(0, 8)),
        st.builds(
            lambda a, b: {"type": "integer", "minimum": min(a, b), "maximum": max(a, b)},
            st.integers(-9, 9),
            st.integers(-9, 9),
        ),
        st.just({"type": "boolean"}),
        st.just({"type": "null"}),
        st.builds(lambda v: {"enum": v}, st.lists(st.sampled_from(["a", "b", 1, None]), min_size=1)),
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda items, n: {"type": "array", "items": items, "maxItems": n}, inner, st.integers(0, 3)
        ),
        st.builds(lambda p: obj(**p), st.dictionaries(st.sampled_from("abc"), inner, min_size=1)),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=6,
)


@st.composite
def _fitting(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "anyOf" in schema:
        return draw(_fitting(draw(st.sampled_from(schema["anyOf"]))))
    match schema["type"]:
        case "string":
            return draw(st.text(max_size=schema["maxLength"]))
        case "integer":
            return draw(st.integers(schema["minimum"], schema["maximum"]))
        case "boolean":
            return draw(st.booleans())
        case "array":
            return draw(st.lists(_fitting(schema["items"]), max_size=schema["maxItems"]))
        case "object":
            return {name: draw(_fitting(inner)) for name, inner in schema["properties"].items()}
    return None


@given(st.data())
def test_whatever_fits_a_supported_schema_has_no_violation(data: st.DataObject) -> None:
    schema = data.draw(_SCHEMAS)
    check_schema(schema)
    check_schema(close_objects(schema))
    assert violation(data.draw(_fitting(schema)), close_objects(schema)) is None
