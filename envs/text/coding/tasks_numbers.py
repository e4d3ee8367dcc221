"""Functions to be written on numbers."""

from __future__ import annotations

from itertools import accumulate

from tetrathlon.envs.text.coding.draft import Draft, Draw


def digit_powers(draw: Draw) -> Draft:
    """Sums of powers of digits, again and again."""
    power, base, times = draw.between(2, 3), draw.between(3, 10), draw.between(1, 3)
    again = "" if times == 1 else f" Do this {times} times, each time with the result of the time before."
    return Draft(
        "digit_powers(number: int) -> int",
        f"Write the number (0 or more) in base {base} and add up its digits, each to the power of {power}.{again} "
        "Return the result.",
        f"""
        for _ in range({times}):
            total = 0
            while number:
                number, digit = divmod(number, {base})
                total += digit**{power}
            number = total
        return number
        """,
        lambda draw: (draw.between(2, 10_000),),
        ((0,), (1,), (base,), (base**3 - 1,)),
    )


def halving_steps(draw: Draw) -> Draft:
    """Steps of a rule until a number is reached."""
    part, factor, plus, most = draw.between(2, 4), draw.between(2, 5), draw.between(1, 5), draw.between(15, 40)

    def is_late(number: int) -> bool:
        for _ in range(most + 1):
            if number == 1:
                return False
            number = number // part if number % part == 0 else number * factor + plus
        return True

    late = next((number for number in range(7, 300) if is_late(number)), 7)
    return Draft(
        "halving_steps(number: int) -> int",
        f"Start with the number (1 or more). In one step a multiple of {part} is divided by {part}; any other number "
        f"is multiplied by {factor}, then {plus} is added. Return how many steps it takes until the number is 1 for "
        f"the first time (0 if it starts as 1), or minus the number reached after {most} steps if it was never 1.",
        f"""
        for step in range({most}):
            if number == 1:
                return step
            number = number // {part} if number % {part} == 0 else number * {factor} + {plus}
        return {most} if number == 1 else -number
        """,
        lambda draw: (draw.between(2, 300),),
        ((1,), (part,), (part**5,), (late,)),
    )


def to_digits(draw: Draw) -> Draft:
    """Digits in a base, padded."""
    base, width, order = draw.between(2, 16), draw.between(1, 6), draw.pick(("most", "least"))
    return Draft(
        "to_digits(number: int) -> list[int]",
        f"Return the digits of the number (0 or more) in base {base}, the {order} significant first. Where there are "
        f"fewer than {width} digits, fill up with zeros on the most significant side; 0 alone has no digits.",
        f"""
        digits = []
        while number:
            number, digit = divmod(number, {base})
            digits.append(digit)
        digits += [0] * ({width} - len(digits))
        return digits{"[::-1]" if order == "most" else ""}
        """,
        lambda draw: (draw.between(1, 5_000),),
        ((0,), (1,), (base,), (base**2 - 1,), (base**6,)),
    )


def count_primes(draw: Draw) -> Draft:
    """Primes of a residue class."""
    modulus = draw.between(3, 12)
    rest = draw.pick([number for number in range(modulus) if _coprime(number, modulus)])
    ends = draw.pick((True, False))
    prime = next(number for number in range(rest, 1_000, modulus) if number > 1 and _is_prime(number))
    return Draft(
        "count_primes(low: int, high: int) -> int",
        f"Return how many primes there are from low to high, {'both included' if ends else 'both left out'}, that "
        f"leave the remainder {rest} when divided by {modulus}.",
        f"""
        numbers = range(max(low, 2), high + 1)
        primes = [number for number in numbers if all(number % part for part in range(2, int(number**0.5) + 1))]
        return sum(prime % {modulus} == {rest}{"" if ends else " and low < prime < high"} for prime in primes)
        """,
        lambda draw: (draw.between(0, 60), draw.between(50, 300)),
        ((0, 1), (prime, prime), (2, 3), (50, 10), (0, 400)),
    )


def _coprime(number: int, modulus: int) -> bool:
    return all(number % part or modulus % part for part in range(2, modulus + 1))


def _is_prime(number: int) -> bool:
    return all(number % part for part in range(2, int(number**0.5) + 1))


