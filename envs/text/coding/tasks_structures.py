"""Functions to be written on intervals, grids, dicts, nested lists and small languages."""

from __future__ import annotations

from typing import Any

from tetrathlon.envs.text.coding.draft import Draft, Draw


def merge_intervals(draw: Draw) -> Draft:
    """Intervals joined over gaps."""
    gap, shortest = draw.between(0, 4), draw.between(1, 6)
    return Draft(
        "merge_intervals(intervals: list[list[int]]) -> list[list[int]]",
        f"Each interval is [start, end] with start <= end. Join intervals that overlap, touch, or have a gap of at "
        f"most {gap} between the end of one and the start of the next, until none can be joined. Return those of a "
        f"length (end minus start) of at least {shortest}, by start.",
        f"""
        merged = []
        for start, end in sorted(intervals):
            if merged and start - merged[-1][1] <= {gap}:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        return [[start, end] for start, end in merged if end - start >= {shortest}]
        """,
        lambda draw: (_intervals(draw),),
        (([],), ([[5, 12], [0, 5 - gap]],), ([[0, 8], [9 + gap, 19 + gap]],), ([[0, shortest], [50, 49 + shortest]],)),
    )


def covered_points(draw: Draw) -> Draft:
    """Points in enough intervals."""
    fewest, ends, modulus = draw.between(1, 3), draw.pick((True, False)), draw.between(2, 9)
    stop = "end + 1" if ends else "end"
    return Draft(
        "covered_points(intervals: list[list[int]]) -> int",
        f"Each interval [start, end] holds the integers from start to end, the end {'included' if ends else 'left out'}"
        f". Return how many integers that are no multiple of {modulus} are in at least {fewest} of the intervals.",
        f"""
        counts = {{}}
        for start, end in intervals:
            for point in range(start, {stop}):
                counts[point] = counts.get(point, 0) + 1
        return sum(count >= {fewest} and point % {modulus} != 0 for point, count in counts.items())
        """,
        lambda draw: (_intervals(draw),),
        (
            ([],),
            ([[1, 1]] * fewest,),
            ([[0, 5]] * 3,),
            ([[-3, 4], [0, 9], [2, 3], [2, 8]],),
            ([[modulus, modulus + 1]] * fewest,),
            ([[1, 10]] * fewest + [[20, 30]] * (fewest - 1),),
        ),
    )


def _intervals(draw: Draw) -> list[list[int]]:
    starts = draw.wholes(3, 7, -5, 25)
    return [[start, start + draw.between(0, 8)] for start in starts]


def most_meetings(draw: Draw) -> Draft:
    """Meetings with pauses between."""
    pause, shortest = draw.between(0, 4), draw.between(1, 4)
    return Draft(
        "most_meetings(meetings: list[list[int]]) -> int",
        f"Each meeting is [start, end] with start <= end. Meetings shorter than {shortest} (end minus start) do not "
        f"count. Return how many of the others one person can attend at most, if the next one may start no earlier "
        f"than {pause} after the end of the one before.",
        f"""
        count, free = 0, None
        for start, end in sorted(meetings, key=lambda meeting: meeting[1]):
            if end - start >= {shortest} and (free is None or start >= free):
                count, free = count + 1, end + {pause}
        return count
        """,
        lambda draw: ([*_intervals(draw), *_intervals(draw)[: draw.between(0, 4)]],),
        (
            ([],),
            ([[0, shortest - 1]],),
            ([[0, shortest]],),
            ([[0, 10], [1, 5], [5 + pause, 9 + pause], [20, 29]],),
            ([[0, 5], [4 + pause, 9 + pause]],),
        ),
    )


