"""A scheduler: times of a day, spans, plans of bookings, summaries."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_schedule import CASES
from tetrathlon.envs.tools.repo.family import Family, whole

_CLOCK = '''"""Times of a day, in minutes since midnight."""


def parse_time(text):
    """Return the minutes of a time such as "9:05" or "17:30".

    Hours go from 0 to 23 and minutes from 0 to 59; anything else raises ValueError.
    """
    hours, _, minutes = text.partition(":")
    hour, minute = int(hours), int(minutes)
    if hour < 0 or hour > 23:
        raise ValueError("no such hour: " + text)
    if minute < 0 or minute > 59:
        raise ValueError("no such minute: " + text)
    return hour * 60 + minute


def show_time(minutes):
    """Return minutes as a time with two digits for hours and minutes, such as "09:05"; a day later begins anew."""
    minutes = minutes % 1440
    return str(minutes // 60).rjust(2, "0") + ":" + str(minutes % 60).rjust(2, "0")


def show_length(minutes):
    """Return how long something takes, such as "2h 05m", or "45m" for less than an hour, or "3h" for whole hours."""
    hours, rest = minutes // 60, minutes % 60
    if hours == 0:
        return str(rest) + "m"
    if rest == 0:
        return str(hours) + "h"
    return str(hours) + "h " + str(rest).rjust(2, "0") + "m"


def round_up(minutes, step=N_STEP):
    """Return the least multiple of step that is not before minutes."""
    return (minutes + step - 1) // step * step
'''
_SPAN = '''"""Spans of time."""

from PKG.clock import parse_time, show_time


class Span:
    """From a start up to an end, which is not in it; an end before the start raises ValueError."""

    def __init__(self, start, end):
        if end < start:
            raise ValueError("it ends before it begins")
        self.start = start
        self.end = end

    def length(self):
        """Return how many minutes there are."""
        return self.end - self.start

    def holds(self, minute):
        """Tell whether a minute is in the span."""
        return self.start <= minute < self.end

    def overlaps(self, other):
        """Tell whether there is a minute in both spans."""
        return self.start < other.end and other.start < self.end

    def common(self, other):
        """Return what is in both spans, as a span; None where nothing is."""
        if not self.overlaps(other):
            return None
        return Span(max(self.start, other.start), min(self.end, other.end))

    def label(self):
        """Return the span as text, such as "09:00-10:30"."""
        return show_time(self.start) + "-" + show_time(self.end)


def parse_span(text):
    """Return the span that a text such as "9:00-10:30" stands for."""
    start, _, end = text.partition("-")
    return Span(parse_time(start), parse_time(end))


def merge_spans(spans):
    """Return spans that hold the same minutes, in order; those that overlap or touch become one.

    The spans that were given stay as they are.
    """
    merged = []
    for span in sorted(spans, key=lambda one: one.start):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
'''
_PLAN = '''"""Plans of a day with bookings that do not overlap."""

from PKG.clock import round_up
from PKG.span import Span, merge_spans


class Plan:
    """Bookings of a room from opening to closing, in minutes.

    Between two bookings there must be at least pause minutes.
    """

    def __init__(self, opening=N_OPEN, closing=1080, pause=0):
        self.opening = opening
        self.closing = closing
        self.pause = pause
        self._bookings = {}

    def can_book(self, span):
        """Tell whether a span lies within the hours and keeps the pause from all bookings."""
        if span.start < self.opening or span.end > self.closing:
            return False
        wide = Span(span.start - self.pause, span.end + self.pause)
        return not any(wide.overlaps(other) for other in self._bookings.values())

    def book(self, title, span):
        """Book a span under a title; tell whether that could be done. A title that is taken raises KeyError."""
        if title in self._bookings:
            raise KeyError(title)
        if not self.can_book(span):
            return False
        self._bookings[title] = span
        return True

    def cancel(self, title):
        """Take a booking away and return its span; None if there is none of that title."""
        return self._bookings.pop(title, None)

    def titles(self):
        """Return the titles in the order in which the bookings begin."""
        return sorted(self._bookings, key=lambda title: self._bookings[title].start)

    def busy(self):
        """Return the spans that are booked, in order, those that touch as one."""
        return merge_spans(self._bookings.values())

    def gaps(self, least=1):
        """Return the free spans of at least so many minutes, in order; pauses are not looked at."""
        found, start = [], self.opening
        for span in self.busy():
            if span.start - start >= least:
                found.append(Span(start, span.start))
            start = span.end
        if self.closing - start >= least:
            found.append(Span(start, self.closing))
        return found

    def first_free(self, minutes):
        """Return the first span of so many minutes that can be booked and starts at a round time; None: there is none.

        A round time is a multiple of N_STEP minutes.
        """
        for gap in self.gaps(minutes):
            for start in range(round_up(gap.start), gap.end - minutes + 1, N_STEP):
                if self.can_book(Span(start, start + minutes)):
                    return Span(start, start + minutes)
        return None
'''
_SUMMARY = '''"""Summaries of plans."""

from PKG.clock import show_length


def total_busy(plan):
    """Return how many minutes of a plan are booked."""
    return sum(span.length() for span in plan.busy())


def share_busy(plan):
    """Return how much of a plan is booked, in whole per cent, rounded down; 0 for one that is never open."""
    minutes = plan.closing - plan.opening
    if minutes == 0:
        return 0
    return 100 * total_busy(plan) // minutes


def agenda(plan, spans):
    """Return a line for each title of a plan, in order: its label, a blank and the title.

    Args:
        plan: The plan.
        spans: Title -> span.
    """
    return [spans[title].label() + " " + title for title in plan.titles()]


def headline(plan):
    """Return a line such as "3 bookings, 2h 05m busy, longest gap 45m"; without a gap "no gap"."""
    gaps = [gap.length() for gap in plan.gaps()]
    rest = "longest gap " + show_length(max(gaps)) if gaps else "no gap"
    return str(len(plan.titles())) + " bookings, " + show_length(total_busy(plan)) + " busy, " + rest
'''
SCHEDULE = Family(
    "schedule",
    ("daybook", "roomkeeper", "slotwise", "timetable", "hourglass", "planboard"),
    """Plans the bookings of a room for a day, in minutes since midnight.

