r"""Arithmetic out of model text: read by a small parser of our own, never by Python's or SymPy's.

An expression becomes reverse Polish notation by a loop (shunting yard), so no depth of brackets can exhaust a
stack, and whoever evaluates it decides what a number, a name and a power may be.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

LONGEST = 1_000
"""Characters that an expression may have."""

_SIGNS = str.maketrans(
    {"×": "*", "⋅": "*", "·": "*", "∙": "*", "∗": "*", "÷": "/", "∕": "/", "⁄": "/", ":": "?"}
    | dict.fromkeys("−‐‑‒–﹣－", "-")
    | {"{": "(", "}": ")"}
    | {"＋": "+", "＊": "*", "／": "/", "（": "(", "）": ")"}
)
_LATEX = re.compile(r"\\(times|cdot|ast|div|left|right)(?![a-zA-Z])")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_MOST_FRACTIONS = 20  # inside one another
_TIMES = re.compile(r"(?<=[\d)}])(\s*)[xX](?=\s*[\d({\\])")
_LATEX_SIGNS = {"times": "*", "cdot": "*", "ast": "*", "div": "/", "left": "", "right": ""}
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|([A-Za-z]\w*)|(\*\*|[-+*/^()]))", re.ASCII)
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "^": 4}


@dataclass(frozen=True, slots=True)
class Token:
    """One item of reverse Polish notation."""

    kind: Literal["number", "name", "call", "operator"]
    """``call`` takes one operand, ``operator`` two, or one if its text is ``neg``."""
    text: str
    """As written; ``neg`` is a sign before an operand and ``^`` any power."""


def parse(text: str, names: Collection[str] = (), functions: Collection[str] = ()) -> list[Token] | None:
    r"""Return ``text`` in reverse Polish notation, or None where it is no expression.

    Operators are ``+ - * / ^ **`` and brackets; ``× · ÷ −``, ``\times``, ``\cdot``, ``\div`` and ``\left(`` are
    read as those, ``\frac{a}{b}`` as a division and braces as brackets. One minus sign may stand before an operand;
    ``--``, a plus sign there, and operands side by side (``5 0``, ``5(3)``) are refused.

    Args:
        text: What a model wrote.
        names: Variables and constants that may occur.
        functions: Functions of one argument that may occur.
    """
    if len(text) > LONGEST:
        return None
    for _ in range(_MOST_FRACTIONS):
        text, changed = _FRACTION.subn(r"((\1)/(\2))", text)
        if not changed:
            break
    if len(text) > 2 * LONGEST:
        return None
    text = _LATEX.sub(lambda match: _LATEX_SIGNS[match.group(1)], text).replace("{}", "").translate(_SIGNS).rstrip()
    output: list[Token] = []
    waiting: list[str] = []  # operators, "(" and "name(" for a call
    wants_operand, position, previous = True, 0, ""
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        position = match.end()
        number, name, sign = match.groups()
        if number or name:
            if not wants_operand:
                return None
            if name and name in functions:
                match = _TOKEN.match(text, position)
                if match is None or match.group(3) != "(":
                    return None
                position = match.end()
                waiting.append(name + "(")
                previous = "("
                continue
            if name and name not in names:
                return None
            output.append(Token("number" if number else "name", number or name))
            wants_operand = False
        elif sign == "(":
            if not wants_operand:
                return None
            waiting.append("(")
        elif sign == ")":
            if wants_operand:
                return None
            while waiting and not waiting[-1].endswith("("):
                output.append(Token("operator", waiting.pop()))
            if not waiting:
                return None
            if len(opened := waiting.pop()) > 1:
                output.append(Token("call", opened[:-1]))
        elif wants_operand:
            if sign != "-" or previous == "neg":
                return None
            waiting.append("neg")
            sign = "neg"
        else:
            operator = "^" if sign == "**" else sign
            level = _PRECEDENCE[operator] + (operator == "^")  # a power binds to the right
            while waiting and not waiting[-1].endswith("(") and _PRECEDENCE[waiting[-1]] >= level:
                output.append(Token("operator", waiting.pop()))
            waiting.append(operator)
            wants_operand = True
        previous = sign or ""
    if wants_operand:
        return None
    while waiting:
        if waiting[-1].endswith("("):
            return None
        output.append(Token("operator", waiting.pop()))
    return output


def value(text: str, numbers: Collection[int]) -> Fraction | None:
    """Return the value of an expression over ``numbers``, each used exactly once.

    Args:
        text: Numbers without leading zeros, ``+ - * /``, brackets; see :func:`parse`.
        numbers: What must occur, as often as it does here; no other number may.

    Returns:
        The exact value; None for anything else, a power and a division by zero included.
    """
    tokens = parse(_TIMES.sub(r"\1*", text) if len(text) <= LONGEST else text)
    if tokens is None:
        return None
    written = sorted(token.text for token in tokens if token.kind == "number")
    if written != sorted(map(str, numbers)):
        return None
    stack: list[Fraction] = []
    for token in tokens:
        if token.kind == "number":
            stack.append(Fraction(token.text))
            continue
        right = stack.pop()
        if token.text == "neg":
            stack.append(-right)
            continue
        left = stack.pop()
        if token.text == "+":
            stack.append(left + right)
        elif token.text == "-":
            stack.append(left - right)
        elif token.text == "*":
            stack.append(left * right)
        elif token.text == "/" and right:
            stack.append(left / right)
        else:
            return None
    return stack.pop()
