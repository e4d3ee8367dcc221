"""Instructions by which the whole reply is data: JSON, JSON of a schema, CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Self

import gymnasium as gym
import numpy as np

from tetrathlon.envs.text.instructions.draft import Draft, Line, phrases
from tetrathlon.envs.text.instructions.instruction import Instruction, Scene, pick_some
from tetrathlon.envs.text.instructions.units import is_filled, shown

_DEEPEST = 64
_MOST_DIGITS = 400
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[{}\]]")
_FENCE = re.compile(r"```(?:json|JSON|Json)?[^\S\n]*\n(.*)\n[^\S\n]*```", re.DOTALL)
_COLUMNS = ("name", "place", "colour", "reason", "use", "example", "source", "season")
_CELLS = (
    "north",
    "blue",
    "morning",
    "market",
    "comfort",
    "autumn",
    "village",
    "green",
    "evening",
    "practice",
    "garden",
)
_TEXT_FIELDS = ("title", "summary", "author", "opinion")
_COLOURS = ("red", "green", "blue", "yellow", "white")


class _RefusedError(ValueError):
    """JSON that is not taken, though Python would."""


def _refuse(found: object) -> Any:
    raise _RefusedError(f"{found!r} is not taken")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of ``pairs``; a name that comes twice has no one value (RFC 8259, section 4)."""
    made = dict(pairs)
    return made if len(made) == len(pairs) else _refuse(pairs[0])


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _MOST_DIGITS else _refuse(digits[:20])


def _float(digits: str) -> float:
    number = float(digits) if len(digits) <= _MOST_DIGITS else math.inf
    return number if math.isfinite(number) else _refuse(digits[:20])


def parse_json(text: str) -> tuple[Any, bool]:
    """Return the value of ``text`` and whether it is JSON that is taken.

    Refused, beside what is no JSON: NaN and Infinity, numbers of more than 400 digits or beyond a double, names that
    come twice in an object, and more than 64 brackets inside one another.
    """
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > _DEEPEST:
            return None, False
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_refuse
        )
    except ValueError:
        return None, False
    return value, True


@dataclass(frozen=True)
class Json(Instruction):
    """The whole reply is a JSON object."""

    kind = "json"
    is_layout = True
    is_data = True
    is_english = True
    may_be_fenced: bool = False
    """Whether a Markdown code fence may stand around it, and any JSON value in it."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls()

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        if self.may_be_fenced:
            return "The whole reply must be valid JSON; a Markdown code fence around it is allowed."
        return (
            "The whole reply must be one valid JSON object that is not empty, with no name twice, and nothing around "
            "it: no text and no code fence."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        if self.may_be_fenced and (fence := _FENCE.fullmatch(text)) is not None:
            text = fence[1]
        value, is_json = parse_json(text)
        return is_json and (self.may_be_fenced or (isinstance(value, dict) and bool(value)))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""

        def wrap(text: str) -> str:
            return json.dumps({"topic": draft.topic, "points": re.split(r"(?<=\.) ", text)}, ensure_ascii=False)

        draft.body = [[Line()]]
        draft.finish.insert(0, wrap)


@dataclass(frozen=True)
class JsonSchema(Instruction):
    """The whole reply is JSON of a schema."""

    kind = "json_schema"
    is_layout = True
    is_data = True
    is_english = True
    least_words = 3
    schema: str
    """The JSON Schema, as JSON."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        needs_validator()
        most = int(rng.integers(5, 100))
        tags = int(rng.integers(2, 5))
        fields: dict[str, Any] = {
            "count": {"type": "integer", "minimum": 1, "maximum": most},
            "rating": {"type": "number", "minimum": 0, "maximum": 1},
            "is_common": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": tags, "maxItems": tags},
            "colour": {"enum": pick_some(rng, _COLOURS, 3)},
            "source": {
                "type": "object",
                "properties": {"name": {"type": "string", "minLength": 1}, "year": {"type": "integer"}},
                "required": ["name", "year"],
                "additionalProperties": False,
            },
        }
        names = pick_some(rng, list(fields), int(rng.integers(1, 4)))
        text = pick_some(rng, _TEXT_FIELDS, 1)[0]
        properties = {text: {"type": "string", "minLength": 10}, **{name: fields[name] for name in names}}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return cls(json.dumps({**schema, "additionalProperties": False}))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            "The whole reply must be one JSON object of this JSON Schema, with no name twice, and nothing around it: "
            f"no text and no code fence. {self.schema}"
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        value, is_json = parse_json(text)
        return is_json and bool(_validator(self.schema).is_valid(value))

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        value = _example(json.loads(self.schema), draft)
        draft.body = [[Line(json.dumps(value), is_open=False)]]


