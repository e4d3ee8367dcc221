"""Problems on texts, graphs and courses of events: statistics, ciphers, shortest ways, queues, robots."""

from __future__ import annotations

import heapq
from collections import Counter
from fractions import Fraction
from itertools import pairwise

from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.tools.python.problem import TEXT, Kind, Problem, cells, rounded, table

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_TURNS = {"L": 1j, "R": -1j}


def word_counts(draw: Draw, level: int) -> Problem:
    """Sums over the words of a text that come up so many times."""
    known = sorted(set(draw.words(30 * level, 50 * level, "aeiounrst", 3, 9)))
    words = [draw.pick(known) for _ in range(draw.between(120, 200) * level)]
    dressed = [word.capitalize() if draw.between(1, 6) == 1 else word for word in words]
    text = "".join(word + draw.pick((" ", " ", " ", " ", ", ", ". ", "\n")) for word in dressed)
    counts = Counter(words)
    wanted, letter, power = draw.between(2, 4), draw.pick("aeiou"), 1 + (level == 3)
    holding = f" and hold the letter {letter}" if level > 1 else ""
    test = f"n >= {wanted} and {letter!r} in w" if level > 1 else f"n >= {wanted}"
    what = f"the sum, over the different words that come up at least {wanted} times{holding}, of their length times "
    what += "the square of how often they come up" if level == 3 else "how often they come up"
    chosen = [(word, n) for word, n in counts.items() if n >= wanted and (level == 1 or letter in word)]
    answer = sum(len(word) * n**power for word, n in chosen)
    return Problem(
        "text.txt holds words of letters, with blanks, commas, full stops and line ends between them; capital and "
        f"small letters are the same. What is {what}?",
        str(answer),
        cells(f"""
            import re
            from collections import Counter
            counts = Counter(re.findall("[a-z]+", open("text.txt").read().lower()))
            print(sum(len(w) * n**{power} for w, n in counts.items() if {test}))
        """),
        {"text.txt": text},
    )


def letter_means(draw: Draw, level: int) -> Problem:
    """Mean and spread of the lengths of lines."""
    lines = [draw.word("abc xyz,.", 3, 30) for _ in range(draw.between(30, 60) * level)]
    letters = draw.some("abcxyz", 2)
    counts = [sum(line.count(letter) for letter in letters[: 1 + (level > 1)]) for line in lines]
    n, total = len(counts), sum(counts)
    variance = Fraction(n * sum(count**2 for count in counts) - total**2, n * (n - 1))
    answer = Fraction(total, n) if level == 1 else variance
    named = (
        f"the letter {letters[0]} comes" if level == 1 else f"the letters {letters[0]} and {letters[1]} together come"
    )
    what = "mean" if level == 1 else "sample variance (divided by n - 1)"
    wanted = "".join(letters[: 1 + (level > 1)])
    return Problem(
        f"Count in each line of lines.txt how often {named} up. What is the {what} of these counts over all lines?",
        rounded(answer, 4),
        cells(f"""
            import statistics
            lines = open("lines.txt").read().split("\\n")[:-1]
            counts = [sum(c in {wanted!r} for c in line) for line in lines]
            print(f"{{statistics.{"mean" if level == 1 else "variance"}(counts):.4f}}")
        """),
        {"lines.txt": "".join(f"{line}\n" for line in lines)},
        decimals=4,
    )


def cipher(draw: Draw, level: int) -> Problem:
    """Texts that were shifted letter by letter, and put in another order."""
    plain = draw.word(_ALPHABET, 10, 14) if level < 3 else draw.word(_ALPHABET, 20, 24)
    a, b = draw.between(3, 25), draw.between(1, 25)
    rails = draw.between(3, 5)
    shifted = "".join(_ALPHABET[(_ALPHABET.index(c) + a * k * k + b) % 26] for k, c in enumerate(plain))
    order = sorted(range(len(plain)), key=lambda k: (k % rails, k)) if level > 1 else list(range(len(plain)))
    secret = "".join(shifted[k] for k in order)
    moved = (
        f" Then the letters were put in another order: first those at the places 0, {rails}, {2 * rails} and so on, "
        f"then those at 1, {rails + 1} and so on, and last those at {rails - 1}, {2 * rails - 1} and so on."
    ) * (level > 1)
    key = f"(k % {rails}, k)" if level > 1 else "k"
    return Problem(
        "secret.txt holds a text of small letters that was made like this: its letter at place k, counted from 0, was "
        f"moved on by {a}*k*k + {b} places in the alphabet, with a after z.{moved} What was the text?",
        plain,
        cells(f"""
            s = open("secret.txt").read().strip()
            shifted = [""] * len(s)
            for c, k in zip(s, sorted(range(len(s)), key=lambda k: {key})):
                shifted[k] = c
            print("".join(chr((ord(c) - 97 - {a} * k * k - {b}) % 26 + 97) for k, c in enumerate(shifted)))
        """),
        {"secret.txt": f"{secret}\n"},
        decimals=TEXT,
    )


