"""Graders in place of those scorers of reasoning-gym that run the answer's text or pay wrong answers in full.

A grader takes (answer, right answer, metadata of the item) and tells whether the answer is right. None of them
hands the text to ``eval`` or SymPy, and each takes time linear in the text.
"""

from __future__ import annotations

import cmath
import json
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tetrathlon.envs.grading.hedges import DOUBTS, words
from tetrathlon.envs.grading.writing import integer, plain, same_text
from tetrathlon.envs.text.expression import Token, parse, value

Grader = Callable[[str, str, Mapping[str, Any]], bool]

_HUGE_EXPONENT = re.compile(r"[eE][+-]?\d{3,}", re.ASCII)
_LONG_NUMBER = re.compile(r"\d{400}", re.ASCII)
_CUBE_MOVES = re.compile(r"(?:[A-Za-z]{1,2}'?[123]?\s+){0,500}[A-Za-z]{1,2}'?[123]?", re.ASCII)
_FRACTION = re.compile(r"(?:\\[dt]?frac\{(-?\d+)\}\{(-?\d+)\}|(-?\d+)\s*/\s*(-?\d+))", re.ASCII)
_PROBABILITY = re.compile(r"\d{0,20}\.?\d{0,40}(?:[eE]-?\d{1,2})?|\d{1,40}\s*/\s*\d{1,40}", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\d{1,20}\.?\d{0,20}|\.\d{1,20})", re.ASCII)
_SUBFORMULA = re.compile(r"[A-Z]|¬p|\(p(?:[∨∧→↔]p)?\)")
_DECIMAL = re.compile(r"-?\d+(?:,\d{3})*(?!\d)(?:\.\d+)?", re.ASCII)
_OTHER_VALUE = re.compile(r"[~?%≈<>≠±!^/*²³]")
_FACTORS = {
    "percent",
    "minus",
    "negative",
    "dozen",
    "hundred",
    "thousand",
    "million",
    "billion",
    "half",
    "third",
    "quarter",
    "or",
}
_COORDINATE = r"-?\d{1,20}(?:\.\d{1,20})?"
_FUNCTIONS: Mapping[str, tuple[Callable[[complex], complex], Callable[[complex], complex]]] = {
    "sin": (cmath.sin, cmath.cos),
    "cos": (cmath.cos, lambda x: -cmath.sin(x)),
    "tan": (cmath.tan, lambda x: 1 / cmath.cos(x) ** 2),
    "exp": (cmath.exp, cmath.exp),
    "log": (cmath.log, lambda x: 1 / x),
    "ln": (cmath.log, lambda x: 1 / x),
    "sqrt": (cmath.sqrt, lambda x: 0.5 / cmath.sqrt(x)),
    "asin": (cmath.asin, lambda x: 1 / cmath.sqrt(1 - x * x)),
    "acos": (cmath.acos, lambda x: -1 / cmath.sqrt(1 - x * x)),
    "atan": (cmath.atan, lambda x: 1 / (1 + x * x)),
    "sinh": (cmath.sinh, cmath.cosh),
    "cosh": (cmath.cosh, cmath.sinh),
    "tanh": (cmath.tanh, lambda x: 1 - cmath.tanh(x) ** 2),
}
"""Function -> itself and its derivative."""
_POINTS = (0.37, 0.61, 0.83, 1.19, 1.43, 1.77, 2.31, -0.29, -0.71, -1.37)
_NEEDED_POINTS = 5
_MOST_BITS = 4_000


def is_readable(task: str, answer: str, gold: str) -> bool:
    """Tell whether a scorer may be given ``answer``: of a sane length, without numbers that blow up."""
    if len(answer) > 2_000 + 4 * len(gold):
        return False
    if task == "rubiks_cube":
        return len(answer) <= 2_000 and _CUBE_MOVES.fullmatch(answer.strip()) is not None
    return not _HUGE_EXPONENT.search(answer) and not _LONG_NUMBER.search(answer)