def turn_grid(draw: Draw) -> Draft:
    """Grids turned and mirrored."""
    turns, mirror = draw.pick(("clockwise", "anticlockwise", "half")), draw.pick(("rows", "columns", "nothing"))
    turn = {
        "clockwise": ("by 90 degrees clockwise", "[list(row) for row in zip(*grid[::-1])]"),
        "anticlockwise": ("by 90 degrees anticlockwise", "[list(row) for row in zip(*grid)][::-1]"),
        "half": ("by 180 degrees", "[row[::-1] for row in grid[::-1]]"),
    }[turns]
    after = {
        "rows": (" Then put its rows in reverse order.", "[::-1]"),
        "columns": (" Then put the numbers of each row in reverse order.", ""),
        "nothing": ("", ""),
    }[mirror]
    step, factor = draw.between(2, 4), draw.between(2, 5)
    last = "row[::-1]" if mirror == "columns" else "row"
    return Draft(
        "turn_grid(grid: list[list[int]]) -> list[list[int]]",
        f"Turn the grid, a list of rows of equal length, {turn[0]}.{after[0]} Then multiply by {factor} each number "
        f"that is a multiple of {step}. Return the new grid; the grid of no rows stays [].",
        f"""
        turned = {turn[1]}{after[1]}
        turned = [{last} for row in turned]
        return [[number * {factor} if number % {step} == 0 else number for number in row] for row in turned]
        """,
        lambda draw: (_numbers(draw),),
        (([],), ([[step]],), ([[1, 2, 3]],), ([[1], [2], [3]],), ([[1, 2, 3], [4, 5, 6]],)),
    )


def _numbers(draw: Draw) -> list[list[int]]:
    width = draw.between(1, 4)
    return [draw.wholes(width, width, 0, 12) for _ in range(draw.between(2, 4))]


def cell_sum(draw: Draw) -> Draft:
    """Cells by their row and column."""
    a, b, modulus = draw.between(1, 4), draw.between(1, 4), draw.between(2, 5)
    rest = draw.pick(sorted({(a * row + b * column) % modulus for row in range(5) for column in range(5)}))
    return Draft(
        "cell_sum(grid: list[list[int]]) -> int",
        f"Rows and columns are counted from 0. Return the sum of the cells for which {a} times the row plus {b} times "
        f"the column leaves the remainder {rest} when divided by {modulus}. Rows may differ in length.",
        f"""
        return sum(
            cell
            for row, cells in enumerate(grid)
            for column, cell in enumerate(cells)
            if ({a} * row + {b} * column) % {modulus} == {rest}
        )
        """,
        lambda draw: ([draw.wholes(1, 6, -9, 20) for _ in range(draw.between(2, 6))],),
        (([],), ([[5]],), ([[], [1, 2, 3, 4, 5, 6, 7]],)),
    )


def count_regions(draw: Draw) -> Draft:
    """Connected regions of a grid."""
    sign, fewest, diagonal = draw.pick("#ox@"), draw.between(1, 3), draw.pick((True, False))
    steps = (
        "side by side, one above the other, or touching at a corner"
        if diagonal
        else "side by side or one above the other"
    )
    reach = "" if diagonal else " if not (a and b)"
    return Draft(
        "count_regions(grid: list[str]) -> int",
        f"The grid is a list of rows of equal length. Cells {sign!r} belong to one region if they are {steps}, also by "
        f"way of other such cells. Return how many regions have at least {fewest} cells.",
        f"""
        places = {{(row, column): cell for row, cells in enumerate(grid) for column, cell in enumerate(cells)}}
        left = {{place for place, cell in places.items() if cell == {sign!r}}}
        count = 0
        while left:
            todo, size = [left.pop()], 0
            while todo:
                row, column = todo.pop()
                size += 1
                for place in [(row + a, column + b) for a in (-1, 0, 1) for b in (-1, 0, 1){reach}]:
                    if place in left:
                        left.remove(place)
                        todo.append(place)
            count += size >= {fewest}
        return count
        """,
        lambda draw: (draw.grid(draw.pick((f"{sign}{sign}.", f"{sign}.", f"{sign}..")), 3, 7),),
        (
            ([],),
            ([sign],),
            ([f"{sign}.{sign}", f".{sign}.", f"{sign}.{sign}"],),
            ([sign * 5] * 3,),
            ([(sign * fewest).ljust(4, "."), "....", (sign * (fewest - 1)).ljust(4, ".")],),
        ),
    )


