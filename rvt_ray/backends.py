"""One way to name, check and build any exchangeable part: sources, segmenters, depth, captioners, LLMs.

A backend is named in the config by a short name (`motion`) or by a dotted path
(`my_package.my_module:MySegmenter`). Its class has an inner pydantic model `Options` (extra="forbid") and
is built as `cls(options)`. Importing the class must be cheap: heavy packages are imported in `__init__`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rvt_ray.errors import ConfigError


class Options(BaseModel):
    """Base of every backend's options: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


class BackendSpec(BaseModel):
    """How the config names a backend."""

    model_config = ConfigDict(extra="forbid")

    backend: str
    options: dict[str, Any] = Field(default_factory=dict)


def nearest(word: str, valid: list[str]) -> str:
    """A hint for a mistyped name: the nearest valid one, or all of them."""
    close = difflib.get_close_matches(word, valid, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"valid: {', '.join(sorted(valid))}"


def resolve(name: str, builtin: Mapping[str, str], what: str) -> type[Any]:
    """The class behind a short name or a dotted path.

    Args:
        name: short name or `package.module:Class`.
        builtin: short name -> `package.module:Class`.
        what: the config field, for the error text (`perceive.segment`).

    Raises:
        ConfigError: unknown name, module that cannot be imported, or class that is not there.
    """
    path = builtin.get(name, name)
    if ":" not in path:
        raise ConfigError(
            f"{what}: unknown backend {name!r}; {nearest(name, list(builtin))} "
            "An own class is named as 'package.module:Class'."
        )
    module_name, _, class_name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{what}: cannot import {module_name!r} for backend {name!r}: {error}") from error
    try:
        cls: type[Any] = getattr(module, class_name)
    except AttributeError as error:
        raise ConfigError(f"{what}: module {module_name!r} has no class {class_name!r}") from error
    return cls


def check_options(cls: type[Any], options: Mapping[str, Any], what: str) -> Any:
    """Options of a backend, validated; the error names the field and the nearest valid key.

    Raises:
        ConfigError: unknown or wrong option.
    """
    model: type[BaseModel] = getattr(cls, "Options", Options)
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        raise ConfigError(f"{what}.options: " + explain(error, model)) from error


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """A pydantic error in words a user can act on, with the nearest valid key for unknown ones."""
    lines = []
    for item in error.errors():
        where = ".".join(str(p) for p in item["loc"])
        if item["type"] == "extra_forbidden":
            valid = sorted(_fields_at(model, item["loc"][:-1]))
            hint = nearest(str(item["loc"][-1]), valid) if valid else "it takes no options"
            lines.append(f"unknown key {where!r}; {hint}")
        else:
            lines.append(f"{where}: {item['msg']} (got {item['input']!r})")
    return "; ".join(lines)


def _fields_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    current: type[BaseModel] = model
    for part in loc:
        field = current.model_fields.get(str(part)) if not isinstance(part, int) else None
        if field is None:
            continue
        inner = _model_in(field.annotation)
        if inner is not None:
            current = inner
    return list(current.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for arg in getattr(annotation, "__args__", ()):
        found = _model_in(arg)
        if found is not None:
            return found
    return None


def build(spec: BackendSpec, builtin: Mapping[str, str], what: str) -> Any:
    """Resolve, check and construct a backend.

    Raises:
        ConfigError: unknown name or option.
        MissingDependencyError: the backend needs something that this machine lacks.
    """
    cls = resolve(spec.backend, builtin, what)
    return cls(check_options(cls, spec.options, what))