def _lines(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    """Equal but for blanks at the ends of lines and between words."""
    return [line.split() for line in answer.splitlines()] == [line.split() for line in gold.splitlines()]


def _text(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    return same_text(answer, gold)


def _queens(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    return any(_lines(answer, board, data) for board in data["valid_answers"])


def _integer(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    number = integer(answer)
    return number is not None and number == integer(gold)


def _integer_or_text(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    return same_text(answer, gold) if integer(gold) is None else _integer(answer, gold, data)


def _one_number(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    """One number, with its sign, in any words around it (``5 apples``) but those that make it another (``not 5``)."""
    text = plain(answer)
    if _OTHER_VALUE.search(text) or not (DOUBTS | _FACTORS).isdisjoint(words(text)):
        return False
    values = {float(text.replace(",", "")) for text in _DECIMAL.findall(text)}
    return values == {float(gold)}


def _json(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    try:
        return bool(json.loads(answer) == json.loads(gold))
    except (ValueError, RecursionError):
        return False


def _sorted_numbers(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    try:
        read = json.loads(answer.replace("'", '"'))
        right = json.loads(gold.replace("'", '"'))
        return isinstance(read, list) and list(map(float, read)) == list(map(float, right))
    except (ValueError, TypeError, RecursionError):
        return False


def _words(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    return [word.strip() for word in answer.split(",")] == list(data["sorted_words"])


def _only(pattern: str) -> Grader:
    """Return a grader that rules out what ``pattern`` does not match as a whole, upper or lower case."""
    whole = re.compile(pattern, re.ASCII | re.IGNORECASE)
    return lambda answer, gold, data: whole.fullmatch(answer.strip()) is not None


def _roots(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    if not gold.strip():  # no real solution: the package takes whatever holds no number for right
        return answer.strip() in ("", '""', "''")
    return all(_FLOAT.fullmatch(part.strip()) for part in answer.split(","))


def _roles(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    """The same words, in the order of any of the sentences."""
    words = (sorted(re.findall(r"\w+", text.lower().replace(" and ", " "))) for text in (answer, gold))
    return next(words) == next(words)


def _formula(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    """One well-formed formula; brackets around the whole may be left out."""
    text = "".join(answer.split())
    while (shorter := _SUBFORMULA.sub("p", text)) != text:
        text = shorter
    return re.fullmatch("p(?:[∨∧→↔]p)?", text) is not None


def _probability(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    text = plain(answer)
    if not _PROBABILITY.fullmatch(text) or not text[:2].strip("."):
        return False
    try:
        read, right = Fraction(text.replace(" ", "")), Fraction(gold.replace(",", ""))
    except (ValueError, ZeroDivisionError):
        return False
    return abs(read - right) <= min(Fraction(1, 10_000), right / 100)


def _fraction(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    match = _FRACTION.fullmatch(plain(answer))
    if match is None:
        return False
    read = tuple(int(group) for group in match.groups() if group is not None)
    return read == (data["simplified_numerator"], data["simplified_denominator"])


def _target(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    return value(plain(answer), data["numbers"]) == data.get("target", 24)


def _product(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    """The same polynomial, multiplied out."""
    names = set(re.findall(r"[A-Za-z]\w*", gold)) | set(data["variables"])
    read, right = (_polynomial(parse(plain(text), names)) for text in (answer, gold))
    return read is not None and read == right


def _antiderivative(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    """The derivative of the answer equals the integrand at every point where both exist, at five at least."""
    names = {data["variable"], "C", "E", "e", "pi"}
    read = parse(re.sub(r"\*\*|\^", "^", plain(answer)), names, _FUNCTIONS)
    integrand = parse(data["integrand"], names, _FUNCTIONS)
    if read is None or integrand is None:
        return False
    agreed = 0
    for point in _POINTS:
        try:
            slope = _evaluate(read, data["variable"], point)[1]
            wanted = _evaluate(integrand, data["variable"], point)[0]
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        if not (cmath.isfinite(slope) and cmath.isfinite(wanted)):
            continue
        if abs(slope - wanted) > 1e-7 * (1 + abs(wanted)):
            return False
        agreed += 1
    return agreed >= _NEEDED_POINTS


def _evaluate(tokens: list[Token], variable: str, point: float) -> tuple[complex, complex]:
    """Return value and derivative at ``point``."""
    constants = {"C": 0.7, "E": math.e, "e": math.e, "pi": math.pi}
    stack: list[tuple[complex, complex]] = []
    for token in tokens:
        if token.kind == "number":
            stack.append((complex(float(token.text)), 0j))
        elif token.kind == "name":
            stack.append((complex(point), 1 + 0j) if token.text == variable else (complex(constants[token.text]), 0j))
        elif token.kind == "call":
            function, derivative = _FUNCTIONS[token.text]
            x, dx = stack.pop()
            stack.append((function(x), derivative(x) * dx if dx else 0j))
        elif token.text == "neg":
            x, dx = stack.pop()
            stack.append((-x, -dx))
        else:
            y, dy = stack.pop()
            x, dx = stack.pop()
            stack.append(_combine(token.text, x, dx, y, dy))
    return stack.pop()


def _combine(operator: str, x: complex, dx: complex, y: complex, dy: complex) -> tuple[complex, complex]:
    if operator in "+-":
        sign = 1 if operator == "+" else -1
        return x + sign * y, dx + sign * dy
    if operator == "*":
        return x * y, x * dy + dx * y
    if operator == "/":
        return x / y, (dx * y - x * dy) / (y * y)
    power = x**y  # complex floats: too large raises OverflowError at once
    slope = y * x ** (y - 1) * dx if dx else 0j
    if dy:
        slope += power * cmath.log(x) * dy
    return power, slope


def _moves(answer: str, gold: str, data: Mapping[str, Any]) -> bool:
    """Moves alone, not many more than needed: the package plays on where the boxes stand already."""
    moves = "".join(answer.split())
    return re.fullmatch("[udlrUDLR]*", moves) is not None and len(moves) <= max(2 * len(gold), len(gold) + 20)


Polynomial = dict[tuple[tuple[str, int], ...], Fraction]


def _polynomial(tokens: list[Token] | None) -> Polynomial | None:
    """Return the terms of a multiplied-out polynomial; None for any other expression."""
    stack: list[Polynomial] = []
    for token in tokens or ():
        if token.kind == "number":
            stack.append(_clean({(): Fraction(token.text)}))
            continue
        if token.kind == "name":
            stack.append({((token.text, 1),): Fraction(1)})
            continue
        right = stack.pop()
        if token.text == "neg":
            stack.append({term: -factor for term, factor in right.items()})
            continue
        left = stack.pop()
        result = _operate(token.text, left, right)
        if result is None or any(
            max(factor.numerator.bit_length(), factor.denominator.bit_length()) > _MOST_BITS
            for factor in result.values()
        ):
            return None
        stack.append(result)
    return stack.pop() if stack else None


def _operate(operator: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
    if operator in "+-":
        sign = 1 if operator == "+" else -1
        total = dict(left)
        for term, factor in right.items():
            total[term] = total.get(term, Fraction(0)) + sign * factor
        return _clean(total)
    constant = right.get((), Fraction(0)) if set(right) <= {()} else None
    if operator == "*":
        if (len(left) > 1 and constant is None) or (len(right) > 1 and not set(left) <= {()}):
            return None  # a product that was left to do
        return _clean({_join(a, b): x * y for a, x in left.items() for b, y in right.items()})
    if constant is None:
        return None
    if operator == "/":
        return {term: factor / constant for term, factor in left.items()} if constant else None
    if constant.denominator != 1 or not 0 <= constant <= 99 or len(left) != 1:
        return None
    ((term, factor),) = left.items()
    if max(factor.numerator.bit_length(), factor.denominator.bit_length()) > 64:
        return None
    power = int(constant)
    return {tuple((name, degree * power) for name, degree in term if power): factor**power}


def _join(a: tuple[tuple[str, int], ...], b: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    degrees = dict(a)
    for name, degree in b:
        degrees[name] = degrees.get(name, 0) + degree
    return tuple(sorted(degrees.items()))


def _clean(terms: Polynomial) -> Polynomial:
    return {term: factor for term, factor in terms.items() if factor}


_FILTERS: Mapping[str, Grader] = {
    "advanced_geometry": _only(  # anything behind a point
        rf"\(?\s*{_COORDINATE}\s*,\s*{_COORDINATE}\s*\)?|{_COORDINATE}\s*°?"
    ),
    "complex_arithmetic": _only(r"[-+0-9.ij() ]+"),  # nan
    "kakurasu": _only(r"[01\s]+"),  # text around the cells
    "knights_knaves": _roles,  # other words, "not" too
    "polynomial_equations": _roots,  # any text where there is no real root
    "pool_matrix": _only(r"[-+0-9.\s]+"),
    "propositional_logic": _formula,  # text behind a formula
    "quantum_lock": _only(r"[abc](?:[\s,>→-]*[abc])*"),  # letters of any text
    "sokoban": _moves,  # text between the moves, any number of moves after the solution
    "survo": _only(r"[0-9\s]+"),
    "time_intervals": _only(r"\d+ days?|(?:\d+ days?,\s*)?\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?"),  # 5 or 6 days
    "tower_of_hanoi": _only(r"(?:\s*move disk \d{1,3} from peg \d{1,3} to peg \d{1,3}\.?\s*?(?:\n|$))+"),
}

GRADERS: Mapping[str, Grader] = {
    # scorers that call eval or SymPy on the answer
    "binary_matrix": _lines,
    "countdown": _target,
    "intermediate_integration": _antiderivative,
    "n_queens": _queens,
    "polynomial_multiplication": _product,
    "puzzle24": _target,  # also pays numbers that were not given
    "simple_integration": _antiderivative,
    "spiral_matrix": _lines,
    "string_insertion": _text,
    # scorers that pay wrong answers in full
    "calendar_arithmetic": _integer_or_text,  # any count where the right one is -1
    "chain_sum": _integer,  # 1,2 for 12
    "coin_flip": _probability,  # 0 for 0.25
    "figlet_font": _text,  # ten letters right and more behind
    "fraction_simplification": _fraction,  # the first of several
    "game_of_life": _json,  # extra rows and columns
    "game_of_life_halting": _text,  # any text
    "gsm_symbolic": _one_number,  # the first of several, the sign lost
    "letter_jumble": _text,  # extra words
    "number_sorting": _sorted_numbers,  # numbers that are off by 1, NaN
    "products": _integer,
    "spell_backward": _text,  # extra letters, by rounding
    "word_sorting": _words,  # extra words
    **_FILTERS,
}
"""Task -> grader."""

PACKAGE_MUST_AGREE = frozenset(_FILTERS)
"""Tasks whose grader here only rules answers out: the package's scorer says what is right."""

_UNSAFE = {"binary_matrix", "coin_flip", "countdown", "intermediate_integration", "n_queens", "pool_matrix", "puzzle24"}
_UNSAFE |= {"polynomial_multiplication", "simple_integration", "spiral_matrix", "string_insertion"}
PARTIAL_IS_SAFE = frozenset(GRADERS) - _UNSAFE
"""Tasks of ``GRADERS`` whose wrong answers may still be given to the package's scorer, for partial credit."""
