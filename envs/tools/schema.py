"""The JSON Schema of a Python function, out of its signature and its docstring."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_OTHERS = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
_SECTION = re.compile(r"[A-Z][A-Za-z ]*:")
_ARGUMENT = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)")


class SchemaError(TypeError):
    """A function cannot be described as a tool."""


def describe(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function as ``{"name", "description", "parameters"}``; ``parameters`` is a JSON Schema.

    Its docstring (Google form) gives the descriptions: what stands before its sections, and what ``Args:`` says of
    each parameter. Types are str, int, float, bool, None, ``list[T]``, ``dict[str, T]``, ``Literal`` and unions of
    them. A parameter with a default is optional. ``self`` is left out.

    Raises:
        SchemaError: A parameter has no type, one that JSON does not know, or no name by which it could be given; or the
            function is a coroutine or a generator.
    """
    name = function.__name__
    if any(is_other(function) for is_other in _OTHERS):
        raise SchemaError(f"tool {name!r} must return its result when it is called; take a plain function")
    said, arguments = _read(inspect.getdoc(function) or "")
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required = []
    for key, parameter in inspect.signature(function).parameters.items():
        if key == "self":
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise SchemaError(f"tool {name!r}: {parameter} cannot be given by its name; take plain parameters")
        if key not in hints:
            raise SchemaError(f"tool {name!r}: parameter {key!r} needs a type, such as {key}: str")
        try:
            properties[key] = _schema(hints[key])
        except SchemaError as error:
            raise SchemaError(f"tool {name!r}: parameter {key!r} {error}") from None
        if key in arguments:
            properties[key]["description"] = arguments[key]
        if parameter.default is parameter.empty:
            required.append(key)
        elif parameter.default is not None:
            properties[key]["default"] = parameter.default
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": said, "parameters": parameters}


def _schema(hint: Any) -> dict[str, Any]:
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint is Any:
        return {}
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        kinds = {_PLAIN.get(type(value)) for value in parts}
        kind = kinds.pop() if len(kinds) == 1 else None
        return {**({"type": kind} if kind else {}), "enum": list(parts)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(part) for part in parts]}
    if origin in (list, Sequence) or hint is list:
        return {"type": "array", **({"items": _schema(parts[0])} if parts else {})}
    if (origin in (dict, Mapping) and parts[:1] in ((), (str,))) or hint is dict:
        return {"type": "object", **({"additionalProperties": _schema(parts[1])} if parts else {})}
    raise SchemaError(
        f"has the type {hint!r}; take str, int, float, bool, list[T], dict[str, T], Literal or a union of them"
    )


def _read(doc: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of the function, and of each of its arguments."""
    lines = doc.splitlines()
    sections = [i for i, line in enumerate(lines) if _SECTION.fullmatch(line.rstrip())]
    said = "\n".join(lines[: sections[0]] if sections else lines).strip()
    arguments: dict[str, str] = {}
    first = next((i for i in sections if lines[i].rstrip() in ("Args:", "Arguments:")), None)
    if first is None:
        return said, arguments
    key, depth = "", 0
    for line in lines[first + 1 : next((i for i in sections if i > first), len(lines))]:
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if text and (not key or indent <= depth) and (match := _ARGUMENT.fullmatch(text)):
            key, depth = match[1], indent
            arguments[key] = match[2]
        elif text and key:
            arguments[key] = f"{arguments[key]} {text}".strip()
    return said, arguments
