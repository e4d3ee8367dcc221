"""Problems on tables in files: group, filter, join, dates, percentiles, logs, nested records."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction

from tetrathlon.envs.text.coding.draft import Draw
from tetrathlon.envs.tools.python.problem import Kind, Problem, cells, rounded, table

_TOWNS = ("Arlen", "Bodmin", "Corby", "Dover", "Ely", "Frome")
_GROUPS = ("garden", "kitchen", "music", "office", "sport")
_NAMES = ("anna", "ben", "cleo", "dora", "emil", "finn", "gina", "hugo")
_MINUTE = 60


def _rows(draw: Draw, level: int) -> int:
    return draw.between(30, 50) * (1, 3, 6)[level - 1]


def _day(draw: Draw, year: int) -> date:
    return date(year, 1, 1) + timedelta(days=draw.between(0, 364))


def order_join(draw: Draw, level: int) -> Problem:
    """Money of orders, with prices from another file."""
    products = {f"p{number:02d}": (draw.pick(_GROUPS), draw.between(150, 9_999)) for number in range(1, 13 + 4 * level)}
    orders = [
        (number, _day(draw, 2023), draw.pick(_TOWNS), draw.pick(list(products)), draw.between(1, 12))
        for number in range(1, _rows(draw, level) + 1)
    ]
    group, town, months = draw.pick(_GROUPS), draw.pick(_TOWNS), sorted(draw.some(range(1, 13), 8))
    cents = sum(
        products[product][1] * count
        for _, day, place, product, count in orders
        if (level == 1 or products[product][0] != group) and place != town and (level < 3 or day.month in months)
    )
    listed = [
        {"id": name, "group": kind, "price": f"{price // 100}.{price % 100:02d}"}
        for name, (kind, price) in products.items()
    ]
    conditions = [f"go to another town than {town}"]
    test = [f'order["town"] != {town!r}']
    if level > 1:
        conditions.append(f"are of a product of another group than {group!r}")
        test.append(f'group[order["product"]] != {group!r}')
    if level == 3:
        conditions.append(f"were placed in one of the months {', '.join(map(str, months))} (1 is January)")
        test.append(f'int(order["date"][5:7]) in {months}')
    return Problem(
        "orders.csv has the columns order, date, town, product, count; products.json lists each product with its id, "
        f"group and price in euros. What do all orders together cost in euros that {' and '.join(conditions)}? An "
        "order costs the count times the price.",
        f"{cents // 100}.{cents % 100:02d}",
        cells(
            """
            import csv, json
            orders = list(csv.DictReader(open("orders.csv")))
            products = json.load(open("products.json"))
            print(orders[0], products[0])
            """,
            f"""
            cents = {{p["id"]: int(p["price"].replace(".", "")) for p in products}}
            group = {{p["id"]: p["group"] for p in products}}
            total = sum(
                cents[order["product"]] * int(order["count"]) for order in orders
                if {" and ".join(test)}
            )
            print(f"{{total / 100:.2f}}")
            """,
        ),
        {
            "orders.csv": table(("order", "date", "town", "product", "count"), orders),
            "products.json": json.dumps(listed, indent=1),
        },
        decimals=2,
    )


def percentile(draw: Draw, level: int) -> Problem:
    """Percentiles of measurements of a group."""
    names = draw.some(_NAMES, 3)
    rows = [
        (draw.pick(names), f"{draw.between(1, 99_999) / 100:.2f}", draw.between(0, 9))
        for _ in range(_rows(draw, level))
    ]
    rows += [(name, f"{draw.between(1, 99_999) / 100:.2f}", 9) for name in names for _ in range(3)]
    share, least = draw.pick((10, 20, 25, 35, 60, 75, 85, 90, 95)), draw.between(2, 5)
    chosen = names[:1] if level < 3 else names[:2]
    values = sorted(
        Fraction(value) for name, value, quality in rows if name in chosen and (level == 1 or quality >= least)
    )
    if level == 1:
        answer = values[max(math.ceil(Fraction(share * len(values), 100)), 1) - 1]
        how = f"the value at place ceil({share}/100 * n) when the n values are sorted upwards (the first has place 1)"
        code = f"values[-(-{share} * n // 100) - 1]"
    else:
        at = Fraction(share * (len(values) - 1), 100)
        low = int(at)
        after = values[min(low + 1, len(values) - 1)]
        answer = values[low] + (at - low) * (after - values[low])
        how = f"with the n values sorted upwards and counted from 0, the one at place {share}/100 * (n - 1), with "
        how += "linear interpolation between the two next to it"
        code = f"values[k] + ({share} * (n - 1) / 100 - k) * (values[min(k + 1, n - 1)] - values[k])"
    which = " or ".join(chosen)
    quality = "" if level == 1 else f" and whose quality is at least {least}"
    test = "" if level == 1 else f' and int(row["quality"]) >= {least}'
    return Problem(
        f"values.csv has the columns name, value, quality. Take the values of rows whose name is {which}{quality}. "
        f"What is their percentile {share}, that is: {how}?",
        rounded(answer, 4),
        cells(
            """
            import csv
            rows = list(csv.DictReader(open("values.csv")))
            print(len(rows), rows[0])
            """,
            f"""
            values = sorted(float(row["value"]) for row in rows if row["name"] in {chosen}{test})
            n = len(values)
            k = {share} * (n - 1) // 100
            print(f"{{{code}:.4f}}")
            """,
        ),
        {"values.csv": table(("name", "value", "quality"), rows)},
        decimals=4,
    )


def log_sessions(draw: Draw, level: int) -> Problem:
    """Seconds of the visits that a log shows."""
    users, gap = draw.some(_NAMES, 3 + level), draw.between(3, 12)
    now = datetime(2024, draw.between(1, 12), draw.between(1, 27), draw.between(0, 23), draw.between(0, 59))
    lines: list[tuple[datetime, str, str]] = []
    for _ in range(_rows(draw, level)):
        now += timedelta(seconds=draw.between(1, 240))
        lines.append((now, draw.pick(users), draw.pick(("open", "read", "save", "error"))))
    skips = level > 1
    total, last = 0, dict.fromkeys(users, datetime.min)
    for moment, user, action in lines:
        if skips and action == "error":
            continue
        pause = moment - last[user]
        if pause <= timedelta(minutes=gap):
            total += int(pause.total_seconds())
        last[user] = moment
    without = "; lines whose action is error do not count at all" if skips else ""
    skip = '    if action == "error":\n                    continue\n                ' if skips else "    "
    return Problem(
        "Each line of visits.log is a date, a time, user=NAME and action=WORD. A visit of a user is a run of that "
        f"user's lines in which each follows the one before it by at most {gap} minutes; it lasts from its first to "
        f"its last line{without}. How many seconds do all visits of all users last together?",
        str(total),
        cells(
            """
            lines = [line.split() for line in open("visits.log")]
            print(len(lines), lines[0])
            """,
            f"""
            from datetime import datetime
            total, last = 0, {{}}
            for day, hour, user, action in lines:
                moment, action = datetime.fromisoformat(day + " " + hour), action.partition("=")[2]
            {skip}if user in last and (moment - last[user]).total_seconds() <= {gap * _MINUTE}:
                    total += int((moment - last[user]).total_seconds())
                last[user] = moment
            print(total)
            """,
        ),
        {"visits.log": "".join(f"{moment} user={user} action={action}\n" for moment, user, action in lines)},
    )


def work_days(draw: Draw, level: int) -> Problem:
    """Days between dates, weighted and without weekends and holidays."""
    rows = []
    for _ in range(_rows(draw, level)):
        first = _day(draw, draw.between(2019, 2025))
        rows.append((draw.pick(_NAMES), first, first + timedelta(days=draw.between(0, 90)), draw.between(2, 9)))
    free = sorted({_day(draw, draw.between(2019, 2025)) for _ in range(60)}) if level == 3 else []
    name = draw.pick(_NAMES)
    total = 0
    for who, first, last, hours in rows:
        if who == name:
            continue
        span = (last - first).days + 1
        if level > 1:
            span = sum((first.weekday() + k) % 7 < 5 for k in range(span))
            span -= sum(first <= day <= last and day.weekday() < 5 for day in free)
        total += hours * span
    days = {
        1: "all days",
        2: "only the days from Monday to Friday",
        3: "only the days from Monday to Friday that are not in free.txt",
    }
    test = {1: "True", 2: "day.weekday() < 5", 3: "day.weekday() < 5 and day not in free"}
    load = '            free = {date.fromisoformat(line.strip()) for line in open("free.txt")}\n' if level == 3 else ""
    files = {"jobs.csv": table(("who", "first", "last", "hours"), rows)}
    if level == 3:
        files["free.txt"] = "".join(f"{day}\n" for day in free)
    return Problem(
        "jobs.csv has the columns who, first, last, hours: a job takes so many hours on each day from the first to the "
        f"last, both included, where {days[level]} count. How many hours do all jobs together take that are not "
        f"done by {name}?",
        str(total),
        cells(
            f"""
            import csv
            from datetime import date, timedelta
            jobs = list(csv.DictReader(open("jobs.csv")))
{load}            print(len(jobs), jobs[0])
            """,
            f"""
            total = 0
            for job in jobs:
                day, last = date.fromisoformat(job["first"]), date.fromisoformat(job["last"])
                while day <= last and job["who"] != {name!r}:
                    total += int(job["hours"]) * ({test[level]})
                    day += timedelta(days=1)
            print(total)
            """,
        ),
        files,
    )


def parts_cost(draw: Draw, level: int) -> Problem:
    """The cost of a tree of parts."""
    wanted = draw.pick(("steel", "brass", "glass"))

    def cost(part: dict[str, object]) -> int:
        within: Sequence[dict[str, object]] = part["parts"]  # type: ignore[assignment]
        mine = int(str(part["cents"])) if level == 1 or part["material"] == wanted else 0
        return int(str(part["count"])) * (mine + sum(map(cost, within)))

    tree = _part(draw, "m", 2 + level)
    only = "" if level == 1 else f" Only what is made of {wanted} is paid."
    test = "" if level == 1 else f' * (part["material"] == {wanted!r})'
    return Problem(
        "machine.json describes a machine as a tree: each part has a name, a material, a count, its own price in cents "
        "and a list of parts that are within it. A part is there count times within each piece of the part around it, "
        f"and each piece costs its own price besides what is within it.{only} What does the machine cost in cents?",
        str(cost(tree)),
        cells(
            """
            import json
            machine = json.load(open("machine.json"))
            print({key: value for key, value in machine.items() if key != "parts"})
            """,
            f"""
            def cost(part):
                return part["count"] * (part["cents"]{test} + sum(map(cost, part["parts"])))
            print(cost(machine))
            """,
        ),
        {"machine.json": json.dumps(tree, indent=1)},
    )


def _part(draw: Draw, name: str, depth: int) -> dict[str, object]:
    fewest = 2 if depth > 1 else 0
    parts = [_part(draw, f"{name}{letter}", depth - 1) for letter in "abc"[: draw.between(fewest, 3)]] if depth else []
    return {
        "name": name,
        "material": draw.pick(("steel", "brass", "glass", "steel")),
        "count": draw.between(1, 6) if len(name) > 1 else 1,
        "cents": draw.between(3, 400),
        "parts": parts,
    }


KINDS: tuple[Kind, ...] = (order_join, percentile, log_sessions, work_days, parts_cost)
