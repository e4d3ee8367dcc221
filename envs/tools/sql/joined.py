"""Questions of level 2: several tables, groups, and what has no partner."""

from __future__ import annotations

from tetrathlon.envs.tools.sql.question import NUMBER, NUMBERS, Draft, Question, link, names, pair


def count_joined(draft: Draft) -> Question:
    """Ask how many events there were in a period whose items are of a kind, and for a sum over them."""
    event, item = draft.domain.event, draft.domain.item
    column, kind, period = draft.column(event, "number"), draft.kind(item), draft.period(event)
    return Question(
        f"Take the {event.many} {draft.domain.to_item} {item.many} {kind.said}. How many of these {event.many} are "
        f"there {period.said}, and what is their total {column.said}?",
        f"SELECT COUNT(*), SUM({event.name}.{column.name}) FROM {event.name} {link(event, item)} WHERE {kind.sql} "
        f"AND {period.sql}",
        (event.name, item.name),
        NUMBERS,
        shown=2,
        parts={"column": column, "kind": kind, "period": period},
    )


def total_joined(draft: Draft) -> Question:
    """Ask for a sum over the events whose actors are of a kind."""
    event, actor = draft.domain.event, draft.domain.actor
    column, kind = draft.column(event, "number"), draft.kind(actor)
    return Question(
        f"What is the total {column.said} of the {event.many} {draft.domain.to_actor} {actor.many} {kind.said}?",
        f"SELECT SUM({event.name}.{column.name}) FROM {event.name} {link(event, actor)} WHERE {kind.sql}",
        (event.name, actor.name),
        NUMBER,
        parts={"column": column, "kind": kind},
    )


def mean_joined(draft: Draft) -> Question:
    """Ask for an average over the events whose items belong to a group."""
    event, item, group = draft.domain.event, draft.domain.item, draft.domain.group
    column, member = draft.column(event, "number"), draft.group()
    return Question(
        f"What is the average {column.said} of the {event.many} {draft.domain.to_item} {item.many} {member.said}?",
        f"SELECT AVG({event.name}.{column.name}) FROM {event.name} {link(event, item)} {link(item, group)} "
        f"WHERE {member.sql}",
        (event.name, item.name, group.name),
        NUMBER,
        parts={"column": column, "member": member},
    )


def top_partner(draft: Draft) -> Question:
    """Ask for the actor or the item with the largest sum over the events of a year."""
    event, other = draft.domain.event, draft.pick([draft.domain.actor, draft.domain.item])
    column, year = draft.column(event, "number"), draft.year(event)
    return Question(
        f"Take the {event.many} {year.said}. For which {other.one} is their total {column.said} the largest?",
        f"SELECT {other.name}.{other['name'].name}, SUM({event.name}.{column.name}) AS total FROM {event.name} "
        f"{link(event, other)} WHERE {year.sql} GROUP BY {other.name}.id ORDER BY total DESC",
        (event.name, other.name),
        pair(other),
        shown=2,
        take=1,
        parts={"other": other, "column": column, "year": year},
    )


def top_group(draft: Draft) -> Question:
    """Ask for the group whose items' events have the largest or the smallest sum."""
    event, item, group = draft.domain.event, draft.domain.item, draft.domain.group
    column, most = draft.column(event, "number"), bool(draft.between(0, 1))
    but = "" if most else f" {group.many.capitalize()} without {event.many} do not count."
    return Question(
        f"The {event.many} {draft.domain.to_item} the {item.many} of which {group.one} have the "
        f"{'largest' if most else 'smallest'} total {column.said}?{but}",
        f"SELECT {group.name}.{group['name'].name}, SUM({event.name}.{column.name}) AS total FROM {event.name} "
        f"{link(event, item)} {link(item, group)} GROUP BY {group.name}.id ORDER BY total {'DESC' if most else 'ASC'}",
        (event.name, item.name, group.name),
        pair(group),
        shown=2,
        take=1,
        parts={"column": column, "most": most},
    )


