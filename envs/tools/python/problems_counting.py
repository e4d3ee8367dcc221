"""Problems that are solved by counting: paths, coins, numbers by their digits, matrices, automata, rewriting."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.tools.python.problem import Kind, Problem, cells, table

_FREE, _BLOCKED = ".", "#"


def grid_paths(draw: Draw, level: int) -> Problem:
    """Monotone paths through a grid with blocked squares."""
    width, height = draw.between(5, 7) + 4 * level, draw.between(5, 7) + 4 * level
    grid = [[_BLOCKED if draw.between(1, 100) <= 14 else _FREE for _ in range(width)] for _ in range(height)]
    for k in range(max(width, height)):  # one way is always there
        for row, column in ((min(k, height - 1), min(k, width - 1)), (min(k + 1, height - 1), min(k, width - 1))):
            grid[row][column] = _FREE
    moves = [(1, 0), (0, 1)] + ([(1, 1)] if level > 1 else [])
    ways = [[0] * width for _ in range(height)]
    for row in range(height):
        for column in range(width):
            if grid[row][column] == _BLOCKED:
                continue
            before = [(row - down, column - right) for down, right in moves]
            reached = sum(ways[r][c] for r, c in before if r >= 0 and c >= 0)
            ways[row][column] = reached + (row == column == 0)
    named = (
        "one square down or to the right"
        if level == 1
        else "one square down, to the right, or diagonally down to the right"
    )
    diagonal = "" if level == 1 else " + (ways[r - 1][c - 1] if r and c else 0)"
    return Problem(
        "The file grid.txt shows a grid: . is free and # is blocked. A path goes from the top left square to the "
        f"bottom right one over free squares; each move goes {named}. How many such paths are there?",
        str(ways[-1][-1]),
        cells(
            """
            grid = open("grid.txt").read().split()
            print(len(grid), len(grid[0]))
            """,
            f"""
            ways = [[0] * len(grid[0]) for _ in grid]
            for r, row in enumerate(grid):
                for c, square in enumerate(row):
                    if square == ".":
                        ways[r][c] = (ways[r - 1][c] if r else 0) + (ways[r][c - 1] if c else 0){diagonal}
                        ways[r][c] += r == c == 0
            print(ways[-1][-1])
            """,
        ),
        {"grid.txt": "\n".join(map("".join, grid)) + "\n"},
    )


def coin_ways(draw: Draw, level: int) -> Problem:
    """Ways to pay an amount."""
    coins = sorted(draw.some([2, 3, 4, 5, 7, 8, 10, 11, 15, 20, 25, 30, 40, 50], 3 + level))
    amount = draw.between(150, 300) * level
    most = draw.between(6, 14) if level == 3 else amount
    ways = [1] + [0] * amount
    for coin in coins:
        new = ways[:]
        for value in range(coin, amount + 1):
            beyond = value - coin * (most + 1)
            new[value] = ways[value] + new[value - coin] - (ways[beyond] if beyond >= 0 else 0)
        ways = new
    limit = f", with at most {most} coins of each value" if level == 3 else ""
    return Problem(
        f"There are coins of {', '.join(map(str, coins))} cents. In how many ways can exactly {amount} cents be paid"
        f"{limit}? The order of the coins does not count.",
        str(ways[amount]),
        cells(f"""
            ways = [1] + [0] * {amount}
            for coin in {coins}:
                ways = [
                    sum(ways[v - k * coin] for k in range(min({most}, v // coin) + 1)) for v in range({amount} + 1)
                ]
            print(ways[{amount}])
        """),
    )


def digit_strings(draw: Draw, level: int) -> Problem:
    """Multiples with digits out of a set, and different neighbours."""
    length, divisor = (5, 9, 18)[level - 1] + draw.between(0, 1), draw.between(7, 59)
    digits = sorted(draw.some(range(1, 10), 6))
    left = {(0, 0): 1}
    for _ in range(length):
        after: Counter[tuple[int, int]] = Counter()
        for (rest, last), count in left.items():
            for digit in digits:
                if digit != last:
                    after[(10 * rest + digit) % divisor, digit] += count
        left = dict(after)
    return Problem(
        f"How many integers with exactly {length} decimal digits are multiples of {divisor}, have only digits out of "
        f"{', '.join(map(str, digits))}, and have no two equal digits next to each other?",
        str(sum(count for (rest, _), count in left.items() if rest == 0)),
        cells(f"""
            from functools import cache
            @cache
            def count(place, rest, last):
                if place == {length}:
                    return int(rest == 0)
                return sum(count(place + 1, (10 * rest + d) % {divisor}, d) for d in {digits} if d != last)
            print(count(0, 0, 0))
        """),
    )


def matrix_sum(draw: Draw, level: int) -> Problem:
    """Sums over powers and products of matrices."""
    size, power, modulus = 2 + level, draw.between(3, 5) * (1, 3, 10)[level - 1], draw.between(10**5, 10**7)
    rows = [[draw.between(-9, 20) for _ in range(size)] for _ in range(size)]
    result = [[int(i == j) for j in range(size)] for i in range(size)]
    for _ in range(power):
        columns = list(zip(*rows, strict=True))
        result = [[sum(map(int.__mul__, row, column)) % modulus for column in columns] for row in result]
    is_trace = level > 1 and draw.between(0, 1) == 1
    answer = sum(result[i][i] if is_trace else sum(result[i]) for i in range(size)) % modulus
    what = "the trace of M" if is_trace else "the sum of all entries of M"
    code = "m[i][i] for i in range(len(m))" if is_trace else "sum(row) for row in m"
    return Problem(
        "The file matrix.csv holds a square matrix M, a row on each line, without a head. What is "
        f"{what}^{power} modulo {modulus}, as an integer from 0?",
        str(answer),
        cells(
            """
            a = [list(map(int, line.split(","))) for line in open("matrix.csv")]
            print(len(a))
            """,
            f"""
            m = [[int(i == j) for j in range(len(a))] for i in range(len(a))]
            for _ in range({power}):
                m = [[sum(x * y for x, y in zip(row, column)) for column in zip(*a)] for row in m]
            print(sum({code}) % {modulus})
            """,
        ),
        {"matrix.csv": table([str(cell) for cell in rows[0]], rows[1:])},
    )


def automaton(draw: Draw, level: int) -> Problem:
    """Cells on a ring under a rule of their neighbours."""
    width, steps = draw.between(30, 50) * level, draw.between(20, 40) * level
    rule = draw.pick((22, 30, 45, 54, 60, 73, 90, 105, 110, 126, 146, 150, 169, 182))
    start = "".join(draw.pick("01") for _ in range(width))
    state = list(map(int, start))
    for _ in range(steps):
        state = [rule >> (4 * state[i - 1] + 2 * state[i] + state[(i + 1) % width]) & 1 for i in range(width)]
    answer = sum(place for place, cell in enumerate(state, 1) if cell)
    pairs = ", ".join(f"{k:03b} -> {rule >> k & 1}" for k in reversed(range(8)))
    return Problem(
        f"The file ring.txt holds {width} cells, each 0 or 1, that lie on a ring: the first is the right neighbour of "
        "the last. In each step all cells change at once; the new value of a cell follows from its left neighbour, "
        f"itself and its right neighbour, in this order: {pairs}. After {steps} steps, what is the sum of the places "
        "of all cells that are 1, where the first cell has place 1?",
        str(answer),
        cells(
            """
            state = [int(c) for c in open("ring.txt").read().strip()]
            print(len(state))
            """,
            f"""
            n = len(state)
            for _ in range({steps}):
                state = [{rule} >> (4 * state[i - 1] + 2 * state[i] + state[(i + 1) % n]) & 1 for i in range(n)]
            print(sum(i for i, cell in enumerate(state, 1) if cell))
            """,
        ),
        {"ring.txt": f"{start}\n"},
    )


def rewriting(draw: Draw, level: int) -> Problem:
    """Strings that grow by rules for pairs."""
    letters = "abcdefgh"[: 3 + level]
    steps = (8, 16, 40)[level - 1] + draw.between(0, 4)
    start = draw.word(letters, 8, 16)
    rules = {a + b: draw.pick(letters) for a in letters for b in letters if draw.between(1, 10) <= 8}
    pairs, count = Counter(a + b for a, b in pairwise(start)), Counter(start)
    for _ in range(steps):
        grown: Counter[str] = Counter()
        for pair, times in pairs.items():
            if pair in rules:
                count[rules[pair]] += times
                grown[pair[0] + rules[pair]] += times
                grown[rules[pair] + pair[1]] += times
            else:
                grown[pair] += times
        pairs = grown
    first, second = draw.some(letters, 2)
    return Problem(
        f"Start with the text {start!r}. In each step every two neighbouring letters for which rules.txt has a rule "
        "get a letter put between them, all at once: 'ab -> c' means that c goes between a and b. After "
        f"{steps} steps, what is 3 times the number of letters {first} plus the number of letters {second}?",
        str(3 * count[first] + count[second]),
        cells(
            """
            rules = dict(line.strip().split(" -> ") for line in open("rules.txt"))
            print(rules)
            """,
            f"""
            from collections import Counter
            text = {start!r}
            letters, pairs = Counter(text), Counter(a + b for a, b in zip(text, text[1:]))
            for _ in range({steps}):
                new = Counter()
                for pair, n in pairs.items():
                    c = rules.get(pair)
                    if c is None:
                        new[pair] += n
                    else:
                        letters[c] += n
                        new[pair[0] + c] += n
                        new[c + pair[1]] += n
                pairs = new
            print(3 * letters[{first!r}] + letters[{second!r}])
            """,
        ),
        {"rules.txt": "".join(f"{pair} -> {letter}\n" for pair, letter in rules.items())},
    )


KINDS: tuple[Kind, ...] = (grid_paths, coin_ways, digit_strings, matrix_sum, automaton, rewriting)
