"""A tool: a typed Python function, or a server's, that a call can name."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tetrathlon.envs.tools.coercion import coerce
from tetrathlon.envs.tools.schema import describe

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__tetrathlon_tool__"


class ToolError(Exception):
    """A call failed; the message is fit to be read by who made it."""


class ToolDown(Exception):
    """A tool itself does not work, whoever calls it: the episode has no score."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a call can name."""

    name: str
    """By which it is called."""
    description: str
    """What it does, for the model to read."""
    parameters: Mapping[str, Any]
    """A JSON Schema of its arguments, an object."""
    function: Callable[..., Any]
    """Called with the arguments by name; returns a text, or what JSON can say."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Tool:
        """Return a function as a tool; see :func:`~tetrathlon.envs.tools.schema.describe`.

        Raises:
            tetrathlon.envs.tools.schema.SchemaError: It cannot be described.
        """
        said = describe(function)
        return cls(said["name"], said["description"], said["parameters"], function)

    def call(self, arguments: Mapping[str, Any]) -> str:
        """Return what the tool says.

        Raises:
            tetrathlon.envs.tools.coercion.ArgumentError: The arguments do not fit.
            ToolError: The function raised it, or anything else; what it raised is named.
            ToolDown: The tool does not work.
        """
        fitted = coerce(self.parameters, arguments)
        try:
            said = self.function(**fitted)
            return said if isinstance(said, str) else _written(said)
        except (ToolError, ToolDown):
            raise
        except (Exception, SystemExit) as error:  # a tool is foreign code that is fed by a model
            raise ToolError(f"{type(error).__name__}: {error}") from error

    def schema(self) -> dict[str, Any]:
        """Return the tool as OpenAI's API and chat templates take it, all of it fresh."""
        function = {"name": self.name, "description": self.description, "parameters": _copy(self.parameters)}
        return {"type": "function", "function": function}


def tool(function: F) -> F:
    """Mark a method of a :class:`~tetrathlon.envs.tools.world.World` as a tool."""
    setattr(function, _MARK, True)
    return function


def is_tool(function: Any) -> bool:
    """Tell whether :func:`tool` marked ``function``."""
    return getattr(function, _MARK, False) is True


def _written(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value
