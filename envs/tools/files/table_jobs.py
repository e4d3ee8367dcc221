"""Jobs on tables and settings: each adds its files to a draft and returns what is asked."""

from __future__ import annotations

import json
from typing import Any

from tetrathlon.envs.tools.files.draft import WORDS, Draft, csv, rows, text

_SECTIONS = ("server", "client", "cache", "backup", "mail", "worker")
_KEYS = ("port", "limit", "retries", "timeout", "workers", "depth", "size")


def set_value(draft: Draft) -> str:
    """Change one value of a file of settings, or of a table."""
    form = draft.pick(["ini", "json", "yaml", "csv"])
    folder, word = draft.folder(), draft.pick(WORDS)
    path, new = f"{folder}/{word}.{form}", draft.between(1_000, 9_999)
    stays = "All else in the file, its layout too, stays as it is."
    if form == "csv":
        table = draft.table(draft.count(3, 6))
        draft.add(path, csv(table))
        row, column = draft.pick(table[1:]), draft.pick(["name", "city", "stock"])
        value = str(new) if column == "stock" else draft.pick(WORDS)
        row[table[0].index(column)] = value
        draft.make(path, csv(table))
        return f"In `{path}`, set the column `{column}` to `{value}` in the row with the id {row[0]}. {stays}"
    settings = {
        section: {key: draft.between(1, 999) for key in draft.some(_KEYS, draft.count(2, 3))}
        for section in draft.some(_SECTIONS, draft.count(2, 3))
    }
    section = draft.pick(list(settings))
    key = draft.pick(list(settings[section]))
    remark = draft.sentence(2, 3)
    draft.add(path, _written(form, settings, remark))
    if draft.hard:
        draft.add(f"{folder}/{word}-old.{form}", _written(form, settings, remark))
    settings[section][key] = new
    draft.make(path, _written(form, settings, remark))
    return f"In `{path}`, set `{key}` of `{section}` to the number {new}. {stays}"


def filter_rows(draft: Draft) -> str:
    """Write the rows of a table that pass a test into a new one."""
    chained = _chained(draft, "stock")
    source = chained or draft.add(draft.free(".csv"), csv(draft.table(draft.count(4, 7))))
    target = draft.free(".csv")
    header, *body = rows(draft.goal[source])
    at = header.index("stock")
    stocks = [int(row[at]) for row in body]
    least = draft.pick([stock for stock in stocks if stock > min(stocks)] or stocks)
    draft.make(target, csv([header, *(row for row in body if int(row[at]) >= least)]))
    draft.tables.append(target)
    return (
        f"Write the new file `{target}`: the header of `{source}` and those of its rows whose `stock` is at least "
        f"{least}, unchanged and in the same order."
    )


def sort_table(draft: Draft) -> str:
    """Sort the rows of a table by a column of numbers."""
    path = _chained(draft, "id") or draft.add(draft.free(".csv"), csv(draft.table(draft.count(4, 7))))
    header, *body = rows(draft.goal[path])
    largest = draft.chance()
    at = header.index("id")
    draft.make(path, csv([header, *sorted(body, key=lambda row: int(row[at]), reverse=largest)]))
    draft.tables.append(path)
    return (
        f"Sort the rows of `{path}` by the number in the column `id`, {'largest' if largest else 'smallest'} first. "
        "The header stays on top."
    )


def merge_tables(draft: Draft) -> str:
    """Merge two tables by a key into a third."""
    folder, target = draft.folder(), draft.free(".csv")
    left = draft.table(draft.count(3, 5))
    ids = [row[0] for row in left[1:]]
    known = draft.some(ids, len(ids) - draft.between(1, 2))
    strange = str(draft.between(1_000, 1_999))
    price = {key: str(draft.between(10, 500)) for key in draft.shuffled([*known, strange])}
    names = draft.some(WORDS, 2)
    one = draft.add(f"{folder}/{names[0]}.csv", csv(left))
    other = draft.add(f"{folder}/{names[1]}.csv", csv([["id", "price"], *price.items()]))
    all_rows = draft.chance()
    body = [[*row, price.get(row[0], "")] for row in left[1:] if all_rows or row[0] in price]
    draft.make(target, csv([[*left[0], "price"], *body]))
    draft.tables.append(target)
    which = (
        f"Every row of `{one}` is there; where `{other}` has no such id, price is empty (the row ends with a comma)"
        if all_rows
        else "Only ids that are in both files are there"
    )
    return (
        f"Merge `{one}` and `{other}` by `id` into the new file `{target}`, with the header "
        f"`{','.join([*left[0], 'price'])}` and the rows in the order of `{one}`. {which}."
    )


def to_json(draft: Draft) -> str:
    """Write a table as JSON."""
    source = _chained(draft, "id") or draft.add(draft.free(".csv"), csv(draft.table(draft.count(2, 3))))
    target = draft.free(".json")
    header, *body = rows(draft.goal[source])
    objects = [dict(zip(header, row, strict=True)) for row in body]
    draft.make(target, text(["[", ",\n".join(f"  {json.dumps(one)}" for one in objects), "]"]))
    example = json.dumps(dict.fromkeys(header, "..."))
    return (
        f"Write `{source}` as JSON into the new file `{target}`: a line `[`, then each row as one object on a line of "
        f"its own behind two spaces, such as `  {example}`, with a comma at the end of all of these lines but the "
        "last, then a line `]`. Keys are in the order of the header, and all values are texts."
    )


def add_total(draft: Draft) -> str:
    """Add a row with a sum to a table."""
    table = draft.table(draft.count(3, 5))
    path = draft.add(draft.free(".csv"), csv(table))
    total = sum(int(row[3]) for row in table[1:])
    draft.make(path, csv([*table, ["total", "", "", total]]))
    return f"Add a last row to `{path}`: `total,,,N`, where N is the sum of the column `stock`."


def _chained(draft: Draft, column: str) -> str:
    """Return a table with rows and a column that an earlier job made, or nothing."""
    usable = []
    for path in draft.tables:
        header, *body = rows(draft.goal[path])
        if column in header and body:
            usable.append(path)
    return draft.pick(usable) if usable and draft.chance(0.7) else ""


def _written(form: str, settings: dict[str, dict[str, Any]], remark: str) -> str:
    if form == "json":
        return json.dumps({"about": remark, **settings}, indent=2) + "\n"
    lines = [f"# {remark}"]
    for section, values in settings.items():
        lines.append(f"[{section}]" if form == "ini" else f"{section}:")
        lines += [f"{key} = {value}" if form == "ini" else f"  {key}: {value}" for key, value in values.items()]
    return text(lines)
