"""Literals as models write them: numbers, texts, lists and named values, in the brackets of JSON, Python or calls.

They are read in one pass, to a small depth. Quotes may be single or double, commas may be left out, and behind a name
stands a colon or an equal sign.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias

from tetrathlon.envs.vision.coordinates import Malformed

NUMBER = r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,4})?"
"""Pattern of a number."""
_DEEPEST = 8
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_NO_NUMBERS = frozenset({"nan", "inf", "infinity", "true", "false", "null", "none"})
_TOKEN = re.compile(
    rf"""\s*+(?:(?P<number>{NUMBER})(?![\w.])|(?P<word>[-+]?\w[\w.]*+)"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')|(?P<sign>[\[\](){},;:=]))""",
    re.DOTALL,
)


class Pairs(tuple[tuple[str, "Value"], ...]):
    """Names and their values, in order; a name may come twice."""

    __slots__ = ()


Value: TypeAlias = "float | str | list[Value] | Pairs | None"
"""None is what stands for a number and is no finite one in plain digits: NaN, true, null, ``1e400``, ``12px``."""


def parse(text: str, at: int) -> tuple[Value, int]:
    """Return the value that begins with the bracket at ``at``, and where it ends.

    Args:
        text: Of any content; the time taken is linear in it.
        at: Place of an opening bracket.

    Raises:
        Malformed: It is not read (``syntax``): a bracket without its fellow, brackets more than 8 deep, a word that is
            no name, names beside values without names.
    """
    parser = _Parser(text, at)
    return parser.value(parser.next(), 0), parser.at


class _Parser:
    """Reads one value.

    Args:
        text: What it stands in.
        at: Where it begins.
    """

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at

    def next(self) -> re.Match[str]:
        """Return the next token and go past it."""
        token = _TOKEN.match(self.text, self.at)
        if token is None:
            raise Malformed("syntax", f"nothing known at character {self.at}")
        self.at = token.end()
        return token

    def value(self, token: re.Match[str], depth: int) -> Value:
        """Return the value that begins with ``token``."""
        if token["sign"] in _CLOSING:
            if depth == _DEEPEST:
                raise Malformed("syntax", f"brackets are more than {_DEEPEST} deep")
            return self.inside(_CLOSING[token["sign"]], depth + 1)
        if token["number"]:
            number = float(token["number"])
            return number if math.isfinite(number) else None
        if token["text"]:
            return token["text"][1:-1]
        word = (token["word"] or "").lstrip("+-")
        if word.lower() in _NO_NUMBERS or word[:1].isnumeric():
            return None
        raise Malformed("syntax", f"no value at character {token.start()}")

    def inside(self, closing: str, depth: int) -> Value:
        """Return what stands in a bracket whose opening was read."""
        pairs: list[tuple[str, Value]] = []
        values: list[Value] = []
        may_separate = False
        while (token := self.next())["sign"] != closing:
            if token["sign"] in (",", ";") and may_separate:
                may_separate = False
                continue
            if may_separate and token[0][0] in "+-":  # a sum or a range: nobody could tell which numbers are meant
                raise Malformed("syntax", f"a sign between values at character {token.start()}")
            name = token["word"] or (token["text"] or "")[1:-1]
            if name and self.takes_colon():
                pairs.append((name, self.value(self.next(), depth)))
            else:
                values.append(self.value(token, depth))
            may_separate = True
        if (pairs and values) or (values and closing == "}"):
            raise Malformed("syntax", "values without names beside names")
        return Pairs(pairs) if pairs or closing == "}" else values

    def takes_colon(self) -> bool:
        """Go past a colon or an equal sign, and tell whether there was one."""
        token = _TOKEN.match(self.text, self.at)
        if token is None or token["sign"] not in (":", "="):
            return False
        self.at = token.end()
        return True
