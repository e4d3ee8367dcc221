"""Questions of level 3: long joins, queries in queries, and rows that a join would count twice."""

from __future__ import annotations

from tetrathlon.envs.tools.sql.question import NUMBER, YEARS, Draft, Question, link, names, pair


def above_own_mean(draft: Draft) -> Question:
    """Ask for a sum over the events that are above the average of the same item."""
    event, item = draft.domain.event, draft.domain.item
    column, added = draft.whole(event), draft.column(event, "number")
    key = f"{item.name}_id"
    return Question(
        f"Take the {event.many} whose {column.said} is above the average {column.said} of all {event.many} "
        f"{draft.domain.to_item} the same {item.one}. What is their total {added.said}?",
        f"SELECT SUM({event.name}.{added.name}) FROM {event.name} WHERE {event.name}.{column.name} > (SELECT "
        f"AVG(other.{column.name}) FROM {event.name} AS other WHERE other.{key} = {event.name}.{key})",
        (event.name,),
        NUMBER,
        parts={"column": column, "added": added},
    )


def busy(draft: Draft) -> Question:
    """Ask for the actors with some events whose items belong to a group."""
    event, item, group, actor = draft.domain.event, draft.domain.item, draft.domain.group, draft.domain.actor
    member, least = draft.group(), draft.between(2, 4)
    return Question(
        f"Which {actor.many} have at least {least} {event.many} {draft.domain.to_item} {item.many} {member.said}?",
        f"SELECT {actor.name}.{actor['name'].name} FROM {event.name} {link(event, item)} {link(item, group)} "
        f"{link(event, actor)} WHERE {member.sql} GROUP BY {actor.name}.id HAVING COUNT(*) >= {least}",
        (event.name, item.name, group.name, actor.name),
        names(actor, "in any order"),
        ordered=False,
        parts={"member": member, "least": least},
    )


def top_three(draft: Draft) -> Question:
    """Ask for the three items with the largest sums over the events of actors of a kind."""
    event, item, actor = draft.domain.event, draft.domain.item, draft.domain.actor
    column, kind = draft.column(event, "number"), draft.kind(actor)
    return Question(
        f"Take the {event.many} {draft.domain.to_actor} {actor.many} {kind.said}. For which three {item.many} is their "
        f"total {column.said} the largest?",
        f"SELECT {item.name}.{item['name'].name}, SUM({event.name}.{column.name}) AS total FROM {event.name} "
        f"{link(event, item)} {link(event, actor)} WHERE {kind.sql} GROUP BY {item.name}.id ORDER BY total DESC",
        (event.name, item.name, actor.name),
        names(item, "the one with the largest first"),
        take=3,
        parts={"column": column, "kind": kind},
    )


def total_of_children(draft: Draft) -> Question:
    """Ask for a sum over the children of events whose actors or items are of a kind."""
    child, event = draft.domain.child, draft.domain.event
    other, word = draft.pick([(draft.domain.actor, draft.domain.to_actor), (draft.domain.item, draft.domain.to_item)])
    column, kind, period = draft.column(child, "number"), draft.kind(other), draft.period(child)
    return Question(
        f"What is the total {column.said} of the {child.many} {period.said}, counting only {child.many} of "
        f"{event.many} {word} {other.many} {kind.said}?",
        f"SELECT SUM({child.name}.{column.name}) FROM {child.name} {link(child, event)} {link(event, other)} "
        f"WHERE {kind.sql} AND {period.sql}",
        (child.name, event.name, other.name),
        NUMBER,
        parts={"column": column, "other": other, "kind": kind, "period": period},
    )


def total_without_child(draft: Draft) -> Question:
    """Ask for a sum over the events, whose items are of a kind, that have no child."""
    child, event, item = draft.domain.child, draft.domain.event, draft.domain.item
    column, kind = draft.column(event, "number"), draft.kind(item)
    return Question(
        f"What is the total {column.said} of the {event.many} {draft.domain.to_item} {item.many} {kind.said}, counting "
        f"only {event.many} without any {child.one}?",
        f"SELECT SUM({event.name}.{column.name}) FROM {event.name} {link(event, item)} WHERE {kind.sql} AND NOT EXISTS "
        f"(SELECT 1 FROM {child.name} WHERE {child.name}.{event.name}_id = {event.name}.id)",
        (event.name, item.name, child.name),
        NUMBER,
        parts={"column": column, "kind": kind},
    )


def mean_of_totals(draft: Draft) -> Question:
    """Ask for the average over the actors or items of their sums in a period."""
    event, other = draft.domain.event, draft.pick([draft.domain.actor, draft.domain.item])
    column, period = draft.column(event, "number"), draft.period(event)
    return Question(
        f"Take the {event.many} {period.said}, and sum up their {column.said} for each {other.one} that has any of "
        f"them. What is the average of these sums?",
        f"SELECT AVG(total) FROM (SELECT SUM({event.name}.{column.name}) AS total FROM {event.name} WHERE {period.sql} "
        f"GROUP BY {event.name}.{other.name}_id)",
        (event.name,),
        NUMBER,
        parts={"other": other, "column": column, "period": period},
    )


