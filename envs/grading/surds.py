r"""Sums of rational multiples of square roots, powers of π and letters: ``2\sqrt{3}``, ``\frac{3\pi}{4}``, ``(x+1)^2``.

They have one form each, so that they compare with ``==``. That is right because square roots of different squarefree
integers are linearly independent over the rationals (Besicovitch, 1940), π is no root of a polynomial over the numbers
that they span (Lindemann, 1882), and a letter stands for any number.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

_Powers: TypeAlias = tuple[tuple[str, int], ...]
_Terms: TypeAlias = dict[tuple[int, _Powers], Fraction]

_PI = r"\pi"
_UNIT = (1, ())
_LETTERS = frozenset("abchkmnpqrstuvwxyz")
"""Letters that mean nothing to anybody: e, i, d, f and their like are left to the prover."""
_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?)|(\\(?:frac|sqrt|pi|cdot|times)|[A-Za-z]+)(?![A-Za-z])|([-+*/^(){}]))", re.ASCII
)
_TIMES = frozenset({"*", r"\cdot", r"\times"})
_LARGEST_RADICAND = 10**12
_LARGEST_POWER = 64
_MOST_BITS = 190  # the prover, who compares these with what is none of them, takes fewer than 60 digits
_LONGEST = 400  # what the prover reads at most
_MOST_TERMS = 64
_MOST_TOKENS = 200
_DEEPEST = 12


class _Unknown(Exception):
    """Nothing that this module is sure of."""


@dataclass(frozen=True, slots=True, eq=False)
class Surd:
    """A sum with one form; equal to the ``Fraction`` of its value where it has one."""

    terms: tuple[tuple[tuple[int, _Powers], Fraction], ...]
    """In order: a squarefree radicand and the powers of π and of letters, by name, and their factor, which is not 0."""

    @property
    def rational(self) -> Fraction | None:
        """The number that it is, where it is a rational one."""
        if not self.terms:
            return Fraction(0)
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == _UNIT else None

    @property
    def latex(self) -> str:
        """Equal ones are written the same."""
        return " + ".join(_written(*term) for term in self.terms) or "0"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Surd):
            return self.terms == other.terms
        return self.rational == other if isinstance(other, Fraction) else NotImplemented

    def __hash__(self) -> int:
        rational = self.rational
        return hash(self.terms if rational is None else rational)


def surd(text: str) -> Surd | None:
    """Return what ``text`` is, or None where that is nothing of this kind, or where people could disagree on it.

    Args:
        text: As ``reading.py`` cleans it.
    """
    try:
        terms = _Parser(text).parse()
    except _Unknown:
        return None
    found = Surd(tuple(sorted(terms.items())))
    return found if len(found.latex) <= _LONGEST else None


class _Parser:
    """Recursive descent over the tokens of a text; each is read once.

    Raises:
        _Unknown: There are signs of another kind, or too many.
    """

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position, text = 0, text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or len(self.tokens) > _MOST_TOKENS:
                raise _Unknown
            self.tokens.append(match[match.lastindex or 0])
            position = match.end()
        self.tokens.append("")
        self.next = 0

    def parse(self) -> _Terms:
        terms = self.sum(0)
        if self.tokens[self.next]:
            raise _Unknown
        return terms

    def take(self, *expected: str) -> str:
        token = self.tokens[self.next]
        if not token or (expected and token not in expected):
            raise _Unknown
        self.next += 1
        return token

    def sum(self, depth: int) -> _Terms:
        if depth > _DEEPEST:
            raise _Unknown
        sign = self.take() if self.tokens[self.next] in ("-", "+") else "+"
        total: _Terms = {}
        while True:
            for monomial, factor in self.product(depth).items():
                factor = total.pop(monomial, 0) + (factor if sign == "+" else -factor)
                if factor:
                    total[monomial] = factor
            if self.tokens[self.next] not in ("-", "+"):
                return total
            sign = self.take()

    def product(self, depth: int) -> _Terms:
        result, is_number = self.power(depth)
        while True:
            token = self.tokens[self.next]
            if token == "/":
                self.take()
                result = _times(result, _inverse(self.power(depth)[0]))
                if self.tokens[self.next] not in ("", "+", "-", ")", "}"):
                    raise _Unknown  # 1/2x
                return result
            if token in _TIMES:
                self.take()
            elif token in ("", "+", "-", ")", "}"):
                return result
            elif token[0].isdigit() or (token == r"\frac" and is_number):
                raise _Unknown  # 3 4, x2, 1\frac{1}{2}
            factor, is_number = self.power(depth)
            result = _times(result, factor)

    def power(self, depth: int) -> tuple[_Terms, bool]:
        """Return a factor with its exponent, and whether it ends with a number."""
        is_number = self.tokens[self.next][:1].isdigit()
        base = self.atom(depth)
        if self.tokens[self.next] != "^":
            return base, is_number
        self.take()
        sign, digits = "", self.take()
        if is_braced := digits == "{":
            if self.tokens[self.next] == "-":
                sign = self.take()
            digits = self.take()
            self.take("}")
        if not digits.isdigit() or len(digits) > (2 if is_braced else 1) or self.tokens[self.next] == "^":
            raise _Unknown
        return _to_the(base, int(sign + digits)), True

    def atom(self, depth: int) -> _Terms:
        token = self.take()
        if token[:1].isdigit():
            whole, _, places = token.partition(".")
            return _number(Fraction(int(whole + places), 10 ** len(places)))
        if token in _LETTERS:
            return {(1, ((token, 1),)): Fraction(1)}
        if token in (_PI, "pi"):
            return {(1, ((_PI, 1),)): Fraction(1)}
        if token == "(":
            return self.closed(")", depth)
        if token == r"\frac":
            above, below = self.sides(depth)
            return _times(above, _inverse(below))
        if token == r"\sqrt":
            return _root(self.argument(depth))
        if token == "sqrt":
            self.take("(")
            return _root(self.closed(")", depth))
        raise _Unknown

    def closed(self, bracket: str, depth: int) -> _Terms:
        inside = self.sum(depth + 1)
        self.take(bracket)
        return inside

    def argument(self, depth: int) -> _Terms:
        token = self.take()
        if token == "{":
            return self.closed("}", depth)
        if len(token) == 1 and token.isdigit():
            return _number(Fraction(int(token)))
        raise _Unknown

    def sides(self, depth: int) -> tuple[_Terms, _Terms]:
        token = self.tokens[self.next]
        if len(token) == 2 and token.isdigit():  # \frac12
            self.take()
            if self.tokens[self.next] == "^":
                raise _Unknown
            return _number(Fraction(int(token[0]))), _number(Fraction(int(token[1])))
        return self.argument(depth), self.argument(depth)


def _number(value: Fraction) -> _Terms:
    return {_UNIT: _bounded(value)} if value else {}


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        raise _Unknown
    return value


def _times(left: _Terms, right: _Terms) -> _Terms:
    if len(left) * len(right) > 16 * _MOST_TERMS:
        raise _Unknown
    product: _Terms = {}
    for (one, some), factor in left.items():
        for (other, more), multiplier in right.items():
            shared = math.gcd(one, other)  # of squarefree radicands: their product is shared² times a squarefree one
            monomial = one * other // (shared * shared), _joined(some, more) if some and more else some or more
            if monomial[0] > _LARGEST_RADICAND:
                raise _Unknown
            value = factor * multiplier if shared == 1 else factor * multiplier * shared
            value += product.pop(monomial, 0)
            if value:
                product[monomial] = _bounded(value)
    if len(product) > _MOST_TERMS:
        raise _Unknown
    return product


def _joined(left: _Powers, right: _Powers) -> _Powers:
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
    if any(abs(power) > _LARGEST_POWER for power in powers.values()):
        raise _Unknown
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def _to_the(base: _Terms, exponent: int) -> _Terms:
    if exponent <= 0 and not base:
        raise _Unknown
    if abs(exponent) > _LARGEST_POWER:
        raise _Unknown
    base = _inverse(base) if exponent < 0 else base
    result: _Terms = {_UNIT: Fraction(1)}
    for bit in f"{abs(exponent):b}":
        result = _times(result, result)
        if bit == "1":
            result = _times(result, base)
    return result


def _inverse(terms: _Terms) -> _Terms:
    """Return 1 over a sum of one term, or of two whose squares are alike."""
    if len(terms) == 1:
        (((radicand, powers), factor),) = terms.items()
        return {(radicand, tuple((name, -power) for name, power in powers)): 1 / (factor * radicand)}
    if len(terms) == 2:
        first, second = terms.items()
        if first[0][1] == second[0][1]:
            conjugate = dict([first, (second[0], -second[1])])
            return _times(conjugate, _inverse(_times(terms, conjugate)))
    raise _Unknown


def _root(terms: _Terms) -> _Terms:
    if not terms:
        return {}
    value = terms.get(_UNIT)
    if len(terms) > 1 or value is None or value < 0:
        raise _Unknown
    below = value.denominator
    outside, radicand = _square_part(value.numerator * below)
    return {(radicand, ()): Fraction(outside, below)}


@lru_cache(maxsize=1024)
def _square_part(number: int) -> tuple[int, int]:
    """Return (a, b) with number = a² b and b squarefree."""
    if number > _LARGEST_RADICAND:
        raise _Unknown
    outside, inside, divisor = 1, 1, 2
    while divisor**3 <= number:
        while number % (divisor * divisor) == 0:
            number //= divisor * divisor
            outside *= divisor
        if number % divisor == 0:
            number //= divisor
            inside *= divisor
        divisor += 1 if divisor == 2 else 2
    # What is left has at most two prime factors: it is squarefree, or a square.
    root = math.isqrt(number)
    return (outside * root, inside) if root * root == number else (outside, inside * number)


def _written(monomial: tuple[int, _Powers], factor: Fraction) -> str:
    radicand, powers = monomial
    number = rf"\frac{{{factor.numerator}}}{{{factor.denominator}}}" if factor.denominator > 1 else factor.numerator
    parts = [f"({number})"]
    if radicand > 1:
        parts.append(rf"\sqrt{{{radicand}}}")
    parts += [name if power == 1 else f"{name}^{{{power}}}" for name, power in powers]
    return r" \cdot ".join(parts)
