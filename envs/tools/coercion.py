"""Arguments of a call made to fit a JSON Schema, or refused by name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from tetrathlon.envs.tools.decoding import DEEPEST, BrokenJson, decode_whole

_INTEGER = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_MOST_PARTS = 100_000
"""Values in the arguments of one call, each counted once for every schema that is tried on it."""
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


class ArgumentError(ValueError):
    """An argument does not fit; the message names it, for the model to read."""


def coerce(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call with the types that the schema of its parameters asks for.

    What means the same is taken: ``"3"`` and ``3.0`` for an integer, ``"2.5"`` for a number, ``7`` for a text,
    ``"true"`` for a truth value, a list or an object as JSON in a text. Nothing is guessed beyond that. Defaults are
    left to the tool. Of JSON Schema it knows ``type``, ``enum``, ``const``, ``anyOf``, ``oneOf``, ``allOf``, ``items``,
    ``properties``, ``required``, ``additionalProperties``, ``minimum``, ``maximum`` and ``$ref`` within the schema;
    what else a foreign schema asks for is the tool's own to check.

    Raises:
        ArgumentError: An argument is missing, unknown, or does not fit.
    """
    fitted: dict[str, Any] = _Fit(schema).value(schema, dict(arguments), "")
    return fitted


class _Fit:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.left = _MOST_PARTS

    def value(self, schema: Any, value: Any, where: str, depth: int = 0) -> Any:
        """Return ``value`` as ``schema`` wants it; ``where`` names it."""
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            raise ArgumentError(f"argument {where[:100]!r} {'has too many parts' if self.left < 0 else 'is too deep'}")
        if not isinstance(schema, Mapping):  # true, or nothing said
            return value
        if "$ref" in schema:
            return self.value(self._target(schema["$ref"]), value, where, depth + 1)
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices or "allOf" in schema:
            rest = {key: said for key, said in schema.items() if key not in ("anyOf", "oneOf", "allOf")}
            for one in (rest, *schema.get("allOf", ())):
                value = self.value(one, value, where, depth + 1)
            return self._any(choices, value, where, depth) if choices else value
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._any([{**schema, "type": one} for one in kind], value, where, depth)
        if kind == "object" or (kind is None and ("properties" in schema or isinstance(value, dict))):
            fitted: Any = self._object(schema, value, where, depth)
        elif kind == "array":
            items = _parsed(value, list)
            if not isinstance(items, list):
                raise _refused(where, "array", value)
            item = schema.get("items")
            fitted = [self.value(item, one, f"{where}[{i}]", depth + 1) for i, one in enumerate(items)]
        else:
            fitted = _SCALARS[kind](value, where) if isinstance(kind, str) and kind in _SCALARS else value
        return _checked(schema, fitted, where)

    def _object(self, schema: Mapping[str, Any], value: Any, where: str, depth: int) -> dict[str, Any]:
        given = _parsed(value, dict)
        if not isinstance(given, dict):
            raise _refused(where, "object", value)
        known = schema.get("properties") or {}
        more = schema.get("additionalProperties", True)
        fitted = {}
        for key, one in given.items():
            name = f"{where}.{key}" if where else str(key)
            if key not in known and more is False:
                raise ArgumentError(f"there is no argument {name[:100]!r}; there are {', '.join(known) or 'none'}")
            fitted[key] = self.value(known.get(key, more), one, name, depth + 1)
        if missing := [key for key in schema.get("required") or () if key not in given]:
            name = f"{where}.{missing[0]}" if where else missing[0]
            raise ArgumentError(f"argument {name!r} is missing")
        return fitted

    def _any(self, choices: list[Any], value: Any, where: str, depth: int) -> Any:
        """Return ``value`` by the first choice that takes it as it is, else by the first that takes it at all."""
        taken, refused = [], []
        for choice in choices:
            try:
                fitted = self.value(choice, value, where, depth + 1)
            except ArgumentError as error:
                refused.append(error)
                continue
            if type(fitted) is type(value) and fitted == value:
                return fitted
            taken.append(fitted)
        if not taken:
            raise refused[0]
        return taken[0]

    def _target(self, reference: Any) -> Any:
        found: Any = self.root
        for part in filter(None, str(reference).removeprefix("#").split("/")):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        return found


def _string(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    raise _refused(where, "string", value)


def _integer(value: Any, where: str) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refused(where, "integer", value)
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise _refused(where, "number", value)
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond floats
        return False


def _boolean(value: Any, where: str) -> bool:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise _refused(where, "boolean", value)
    return value


def _null(value: Any, where: str) -> None:
    if value is not None:
        raise _refused(where, "null", value)


_SCALARS: Mapping[str, Callable[[Any, str], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
}


def _parsed(value: Any, kind: type) -> Any:
    """Return what a text says where it is the JSON of a list or an object."""
    if not isinstance(value, str):
        return value
    try:
        said = decode_whole(value)
    except BrokenJson:
        return value
    return said if isinstance(said, kind) else value


def _checked(schema: Mapping[str, Any], value: Any, where: str) -> Any:
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    is_bool = isinstance(value, bool)
    if allowed is not None and not any(one == value and isinstance(one, bool) == is_bool for one in allowed):
        raise ArgumentError(f"argument {where!r} must be one of {json.dumps(allowed)}, got {_shown(value)}")
    if isinstance(value, int | float) and not is_bool:
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = " and ".join([f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None))
            raise ArgumentError(f"argument {where!r} must be {bounds}, got {_shown(value)}")
    return value


def _refused(where: str, wanted: str, value: Any) -> ArgumentError:
    name = f"argument {where!r}" if where else "what is given"
    return ArgumentError(f"{name} must be of type {wanted}, got {_shown(value)}")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError, TypeError):
        return f"something of type {_NAMES.get(type(value), type(value).__name__)}"
    return text if len(text) <= 80 else f"{text[:77]}..."