def lapsed(draft: Draft) -> Question:
    """Ask for a sum over the events of a year of those actors or items that have none in another year."""
    event, other = draft.domain.event, draft.pick([draft.domain.actor, draft.domain.item])
    first = draft.pick(YEARS)
    second = draft.pick([year for year in YEARS if year != first])
    column, year, without = draft.column(event, "number"), draft.year(event, first), draft.year(event, second)
    return Question(
        f"Take the {other.many} that have no {event.one} {without.said}. What is the total {column.said} of their "
        f"{event.many} {year.said}?",
        f"SELECT SUM({event.name}.{column.name}) FROM {event.name} WHERE {year.sql} AND {event.name}.{other.name}_id "
        f"NOT IN (SELECT {event.name}.{other.name}_id FROM {event.name} WHERE {without.sql})",
        (event.name,),
        NUMBER,
        parts={"other": other, "column": column, "year": year, "without": without},
    )


def mean_days(draft: Draft) -> Question:
    """Ask how many days pass between the two days of the events whose items belong to a group."""
    event, item, group = draft.domain.event, draft.domain.item, draft.domain.group
    member, day, end = draft.group(), event["day"], event["end"]
    return Question(
        f"How many days pass on average from the {day.said} to the {end.said} of the {event.many} "
        f"{draft.domain.to_item} {item.many} {member.said}? Where the {end.said} is missing (NULL), the {event.one} "
        "does not count.",
        f"SELECT AVG(julianday({event.name}.{end.name}) - julianday({event.name}.{day.name})) FROM {event.name} "
        f"{link(event, item)} {link(item, group)} WHERE {member.sql}",
        (event.name, item.name, group.name),
        NUMBER,
        parts={"member": member},
    )


def share_of_group(draft: Draft) -> Question:
    """Ask which part of a period's sum belongs to a group."""
    event, item, group = draft.domain.event, draft.domain.item, draft.domain.group
    column, member, period = draft.column(event, "number"), draft.group(), draft.period(event)
    value = f"{event.name}.{column.name}"
    return Question(
        f"Take the {event.many} {period.said}. What percentage of their total {column.said} falls to {event.many} "
        f"{draft.domain.to_item} {item.many} {member.said}?",
        f"SELECT 100.0 * SUM(CASE WHEN {member.sql} THEN {value} ELSE 0 END) / SUM({value}) FROM {event.name} "
        f"{link(event, item)} {link(item, group)} WHERE {period.sql}",
        (event.name, item.name, group.name),
        NUMBER,
        percent=True,
        parts={"column": column, "member": member, "period": period},
    )


def favourite(draft: Draft) -> Question:
    """Ask for the actor with the largest sum over the events whose items belong to a group."""
    event, item, group, actor = draft.domain.event, draft.domain.item, draft.domain.group, draft.domain.actor
    column, member = draft.column(event, "number"), draft.group()
    return Question(
        f"Take the {event.many} {draft.domain.to_item} {item.many} {member.said}. For which {actor.one} is their total "
        f"{column.said} the largest?",
        f"SELECT {actor.name}.{actor['name'].name}, SUM({event.name}.{column.name}) AS total FROM {event.name} "
        f"{link(event, item)} {link(item, group)} {link(event, actor)} WHERE {member.sql} GROUP BY {actor.name}.id "
        "ORDER BY total DESC",
        (event.name, item.name, group.name, actor.name),
        pair(actor),
        shown=2,
        take=1,
        parts={"column": column, "member": member},
    )


def mean_with_child(draft: Draft) -> Question:
    """Ask for an average over the events that have a child of a kind, each counted once."""
    child, event = draft.domain.child, draft.domain.event
    column, kind = draft.column(event, "number"), draft.kind(child)
    return Question(
        f"What is the average {column.said} of the {event.many} that have at least one {child.one} {kind.said}? Each "
        f"{event.one} counts once.",
        f"SELECT AVG({event.name}.{column.name}) FROM {event.name} WHERE {event.name}.id IN "
        f"(SELECT {child.name}.{event.name}_id FROM {child.name} WHERE {kind.sql})",
        (event.name, child.name),
        NUMBER,
        parts={"column": column, "kind": kind},
    )


TEMPLATES = (
    above_own_mean,
    busy,
    top_three,
    total_of_children,
    total_without_child,
    mean_of_totals,
    lapsed,
    mean_days,
    share_of_group,
    favourite,
    mean_with_child,
)