def never(draft: Draft) -> Question:
    """Ask for the actors of a kind that have no event at all."""
    event, actor = draft.domain.event, draft.domain.actor
    kind = draft.kind(actor)
    return Question(
        f"Which {actor.many} {kind.said} have no {event.many} at all?",
        f"SELECT {actor.name}.{actor['name'].name} FROM {actor.name} LEFT {link(actor, event)} "
        f"WHERE {kind.sql} AND {event.name}.id IS NULL",
        (actor.name, event.name),
        names(actor, "in any order"),
        ordered=False,
        parts={"kind": kind},
    )


def total_of_never(draft: Draft) -> Question:
    """Ask for a sum over the items that have no event in a period."""
    event, item = draft.domain.event, draft.domain.item
    column, period = draft.column(item, "number"), draft.period(event)
    return Question(
        f"What is the total {column.said} of the {item.many} that have no {event.one} {period.said}?",
        f"SELECT SUM({item.name}.{column.name}) FROM {item.name} WHERE {item.name}.id NOT IN "
        f"(SELECT {event.name}.{item.name}_id FROM {event.name} WHERE {period.sql})",
        (item.name, event.name),
        NUMBER,
        parts={"column": column, "period": period},
    )


def total_of_busy(draft: Draft) -> Question:
    """Ask for a sum over the events of those actors or items that have many."""
    event, other = draft.domain.event, draft.pick([draft.domain.actor, draft.domain.item])
    column, least = draft.column(event, "number"), draft.between(4, 9)
    key = f"{event.name}.{other.name}_id"
    return Question(
        f"Take the {other.many} that have at least {least} {event.many}. What is the total {column.said} of all their "
        f"{event.many}?",
        f"SELECT SUM(total) FROM (SELECT SUM({event.name}.{column.name}) AS total FROM {event.name} GROUP BY {key} "
        f"HAVING COUNT(*) >= {least})",
        (event.name,),
        NUMBER,
        parts={"other": other, "column": column, "least": least},
    )


def top_month(draft: Draft) -> Question:
    """Ask for the month of a year with the largest sum over its events of a kind of actor."""
    event, actor = draft.domain.event, draft.domain.actor
    column, kind, year = draft.column(event, "number"), draft.kind(actor), draft.year(event)
    day = event["day"]
    return Question(
        f"Take the {event.many} {draft.domain.to_actor} {actor.many} {kind.said}. In which month of {year.low[:4]}, by "
        f"{day.said}, is their total {column.said} the largest?",
        f"SELECT strftime('%Y-%m', {event.name}.{day.name}) AS month, SUM({event.name}.{column.name}) AS total "
        f"FROM {event.name} {link(event, actor)} WHERE {kind.sql} AND {year.sql} GROUP BY month ORDER BY total DESC",
        (event.name, actor.name),
        "the month as YYYY-MM and that number, separated by a comma",
        shown=2,
        take=1,
        parts={"column": column, "kind": kind, "year": year},
    )


def count_partners(draft: Draft) -> Question:
    """Ask how many events have actors of a kind, and how many different items these have."""
    event, actor, item = draft.domain.event, draft.domain.actor, draft.domain.item
    kind = draft.kind(actor)
    return Question(
        f"How many {event.many} {draft.domain.to_actor} {actor.many} {kind.said} are there, and how many different "
        f"{item.many} do they refer to?",
        f"SELECT COUNT(*), COUNT(DISTINCT {event.name}.{item.name}_id) FROM {event.name} {link(event, actor)} "
        f"WHERE {kind.sql}",
        (event.name, actor.name),
        NUMBERS,
        shown=2,
        parts={"kind": kind},
    )


TEMPLATES = (
    count_joined,
    total_joined,
    mean_joined,
    top_partner,
    top_group,
    never,
    total_of_never,
    total_of_busy,
    top_month,
    count_partners,
)