def recurrence(draw: Draw) -> Draft:
    """A linear recurrence."""
    first, second, a, b, plus = (
        draw.between(0, 9),
        draw.between(1, 9),
        draw.between(1, 4),
        draw.between(1, 4),
        draw.between(0, 5),
    )
    modulus = draw.between(50, 999)
    added = f" + {plus}" if plus else ""
    return Draft(
        "sequence_term(n: int) -> int",
        f"A sequence begins with s(0) = {first} and s(1) = {second}; after that s(n) = ({a} * s(n - 1) + {b} * "
        f"s(n - 2){added}) modulo {modulus}. Return s(n) for n of 0 or more, also for n = 20000.",
        f"""
        before, number = {first}, {second}
        for _ in range(n):
            before, number = number, ({a} * number + {b} * before{added}) % {modulus}
        return before
        """,
        lambda draw: (draw.between(2, 60),),
        ((0,), (1,), (2,), (20_000,)),
    )


def coin_ways(draw: Draw) -> Draft:
    """Ways to pay, or the fewest coins."""
    coins = sorted(draw.some(range(2, 12), 3))
    listed = f"{coins[0]}, {coins[1]} and {coins[2]}"
    if draw.pick((True, False)):
        return Draft(
            "coin_ways(amount: int) -> int",
            f"Coins are worth {listed}. Return in how many ways the amount (0 or more) can be paid exactly, with any "
            "number of each coin; the order of the coins does not matter. There is one way to pay 0.",
            f"""
            ways = [1] + [0] * amount
            for coin in {coins}:
                for total in range(coin, amount + 1):
                    ways[total] += ways[total - coin]
            return ways[amount]
            """,
            lambda draw: (draw.between(10, 80),),
            ((0,), (1,), (coins[0],), (coins[1],), (100,)),
        )
    return Draft(
        "fewest_coins(amount: int) -> int",
        f"Coins are worth {listed}. Return how many coins are needed at least to pay the amount (0 or more) exactly, "
        "with any number of each coin, or -1 where it cannot be paid.",
        f"""
        fewest = [0]
        for total in range(1, amount + 1):
            counts = [fewest[total - coin] for coin in {coins} if coin <= total and fewest[total - coin] >= 0]
            fewest.append(1 + min(counts) if counts else -1)
        return fewest[amount]
        """,
        lambda draw: (draw.between(2, 80),),
        ((0,), (1,), *((coin,) for coin in coins), (coins[2] + 1,), (100,)),
    )


def edit_cost(draw: Draw) -> Draft:
    """Weighted edit distance."""
    insert, delete, replace = draw.between(1, 4), draw.between(1, 4), draw.between(1, 5)
    return Draft(
        "edit_cost(start: str, goal: str) -> int",
        f"Return the least cost of turning start into goal, where to insert a character costs {insert}, to delete one "
        f"costs {delete} and to replace one by another costs {replace}.",
        f"""
        costs = [place * {insert} for place in range(len(goal) + 1)]
        for row, a in enumerate(start, 1):
            before, costs = costs, [row * {delete}]
            for place, b in enumerate(goal, 1):
                replaced = before[place - 1] + (0 if a == b else {replace})
                costs.append(min(replaced, before[place] + {delete}, costs[-1] + {insert}))
        return costs[-1]
        """,
        lambda draw: (draw.word("abcd", 1, 8), draw.word("abcd", 1, 8)),
        (("", ""), ("abc", ""), ("", "abc"), ("abcabc", "bcabca"), ("aaaa", "bbbb")),
    )


def tariff(draw: Draw) -> Draft:
    """A price in steps."""
    first, second = draw.between(3, 9), draw.between(10, 20)
    prices, discount, bound = (
        sorted(draw.some(range(2, 12), 3), reverse=True),
        draw.between(5, 20),
        draw.between(40, 90),
    )
    costs = [prices[0]] * first + [prices[1]] * (second - first) + [prices[2]] * 60
    reached = next(amount for amount, price in enumerate(accumulate(costs), 1) if price > bound)
    return Draft(
        "tariff(amount: int) -> float",
        f"The first {first} pieces cost {prices[0]} each, the next ones up to the {second}th {prices[1]} each, all "
        f"further ones {prices[2]} each. If this is more than {bound}, {discount} percent are taken off the whole "
        "price. Return the price of the amount (0 or more).",
        f"""
        price = {prices[0]} * min(amount, {first}) + {prices[1]} * max(0, min(amount, {second}) - {first})
        price += {prices[2]} * max(0, amount - {second})
        return price * {100 - discount} / 100 if price > {bound} else float(price)
        """,
        lambda draw: (draw.between(1, 60),),
        ((0,), (first,), (first + 1,), (second,), (second + 1,), (reached - 1,), (reached,), (1_000,)),
    )


FAMILIES = (digit_powers, halving_steps, to_digits, count_primes, recurrence, coin_ways, edit_cost, tariff)