def grid_paths(draw: Draw) -> Draft:
    """Ways through a grid with walls."""
    wall, diagonal, corner = draw.pick("#XW@"), draw.pick((True, False)), draw.pick(("right", "left"))
    steps = f"one cell down or one cell to the {corner}" + (" or both at once" if diagonal else "")
    other = "left" if corner == "right" else "right"
    turn = "" if corner == "right" else "[::-1]"
    more = " + before[column - 1]" if diagonal else ""
    return Draft(
        "grid_paths(grid: list[str]) -> int",
        f"The grid is a list of one or more rows of equal length; {wall!r} is a wall, '.' is free. Return in how many "
        f"ways one can go from the top {other} cell to the bottom {corner} one over free cells, if each step goes "
        f"{steps}. Where the first or the last cell is a wall there is no way.",
        f"""
        ways = [0] * (len(grid[0]) + 1)
        start = 1
        for row in grid:
            before, ways = ways, [0] * len(ways)
            for column, cell in enumerate(row{turn}):
                if cell != {wall!r}:
                    ways[column] = start + before[column] + ways[column - 1]{more}
                start = 0
        return ways[len(grid[0]) - 1]
        """,
        lambda draw: (_free_corners(draw.grid(f".....{wall}", 2, 6)),),
        ((["."],), ([wall],), (["...", "..."],), ([f".{wall}", f"{wall}."],), ([".....", ".....", "....."],)),
    )


def _free_corners(grid: list[str]) -> list[str]:
    return [f".{grid[0][1:-1]}.", *grid[1:-1], f".{grid[-1][1:-1]}."]


def flatten(draw: Draw) -> Draft:
    """Nested lists made flatter."""
    depth, low = draw.between(1, 2), draw.between(-2, 6)
    words = {1: "one level", 2: "two levels"}[depth]
    return Draft(
        "flatten(items: list) -> list",
        f"The list holds integers and lists that hold the same, to any depth. Take away {words} of lists within "
        f"the list: what stands in them moves up in place; deeper lists stay lists. Also leave out every integer less "
        f"than {low}, at any depth. Return the new list.",
        f"""
        def walk(items, depth):
            result = []
            for item in items:
                if not isinstance(item, list):
                    result += [item] if item >= {low} else []
                elif depth:
                    result += walk(item, depth - 1)
                else:
                    result.append(walk(item, 0))
            return result

        return walk(items, {depth})
        """,
        lambda draw: (_nested(draw, 4),),
        (([],), ([[], [[]], [[[]]]],), ([[[[9]]], 8, [7]],), ([low - 1, low, [low - 1, [low]]],)),
    )


def depth_weight(draw: Draw) -> Draft:
    """Sums weighted by depth."""
    first, step, empty = draw.between(1, 4), draw.between(1, 4), draw.between(-5, 5)
    return Draft(
        "depth_weight(items: list) -> int",
        f"The list holds integers and lists that hold the same, to any depth. An integer counts {first} times in the "
        f"list itself, {first + step} times in a list within it, {first + 2 * step} times in a list within that, and "
        f"so on. Each empty list within it counts {empty}. Return the sum.",
        f"""
        def walk(items, factor):
            total = 0
            for item in items:
                if not isinstance(item, list):
                    total += factor * item
                else:
                    total += walk(item, factor + {step}) if item else {empty}
            return total

        return walk(items, {first})
        """,
        lambda draw: (_nested(draw, 4),),
        (([],), ([[]],), ([5],), ([[[[3]]], 2, [1, []]],)),
    )


def _nested(draw: Draw, depth: int) -> list[Any]:
    items: list[Any] = []
    for _ in range(draw.between(1, 4)):
        nests = depth > 1 and draw.between(0, 1)
        items.append(_nested(draw, depth - 1) if nests else draw.between(-3, 12))
    return items


def invert_index(draw: Draw) -> Draft:
    """From pages of words to words of pages."""
    fewest, first = draw.between(1, 3), draw.between(1, 4)
    order = draw.pick((("ascending", ""), ("descending", ", reverse=True")))
    return Draft(
        "invert_index(pages: dict[str, list[int]]) -> dict[int, list[str]]",
        f"The dict gives the page numbers of each word. Return a dict that gives the words of each page in {order[0]} "
        f"alphabetical order, each word once, for the pages from page {first} on with at least {fewest} different "
        "words.",
        f"""
        words = {{}}
        for word, numbers in pages.items():
            for number in numbers:
                words.setdefault(number, set()).add(word)
        kept = {{page: found for page, found in words.items() if page >= {first} and len(found) >= {fewest}}}
        return {{page: sorted(found{order[1]}) for page, found in kept.items()}}
        """,
        lambda draw: ({word: draw.wholes(1, 5, 1, 7) for word in draw.words(4, 7, "abcde", 1, 2)},),
        (({},), ({"a": []},), ({"b": [1, 1, 2], "a": [1, 2], "c": [2, 2, 1], "d": [3, 3]},)),
    )


