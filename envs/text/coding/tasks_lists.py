"""Functions to be written on lists of numbers."""

from __future__ import annotations

from tetrathlon.envs.text.coding.draft import ORDERS, Draft, Draw


def sum_where(draw: Draw) -> Draft:
    """Sum of the numbers that fulfil a condition, with another weight for the rest."""
    (words, sign), bound, factor = draw.pick(ORDERS), draw.between(-4, 8), draw.between(2, 9)
    return Draft(
        "weighted_sum(numbers: list[int]) -> int",
        f"Return the sum of the numbers, where each number that is {words} {bound} counts {factor} times.",
        f"return sum(number * {factor} if number {sign} {bound} else number for number in numbers)",
        lambda draw: (draw.wholes(1, 8, -12, 16),),
        (([],), ([bound],), ([bound - 2, bound - 1, bound, bound + 1, bound + 2],)),
    )


def capped_steps(draw: Draw) -> Draft:
    """Differences of neighbours, clipped."""
    low, high = -draw.between(1, 9), draw.between(1, 9)
    first, second = draw.pick((("following", "preceding"), ("preceding", "following")))
    minus = "after - before" if first == "following" else "before - after"
    return Draft(
        "capped_steps(numbers: list[int]) -> list[int]",
        f"For each two neighbours in the list take the {first} number minus the {second} one. Return these differences "
        f"in order; a difference below {low} becomes {low}, one above {high} becomes {high}.",
        f"return [max({low}, min({high}, {minus})) for before, after in zip(numbers, numbers[1:])]",
        lambda draw: (draw.wholes(2, 8, -15, 15),),
        (([],), ([7],), ([0, 100, 0],)),
    )


def rotate_and_drop(draw: Draw) -> Draft:
    """A rotated list, with every k-th item left out."""
    side, places, step = draw.pick(("left", "right")), draw.between(2, 7), draw.between(2, 6)
    cut = f"{places} % len(numbers)" if side == "left" else f"-{places} % len(numbers)"
    return Draft(
        "rotate_and_drop(numbers: list[int]) -> list[int]",
        f"Rotate the list to the {side} by {places} places (more than once around where it is short). Then leave out "
        f"every item whose position in the rotated list, counted from 1, is a multiple of {step}. Return the rest.",
        f"""
        if not numbers:
            return []
        cut = {cut}
        rotated = numbers[cut:] + numbers[:cut]
        return [number for place, number in enumerate(rotated, 1) if place % {step}]
        """,
        lambda draw: (draw.wholes(2, 9, 0, 30),),
        (([],), ([4],), ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10],)),
    )


def best_window(draw: Draw) -> Draft:
    """Largest or smallest sum of a window."""
    (best, pick), width, default = (
        draw.pick((("largest", "max"), ("smallest", "min"))),
        draw.between(2, 5),
        draw.between(-9, 0),
    )
    return Draft(
        "best_window(numbers: list[int]) -> int",
        f"Return the {best} sum of {width} numbers that stand side by side. Return {default} where there are fewer "
        f"than {width} numbers.",
        f"""
        sums = [sum(numbers[start : start + {width}]) for start in range(len(numbers) - {width} + 1)]
        return {pick}(sums, default={default})
        """,
        lambda draw: (draw.wholes(width, 10, -20, 20),),
        (([],), (list(range(1, width)),), (list(range(width)),)),
    )


def long_runs(draw: Draw) -> Draft:
    """Runs of equal items."""
    fewest, order, skipped = draw.between(2, 4), draw.pick(("item, length", "length, item")), draw.between(0, 4)
    return Draft(
        "long_runs(items: list[int]) -> list[list[int]]",
        f"A run is a longest stretch of equal items side by side. Return [{order}] for each run of at least {fewest} "
        f"items, in the order of the list, but leave out the runs of the item {skipped}.",
        f"""
        runs = []
        start = 0
        for end in range(1, len(items) + 1):
            if end == len(items) or items[end] != items[start]:
                item, length = items[start], end - start
                if length >= {fewest} and item != {skipped}:
                    runs.append([{order}])
                start = end
        return runs
        """,
        lambda draw: ([item for _ in range(draw.between(2, 5)) for item in [draw.between(0, 4)] * draw.between(1, 5)],),
        (([],), ([5] * fewest,), ([5] * (fewest - 1),), ([skipped] * 5 + [6] * 5,)),
    )


