"""Questions of level 1: one table."""

from __future__ import annotations

from tetrathlon.envs.tools.sql.question import NUMBER, NUMBERS, Draft, Question, pair


def count_rows(draft: Draft) -> Question:
    """Ask how many events of a kind there were in a period, and for a sum over them."""
    event = draft.domain.event
    column, kind, period = draft.column(event, "number"), draft.kind(event), draft.period(event)
    return Question(
        f"How many {event.many} are there {kind.said} and {period.said}, and what is their total {column.said}?",
        f"SELECT COUNT(*), SUM({event.name}.{column.name}) FROM {event.name} WHERE {kind.sql} AND {period.sql}",
        (event.name,),
        NUMBERS,
        shown=2,
        parts={"column": column, "kind": kind, "period": period},
    )


def count_missing(draft: Draft) -> Question:
    """Ask how many events a period has, and how many of them lack a value."""
    event = draft.domain.event
    column, period = draft.column(event, "end", "gap"), draft.period(event)
    return Question(
        f"How many {event.many} are there {period.said}, and how many of them have no {column.said} (NULL)?",
        f"SELECT COUNT(*), COUNT(*) - COUNT({event.name}.{column.name}) FROM {event.name} WHERE {period.sql}",
        (event.name,),
        NUMBERS,
        shown=2,
        parts={"column": column, "period": period},
    )


def mean(draft: Draft) -> Question:
    """Ask for the average of what not all events have."""
    event = draft.domain.event
    column, condition = draft.column(event, "number", "gap"), draft.pick([draft.kind, draft.year])(event)
    but = f" Where it is missing (NULL), the {event.one} does not count." if column.missing else ""
    return Question(
        f"What is the average {column.said} of the {event.many} {condition.said}?{but}",
        f"SELECT AVG({event.name}.{column.name}) FROM {event.name} WHERE {condition.sql}",
        (event.name,),
        NUMBER,
        parts={"column": column, "condition": condition},
    )


def total(draft: Draft) -> Question:
    """Ask for a sum over the events of a month or a span."""
    event = draft.domain.event
    column, period = draft.column(event, "number"), draft.pick([draft.month, draft.span])(event)
    return Question(
        f"What is the total {column.said} of the {event.many} {period.said}?",
        f"SELECT SUM({event.name}.{column.name}) FROM {event.name} WHERE {period.sql}",
        (event.name,),
        NUMBER,
        parts={"column": column, "period": period},
    )


def count_distinct(draft: Draft) -> Question:
    """Ask how many events a period has, and how many different actors or items these have."""
    event = draft.domain.event
    other, period = draft.pick([draft.domain.actor, draft.domain.item]), draft.period(event)
    return Question(
        f"How many {event.many} are there {period.said}, and how many different {other.many} do they refer to?",
        f"SELECT COUNT(*), COUNT(DISTINCT {event.name}.{other.name}_id) FROM {event.name} WHERE {period.sql}",
        (event.name,),
        NUMBERS,
        shown=2,
        parts={"other": other, "period": period},
    )


def extreme(draft: Draft) -> Question:
    """Ask for the item of a kind with the largest or the smallest number."""
    item = draft.domain.item
    column, kind = draft.column(item, "number"), draft.kind(item)
    most = bool(draft.between(0, 1))
    name, value = f"{item.name}.{item['name'].name}", f"{item.name}.{column.name}"
    return Question(
        f"Which of the {item.many} {kind.said} has the {'largest' if most else 'smallest'} {column.said}?",
        f"SELECT {name}, {value} FROM {item.name} WHERE {kind.sql} ORDER BY {value} {'DESC' if most else 'ASC'}",
        (item.name,),
        pair(item),
        shown=2,
        take=1,
        parts={"column": column, "kind": kind, "most": most},
    )


def first_day(draft: Draft) -> Question:
    """Ask for the actor of a kind with the latest or the earliest day."""
    actor = draft.domain.actor
    kind, column = draft.kind(actor), actor["day"]
    most = bool(draft.between(0, 1))
    name, value = f"{actor.name}.{actor['name'].name}", f"{actor.name}.{column.name}"
    return Question(
        f"Which of the {actor.many} {kind.said} has the {'latest' if most else 'earliest'} {column.said}?",
        f"SELECT {name}, {value} FROM {actor.name} WHERE {kind.sql} ORDER BY {value} {'DESC' if most else 'ASC'}",
        (actor.name,),
        "the name and that date as YYYY-MM-DD, separated by a comma",
        shown=2,
        take=1,
        parts={"column": column, "kind": kind, "most": most},
    )


def share(draft: Draft) -> Question:
    """Ask which percentage of the events of a kind has a value."""
    event = draft.domain.event
    column, kind = draft.column(event, "end", "gap"), draft.pick([draft.kind, draft.year])(event)
    return Question(
        f"What percentage of the {event.many} {kind.said} has a value for the {column.said} (not NULL)?",
        f"SELECT 100.0 * COUNT({event.name}.{column.name}) / COUNT(*) FROM {event.name} WHERE {kind.sql}",
        (event.name,),
        NUMBER,
        percent=True,
        parts={"column": column, "kind": kind},
    )


TEMPLATES = (count_rows, count_missing, mean, total, count_distinct, extreme, first_day, share)
