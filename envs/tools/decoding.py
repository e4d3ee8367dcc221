"""JSON as an agent may write it: read strictly, in bounded time and depth, and never mended."""

from __future__ import annotations

import json
import math
import re
from typing import Any

DEEPEST = 64
"""Lists and objects within one another."""
_LONGEST_NUMBER = 400
_BLANK = re.compile(r"\s*")


class BrokenJson(ValueError):
    """A text is no JSON; the message says why, for the model to read.

    Args:
        said: The message.
        at: See below.
    """

    def __init__(self, said: str, at: int) -> None:
        super().__init__(said)
        self.at = at
        """What was read before this place is text of the broken JSON and nothing else: its strings, say."""


def decode(text: str, at: int = 0) -> tuple[Any, int]:
    """Return the JSON value that begins at ``at``, without blanks before it, and where it ends.

    Line ends inside strings are let through. A key that comes twice, NaN, infinite numbers and numbers of more than
    400 digits are errors.

    Raises:
        BrokenJson: There is none.
    """
    try:
        value, end = _STRICT.raw_decode(text, at)
    except RecursionError:
        raise BrokenJson("it is nested too deep", at) from None
    except json.JSONDecodeError as error:
        raise BrokenJson(f"{error.msg} at character {error.pos - at}", error.pos) from None
    except ValueError as error:  # raised by what follows; the JSON may be whole
        raise BrokenJson(str(error), _end(text, at)) from None
    if _is_deep(value):
        raise BrokenJson(f"it is nested more than {DEEPEST} deep", end)
    return value, end


def decode_whole(text: str) -> Any:
    """Return the JSON value that ``text`` is, blanks around it allowed.

    Raises:
        BrokenJson: It is none, or there is more behind it.
    """
    value, end = decode(text, skip_blanks(text, 0))
    if skip_blanks(text, end) < len(text):
        raise BrokenJson(f"there is more after character {end}", end)
    return value


def skip_blanks(text: str, at: int) -> int:
    """Return the place of the first character from ``at`` that is not blank."""
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _end(text: str, at: int) -> int:
    try:
        return _LENIENT.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return at


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        within: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                within += one.values()
            elif isinstance(one, list):
                within += one
        if not within:
            return False
        level = within
    return True


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:60]!r} comes twice")
            seen.add(key)
    return found


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"the number {written[:40]} is too large")
    return number


def _integer(written: str) -> int:
    if len(written) > _LONGEST_NUMBER:
        raise ValueError(f"a number has {len(written)} digits")
    return int(written)


def _constant(written: str) -> Any:
    raise ValueError(f"{written} is no JSON")


_STRICT = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_finite, parse_int=_integer, parse_constant=_constant, strict=False
)
_LENIENT = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, strict=False)