def chunk_results(draw: Draw) -> Draft:
    """One result a chunk."""
    size, rest = draw.between(2, 5), draw.pick(("counts like any other", "is left out"))
    what, code = draw.pick(
        (
            ("sum", "sum(chunk)"),
            ("largest item", "max(chunk)"),
            ("smallest item", "min(chunk)"),
            ("last item minus the first", "chunk[-1] - chunk[0]"),
        )
    )
    kept = "chunks" if rest.startswith("counts") else f"chunks if len(chunk) == {size}"
    return Draft(
        "chunk_results(numbers: list[int]) -> list[int]",
        f"Cut the list into chunks of {size} numbers from the start; a shorter chunk at the end {rest}. Return the "
        f"{what} of each chunk.",
        f"""
        chunks = [numbers[start : start + {size}] for start in range(0, len(numbers), {size})]
        return [{code} for chunk in {kept}]
        """,
        lambda draw: (draw.wholes(2, 12, -9, 30),),
        (([],), ([5],), (list(range(3, 3 + 2 * size + 1)),)),
    )


def ranked_value(draw: Draw) -> Draft:
    """The k-th largest or smallest value."""
    rank, which, default = draw.between(2, 4), draw.pick(("largest", "smallest")), draw.between(-5, 0)
    word = {2: "second", 3: "third", 4: "fourth"}[rank]
    distinct = draw.pick((True, False))
    how = "equal numbers count once" if distinct else "equal numbers count as often as they occur"
    values = "set(numbers)" if distinct else "numbers"
    return Draft(
        "ranked_value(numbers: list[int]) -> int",
        f"Return the {word} {which} number ({how}). Return {default} where there is none.",
        f"""
        ranked = sorted({values}, reverse={which == "largest"})
        return ranked[{rank - 1}] if len(ranked) >= {rank} else {default}
        """,
        lambda draw: (draw.wholes(rank, 8, 1, 9),),
        (([],), ([6] * rank,), ([9, 1, 9, 1, 9, 1],), ([8, 8, 7, 7, 6, 6, 5, 5],)),
    )


def take_turns(draw: Draw) -> Draft:
    """Two lists merged by turns."""
    first, second, keep = draw.between(1, 3), draw.between(1, 3), draw.pick((True, False))
    rest = "append what is left of the other" if keep else "stop"
    return Draft(
        "take_turns(left: list[int], right: list[int]) -> list[int]",
        f"Build a list by turns: take {first} from the front of left, then {second} from the front of right, and so "
        "on (fewer where a list has fewer left). As soon as it is the turn of a list that has nothing left, "
        f"{rest}. Return the list.",
        f"""
        result = []
        lists, sizes, turn = [list(left), list(right)], [{first}, {second}], 0
        while lists[turn]:
            result += lists[turn][: sizes[turn]]
            del lists[turn][: sizes[turn]]
            turn = 1 - turn
        return result{" + lists[1 - turn]" if keep else ""}
        """,
        lambda draw: (draw.wholes(1, 7, 0, 9), draw.wholes(1, 7, 10, 19)),
        (([], []), ([], [4, 5]), ([4, 5], []), (list(range(8)), list(range(20, 28)))),
    )


