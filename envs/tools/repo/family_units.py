"""A converter of units: scales, conversion, quantities, recipes."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_units import CASES
from tetrathlon.envs.tools.repo.family import Family, of, whole

_SCALES = '''"""Units and how much of the smallest each is."""

_LENGTHS = {"mm": 1, "cm": 10, "m": 1000, "km": 1000000}
_WEIGHTS = {"g": 1, "kg": 1000, "t": 1000000}
_TIMES = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_KINDS = {"length": _LENGTHS, "weight": _WEIGHTS, "time": _TIMES}


class UnitError(ValueError):
    """A unit is not known, or two do not go together."""


def kind_of(unit):
    """Return the kind of a unit: length, weight or time; others raise UnitError."""
    for kind, table in _KINDS.items():
        if unit in table:
            return kind
    raise UnitError("no such unit: " + unit)


def factor_of(unit):
    """Return how many of the smallest of its kind a unit is: 1000 for m and kg, 60 for min."""
    return _KINDS[kind_of(unit)][unit]


def units_of(kind):
    """Return the units of a kind from the smallest to the largest; a kind that is not known has none."""
    table = _KINDS.get(kind, {})
    return sorted(table, key=lambda unit: table[unit])


def best_unit(amount, kind):
    """Return the largest unit of a kind of which there is at least one in an amount of the smallest, whatever its sign.

    For less than one of the smallest it is the smallest.
    """
    best = units_of(kind)[0]
    for unit in units_of(kind):
        if abs(amount) >= factor_of(unit):
            best = unit
    return best
'''
_CONVERT = '''"""Amounts from one unit to another."""

from PKG.scales import UnitError, factor_of, kind_of, units_of


def convert(amount, source, target, places=N_PLACES):
    """Return an amount of one unit in another, rounded to some places; two units of different kinds raise UnitError."""
    if kind_of(source) != kind_of(target):
        raise UnitError(source + " is no " + target)
    return round(amount * factor_of(source) / factor_of(target), places)


def to_smallest(parts):
    """Return how many of the smallest unit of their kind some parts, pairs of an amount and a unit, are together.

    Parts of different kinds raise UnitError. Without any it is 0.
    """
    total, first = 0, None
    for amount, unit in parts:
        if first is None:
            first = kind_of(unit)
        if kind_of(unit) != first:
            raise UnitError("different kinds")
        total += amount * factor_of(unit)
    return total


def split_up(amount, kind):
    """Return an amount of the smallest unit as pairs of a whole number and a unit, largest first, none with 0.

    What is below 0 raises ValueError; 0 gives an empty list.
    """
    if amount < 0:
        raise ValueError("below 0")
    parts, rest = [], amount
    for unit in reversed(units_of(kind)):
        count = rest // factor_of(unit)
        rest = rest % factor_of(unit)
        if count > 0:
            parts.append((count, unit))
    return parts


def to_fahrenheit(degrees):
    """Return degrees Celsius as degrees Fahrenheit, rounded to one place: nine fifths of them, and 32."""
    return round(degrees * 9 / 5 + 32, 1)


def to_celsius(degrees):
    """Return degrees Fahrenheit as degrees Celsius, rounded to one place: 32 less, and of that five ninths."""
    return round((degrees - 32) * 5 / 9, 1)
'''
_QUANTITY = '''"""Quantities: amounts with their units."""

from PKG.convert import convert, split_up
from PKG.scales import best_unit, factor_of, kind_of


class Quantity:
    """An amount of a unit; it never changes."""

    def __init__(self, amount, unit):
        self.amount = amount
        self.unit = unit
        self.kind = kind_of(unit)

    def size(self):
        """Return the amount in the smallest unit of its kind."""
        return self.amount * factor_of(self.unit)

    def in_unit(self, unit):
        """Return the same quantity in another unit of its kind."""
        return Quantity(convert(self.amount, self.unit, unit), unit)

    def plus(self, other):
        """Return the sum, in the unit of this one."""
        return Quantity(self.amount + other.in_unit(self.unit).amount, self.unit)

    def times(self, number):
        """Return the product of the quantity and a number."""
        return Quantity(self.amount * number, self.unit)

    def is_more(self, other, slack=0):
        """Tell whether this is larger than the other by more than slack of the smallest unit."""
        return self.size() > other.size() + slack

    def text(self):
        """Return the quantity as text, such as "12 cm"."""
        return str(self.amount) + " " + self.unit

    def long_text(self):
        """Return a whole quantity split up, such as "1 km 20 m", or "0" and its unit if there is nothing of it."""
        parts = split_up(self.size(), self.kind)
        if not parts:
            return "0 " + self.unit
        return " ".join(str(count) + " " + unit for count, unit in parts)


def parse_quantity(text):
    """Return the quantity that a text such as "12 cm" or "-3km" stands for; without a number ValueError is raised."""
    text = text.strip()
    unit = text.lstrip("-0123456789").strip()
    return Quantity(int(text.removesuffix(unit)), unit)


def in_best_unit(quantity):
    """Return a quantity in the largest unit of which it has at least one."""
    return quantity.in_unit(best_unit(quantity.size(), quantity.kind))
'''
_LISTS = '''"""Lists of quantities by names."""

from PKG.quantity import Quantity, in_best_unit, parse_quantity


def read_list(lines):
    """Return name -> quantity of lines such as "rope: 12 m"; those of the same name are added up.

    Empty lines and lines that begin with K_MARK are left out.
    """
    found = {}
    for line in lines:
        if not line.strip() or line.startswith(K_MARK):
            continue
        name, _, text = line.partition(":")
        quantity = parse_quantity(text.strip())
        name = name.strip()
        found[name] = found[name].plus(quantity) if name in found else quantity
    return found


def scale_list(quantities, number):
    """Return a new dict of name -> the product of its quantity and a number."""
    return {name: quantity.times(number) for name, quantity in quantities.items()}


def largest_of(quantities, kind):
    """Return the name of the largest quantity of a kind, the first of equals; None if there is none."""
    best = None
    for name, quantity in quantities.items():
        if quantity.kind != kind:
            continue
        if best is None or quantity.is_more(quantities[best]):
            best = name
    return best


def total_of(quantities, unit):
    """Return the sum, in a unit, of all quantities of its kind; 0 of it if there is none."""
    total = Quantity(0, unit)
    for quantity in quantities.values():
        if quantity.kind == total.kind:
            total = total.plus(quantity)
    return total


def show_list(quantities):
    """Return a line "name: quantity" for each, in alphabetical order of the names, each in its best unit."""
    return [name + ": " + in_best_unit(quantities[name]).text() for name in sorted(quantities)]
'''
UNITS = Family(
    "units",
    ("measurekit", "gaugework", "unitwise", "yardstick", "scalebook", "metricly"),
    """Converts lengths, weights and spans of time.