def totals_by_key(draw: Draw) -> Draft:
    """A table summed by a column."""
    key, value = draw.some((0, 1, 2), 2)
    sign, bound, up = draw.pick(",;|/"), draw.between(5, 30), draw.pick((True, False))
    order = ("largest", "-item[1]") if up else ("smallest", "item[1]")
    return Draft(
        "totals_by_key(lines: list[str]) -> list[tuple[str, int]]",
        f"Each line has three fields set apart by {sign!r}. Add up field {value + 1} (an integer) over the lines that "
        f"have the same field {key + 1} (a text). Return (text, total) for the totals of at least {bound}, the "
        f"{order[0]} total first, equal totals by text. Lines with more or fewer than three fields are ignored.",
        f"""
        totals = {{}}
        for line in lines:
            fields = line.split({sign!r})
            if len(fields) == 3:
                totals[fields[{key}]] = totals.get(fields[{key}], 0) + int(fields[{value}])
        kept = [item for item in totals.items() if item[1] >= {bound}]
        return sorted(kept, key=lambda item: ({order[1]}, item[0]))
        """,
        lambda draw: ([_line(draw, key, value, sign) for _ in range(draw.between(4, 9))],),
        (
            ([],),
            ([sign],),
            ([_fields({key: "abc"[more], value: str(bound + more)}, sign) for more in (0, 1, -1)] + [f"a{sign}5"],),
        ),
    )


def _line(draw: Draw, key: int, value: int, sign: str) -> str:
    line = _fields({key: draw.pick("abcd"), value: str(draw.between(1, 30))}, sign)
    return line if draw.between(0, 5) else line + sign + "9"


def _fields(given: dict[int, str], sign: str) -> str:
    return sign.join(given.get(place, "7") for place in range(3))


def run_stack(draw: Draw) -> Draft:
    """A small stack language."""
    plus, double, swap = (
        draw.some(("add", "sum", "plus", "join"), 1)
        + draw.some(("dup", "twice", "copy"), 1)
        + draw.some(("swap", "flip", "turn"), 1)
    )
    factor, bad = draw.between(2, 9), draw.pick((-1, -99, 0))
    return Draft(
        "run_stack(program: str) -> int",
        f"The program is words set apart by blanks, done from left to right on a stack that is empty at first. A word "
        f"of digits puts that number on the stack. {plus!r} takes the two top numbers and puts their sum; {double!r} "
        f"puts the top number once more; {swap!r} exchanges the two top numbers; 'mul' multiplies the top number by "
        f"{factor}; 'sub' takes the two top numbers and puts the lower one minus the upper one. Return the top number "
        f"at the end, or {bad} if a word finds too few numbers, is none of these, or the stack is empty at the end.",
        f"""
        stack = []
        needs = {{{plus!r}: 2, {double!r}: 1, {swap!r}: 2, "mul": 1, "sub": 2}}
        for word in program.split():
            if set(word) <= set("0123456789"):
                stack.append(int(word))
            elif word not in needs or len(stack) < needs[word]:
                return {bad}
            elif word == {plus!r}:
                stack.append(stack.pop() + stack.pop())
            elif word == {double!r}:
                stack.append(stack[-1])
            elif word == {swap!r}:
                stack[-2:] = stack[:-3:-1]
            elif word == "mul":
                stack[-1] *= {factor}
            else:
                upper = stack.pop()
                stack.append(stack.pop() - upper)
        return stack[-1] if stack else {bad}
        """,
        lambda draw: (_program(draw, (plus, double, swap, "mul", "sub")),),
        (("",), ("5",), (plus,), (f"3 4 {swap} sub",), (f"3 {double} {plus} mul",), ("7 what",)),
    )


def _program(draw: Draw, words: tuple[str, ...]) -> str:
    program = [str(draw.between(0, 20)), str(draw.between(0, 20))]
    for _ in range(draw.between(2, 6)):
        program.append(draw.pick((*words, str(draw.between(1, 9)))))
    return " ".join(program)


FAMILIES = (
    merge_intervals,
    covered_points,
    most_meetings,
    turn_grid,
    cell_sum,
    count_regions,
    grid_paths,
    flatten,
    depth_weight,
    invert_index,
    totals_by_key,
    run_stack,
)
