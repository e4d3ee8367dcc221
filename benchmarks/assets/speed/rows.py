"""Questions with answers, the same for every contender; each call makes the same rows.

There are many, of many numbers: remembering earlier answers helps little.
"""

import random
from fractions import Fraction


def word_problems(worked, n):
    """Return n (question, gold answer, completion).

    Args:
        worked: Whether two lines of work stand before the answer.
        n: How many.
    """
    rng = random.Random(0)
    rows = []
    for i in range(n):
        boxes, each, eaten = rng.randint(3, 99), rng.randint(12, 99), rng.randint(1, 30)
        full = boxes * each
        gold = str(full - eaten)
        work = (
            f"There are {boxes} boxes with {each} apples in each, so at first the shop holds {boxes} * {each} = {full} "
            f"apples.\nSomebody eats {eaten} of them, so {full} - {eaten} = {gold} apples are left.\n"
        )
        question = (
            f"In shop {i} there are {boxes} boxes with {each} apples in each. "
            f"Somebody eats {eaten} of the apples. How many are left?"
        )
        rows.append((question, gold, (work if worked else "") + f"#### {gold}"))
    return rows


def latex_answers(kind, n):
    r"""Return n (question, gold answer, completion with the same answer written in another way).

    Args:
        kind: ``expressions`` (roots, multiples of pi, polynomials), or ``mixed``: of these every second row, and
            between them numbers, fractions, tuples and intervals.
        n: How many.
    """
    rng = random.Random(1)
    rows = []
    for i in range(n):
        writers = _EXPRESSIONS if kind == "expressions" or i % 2 else _NUMBERS
        gold, answer = writers[i // 2 % len(writers)](rng)
        rows.append((f"Question {i}: what is the value?", gold, rf"So it is \boxed{{{answer}}}."))
    return rows


def _fraction(rng):
    value = Fraction(rng.randint(1, 9999), rng.choice((7, 9, 11, 13, 17, 19, 21, 23))) + Fraction(1, 2)
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}", f"{value.numerator}/{value.denominator}"


def _decimal(rng):
    numerator = 2 * rng.randint(0, 9999) + 1
    return rf"\frac{{{numerator}}}{{4}}", str(numerator / 4)


def _thousands(rng):
    value = rng.randint(1_000, 9_999_999)
    return str(value), f"{value:,}"


def _pair(rng):
    first, second = rng.randint(-99, 99), 2 * rng.randint(0, 99) + 1
    return rf"({first}, \frac{{{second}}}{{2}})", rf"\left({first},\dfrac{{{second}}}{{2}}\right)"


def _interval(rng):
    low, high = rng.randint(-99, 0), rng.randint(1, 99)
    return rf"[{low}, {high})", rf"\left[{low},{high}\right)"


def _root(rng):
    factor, rest = rng.randint(2, 99), rng.choice((2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19, 21, 22, 23))
    return rf"{factor}\sqrt{{{rest}}}", rf"\sqrt{{{factor * factor * rest}}}"


def _root_below(rng):
    rest = rng.randint(2, 49) ** 2 + rng.randint(1, 2)
    factor = rng.choice((2, 3, 5, 7, 11, 13, 17, 19))
    return rf"\frac{{{factor}\sqrt{{{rest}}}}}{{{rest}}}", rf"\frac{{{factor}}}{{\sqrt{{{rest}}}}}"


def _multiple_of_pi(rng):
    top, bottom = 2 * rng.randint(0, 499) + 1, rng.choice((2, 4, 8))
    return rf"\frac{{{top}\pi}}{{{bottom}}}", rf"\frac{{{top}}}{{{bottom}}}\pi"


def _square(rng):
    a = rng.randint(1, 2000)
    return f"x^2+{2 * a}x+{a * a}", f"(x+{a})^2"


_NUMBERS = (_fraction, _decimal, _thousands, _pair, _interval)
_EXPRESSIONS = (_root, _root_below, _multiple_of_pi, _square)
