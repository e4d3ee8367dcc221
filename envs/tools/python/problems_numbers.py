"""Problems on numbers: primes, powers, congruences, recurrences, digits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import gcd

from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.tools.python.problem import Kind, Problem, cells

_LARGEST = 70_000


@lru_cache
def _divisor_counts() -> Sequence[int]:
    counts = [0] * (_LARGEST + 1)
    for step in range(1, _LARGEST + 1):
        for multiple in range(step, _LARGEST + 1, step):
            counts[multiple] += 1
    return bytes(counts)


def prime_sum(draw: Draw, level: int) -> Problem:
    """Sums of primes in a range, with a condition from level 2 on."""
    low = draw.between(100, 1_000 * 3**level)
    high = low + draw.between(500, 1_000) * (1, 8, 40)[level - 1]
    modulus = draw.between(3, 12)
    rest = draw.pick([rest for rest in range(1, modulus) if gcd(rest, modulus) == 1])
    counts = _divisor_counts()
    found = [n for n in range(low, high + 1) if counts[n] == 2 and (level == 1 or n % modulus == rest)]
    condition = "" if level == 1 else f" that leave the rest {rest} when divided by {modulus}"
    test = "" if level == 1 else f" and n % {modulus} == {rest}"
    return Problem(
        f"What is the sum of all primes from {low} to {high}{condition}?",
        str(sum(found)),
        cells(f"""
            def is_prime(n):
                return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))
            print(sum(n for n in range({low}, {high} + 1) if is_prime(n){test}))
        """),
    )


def divisor_sum(draw: Draw, level: int) -> Problem:
    """Sums of the numbers with so many divisors."""
    low = draw.between(100, 2_000) * level
    high = low + draw.between(300, 900) * (1, 6, 25)[level - 1]
    wanted = draw.pick((4, 6, 8, 10, 12, 16))
    counts = _divisor_counts()
    answer = sum(n for n in range(low, high + 1) if counts[n] == wanted)
    return Problem(
        f"Take all integers from {low} to {high} that have exactly {wanted} positive divisors (1 and the number itself "
        "count). What is their sum?",
        str(answer),
        cells(f"""
            counts = [0] * ({high} + 1)
            for d in range(1, {high} + 1):
                for n in range(d, {high} + 1, d):
                    counts[n] += 1
            print(sum(n for n in range({low}, {high} + 1) if counts[n] == {wanted}))
        """),
    )


def power_rest(draw: Draw, level: int) -> Problem:
    """Rests of large powers, of towers of them, and of sums of them."""
    modulus = draw.between(10**7, 10**9)
    a, b, c = draw.between(3, 999), draw.between(10**5, 10**9), draw.between(2, 9)
    if level == 1:
        said, code, answer = f"{a}^{b}", f"pow({a}, {b}, {modulus})", pow(a, b, modulus)
    elif level == 2:
        b = draw.between(20, 99)
        exponent = b ** (c + 20)
        said, code = f"{a}^({b}^{c + 20})", f"pow({a}, {b} ** {c + 20}, {modulus})"
        answer = pow(a, exponent, modulus)
    else:
        n = draw.between(300, 1_200)
        said = f"the sum of k^(k+{c}) over all k from 1 to {n}"
        code = f"sum(pow(k, k + {c}, {modulus}) for k in range(1, {n} + 1)) % {modulus}"
        answer = sum(pow(k, k + c, modulus) for k in range(1, n + 1)) % modulus
    return Problem(f"What is the rest when {said} is divided by {modulus}?", str(answer), cells(f"print({code})"))


def recurrence(draw: Draw, level: int) -> Problem:
    """Terms of linear sequences far out."""
    p, q, r = draw.between(1, 9), draw.between(1, 9), draw.between(0, 20)
    first, second = draw.between(0, 50), draw.between(1, 50)
    modulus = draw.between(10**6, 10**9)
    index = draw.between(500, 1_000) if level == 1 else draw.between(10**5, 10**6) * 10 ** (0 if level == 2 else 9)
    matrix = ((p, q, r), (1, 0, 0), (0, 0, 1))
    power = _matrix_power(matrix, index - 1, modulus)
    answer = (power[0][0] * second + power[0][1] * first + power[0][2]) % modulus
    slow = f"""
        x, y = {first}, {second}
        for _ in range({index} - 1):
            x, y = y, ({p} * y + {q} * x + {r}) % {modulus}
        print(y % {modulus})
    """
    fast = f"""
        def times(a, b):
            return [[sum(x * y for x, y in zip(row, column)) % {modulus} for column in zip(*b)] for row in a]
        power, base, n = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[{p}, {q}, {r}], [1, 0, 0], [0, 0, 1]], {index} - 1
        while n:
            if n % 2:
                power = times(power, base)
            base, n = times(base, base), n // 2
        print((power[0][0] * {second} + power[0][1] * {first} + power[0][2]) % {modulus})
    """
    plus = f" + {r}" if r else ""
    return Problem(
        f"A sequence begins with a(0) = {first} and a(1) = {second}; then a(n) = {p}*a(n-1) + {q}*a(n-2){plus}. "
        f"What is a({index}) modulo {modulus}?",
        str(answer),
        cells(fast if level == 3 else slow),
    )


def _matrix_power(matrix: Sequence[Sequence[int]], n: int, modulus: int) -> list[list[int]]:
    def times(a: Sequence[Sequence[int]], b: Sequence[Sequence[int]]) -> list[list[int]]:
        columns = list(zip(*b, strict=True))
        return [[sum(map(int.__mul__, row, column)) % modulus for column in columns] for row in a]

    power = [[int(i == j) for j in range(len(matrix))] for i in range(len(matrix))]
    while n:
        if n & 1:
            power = times(power, matrix)
        matrix, n = times(matrix, matrix), n >> 1
    return power


def congruences(draw: Draw, level: int) -> Problem:
    """Smallest numbers with given rests."""
    moduli = draw.some([7, 9, 10, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 37, 41, 43], 3 + level)
    secret = draw.between(10**5, 10**6 * 10 ** (2 * level - 2))
    rests = [secret % modulus for modulus in moduli]
    step, answer = 1, 0
    for modulus, rest in zip(moduli, rests, strict=True):
        common = step // gcd(step, modulus) * modulus
        while answer % modulus != rest:
            answer += step
        step = common
    said = ", ".join(f"{rest} when divided by {modulus}" for modulus, rest in zip(moduli, rests, strict=True))
    return Problem(
        f"What is the smallest integer from 0 that leaves the rest {said}?",
        str(answer),
        cells(f"""
            from math import lcm
            n, step = 0, 1
            for m, r in zip({moduli}, {rests}):
                while n % m != r:
                    n += step
                step = lcm(step, m)
            print(n)
        """),
    )


def digit_weights(draw: Draw, level: int) -> Problem:
    """Weighted sums of the digits of a large number."""
    base, exponent = draw.between(3, 99), draw.between(40, 90) * (1, 4, 12)[level - 1]
    plus = draw.between(1, 10**6)
    number = base**exponent + plus
    digits, left = [], number
    while left:
        left, digit = divmod(left, 10)
        digits.append(digit)
    if level < 3:
        said = "the sum, over all of its decimal digits, of the digit times its place; the units have place 1, the "
        said += "tens place 2, and so on"
        answer = sum(place * digit for place, digit in enumerate(digits, 1))
        code = "print(sum(place * int(digit) for place, digit in enumerate(reversed(str(n)), 1)))"
    else:
        said = "the sum of the products of each two neighbouring decimal digits"
        answer = sum(a * b for a, b in pairwise(digits))
        code = "d = [int(c) for c in str(n)]\nprint(sum(a * b for a, b in zip(d, d[1:])))"
    return Problem(
        f"Take the number {base}^{exponent} + {plus}. What is {said}?",
        str(answer),
        (f"n = {base}**{exponent} + {plus}\n{code}",),
    )


def rule_steps(draw: Draw, level: int) -> Problem:
    """Numbers that a rule leads to, and what is met on the way."""
    modulus = draw.between(10**4, 10**5)
    a, b, start = draw.between(3, 97), draw.between(1, 500), draw.between(1, 5_000)
    steps = draw.between(100, 200) * (1, 5, 20)[level - 1]
    divisor = draw.between(3, 9)
    x, total = start, 0
    for _ in range(steps):
        x = x // 2 if level > 1 and x % divisor == 0 and x else (a * x + b) % modulus
        total += x
    halving = f"if x is a multiple of {divisor} and not 0, replace x by x/2 rounded down; otherwise " * (level > 1)
    test = f"x // 2 if x % {divisor} == 0 and x else " * (level > 1)
    return Problem(
        f"Start with x = {start}. Do this {steps} times: {halving}replace x by ({a}*x + {b}) modulo {modulus}. What is "
        "the sum of the values that x has after each step?",
        str(total),
        cells(f"""
            x, total = {start}, 0
            for _ in range({steps}):
                x = {test}({a} * x + {b}) % {modulus}
                total += x
            print(total)
        """),
    )


KINDS: tuple[Kind, ...] = (
    prime_sum, divisor_sum, power_rest, recurrence, congruences, digit_weights, rule_steps,
)  # fmt: skip