Amounts are rounded to N_PLACES places if nothing else is said. In lists, lines that begin with K_MARK are comments.""",
    {"scales": _SCALES, "convert": _CONVERT, "quantity": _QUANTITY, "lists": _LISTS},
    CASES,
    {
        "kind_of": ("kind_of", "kind_for", "sort_of"),
        "factor_of": ("factor_of", "smallest_in", "ratio_of"),
        "units_of": ("units_of", "all_units"),
        "best_unit": ("best_unit", "fitting_unit", "handy_unit"),
        "to_smallest": ("to_smallest", "sum_up", "in_smallest"),
        "split_up": ("split_up", "break_down", "decompose"),
        "Quantity": ("Quantity", "Measure", "Amount"),
        "in_unit": ("in_unit", "as_unit", "expressed_in"),
        "plus": ("plus", "added_to", "summed_with"),
        "times": ("times", "scaled", "multiplied"),
        "is_more": ("is_more", "exceeds", "is_larger"),
        "long_text": ("long_text", "in_words", "full_text"),
        "parse_quantity": ("parse_quantity", "read_quantity"),
        "in_best_unit": ("in_best_unit", "neatly", "simplified"),
        "read_list": ("read_list", "parse_list", "load_list"),
        "scale_list": ("scale_list", "enlarge"),
        "largest_of": ("largest_of", "biggest_of"),
        "total_of": ("total_of", "sum_in"),
        "show_list": ("show_list", "list_lines"),
    },
    {"N_PLACES": whole(2, 4), "K_MARK": of("#", "//", "%", ";", "--")},
    (
        (
            "scales",
            '"min": 60, "h": 3600',
            '"min": 60, "h": 360',
        ),
        (
            "scales",
            '"weight": _WEIGHTS',
            '"weight": _LENGTHS',
        ),
        (
            "convert",
            "        rest = rest % factor_of(unit)\n        if count > 0:\n",
            "        if count > 0:\n",
        ),
        (
            "convert",
            "(degrees - 32) * 5 / 9",
            "degrees - 32 * 5 / 9",
        ),
        (
            "quantity",
            "other.in_unit(self.unit).amount",
            "other.amount",
        ),
        (
            "lists",
            "        name = name.strip()\n",
            "",
        ),
    ),
)