def longest_climb(draw: Draw) -> Draft:
    """The longest stretch of bounded steps."""
    (words, sign), bound, empty = draw.pick(ORDERS), draw.between(1, 4), draw.between(-3, 0)
    return Draft(
        "longest_climb(numbers: list[int]) -> int",
        "Return the length of the longest stretch of numbers side by side in which each number after the first, minus "
        f"the one before it, is {words} {bound}. A single number is a stretch of length 1. "
        f"Return {empty} for an empty list.",
        f"""
        best, length = {empty}, 0
        for place, number in enumerate(numbers):
            length = length + 1 if place and number - numbers[place - 1] {sign} {bound} else 1
            best = max(best, length)
        return best
        """,
        lambda draw: (_walk(draw),),
        (
            ([],),
            ([3],),
            ([0, bound, 2 * bound, 3 * bound, 4 * bound, 5 * bound, 6 * bound],),
            ([0, bound + 1, 2 * bound + 2, 3 * bound + 1, 4 * bound, 5 * bound - 1],),
        ),
    )


def _walk(draw: Draw) -> list[int]:
    numbers = [draw.between(-5, 5)]
    for _ in range(draw.between(2, 10)):
        numbers.append(numbers[-1] + draw.between(-1, 6))
    return numbers


def count_pairs(draw: Draw) -> Draft:
    """Pairs with a property."""
    number = draw.between(3, 12)
    words, code = draw.pick(
        (
            (f"the sum is {number}", f"a + b == {number}"),
            (f"the sum is a multiple of {number}", f"(a + b) % {number} == 0"),
            (f"the sum is greater than {number}", f"a + b > {number}"),
            (f"the two numbers differ by exactly {number}", f"abs(a - b) == {number}"),
            (f"the product is less than {number}", f"a * b < {number}"),
        )
    )
    return Draft(
        "count_pairs(numbers: list[int]) -> int",
        f"Return how many pairs of two different positions there are for which {words}. The order of the two positions "
        "does not matter; equal numbers at different positions are different.",
        f"return sum({code} for place, a in enumerate(numbers) for b in numbers[place + 1 :])",
        lambda draw: (draw.wholes(4, 12, -4, 12),),
        (([],), ([number],), ([0, number],), ([1, number],), ([1, number - 1, 1, number - 1, number + 1],)),
    )


def thin_out(draw: Draw) -> Draft:
    """Items far enough from the last one kept."""
    gap, side, most = draw.between(2, 6), draw.pick(("front", "back")), draw.between(3, 6)
    turn = "" if side == "front" else "[::-1]"
    return Draft(
        "thin_out(numbers: list[int]) -> list[int]",
        f"Go through the list from the {side}. Keep the first number that you meet, and then each number that differs "
        f"by at least {gap} from the last one kept, up to {most} numbers. Return the kept numbers in the order of the "
        "list.",
        f"""
        kept = []
        for number in numbers{turn}:
            if len(kept) < {most} and (not kept or abs(number - kept[-1]) >= {gap}):
                kept.append(number)
        return kept{turn}
        """,
        lambda draw: (draw.wholes(3, 12, 0, 14),),
        (([],), ([2],), ([0, gap - 1, gap, 2 * gap - 1],), (list(range(12)),), ([0, gap] * 4,)),
    )


def trimmed_mean(draw: Draw) -> Draft:
    """The mean without the ends."""
    low, high, scale = draw.between(1, 3), draw.between(1, 3), draw.pick((0.5, 1.5, 2.5, 0.1))
    return Draft(
        "trimmed_mean(numbers: list[int]) -> float | None",
        f"Sort the numbers and leave out the first {low} and the last {high} of them. Return the mean of the others "
        f"times {scale}, or None where no number is left.",
        f"""
        kept = sorted(numbers)[{low} : len(numbers) - {high}] if len(numbers) > {low + high} else []
        return {scale} * sum(kept) / len(kept) if kept else None
        """,
        lambda draw: (draw.wholes(low + high + 1, 11, -10, 40),),
        (([],), ([5] * (low + high),), ([7, 1, 100, -50, 3, 9],)),
    )


FAMILIES = (
    sum_where,
    capped_steps,
    rotate_and_drop,
    best_window,
    long_runs,
    chunk_results,
    ranked_value,
    take_turns,
    longest_climb,
    count_pairs,
    thin_out,
    trimmed_mean,
)
