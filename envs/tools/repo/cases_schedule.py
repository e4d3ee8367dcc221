"""A scheduler: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, name, names, whole

_TWO = """
plan = Plan(V_a, V_a + 300)
plan.book('x', Span(V_a + 30, V_a + 60 + V_b))
plan.book('y', Span(V_a + 200, V_a + 200 + V_b))
"""
CASES: tuple[Case, ...] = (
    case("clock.parse_time", "", """
        ? parse_time(str(V_h) + ":" + str(V_m))
    """, V_h=whole(0, 23), V_m=whole(10, 59)),
    case("clock.parse_time", "at the edges", """
        ? parse_time("0:00")
        ? parse_time("23:59")
        ? parse_time(str(V_h) + ":00")
    """, V_h=whole(1, 9)),
    case("clock.parse_time", "that is none", """
        ! parse_time("24:" + str(V_m))
        ! parse_time("7:60")
        ! parse_time("-1:" + str(V_m))
        ! parse_time("7:-1")
        ! parse_time(str(V_h))
    """, V_m=whole(10, 59), V_h=whole(1, 9)),
    case("clock.show_time", "", """
        ? show_time(V_a)
        ? show_time(V_b)
    """, V_a=whole(600, 1_439), V_b=whole(0, 9)),
    case("clock.show_time", "of the next day", """
        ? show_time(1440 + V_a)
        ? show_time(1440)
    """, V_a=whole(1, 99)),
    case("clock.show_length", "", """
        ? show_length(V_a)
        ? show_length(60 * V_h + V_b)
    """, V_a=whole(61, 119), V_b=whole(1, 9), V_h=whole(2, 9)),
    case("clock.show_length", "of whole hours", """
        ? show_length(60 * V_h)
        ? show_length(V_b)
        ? show_length(0)
    """, V_b=whole(1, 59), V_h=whole(1, 9)),
    case("clock.round_up", "", """
        ? round_up(V_a, V_b)
        ? round_up(V_a * V_b, V_b)
        ? round_up(V_a)
    """, V_a=whole(1, 500), V_b=whole(5, 40)),
    case("span.Span", "", """
        span = Span(V_a, V_a + V_b)
        ? (span.start, span.end)
        ! Span(V_a, V_a - 1)
        ? Span(V_a, V_a).length()
    """, V_a=whole(60, 900), V_b=whole(1, 90)),
    case("span.Span.length", "", """
        ? Span(V_a, V_a + V_b).length()
    """, V_a=whole(60, 900), V_b=whole(1, 90)),
    case("span.Span.holds", "", """
        span = Span(V_a, V_a + V_b)
        ? [span.holds(V_a + k) for k in (-1, 0, V_b - 1, V_b)]
    """, V_a=whole(60, 900), V_b=whole(3, 90)),
    case("span.Span.overlaps", "", """
        span = Span(V_a, V_a + 60)
        ? span.overlaps(Span(V_a + V_b, V_a + 99))
        ? span.overlaps(Span(V_a - V_b, V_a + 1))
        ? span.overlaps(Span(V_a + 70, V_a + 99))
    """, V_a=whole(60, 900), V_b=whole(1, 59)),
    case("span.Span.overlaps", "that touch", """
        span = Span(V_a, V_a + V_b)
        ? span.overlaps(Span(V_a + V_b, V_a + 99))
        ? span.overlaps(Span(V_a - V_b, V_a))
    """, V_a=whole(90, 900), V_b=whole(1, 59)),
    case("span.Span.common", "", """
        span = Span(V_a, V_a + 60)
        ? span.common(Span(V_a + V_b, V_a + 99)).label()
        ? span.common(Span(V_a - V_b, V_a + V_b)).label()
        ? span.common(Span(V_a + 60, V_a + 99))
    """, V_a=whole(60, 900), V_b=whole(1, 59)),
    case("span.Span.label", "", """
        ? Span(V_a, V_a + V_b).label()
    """, V_a=whole(60, 900), V_b=whole(1, 90)),
    case("span.parse_span", "", """
        ? parse_span(str(V_a) + ":15-" + str(V_b) + ":05").label()
    """, V_a=whole(0, 11), V_b=whole(12, 23)),
    case("span.merge_spans", "", """
        spans = [Span(V_a + 50, V_a + 90), Span(V_a, V_a + V_b), Span(V_a + 10, V_a + 20)]
        ? [one.label() for one in merge_spans(spans)]
        ? [one.label() for one in spans]
    """, V_a=whole(60, 900), V_b=whole(30, 70)),
    case("span.merge_spans", "that touch", """
        ? [one.label() for one in merge_spans([Span(V_a, V_a + V_b), Span(V_a + V_b, V_a + 99)])]
        ? merge_spans([])
    """, V_a=whole(60, 900), V_b=whole(30, 70)),
    case("plan.Plan", "", """
        plan = Plan()
        ? (plan.opening, plan.closing, plan.pause)
        ? (Plan(V_a, V_b, V_c).opening, Plan(V_a, V_b, V_c).closing, Plan(V_a, V_b, V_c).pause)
    """, V_a=whole(60, 90), V_b=whole(100, 900), V_c=whole(1, 9)),
    case("plan.Plan.can_book", "", """
        plan = Plan(V_a, V_a + 300)
        ? plan.can_book(Span(V_a, V_a + 300))
        ? plan.can_book(Span(V_a - 1, V_a + V_b))
        ? plan.can_book(Span(V_a + V_b, V_a + 301))
    """, V_a=whole(60, 900), V_b=whole(30, 70)),
    case("plan.Plan.can_book", "with a pause", """
        plan = Plan(0, 999, V_p)
        plan.book('x', Span(V_a, V_a + 60))
        ? [plan.can_book(Span(V_a + 60 + k, V_a + 90)) for k in (0, V_p - 1, V_p)]
        ? [plan.can_book(Span(0, V_a - k)) for k in (0, V_p - 1, V_p)]
    """, V_a=whole(60, 700), V_p=whole(2, 20)),
    case("plan.Plan.book", "", """
        plan = Plan(V_a, V_a + 300)
        ? plan.book(V_n, Span(V_a, V_a + V_b))
        ? plan.book('z', Span(V_a + 10, V_a + 90))
        ? plan.titles()
        ! plan.book(V_n, Span(V_a + 200, V_a + 210))
    """, V_a=whole(60, 900), V_b=whole(30, 70), V_n=name()),
    case("plan.Plan.cancel", "", """
        plan = Plan(V_a, V_a + 300)
        plan.book(V_n, Span(V_a, V_a + V_b))
        ? plan.cancel(V_n).label()
        ? plan.cancel(V_n)
        ? plan.titles()
    """, V_a=whole(60, 900), V_b=whole(30, 70), V_n=name()),
    case("plan.Plan.titles", "", """
        plan = Plan(0, 900)
        for place, title in enumerate(V_n): plan.book(title, Span(700 - 100 * place, 720 - 100 * place))
        ? plan.titles()
    """, V_n=names(3)),
    case("plan.Plan.busy", "", _TWO, """
        plan.book('z', Span(V_a + 60 + V_b, V_a + 100 + V_b))
        ? [one.label() for one in plan.busy()]
    """, V_a=whole(60, 900), V_b=whole(20, 60)),
    case("plan.Plan.gaps", "", _TWO, """
        ? [one.label() for one in plan.gaps()]
        ? [one.label() for one in plan.gaps(31)]
        ? [one.label() for one in plan.gaps(30)]
    """, V_a=whole(60, 900), V_b=whole(20, 60)),
    case("plan.Plan.gaps", "of a full day", """
        plan = Plan(V_a, V_a + 90)
        plan.book('x', Span(V_a, V_a + 90))
        ? plan.gaps()
    """, V_a=whole(60, 900)),
    case("plan.Plan.gaps", "of a free day", """
        plan = Plan(V_a, V_a + V_b)
        ? [one.label() for one in plan.gaps(V_b)]
        ? plan.gaps(V_b + 1)
    """, V_a=whole(60, 900), V_b=whole(20, 60)),
    case("plan.Plan.first_free", "", """
        plan = Plan(V_a, V_a + 400)
        plan.book('x', Span(V_a + 2, V_a + 110 + V_b))
        ? plan.first_free(V_b).label()
        ? plan.first_free(399)
    """, V_a=whole(60, 900), V_b=whole(20, 60)),
    case("plan.Plan.first_free", "after a pause", """
        plan = Plan(0, 900, V_b)
        plan.book('x', Span(0, 240))
        ? plan.first_free(V_b).label()
    """, V_b=whole(20, 60)),
    case("plan.Plan.first_free", "to the last minute", """
        plan = Plan(0, N_STEP * V_b)
        ? plan.first_free(N_STEP * V_b).label()
        ? plan.first_free(N_STEP * V_b + 1)
    """, V_b=whole(2, 9)),
    case("summary.total_busy", "", _TWO, """
        ? total_busy(plan)
        ? total_busy(Plan())
    """, V_a=whole(60, 900), V_b=whole(20, 60)),
    case("summary.share_busy", "", _TWO, """
        ? share_busy(plan)
        ? share_busy(Plan(5, 5))
    """, V_a=whole(60, 900), V_b=whole(20, 60)),
    case("summary.share_busy", "of one minute", """
        plan = Plan(V_a, V_a + 1)
        plan.book('x', Span(V_a, V_a + 1))
        ? share_busy(plan)
    """, V_a=whole(60, 900)),
    case("summary.agenda", "", _TWO, """
        ? agenda(plan, {'y': Span(V_a, V_a + 60), 'x': Span(V_b, V_a)})
    """, V_a=whole(60, 900), V_b=whole(20, 60)),
    case("summary.headline", "", _TWO, """
        ? headline(plan)
    """, V_a=whole(60, 900), V_b=whole(20, 60)),
    case("summary.headline", "of a full day", """
        plan = Plan(V_a, V_a + 90)
        plan.book('x', Span(V_a, V_a + 90))
        ? headline(plan)
    """, V_a=whole(60, 900)),
)  # fmt: skip
"""Its cases."""