Rooms open at minute N_OPEN if nothing else is said, and what is searched for begins at multiples of N_STEP minutes.""",
    {"clock": _CLOCK, "span": _SPAN, "plan": _PLAN, "summary": _SUMMARY},
    CASES,
    {
        "parse_time": ("parse_time", "read_time", "minutes_of"),
        "show_time": ("show_time", "time_text", "as_clock"),
        "show_length": ("show_length", "length_text", "as_hours"),
        "round_up": ("round_up", "next_round", "raise_to"),
        "Span": ("Span", "Slot", "Stretch"),
        "overlaps": ("overlaps", "meets", "collides"),
        "holds": ("holds", "has_minute", "spans_minute"),
        "common": ("common", "shared_part", "cut_with"),
        "parse_span": ("parse_span", "read_span"),
        "merge_spans": ("merge_spans", "unite", "joined_spans"),
        "Plan": ("Plan", "Schedule", "Calendar"),
        "can_book": ("can_book", "is_free", "allows"),
        "first_free": ("first_free", "next_free", "earliest"),
        "gaps": ("gaps", "free_spans", "openings"),
        "total_busy": ("total_busy", "booked_minutes"),
        "share_busy": ("share_busy", "load_of", "percent_booked"),
        "agenda": ("agenda", "day_lines"),
        "headline": ("headline", "one_line", "brief_of"),
    },
    {"N_STEP": whole(5, 30), "N_OPEN": whole(400, 600)},
    (
        (
            "plan",
            "        self._bookings = {}\n\n",
            "\n    _bookings = {}\n\n",
        ),
        (
            "plan",
            "            start = span.end\n",
            "            start = span.start\n",
        ),
        (
            "span",
            "max(merged[-1].end, span.end)",
            "span.end",
        ),
        (
            "plan",
            "span.end + self.pause)",
            "span.end)",
        ),
        (
            "summary",
            "plan.busy())",
            "plan.gaps())",
        ),
    ),
)