def shortest_way(draw: Draw, level: int) -> Problem:
    """Shortest ways in a graph, by way of a place at level 3."""
    size = 12 * level
    nodes = [f"n{number}" for number in draw.some(range(100, 1_000), size)]
    edges = {(nodes[k - 1], nodes[k]): draw.between(100, 999) for k in range(size)}
    while len(edges) < 3 * size:
        a, b = draw.some(nodes, 2)
        if (b, a) not in edges:
            edges[a, b] = draw.between(100, 2_999)
    near: dict[str, list[tuple[str, int]]] = {node: [] for node in nodes}
    for (a, b), length in edges.items():
        near[a].append((b, length))
        if level == 1:
            near[b].append((a, length))
    stops = draw.some(nodes, 3 if level == 3 else 2)
    answer = sum(_distance(near, a, b) for a, b in pairwise(stops))
    kind = "a road that can be used both ways" if level == 1 else "a road that can be used from the first to the second"
    by = f" that comes by {stops[1]}" if level == 3 else ""
    back = "" if level > 1 else "near.setdefault(b, []).append((a, int(n)))"
    lines = [(a, b, length) for (a, b), length in edges.items()]
    order = draw.some(lines, len(lines))
    return Problem(
        f"roads.csv has the columns from, to, length; each row is {kind}. How long is the shortest way from {stops[0]} "
        f"to {stops[-1]}{by}?",
        str(answer),
        cells(
            f"""
            import csv
            near = {{}}
            for a, b, n in list(csv.reader(open("roads.csv")))[1:]:
                near.setdefault(a, []).append((b, int(n)))
                {back}
            print(len(near))
            """,
            f"""
            import heapq
            def distance(a, b):
                queue, done = [(0, a)], set()
                while queue:
                    length, node = heapq.heappop(queue)
                    if node == b:
                        return length
                    if node not in done:
                        done.add(node)
                        for other, n in near.get(node, []):
                            heapq.heappush(queue, (length + n, other))
            stops = {stops}
            print(sum(distance(a, b) for a, b in zip(stops, stops[1:])))
            """,
        ),
        {"roads.csv": table(("from", "to", "length"), order)},
    )


def _distance(near: dict[str, list[tuple[str, int]]], start: str, end: str) -> int:
    queue, best = [(0, start)], {start: 0}
    while queue:
        length, node = heapq.heappop(queue)
        if node == end:
            return length
        for other, step in near[node]:
            if length + step < best.get(other, length + step + 1):
                best[other] = length + step
                heapq.heappush(queue, (length + step, other))
    raise ValueError(f"no way leads from {start} to {end}")


def queue_waits(draw: Draw, level: int) -> Problem:
    """Waiting times at counters."""
    counters = level
    rows, now = [], 0
    for _ in range(draw.between(30, 60) * level):
        now += draw.between(1, 120)
        rows.append((now, draw.between(20, 110 * counters)))
    free, waited = [0] * counters, 0
    for arrival, needed in rows:
        first = min(range(counters), key=free.__getitem__)
        begin = max(arrival, free[first])
        waited += begin - arrival
        free[first] = begin + needed
    where = "a counter" if counters == 1 else f"{counters} counters"
    return Problem(
        f"Customers come to {where}; customers.csv has the columns arrival and needed, in seconds, in the order in "
        "which they come. Each is served in that order by the counter that is free first, as soon as it is free, for "
        "the seconds needed. How many seconds do all customers wait together before they are served?",
        str(waited),
        cells(f"""
            import csv, heapq
            free, waited = [0] * {counters}, 0
            for row in csv.DictReader(open("customers.csv")):
                arrival = int(row["arrival"])
                begin = max(arrival, heapq.heappop(free))
                waited += begin - arrival
                heapq.heappush(free, begin + int(row["needed"]))
            print(waited)
        """),
        {"customers.csv": table(("arrival", "needed"), rows)},
    )


def robot_walk(draw: Draw, level: int) -> Problem:
    """The way of a robot by its orders."""
    orders = [draw.pick(("L", "R", "F", "F")) + str(draw.between(1, 12)) for _ in range(draw.between(60, 100) * level)]
    times = draw.between(2, 5) if level == 3 else 1
    place, heading, seen = 0j, 1j, Counter([0j])
    for order in orders * times:
        for _ in range(int(order[1:])):
            if order[0] == "F":
                place += heading
                seen[place] += 1
            else:
                heading *= _TURNS[order[0]]
    x, y = int(place.real), int(place.imag)
    twice = sum(count > 1 for count in seen.values())
    repeat = "" if times == 1 else f" It follows the whole file {times} times, one after the other."
    if level == 1:
        answer, asked = 1_000_000 + 1_000 * x + y, "what is 1000000 + 1000 * x + y"
        result = "1000000 + 1000 * x + y"
    else:
        answer = 7 * len(seen) + twice
        asked = "what is 7 times the number of different places where it was (the start counts) plus the number of "
        asked += "places where it was more than once"
        result = "7 * len(seen) + sum(n > 1 for n in seen.values())"
    return Problem(
        "A robot on a grid begins at x = 0, y = 0 and looks in the direction of growing y. Each line of orders.txt is "
        "an order: Fn: go n places forward, one by one; Ln: turn left by 90 degrees n times; Rn: turn right by 90 "
        f"degrees n times.{repeat} At the end, {asked}?",
        str(answer),
        cells(
            """
            orders = open("orders.txt").read().split()
            print(len(orders), orders[:3])
            """,
            f"""
            from collections import Counter
            x, y, dx, dy, seen = 0, 0, 0, 1, Counter([(0, 0)])
            for order in orders * {times}:
                for _ in range(int(order[1:])):
                    if order[0] == "F":
                        x, y = x + dx, y + dy
                        seen[x, y] += 1
                    elif order[0] == "L":
                        dx, dy = -dy, dx
                    else:
                        dx, dy = dy, -dx
            print({result})
            """,
        ),
        {"orders.txt": "".join(f"{order}\n" for order in orders)},
    )


KINDS: tuple[Kind, ...] = (word_counts, letter_means, cipher, shortest_way, queue_waits, robot_walk)