def _example(schema: Mapping[str, Any], draft: Draft) -> Any:
    """Return a value of one of the schemas that :meth:`JsonSchema.draw` writes."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: _example(part, draft) for name, part in schema["properties"].items()}
        case "array":
            return list(_CELLS[: schema["minItems"]])
        case "integer":
            return schema.get("minimum", 1999)
        case "number":
            return 0.5
        case "boolean":
            return True
    sentence = phrases()["languages"]["en"]["mentions"][0].format(draft.topic)
    return sentence if schema["minLength"] > 1 else "village"


def needs_validator() -> Any:
    """Return the package jsonschema.

    Raises:
        gymnasium.error.DependencyNotInstalled: It is missing.
    """
    try:
        import jsonschema
    except ImportError as error:
        raise gym.error.DependencyNotInstalled(
            'JSON of a schema needs the package jsonschema: pip install "tetrathlon[llm]"'
        ) from error
    return jsonschema


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    return needs_validator().Draft202012Validator(json.loads(schema))


@dataclass(frozen=True)
class Csv(Instruction):
    """The whole reply is CSV."""

    kind = "csv"
    is_layout = True
    is_data = True
    is_english = True
    columns: tuple[str, ...]
    """Names of the columns in order."""
    size: int
    """Number of rows under the header."""

    @classmethod
    def draw(cls, rng: np.random.Generator, scene: Scene) -> Self:
        """See :meth:`Instruction.draw`."""
        return cls(draw_columns(rng), int(rng.integers(3, 7)))

    def describe(self) -> str:
        """See :meth:`Instruction.describe`."""
        return (
            f"The whole reply must be CSV and nothing else, without a code fence: the header {','.join(self.columns)} "
            f"and exactly {self.size} rows, fields set apart by commas, each with a letter or a digit in it; a field "
            "with a comma in it stands between double quotation marks."
        )

    def holds(self, text: str) -> bool:
        """See :meth:`Instruction.holds`."""
        reader = csv.reader(io.StringIO(text), strict=True, skipinitialspace=True)
        try:
            rows = list(islice((row for row in reader if len(row) > 1 or any(map(str.strip, row))), self.size + 2))
        except csv.Error:
            return False
        fits = all(len(row) == len(self.columns) and all(is_filled(shown(cell)) for cell in row) for row in rows)
        return fits and len(rows) == self.size + 1 and tuple(map(str.strip, rows[0])) == self.columns

    def shape(self, draft: Draft) -> None:
        """See :meth:`Instruction.shape`."""
        rows = [self.columns, *draw_rows(draft.topic, len(self.columns), self.size)]
        draft.body = [[Line(",".join(row), is_open=False) for row in rows]]


def draw_columns(rng: np.random.Generator) -> tuple[str, ...]:
    """Draw names of two to four columns."""
    return tuple(pick_some(rng, _COLUMNS, int(rng.integers(2, 5))))


def draw_rows(topic: str, width: int, size: int) -> list[tuple[str, ...]]:
    """Return ``size`` rows of ``width`` cells of which the first names ``topic``."""
    cells = [topic] + [_CELLS[n % len(_CELLS)] + ("" if n < len(_CELLS) else f" {n}") for n in range(width * size)]
    return [tuple(cells[row * width : (row + 1) * width]) for row in range(size)]
