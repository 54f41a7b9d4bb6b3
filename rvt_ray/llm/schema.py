"""JSON schemas a guided model may follow: a bounded subset, checked before the engine sees it.

Two reasons. A guided model can go on for ever inside an unbounded string, array or number, and a keyword that
the grammar compiler does not know can be ignored (the reply then breaks the schema) or end the engine for
every request in flight. So what may be used is listed here, and everything else is refused by name.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rvt_ray.errors import RvtError

MAX_DEPTH = 16
MAX_ITEMS = 1024
MAX_STRING = 8192
MAX_PATTERN = 65_536

_PATTERN = re.compile(r"\^(?:[^\\.*+?{}()\[\]^$|\"\x00-\x1f]|\[[.?]\]|\(\?:|\)|\|)*\$")
"""Words, `[.]`, `[?]`, `(?:...|...)`: what every engine reads alike, and nothing that repeats."""

_NOTES = {"title", "description", "default", "examples"}
_KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
    "boolean": set(),
    "null": set(),
}


class SchemaError(RvtError):
    """A request's JSON schema is unbounded or uses a keyword outside the supported subset.

    A fault of the code that wrote the schema, never of the model; the message names the place in the schema.
    """


def check_schema(schema: Any, where: str = "$") -> None:
    """Refuse what a guided model could run on in, or what the grammar compilers do not all know.

    Supported: `object` (`properties`, `required`, `additionalProperties: false`), `array` (`items`,
    `minItems`, `maxItems` required), `string` (`minLength`, `maxLength` required, or else a `pattern` in
    which nothing repeats), `integer` and `number` (`minimum` and `maximum` required), `boolean`, `null`,
    `enum`, `const`, `anyOf`; notes such as `description` anywhere.

    Raises:
        SchemaError: with the JSON path of the offending part and the remedy.
    """
    _check(schema, where, 0)


def close_objects(schema: dict[str, Any]) -> dict[str, Any]:
    """A copy in which every object says `additionalProperties: false`, notes removed.

    JSON schema's default is open objects, which are unbounded; every schema here means closed ones.
    """
    closed: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOTES:
            continue
        if key == "properties":
            closed[key] = {name: close_objects(inner) for name, inner in value.items()}
        elif key == "items":
            closed[key] = close_objects(value)
        elif key == "anyOf":
            closed[key] = [close_objects(inner) for inner in value]
        else:
            closed[key] = value
    if schema.get("type") == "object":
        closed["additionalProperties"] = False
    return closed


def bare_pattern(schema: dict[str, Any] | None) -> str | None:
    """The pattern where the whole schema is one patterned string: the reply is then bare text, not JSON. (A
    very small model splits half its words into letters when it has to write inside of JSON.)"""
    if schema is None or schema.get("type") != "string":
        return None
    pattern: str | None = schema.get("pattern")
    return pattern


def violation(data: Any, schema: dict[str, Any], where: str = "$") -> str | None:
    """What in `data` breaks a schema that `check_schema` accepted, or None when it fits.

    Endpoints may ignore `response_format`, so a reply is checked whoever wrote it.
    """
    if "const" in schema:
        return None if _same(data, schema["const"]) else f"{where}: expected {schema['const']!r}"
    if "enum" in schema:
        if any(_same(data, value) for value in schema["enum"]):
            return None
        return f"{where}: {_short(data)} is none of the {len(schema['enum'])} allowed values"
    if "anyOf" in schema:
        if any(violation(data, option, where) is None for option in schema["anyOf"]):
            return None
        return f"{where}: {_short(data)} fits no branch of anyOf"
    return _VIOLATIONS[schema["type"]](data, schema, where)


def _check(schema: Any, where: str, depth: int) -> None:
    if not isinstance(schema, dict):
        raise SchemaError(f"schema at {where}: a schema is an object, not {type(schema).__name__}")
    if depth > MAX_DEPTH:
        raise SchemaError(f"schema at {where}: nested deeper than {MAX_DEPTH}")
    keys = set(schema) - _NOTES
    if "$ref" in keys or "$defs" in keys:
        raise SchemaError(f"schema at {where}: $ref and $defs are not supported; write the part in place")
    alternatives = keys & {"enum", "const", "anyOf"}
    if alternatives:
        _check_alternatives(schema, where, depth, keys, alternatives)
        return
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _KEYWORDS:
        raise SchemaError(
            f"schema at {where}: 'type' must be one of {', '.join(_KEYWORDS)} (or use enum, const, anyOf), "
            f"not {kind!r}"
        )
    unknown = keys - {"type"} - _KEYWORDS[kind]
    if unknown:
        raise SchemaError(
            f"schema at {where}: unsupported keyword {sorted(unknown)[0]!r} for type {kind!r}; supported: "
            f"{', '.join(sorted(_KEYWORDS[kind])) or 'none'}"
        )
    if kind == "object":
        _check_object(schema, where, depth)
    elif kind == "array":
        _check_count(schema, where, "minItems", "maxItems", MAX_ITEMS)
        _check(schema.get("items"), f"{where}[]", depth + 1)
    elif kind == "string" and "pattern" in schema:
        _check_pattern(schema, where)
    elif kind == "string":
        _check_count(schema, where, "minLength", "maxLength", MAX_STRING)
    elif kind in ("integer", "number"):
        _check_range(schema, where, kind)


def _check_alternatives(
    schema: dict[str, Any], where: str, depth: int, keys: set[str], alternatives: set[str]
) -> None:
    extra = keys - {"type"} - alternatives
    if len(alternatives) > 1 or extra:
        raise SchemaError(
            f"schema at {where}: {sorted(alternatives)[0]!r} stands alone; it cannot be combined with "
            f"{', '.join(sorted((alternatives | extra) - {min(alternatives)}))}"
        )
    if "const" in alternatives:
        return
    name = alternatives.pop()
    values = schema[name]
    if not isinstance(values, list) or not values:
        raise SchemaError(f"schema at {where}: {name!r} must be a list with at least one entry")
    if name == "anyOf":
        for i, option in enumerate(values):
            _check(option, f"{where}.anyOf[{i}]", depth + 1)


def _check_object(schema: dict[str, Any], where: str, depth: int) -> None:
    if schema.get("additionalProperties", False) is not False:
        raise SchemaError(
            f"schema at {where}: additionalProperties must be false: open objects are unbounded"
        )
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        raise SchemaError(f"schema at {where}: an object needs 'properties' with at least one entry")
    for name, inner in properties.items():
        _check(inner, f"{where}.{name}", depth + 1)
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise SchemaError(f"schema at {where}: 'required' must be a list")
    for name in required:
        if name not in properties:
            raise SchemaError(f"schema at {where}: required property {name!r} is not in 'properties'")


def _check_count(schema: dict[str, Any], where: str, low: str, high: str, limit: int) -> None:
    top = schema.get(high)
    if not isinstance(top, int) or isinstance(top, bool):
        raise SchemaError(
            f"schema at {where}: a {schema['type']} needs an integer {high!r}: a guided model may never stop"
        )
    bottom = schema.get(low, 0)
    if not isinstance(bottom, int) or isinstance(bottom, bool) or not 0 <= bottom <= top <= limit:
        raise SchemaError(f"schema at {where}: 0 <= {low} <= {high} <= {limit} must hold")


def _check_pattern(schema: dict[str, Any], where: str) -> None:
    pattern = schema["pattern"]
    if "maxLength" in schema or "minLength" in schema:
        raise SchemaError(f"schema at {where}: engines take either a 'pattern' or a length, not both")
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN or not _PATTERN.fullmatch(pattern):
        raise SchemaError(
            f"schema at {where}: 'pattern' must be ^words$ with alternatives (?:a|b), [.] and [?] only, at "
            f"most {MAX_PATTERN} characters: what repeats could go on for ever"
        )
    try:
        re.compile(pattern)
    except re.error as error:
        raise SchemaError(f"schema at {where}: 'pattern' is no regular expression: {error}") from error


def _check_range(schema: dict[str, Any], where: str, kind: str) -> None:
    kinds = (int,) if kind == "integer" else (int, float)
    for name in ("minimum", "maximum"):
        value = schema.get(name)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise SchemaError(
                f"schema at {where}: {kind} needs {name!r} (as {kind}): digits could go on for ever"
            )
    if schema["minimum"] > schema["maximum"]:
        raise SchemaError(f"schema at {where}: minimum is above maximum")


def _same(a: Any, b: Any) -> bool:
    # In Python 1 == True; in JSON they differ.
    return bool(isinstance(a, bool) == isinstance(b, bool) and a == b)


def _short(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _object_violation(data: Any, schema: dict[str, Any], where: str) -> str | None:
    if not isinstance(data, dict):
        return f"{where}: expected an object, got {_short(data)}"
    properties = schema["properties"]
    for name in schema.get("required", []):
        if name not in data:
            return f"{where}: {name!r} is missing"
    for name, value in data.items():
        if name not in properties:
            return f"{where}: unexpected property {name!r}"
        found = violation(value, properties[name], f"{where}.{name}")
        if found:
            return found
    return None


def _array_violation(data: Any, schema: dict[str, Any], where: str) -> str | None:
    if not isinstance(data, list):
        return f"{where}: expected an array, got {_short(data)}"
    if not schema.get("minItems", 0) <= len(data) <= schema["maxItems"]:
        return f"{where}: {len(data)} items, allowed {schema.get('minItems', 0)}..{schema['maxItems']}"
    for i, value in enumerate(data):
        found = violation(value, schema["items"], f"{where}[{i}]")
        if found:
            return found
    return None


def _string_violation(data: Any, schema: dict[str, Any], where: str) -> str | None:
    if not isinstance(data, str):
        return f"{where}: expected a string, got {_short(data)}"
    if "pattern" in schema:
        fits = re.fullmatch(schema["pattern"], data) is not None
        return None if fits else f"{where}: {_short(data)} does not fit the pattern"
    if not schema.get("minLength", 0) <= len(data) <= schema["maxLength"]:
        return f"{where}: {len(data)} characters, allowed {schema.get('minLength', 0)}..{schema['maxLength']}"
    return None


def _number_violation(data: Any, schema: dict[str, Any], where: str) -> str | None:
    kinds = (int,) if schema["type"] == "integer" else (int, float)
    if not isinstance(data, kinds) or isinstance(data, bool):
        return f"{where}: expected {schema['type']}, got {_short(data)}"
    if not schema["minimum"] <= data <= schema["maximum"]:
        return f"{where}: {data} is outside {schema['minimum']}..{schema['maximum']}"
    return None


def _boolean_violation(data: Any, _schema: dict[str, Any], where: str) -> str | None:
    return None if isinstance(data, bool) else f"{where}: expected true or false, got {_short(data)}"


def _null_violation(data: Any, _schema: dict[str, Any], where: str) -> str | None:
    return None if data is None else f"{where}: expected null, got {_short(data)}"


_VIOLATIONS = {
    "object": _object_violation,
    "array": _array_violation,
    "string": _string_violation,
    "integer": _number_violation,
    "number": _number_violation,
    "boolean": _boolean_violation,
    "null": _null_violation,
}
